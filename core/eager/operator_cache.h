// SPDX-License-Identifier: Apache-2.0
// The eager operators that have been created so far.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/eager/eager_operator.h"

namespace mge {

// A cache of eager operators. Two calls have one operator if they agree in operator, attributes, devices, kinds, element types
// and ranks of the inputs, and in the elements of host operands on which the shapes of the results depend. If the cache is
// full, it forgets all operators; those in use live on. Thread-safe.
class OperatorCache {
 public:
  static constexpr size_t kMaxOperators = 4096;

  // Returns the operator of a call on these devices with these settings. Creates it if there is none. Fails like EagerOperator::Create().
  absl::StatusOr<std::shared_ptr<EagerOperator>> Find(const OperatorRequest& request, std::string_view devices,
                                                      std::span<const Operand> operands, const Snapshot& settings);
  size_t size() const;
  int64_t misses() const;

 private:
  // The calls that differ only in the elements of host operands.
  struct Family {
    bool any_constant = false;
    std::vector<bool> constant;            // by operand: it is a constant of the operator
    std::shared_ptr<EagerOperator> plain;  // if any_constant is false
  };
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Family> families_;
  std::unordered_map<std::string, std::shared_ptr<EagerOperator>> with_constants_;
  int64_t misses_ = 0;
};

}  // namespace mge
