// SPDX-License-Identifier: Apache-2.0
// The fake driver. Each stream is a thread. Functions return TOY_NO_MEMORY instead of throwing.
#include "toy_driver.h"

#include <signal.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kDevices = 2;
constexpr uint64_t kMemory = uint64_t{256} << 20;  // of each device, in bytes
constexpr char kMagic[] = "toy 7.2 ";              // the first bytes of a program's binary
std::atomic<uint64_t> g_used[kDevices];
struct sigaction g_handler_before;

// Completes once. Shared by the stream that records it and the streams that wait for it.
struct Completion {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  void Set() {
    std::lock_guard lock(mutex);
    done = true;
    changed.notify_all();
  }
  void Await() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return done; });
  }
};

template <typename F>
toy_status NoThrow(F f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return TOY_NO_MEMORY;
  } catch (...) {
    return TOY_INVALID;
  }
}

float Step(const std::string& step, float x, float second) {
  if (step == "add") return x + second;
  if (step == "relu") return x < 0 ? 0 : x;  // NaN stays NaN
  if (step == "neg") return -x;
  return std::fabs(x);
}

std::vector<std::string> StepsOf(const std::string& source) {
  std::istringstream in(source);
  std::vector<std::string> steps;
  for (std::string step; in >> step;) steps.push_back(step);
  return steps;
}

}  // namespace

struct toy_memory {
  int device;
  std::vector<char> bytes;
  bool Has(uint64_t offset, uint64_t size) const { return offset <= bytes.size() && size <= bytes.size() - offset; }
};
struct toy_event {
  std::shared_ptr<Completion> completion;
};
struct toy_program {
  std::vector<std::string> steps;
  std::string binary;
};
struct toy_kernel {
  std::vector<std::string> steps;
  struct {
    toy_memory* memory;
    uint64_t offset;
  } arguments[3] = {};
};

struct toy_stream {
  toy_stream() : thread([this] { Run(); }) {}
  ~toy_stream() {
    Enqueue(nullptr);
    thread.join();
  }
  void Enqueue(std::function<void()> work) {
    std::lock_guard lock(mutex);
    queue.push_back(std::move(work));
    changed.notify_one();
  }
  void Run() {
    for (;;) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return !queue.empty(); });
      std::function<void()> work = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      if (!work) return;  // the stream is being destroyed
      work();
    }
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  std::thread thread;  // the last member: it uses the others
};

toy_status toy_start(void) {
  struct sigaction mine = {};
  mine.sa_handler = [](int) {};
  return sigaction(SIGUSR2, &mine, &g_handler_before) == 0 ? TOY_OK : TOY_INVALID;
}
void toy_stop(void) { sigaction(SIGUSR2, &g_handler_before, nullptr); }
const char* toy_version(void) { return "7.2"; }
int toy_device_count(void) { return kDevices; }
int toy_most_steps(int device) { return device == 0 ? 4 : 1; }
void toy_memory_info(int device, uint64_t* free_bytes, uint64_t* total_bytes) {
  *free_bytes = kMemory - g_used[device];
  *total_bytes = kMemory;
}

toy_status toy_memory_create(int device, uint64_t bytes, toy_memory** out) {
  if (bytes > kMemory) return TOY_NO_MEMORY;
  if (g_used[device].fetch_add(bytes) > kMemory - bytes) {
    g_used[device] -= bytes;
    return TOY_NO_MEMORY;
  }
  const toy_status status = NoThrow([&] {
    *out = new toy_memory{device, std::vector<char>(bytes)};
    return TOY_OK;
  });
  if (status != TOY_OK) g_used[device] -= bytes;
  return status;
}
void toy_memory_destroy(toy_memory* memory) {
  g_used[memory->device] -= memory->bytes.size();
  delete memory;
}
int toy_memory_device(const toy_memory* memory) { return memory->device; }
uint64_t toy_memory_bytes(const toy_memory* memory) { return memory->bytes.size(); }

toy_status toy_stream_create(int, toy_stream** out) {
  return NoThrow([&] {
    *out = new toy_stream();
    return TOY_OK;
  });
}
void toy_stream_destroy(toy_stream* stream) { delete stream; }

