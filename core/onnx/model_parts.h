// SPDX-License-Identifier: Apache-2.0
// The outermost message (ModelProto) of a model's file.
#pragma once

#include <string>
#include <vector>

#include "core/base/contained_file.h"
#include "core/onnx/reader.h"
#include "core/onnx/wire.h"

namespace mge::onnx {

// The undecoded parts of a ModelProto; they refer to the source's bytes.
struct ModelParts {
  Bytes graph;
  bool has_graph = false;
  std::vector<Bytes> opsets, functions;
};

// A model's file whose structure was read.
struct OpenedModel {
  WireSource source;
  DataFolders folders;  // of its external data
};

// Opens the file and reads its structure. Fails with kFileAccess or kLimit.
absl::StatusOr<OpenedModel> OpenModel(const std::string& path, const ReadOptions& options);

// Splits the outermost message. Fills `info` except operator sets, inputs and outputs. Fails with kNotOnnx or
// kMalformedModel.
absl::StatusOr<ModelParts> SplitModel(const WireSource& source, ModelInfo& info);

}  // namespace mge::onnx
