// SPDX-License-Identifier: Apache-2.0
// Automatic differentiation of eager mode: a tape records the operators that depend on watched tensors.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/eager/eager_interpreter.h"

namespace mge {

// A tape of an interpreter. Records from Start() to Stop(). It keeps the recorded tensors, and may compute any number of
// gradients. Gradients are computed by eager operators, which other tapes that record at that time record too. Thread-safe.
class EagerTape : public std::enable_shared_from_this<EagerTape> {
 public:
  explicit EagerTape(std::shared_ptr<EagerInterpreter> interpreter) : interpreter_(std::move(interpreter)) {}

  void Start();
  void Stop();
  // Records the operators that read this tensor from now on. Fails with kApiMisuse for a tensor of another interpreter.
  absl::Status Watch(const EagerTensorPtr& tensor);

  // Returns the gradient of the sum of the target's elements, each weighted by `weights` (nullptr: 1), by each source; nullptr
  // where the target does not depend on a source, or the source is neither watched nor computed from a watched tensor. Waits for the recorded operators if their types were not known when they
  // were called. Fails with kUnsupportedFeature, which names the operator, if a gradient rule is missing, and with kBadInput
  // for a target that is not floating or weights that do not fit.
  absl::StatusOr<std::vector<EagerTensorPtr>> Gradient(const EagerTensorPtr& target, std::span<const EagerTensorPtr> sources,
                                                       const EagerTensorPtr& weights = nullptr);

  // Adds a call if it depends on a watched tensor. For EagerInterpreter.
  void Record(const std::shared_ptr<EagerCall>& call, std::span<const EagerTensorPtr> inputs,
              std::span<const EagerTensorPtr> outputs);

  size_t size() const;  // the number of recorded calls

 private:
  struct Entry {
    std::shared_ptr<EagerCall> call;
    std::vector<EagerTensorPtr> inputs, outputs;
  };
  using Gradients = std::unordered_map<const EagerValue*, EagerTensorPtr>;

  // Adds the gradients of an entry's inputs that are in `depends`.
  absl::Status GoBack(const Entry& entry, const std::unordered_set<const EagerValue*>& depends, Gradients& gradients);

  const std::shared_ptr<EagerInterpreter> interpreter_;
  mutable std::mutex mutex_;  // guards the members below
  std::vector<EagerTensorPtr> watched_;
  std::unordered_set<const EagerValue*> tracked_;  // watched values, and those that depend on them
  std::vector<Entry> entries_;
};

}  // namespace mge
