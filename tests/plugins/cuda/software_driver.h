// SPDX-License-Identifier: Apache-2.0
// The libcuda in software for tests of the CUDA backend.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "tests/plugins/gpu/vendor/software_driver.h"

namespace mge {

inline constexpr char kSoftwareDriver[] = MGE_BINARY_DIR "/lib/mge/test/libcuda.so.1";

class SoftwareDriver : public DriverInSoftware {
 public:
  explicit SoftwareDriver(int devices = 1, uint64_t memory = 0) : DriverInSoftware(kSoftwareDriver, devices, memory) {}
};

inline std::shared_ptr<Runtime> CudaRuntime(std::vector<Assignment> settings = {}) {
  return RuntimeOver("cuda", kSoftwareDriver, std::move(settings));
}

// Returns the result of the reference evaluators.
inline std::vector<float> DigitsOnHost(int64_t images = 3) {
  auto session = LoadDigits(CudaRuntime(), "host");
  EXPECT_TRUE(session.ok()) << FormatError(session.status());
  return *ResultsOf(**session, DigitsInput(images));
}

}  // namespace mge
