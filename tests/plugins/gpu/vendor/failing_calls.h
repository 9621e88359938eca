// SPDX-License-Identifier: Apache-2.0
// Uses of a driver in software whose calls fail, one per round.
#pragma once

#include <algorithm>
#include <functional>

#include "fmt/format.h"
#include "tests/plugins/gpu/vendor/software_driver.h"

namespace mge {

// A call of one function of the driver, counted from 1.
using DriverCall = std::pair<std::string, uint64_t>;

// Returns whether a failing call of the function may leave an object that nobody can release.
inline bool ReleasesSomething(const std::string& function) {
  for (const char* word : {"Free", "Destroy", "Release", "Unload", "Unmap", "PushCurrent"}) {
    if (function.find(word) != std::string::npos) return true;
  }
  return false;
}

// Uses a driver with `devices` devices again and again. In each round, another call fails with `code`: the first calls of each
// function and a sample of the others, or all calls if MGE_TEST_EVERY_CALL is set. An error must name the function or the
// device, nothing may leak, and the next use must work. Returns how often the use failed, per function.
inline std::map<std::string, int> FailEachCall(const char* driver_file, int devices, const std::string& device_name,
                                               const std::vector<DriverCall>& counts, int code,
                                               const std::function<absl::Status()>& use) {
  const bool every = std::getenv("MGE_TEST_EVERY_CALL") != nullptr;
  std::map<std::string, int> failures;
  for (const auto& [function, count] : counts) {
    for (uint64_t n = 1; n <= count; n += every || n < 12 ? 1 : std::max<uint64_t>(1, count / 12)) {
      SCOPED_TRACE(fmt::format("{} call {} of {} returns {}", function, n, count, code));
      {
        DriverInSoftware driver(driver_file, devices);
        driver.Fail(function, n, code);
        const absl::Status status = use();
        if (!ReleasesSomething(function)) {
          EXPECT_EQ(driver.Live(), 0);
        }
        if (!status.ok()) {
          ++failures[function];
          EXPECT_NE(ErrorId(status), errors::kInternal.id) << FormatError(status);
          EXPECT_THAT(FormatError(status), testing::AnyOf(testing::HasSubstr(function), testing::HasSubstr(device_name)));
        }
      }
      DriverInSoftware driver(driver_file, devices);
      EXPECT_TRUE(use().ok());
    }
  }
  return failures;
}

// Loads a model on two devices of the backend "cuda" or "rocm" whose kernels are measured, and runs it with outputs in the
// memory of the device, at another place each time. Returns the first error.
inline absl::Status UseTwoDevices(const std::string& backend, const char* driver_file) {
  static constexpr char kModel[] =
      "input x : float32[4,4]\nconst w = float32[4,4]<0.5>\na = Relu(x) on \"{0}1\"\n"
      "b = MatMul(a, w) on \"{0}0\"\nc = Softmax(b) on \"{0}0\"\noutput c\n";
  MGE_ASSIGN_OR_RETURN(Graph graph, ParseGraphText(fmt::format(kModel, backend)));
  const std::string devices = fmt::format("{0}0+{0}1", backend);
  auto runtime = RuntimeOver(backend, driver_file,
                             {{"select.strategy", "profile"},
                              {"select.tensor_core_conversion", "1"},  // allows more than one candidate
                              {"select.measuring_seconds", "0.001"},
                              {"select.cache_type", "memory"}});
  MGE_ASSIGN_OR_RETURN(auto session, Session::Create(std::move(runtime), onnx::Model{std::move(graph), {}},
                                                     SessionOptions{.device = devices, .outputs_on_device = true}));
  const std::vector<HostValue> in = {Numbers({4, 4})};
  std::vector<std::vector<HostValue>> kept;  // so that each run has other memory for its output
  for (int run = 0; run < 8; ++run) {        // a plan keeps four graphs, and updates the oldest one after that
    RunState control;
    kept.emplace_back(1);
    MGE_RETURN_IF_ERROR(session->Run(in, kept.back(), control));
  }
  return absl::OkStatus();
}

}  // namespace mge
