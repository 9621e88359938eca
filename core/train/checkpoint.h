// SPDX-License-Identifier: Apache-2.0
// Files that hold the whole state of a training, so that it can continue after the end of its process.
//
// Numbers are little-endian. A text is its length (uint64) and its bytes.
//   "MGE checkpoint 1"          16 bytes
//   optimizer, notes            texts
//   number of states            uint64
//   each state                  name (text), element type (uint32), rank (uint32), sizes (int64 each), elements
//   checksum                    16 bytes: XXH3-128 of everything before, in canonical order
#pragma once

#include <map>
#include <string>

#include "core/base/tensor.h"

namespace mge {

struct Checkpoint {
  std::string optimizer;                      // of mge/optimizers.hpp
  std::string notes = {};                     // a text of the application, such as its position in the data
  std::map<std::string, Tensor> states = {};  // by name, in host memory
};

// Writes a checkpoint completely or not at all. An earlier file of the name stays until then. Errors: kFileWrite.
absl::Status WriteCheckpoint(const Checkpoint& checkpoint, const std::string& path);

// Reads a checkpoint and compares its checksum. Fails with kFileAccess, kOutOfMemory, or kBadInputFile if the file is no
// checkpoint or is damaged.
absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& path);

}  // namespace mge
