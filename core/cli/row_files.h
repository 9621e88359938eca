// SPDX-License-Identifier: Apache-2.0
// An array whose rows lie in one or more .npy files. Only rows that are asked for are read.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mge/mge.hpp"

namespace mge::cli {

class RowFiles {
 public:
  // Opens the files, whose rows follow one another. Sets *problem, and leaves the rest undefined, if one cannot be read row by
  // row, or has other rows than the first one.
  static Status Open(const std::vector<std::string>& paths, RowFiles* out, std::string* problem);

  int64_t rows() const { return files_.empty() ? 0 : files_.back().end; }
  mge_dtype dtype() const { return dtype_; }
  const std::vector<int64_t>& row_dims() const { return row_dims_; }
  size_t row_bytes() const { return row_bytes_; }
  // Copies rows with these numbers to `to`, one after the other.
  Status Copy(std::span<const int64_t> numbers, char* to) const;

 private:
  struct File {
    std::string path;
    std::shared_ptr<const int> fd;
    int64_t begin, end;  // rows
    int64_t data;        // place of the first row in the file, in bytes
  };
  Status Add(const std::string& path, std::string* problem);

  std::vector<File> files_;
  mge_dtype dtype_ = MGE_DTYPE_UNDEFINED;
  std::vector<int64_t> row_dims_;
  size_t row_bytes_ = 0;
};

// Returns the paths of the files NAME.npy and NAME-*.npy of a folder, sorted.
std::vector<std::string> FilesOfArray(const std::string& folder, const std::string& name);

}  // namespace mge::cli
