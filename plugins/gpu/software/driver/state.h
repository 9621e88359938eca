// SPDX-License-Identifier: Apache-2.0
// The state of a driver in software: its devices and contexts, the calls that it counts, and the failures that tests
// request.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/gpu/software/device.h"
#include "plugins/gpu/software/stream.h"

namespace mge::software::driver {

// Codes of libcuda and libamdhip64.
enum Code : int {
  kOk = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kPeerEnabled = 704,
  kLaunchFailed = 719,
  kNotSupported = 801,
  kCaptureRefused = 900,
  kUpdateFailed = 910,
};

// A device and its primary context.
struct Context {
  explicit Context(DeviceOptions options) : device(std::move(options)) {}
  int ordinal() const { return device.options().number; }
  SoftwareDevice device;
  int references = 0;                 // guarded by Driver::mutex
  std::vector<const Context*> peers;  // contexts whose memory it may use; guarded by Driver::mutex
};

struct DriverStream {
  DriverStream(Context& c) : context(&c), stream(c.device, Stream::Kind::kCompute) {}
  Context* context;
  Stream stream;
  std::atomic<bool> capturing{false};
};

// An event that is recorded again gets the next value. Waits are for the last one.
struct DriverEvent {
  Context* context;
  std::shared_ptr<Event> event;
  std::atomic<uint64_t> value{0};
  std::shared_ptr<Stamp> stamp;  // null: without timing
};

// A graph or an executable graph.
struct Graph {
  std::shared_ptr<const Record> record;
};

// A loaded image. Its functions are those of the emulation.
struct Module {};
struct Function {
  uint32_t kernel;
};

// Physical memory of a device, which a range may map.
struct Physical {
  Context* context;
  uint64_t bytes;
  bool mapped = false, released = false;
};
struct Reservation {
  Context* context;
  uint64_t bytes;
};
struct Mapped {
  uint64_t bytes, physical;
  bool committed = false;
};

// The devices. Read from the file beside the library (its name with ".conf"); README.md shows its lines.
struct Configuration {
  int devices = 1;
  uint64_t memory = uint64_t{1} << 30;
  int version = 13000;
  int capability = 90;  // 10 * major + minor
  int multiprocessors = 4;
  double bandwidth_gb_s = 0;  // of copies to and from the host; 0: the speed of memory
  double launch_latency_us = 0;
  LinkMatrix links = {};  // without rows: all devices are peers at the speed of memory
};

// A failure that a test has requested: call number `call` of the function returns `code`.
struct RequestedFailure {
  std::string function;
  uint64_t call;
  int code;
};

// The driver. Functions are [any].
class Driver {
 public:
  static Driver& Get();

  // Counts a call. Returns the requested failure of this call, or kOk.
  int Count(int function);
  // Returns the code for a result, and keeps the text of an error.
  int CodeOf(const Result& result);
  // Returns the context of an ordinal, or null.
  Context* Find(int ordinal);
  // Returns the context that is current in this thread, or null.
  static Context* Current();
  static bool Push(Context* context);
  static Context* Pop();
  // Marks the device of the context as lost.
  int MarkLost(Context& context, std::string_view why);
  void Reset();

  std::mutex mutex;
  Configuration configuration;
  bool initialized = false;
  std::vector<std::unique_ptr<Context>> contexts;
  std::map<uint64_t, Physical> physical;
  uint64_t next_physical = 1;
  std::map<const char*, Reservation> reservations;
  std::map<const char*, Mapped> mappings;
  std::vector<uint64_t> counts;
  std::vector<RequestedFailure> failures;
  std::string error;
  std::atomic<int64_t> live{0};  // objects and allocations that are not released

 private:
  Driver();
};

// Names of the exported functions, in the order of functions.h. Null ends the list. (exports.cc)
extern const char* const kFunctionNames[];

// Enqueues work that is not a kernel. Returns a code.
int Enqueue(void* stream, std::shared_ptr<HostWork> work, const HostWorkCall& call);

}  // namespace mge::software::driver
