// SPDX-License-Identifier: Apache-2.0
// A driver in software (plugins/gpu/software/driver) for tests of the backends: its functions for tests, and runtimes whose
// backends use it.
#pragma once

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/engine/session.h"
#include "plugins/gpu/software/driver/testing.h"
#include "tests/support/session_values.h"

namespace mge {

// The driver `file` of this process, reset to new devices. No runtime that uses the driver may exist when it is created.
class DriverInSoftware {
 public:
  explicit DriverInSoftware(const char* file, int devices = 1, uint64_t memory = 0)
      : library_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    if (!library_) {
      ADD_FAILURE() << dlerror();
      std::abort();
    }
    Get<decltype(mge_driver_reset)>("mge_driver_reset")(devices, memory);
  }
  uint64_t Calls(const char* function) const { return Get<decltype(mge_driver_calls)>("mge_driver_calls")(function); }
  void Fail(const std::string& function, uint64_t call, int code) {
    Get<decltype(mge_driver_fail)>("mge_driver_fail")(function.c_str(), call, code);
  }
  void MarkLost(int device) { Get<decltype(mge_driver_lose)>("mge_driver_lose")(device); }
  void SetVersion(int version) { Get<decltype(mge_driver_set_version)>("mge_driver_set_version")(version); }
  int64_t Live() const { return Get<decltype(mge_driver_live)>("mge_driver_live")(); }
  // Returns the counts of all functions.
  std::vector<std::pair<std::string, uint64_t>> AllCalls() const {
    std::vector<std::pair<std::string, uint64_t>> all;
    auto name = Get<decltype(mge_driver_function)>("mge_driver_function");
    for (int i = 0; name(i); ++i) all.emplace_back(name(i), Calls(name(i)));
    return all;
  }
  // Returns the calls that f() makes, except those that make a context current.
  template <typename F>
  std::map<std::string, uint64_t> CallsOf(F&& f) const {
    const auto before = AllCalls();
    f();
    std::map<std::string, uint64_t> calls;
    for (const auto& [name, count] : before) {
      if (name.find("CtxP") != std::string::npos) continue;
      if (const uint64_t more = Calls(name.c_str()) - count) calls[name] = more;
    }
    return calls;
  }

  // Returns a function of the driver.
  template <typename T>
  T* Get(const char* name) const {
    return reinterpret_cast<T*>(dlsym(library_, name));
  }

 private:
  void* library_;
};

// Returns a runtime whose backend "cuda" or "rocm" uses the driver `file`.
inline std::shared_ptr<Runtime> RuntimeOver(const std::string& backend, const char* file,
                                            std::vector<Assignment> settings = {},
                                            std::vector<std::pair<std::string, std::string>> variables = {}) {
  RuntimeOptions options;
  options.built_in_plugins = false;
  options.plugin_directories = {MGE_BINARY_DIR "/lib/mge/plugins"};
  options.sources.environment.variables = std::move(variables);
  options.sources.call = std::move(settings);
  options.sources.call.push_back({backend + ".driver", file});
  auto runtime = Runtime::Create(std::move(options));
  EXPECT_TRUE(runtime.ok()) << FormatError(runtime.status());
  return runtime.ok() ? *runtime : nullptr;
}

inline absl::StatusOr<std::shared_ptr<Session>> LoadDigits(std::shared_ptr<Runtime> runtime, const std::string& device) {
  return Session::Load(std::move(runtime), MGE_SOURCE_DIR "/packaging/digits/digits.onnx", {.device = device});
}
inline std::vector<HostValue> DigitsInput(int64_t images = 3) { return {Numbers({images, 1, 8, 8})}; }

// Runs digits nine times on a device, each time with other memory for its output: the plan keeps four graphs, and updates the
// oldest one after that.
inline void RunWithMovingOutputs(const std::shared_ptr<Runtime>& runtime, const std::string& device) {
  auto session =
      Session::Load(runtime, MGE_SOURCE_DIR "/packaging/digits/digits.onnx", {.device = device, .outputs_on_device = true});
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  std::vector<std::vector<HostValue>> kept;
  for (int run = 0; run < 9; ++run) {
    RunState control;
    kept.emplace_back(1);
    const absl::Status status = (*session)->Run(DigitsInput(), kept.back(), control);
    ASSERT_TRUE(status.ok()) << FormatError(status);
  }
}

}  // namespace mge
