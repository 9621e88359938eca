// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/software/driver/state.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>

namespace mge::software::driver {
namespace {

constexpr int kMaxContexts = 32;  // nested in one thread
thread_local Context* t_contexts[kMaxContexts];
thread_local int t_depth = 0;

// Returns the name of the file beside this library.
std::string ConfigurationFile() {
  Dl_info info = {};
  return dladdr(reinterpret_cast<const void*>(&ConfigurationFile), &info) ? std::string(info.dli_fname) + ".conf" : "";
}

void Read(std::istream& file, Configuration& configuration, std::vector<RequestedFailure>& failures) {
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key == "devices") words >> configuration.devices;
    if (key == "memory") words >> configuration.memory;
    if (key == "version") words >> configuration.version;
    if (key == "capability") words >> configuration.capability;
    if (key == "multiprocessors") words >> configuration.multiprocessors;
    if (key == "bandwidth") words >> configuration.bandwidth_gb_s;
    if (key == "launch_latency") words >> configuration.launch_latency_us;
    if (std::string path; key == "links" && words >> path) {
      if (Result r = LinkMatrix::Read(path, &configuration.links); !r.ok()) std::fprintf(stderr, "%s\n", r.text().c_str());
    }
    if (RequestedFailure f; key == "fail" && words >> f.function >> f.call >> f.code) failures.push_back(f);
  }
}

}  // namespace

Driver& Driver::Get() {
  static Driver* const driver = new Driver;  // never destroyed: threads of the process may call it until the end
  return *driver;
}

Driver::Driver() { Reset(); }

void Driver::Reset() {
  std::lock_guard lock(mutex);
  configuration = {};
  failures.clear();
  std::ifstream file(ConfigurationFile());
  Read(file, configuration, failures);
  size_t functions = 0;
  while (kFunctionNames[functions]) ++functions;
  counts.assign(functions, 0);
  initialized = false;
  contexts.clear();
  physical.clear();
  reservations.clear();
  mappings.clear();
  error.clear();
  live = 0;
}

int Driver::Count(int function) {
  std::lock_guard lock(mutex);
  const uint64_t call = ++counts[static_cast<size_t>(function)];
  for (const RequestedFailure& f : failures) {
    if (f.call == call && f.function == kFunctionNames[function]) return f.code;
  }
  return kOk;
}

int Driver::CodeOf(const Result& result) {
  if (result.ok()) return kOk;
  {
    std::lock_guard lock(mutex);
    error = result.text();
  }
  switch (result.code()) {
    case MGE_RESOURCE_EXHAUSTED: return kOutOfMemory;
    case MGE_INVALID_ARGUMENT: return kInvalidValue;
    case MGE_FAILED_PRECONDITION: return kCaptureRefused;
    case MGE_DEADLINE_EXCEEDED: return kNotReady;
    default: return kLaunchFailed;
  }
}

int Driver::MarkLost(Context& context, std::string_view why) {
  return CodeOf(Result{MGE_DEVICE_LOST, context.device.MarkLost(why)->text});
}

Context* Driver::Find(int ordinal) {
  std::lock_guard lock(mutex);
  return ordinal < 0 || ordinal >= static_cast<int>(contexts.size()) ? nullptr
                                                                     : contexts[static_cast<size_t>(ordinal)].get();
}

Context* Driver::Current() { return t_depth ? t_contexts[t_depth - 1] : nullptr; }

bool Driver::Push(Context* context) {
  if (t_depth == kMaxContexts) return false;
  t_contexts[t_depth++] = context;
  return true;
}

Context* Driver::Pop() { return t_depth ? t_contexts[--t_depth] : nullptr; }

}  // namespace mge::software::driver
