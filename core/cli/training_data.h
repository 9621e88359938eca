// SPDX-License-Identifier: Apache-2.0
// Examples for a training: an array per input, whose first dimension counts the examples, and batches of them. The arrays of a folder
// stay in their files: a batch reads its examples.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/cli/common.h"
#include "core/cli/row_files.h"
#include "mge/mge.hpp"

namespace mge::cli {

class TrainingData {
 public:
  // Reads the arrays of the first `count` inputs of a session: from `archive`, a .npz file with arrays of these names or a folder
  // of FilesOfArray(), or from `files`, "NAME=FILE". Sets *usage to the exit code after reporting a wrong option.
  static Status Read(const Globals& globals, const Session& session, size_t count, const std::string& archive,
                     const std::vector<std::string>& files, TrainingData* out, int* usage);

  int64_t examples() const { return examples_; }
  std::vector<int64_t> label_dims() const;  // of the labels, the last input, of all examples
  // Calls visit(labels of some examples) until it returns false.
  Status ForEachLabels(const std::function<bool(const Tensor& labels)>& visit) const;
  // Copies the examples with these numbers to new tensors, one per input. The tensors have rows for all of them, but only
  // those of `part` are written.
  Status Batch(std::span<const int64_t> numbers, const Session::Part& part, std::vector<Tensor>* out) const;
  Status Batch(std::span<const int64_t> numbers, std::vector<Tensor>* out) const {
    return Batch(numbers, {0, static_cast<int64_t>(numbers.size())}, out);
  }

 private:
  // The array of an input.
  struct Array {
    Tensor tensor;  // undefined: it is in `files`
    RowFiles files;
    bool widens;  // class numbers in files become int64
    std::vector<int64_t> dims() const;
    mge_dtype dtype() const { return tensor ? tensor.dtype() : files.dtype(); }
  };
  // Reads or opens the array of an input.
  static Status ReadArray(const Session& session, size_t input, const std::string& path, Array* out, std::string* problem);
  // Copies rows of an array to a new tensor that has `count` rows, from row `first` on.
  Status Rows(const Array& array, std::span<const int64_t> numbers, int64_t first, int64_t count, Tensor* out) const;

  std::vector<Array> arrays_;  // in the order of the inputs
  int64_t examples_ = 0;
};

}  // namespace mge::cli