static toy_status Enqueue(toy_stream* stream, bool valid, std::function<void()> work) {
  if (!valid) return TOY_INVALID;
  return NoThrow([&] {
    stream->Enqueue(std::move(work));
    return TOY_OK;
  });
}
toy_status toy_write(toy_stream* stream, toy_memory* to, uint64_t offset, const void* from, uint64_t bytes) {
  return Enqueue(stream, to->Has(offset, bytes), [=] { std::memcpy(to->bytes.data() + offset, from, bytes); });
}
toy_status toy_read(toy_stream* stream, void* to, toy_memory* from, uint64_t offset, uint64_t bytes) {
  return Enqueue(stream, from->Has(offset, bytes), [=] { std::memcpy(to, from->bytes.data() + offset, bytes); });
}
toy_status toy_copy(toy_stream* stream, toy_memory* to, uint64_t to_offset, toy_memory* from, uint64_t from_offset,
                    uint64_t bytes) {
  return Enqueue(stream, to->Has(to_offset, bytes) && from->Has(from_offset, bytes),
                 [=] { std::memmove(to->bytes.data() + to_offset, from->bytes.data() + from_offset, bytes); });
}
toy_status toy_record(toy_stream* stream, toy_event** out) {
  return NoThrow([&] {
    auto event = std::make_unique<toy_event>(toy_event{std::make_shared<Completion>()});
    stream->Enqueue([completion = event->completion] { completion->Set(); });
    *out = event.release();
    return TOY_OK;
  });
}
toy_status toy_wait(toy_stream* stream, toy_event* event) {
  return Enqueue(stream, true, [completion = event->completion] { completion->Await(); });
}
void toy_event_destroy(toy_event* event) { delete event; }
toy_status toy_notify(toy_stream* stream, void (*function)(void* data), void* data) {
  return Enqueue(stream, true, [=] { function(data); });
}

toy_status toy_program_load(int device, const void* binary, uint64_t bytes, toy_program** out) {
  return NoThrow([&] {
    const std::string text(static_cast<const char*>(binary), bytes);
    if (!text.starts_with(kMagic)) return TOY_INVALID;
    std::vector<std::string> steps = StepsOf(text.substr(std::strlen(kMagic)));
    if (steps.size() > static_cast<size_t>(toy_most_steps(device))) return TOY_INVALID;
    *out = new toy_program{std::move(steps), text};
    return TOY_OK;
  });
}
toy_status toy_program_build(int device, const char* source, toy_program** out) {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the compiler
  return NoThrow([&] {
    for (const std::string& step : StepsOf(source)) {
      if (step != "add" && step != "relu" && step != "neg" && step != "abs") return TOY_NOT_BUILT;
    }
    const std::string binary = kMagic + std::string(source);
    const toy_status loaded = toy_program_load(device, binary.data(), binary.size(), out);
    return loaded == TOY_INVALID ? TOY_NOT_BUILT : loaded;
  });
}
uint64_t toy_program_binary(const toy_program* program, const void** out) {
  *out = program->binary.data();
  return program->binary.size();
}
void toy_program_destroy(toy_program* program) { delete program; }

toy_status toy_kernel_create(const toy_program* program, toy_kernel** out) {
  return NoThrow([&] {
    *out = new toy_kernel{program->steps};
    return TOY_OK;
  });
}
void toy_kernel_destroy(toy_kernel* kernel) { delete kernel; }
toy_status toy_kernel_argument(toy_kernel* kernel, int index, toy_memory* memory, uint64_t offset) {
  if (index < 0 || index > 2 || !memory || offset % TOY_ALIGNMENT != 0) return TOY_INVALID;
  kernel->arguments[index] = {memory, offset};
  return TOY_OK;
}
toy_status toy_launch(toy_stream* stream, toy_kernel* kernel, uint64_t count) {
  for (const auto& a : kernel->arguments) {
    if (a.memory && !a.memory->Has(a.offset, count * sizeof(float))) return TOY_INVALID;
  }
  return Enqueue(stream, kernel->arguments[0].memory && kernel->arguments[2].memory, [now = *kernel, count] {
    auto at = [&](int i) {
      const auto& a = now.arguments[i];
      return a.memory ? reinterpret_cast<float*>(a.memory->bytes.data() + a.offset) : nullptr;
    };
    for (uint64_t i = 0; i < count; ++i) {
      float x = at(0)[i];
      for (const std::string& step : now.steps) x = Step(step, x, at(1) ? at(1)[i] : 0);
      at(2)[i] = x;
    }
  });
}
