// SPDX-License-Identifier: Apache-2.0
// Examples for a training: an array per input, whose first dimension counts the examples, and batches of them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/cli/common.h"
#include "mge/mge.hpp"

namespace mge::cli {

class TrainingData {
 public:
  // Reads the arrays of the first `count` inputs of a session: from `archive`, a .npz file with arrays of these names, or from
  // `files`, "NAME=FILE". Sets *usage to the exit code after reporting a wrong option.
  static Status Read(const Globals& globals, const Session& session, size_t count, const std::string& archive,
                     const std::vector<std::string>& files, TrainingData* out, int* usage);

  int64_t examples() const { return examples_; }
  const std::vector<Tensor>& arrays() const { return arrays_; }  // in the order of the inputs
  // Copies the examples with these numbers to new tensors, one per input. The tensors have rows for all of them, but only
  // those of `part` are written.
  Status Batch(std::span<const int64_t> numbers, const Session::Part& part, std::vector<Tensor>* out) const;
  Status Batch(std::span<const int64_t> numbers, std::vector<Tensor>* out) const {
    return Batch(numbers, {0, static_cast<int64_t>(numbers.size())}, out);
  }

 private:
  std::vector<Tensor> arrays_;
  int64_t examples_ = 0;
};

}  // namespace mge::cli
