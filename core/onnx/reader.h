// SPDX-License-Identifier: Apache-2.0
// Reads ONNX models: foreign bytes in, a bound and well-formed Graph out, or an error that says
// what and where.
//
//   MGE_ASSIGN_OR_RETURN(onnx::Model model, onnx::ReadModel("resnet50.onnx"));
//   model.graph.inputs(); model.info.opsets;
//
// Weights are views of the file's bytes wherever their alignment allows, and keep the file's memory
// alive. Model-local functions are inlined; bodies of control-flow nodes become Graphs of their own
// with captures (core/graph/graph.h). Types are those that the model declares for its inputs; what
// nodes compute is left to InferTypes, for a declared type of an intermediate value is a claim that
// nobody has checked.
//
// Training information and quantization annotations do not concern a run and are skipped.
//
// Errors: kFileAccess, kNotOnnx, kMalformedModel (names the byte offset), kInvalidGraph,
// kInvalidNode, kInvalidTensor, kExternalData, kLimit, kUnsupportedVersion, kUnsupportedOp,
// kUnsupportedType, kUnsupportedFeature, and what `allocator` answers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/tensor.h"
#include "core/graph/graph.h"

namespace mge::onnx {

inline constexpr int64_t kOldestIrVersion = 1;
inline constexpr int64_t kFirstIrWithOpsets = 3;
inline constexpr int64_t kNewestIrVersion = 13;
inline constexpr int64_t kNewestOpset = 26;  // of ai.onnx

struct ReadOptions {
  int64_t max_file_bytes = (int64_t{1} << 31) - 1;  // protobuf's own limit for a message
  int64_t max_nodes = 4'000'000;
  // What the reader makes beyond the nodes of the file: nodes of inlined functions, captured
  // values.
  int64_t max_expansions = 1'000'000;
  int max_depth = 100;                 // bodies within bodies, functions within functions
  HostAllocator* allocator = nullptr;  // for tensors that cannot be views; null: without a limit
};

struct OpsetImport {
  std::string domain;  // "" is ai.onnx
  int64_t version = 0;
};

struct NamedType {
  std::string name;
  ValueType type;
};

// What a model says of itself.
struct ModelInfo {
  int64_t ir_version = 0;
  std::string producer_name;
  std::string producer_version;
  std::string domain;
  int64_t model_version = 0;
  std::string doc;
  std::vector<OpsetImport> opsets;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<NamedType> inputs;  // as declared, in the order of graph.inputs()
  std::vector<NamedType>
      outputs;  // as declared, in the order of graph.outputs(); a claim, see above
  // Inputs with a default value in the model. They are constants of the graph and take no value
  // from the caller.
  std::vector<std::string> fixed_inputs;
  // Sentences about rules of ONNX that the model breaks, as exporters do: what was found, and how it is read.
  std::vector<std::string> liberties;
};

struct Model {
  Graph graph;
  ModelInfo info;
};

absl::StatusOr<Model> ReadModel(const std::string& path, const ReadOptions& options = {});

// The same from memory. `owner` keeps `bytes` alive (nullptr: the caller does, longer than the
// model lives). External data is looked for in `model_directory`; if that is empty, a model that
// has some is refused.
absl::StatusOr<Model> ReadModelBytes(Bytes bytes, std::shared_ptr<const void> owner,
                                     const std::string& model_directory = {},
                                     const ReadOptions& options = {});

}  // namespace mge::onnx
