// SPDX-License-Identifier: Apache-2.0
// Injected faults: which operation of a software GPU fails, and how.
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

// The operations that are counted, per device and from 1. Allocations (slabs of device and page-locked memory, commits of
// ranges) are counted on request, copies (fills included) and kernels when they begin on the device. kAny counts copies and
// kernels together.
enum class Operation : uint8_t { kAllocation, kCopy, kKernel, kAny };
inline constexpr int kOperations = 4;

// The effect of a fault on an operation.
enum class Effect : uint8_t {
  kNone,
  kFail,  // the operation does nothing and fails
  kSlow,  // it takes longer by `delay`
  kHang,  // it never ends; destroying its stream ends it
  kLost,  // the device is lost
};

// A fault: the operations that it affects, by number, and its effect.
struct FaultRule {
  int device = -1;  // -1: every device
  Operation operation = Operation::kAny;
  uint64_t from = 1;
  uint64_t to = 1;
  Effect effect = Effect::kFail;
  std::chrono::microseconds delay{0};  // kSlow
  std::string text;                    // the rule as written by the user
};

// Reads a list of rules separated by ',' or ';':
//
//   [DEVICE:]OPERATION@N[+]=EFFECT      OPERATION: allocation, copy, kernel, any
//                                       EFFECT:    fail, slow(TIME), hang, lost; TIME: 20us, 50ms, 1.5s
//
// "copy@2=fail" fails each device's second copy, "1:kernel@5+=slow(20ms)" slows every kernel of device 1 from the fifth on.
// An error text contains the rule and the allowed words.
Result ParseFaults(std::string_view text, std::vector<FaultRule>* out);

// The faults of one device. [any]
class Faults {
 public:
  Faults() = default;
  Faults(const std::vector<FaultRule>& rules, int device);

  // Counts an operation. Returns the rule that matches it, or null.
  const FaultRule* Next(Operation operation);

 private:
  std::vector<FaultRule> rules_;
  std::array<std::atomic<uint64_t>, kOperations> counts_{};
};

}  // namespace mge::software
