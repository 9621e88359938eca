// SPDX-License-Identifier: Apache-2.0
// Faults on demand: what goes wrong on a software GPU, and when.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mge/plugin.hpp"

namespace mge::software {

// What is counted, per device and from 1: allocations as they are asked for (slabs of device and page-locked memory, memory
// under a range), copies (fills among them) and kernels as they begin on the device, and copies and kernels together.
enum class Operation : uint8_t { kAllocation, kCopy, kKernel, kAny };
inline constexpr int kOperations = 4;

enum class Effect : uint8_t {
  kNone,
  kFail,  // the operation does nothing and fails
  kSlow,  // it takes so much longer
  kHang,  // it never ends; destroying its stream ends it
  kLost,  // the device is lost from here on
};

struct FaultRule {
  int device = -1;  // -1: each
  Operation operation = Operation::kAny;
  uint64_t from = 1;
  uint64_t to = 1;
  Effect effect = Effect::kFail;
  std::chrono::microseconds delay{0};  // kSlow
  std::string text;                    // as written
};

// Reads a list of rules separated by ',' or ';':
//
//   [DEVICE:]OPERATION@N[+]=EFFECT      OPERATION: allocation, copy, kernel, any
//                                       EFFECT:    fail, slow(TIME), hang, lost; TIME: 20us, 50ms, 1.5s
//
// "copy@2=fail" fails each device's second copy, "1:kernel@5+=slow(20ms)" slows every kernel of device 1 from the fifth on.
// An error names the rule and what is allowed.
Result ParseFaults(std::string_view text, std::vector<FaultRule>* out);

// The faults of one device. [any]
class Faults {
 public:
  Faults() = default;
  Faults(const std::vector<FaultRule>& rules, int device);

  // Counts an operation and answers the rule that hits it; null if none does.
  const FaultRule* Next(Operation operation);

 private:
  std::vector<FaultRule> rules_;
  std::array<std::atomic<uint64_t>, kOperations> counts_{};
};

}  // namespace mge::software
