// SPDX-License-Identifier: Apache-2.0
// Reads ONNX models: converts the bytes of a file into a bound and well-formed Graph, or returns an error that
// names the problem and its place.
//
//   MGE_ASSIGN_OR_RETURN(onnx::Model model, onnx::ReadModel("resnet50.onnx"));
//   model.graph.inputs(); model.info.opsets;
//
// Large weights are read from their files when they are needed (Tensor::Lazy). A file that changes before that is an error,
// which names it.
// Model-local functions are inlined. Bodies of control-flow nodes become Graphs with captures
// (core/graph/graph.h). Only the declared types of inputs are used. Declared types of other values
// may be wrong and are ignored; InferTypes computes them.
//
// Training information and quantization annotations are skipped, because a run does not need them.
//
// Errors: kFileAccess, kNotOnnx, kMalformedModel (with the byte offset), kInvalidGraph,
// kInvalidNode, kInvalidTensor, kExternalData, kLimit, kUnsupportedVersion, kUnsupportedOp,
// kUnsupportedType, kUnsupportedFeature, and the errors of `allocator`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/source_file.h"
#include "core/base/tensor.h"
#include "core/graph/graph.h"

namespace mge::onnx {

inline constexpr int64_t kOldestIrVersion = 1;
inline constexpr int64_t kFirstIrWithOpsets = 3;
inline constexpr int64_t kNewestIrVersion = 14;
inline constexpr int64_t kNewestOpset = 28;  // of ai.onnx

// A file of external data in memory.
struct MemoryFile {
  std::string name;  // as the model writes it
  Bytes bytes;
  std::shared_ptr<const void> owner = nullptr;  // keeps the bytes; nullptr: they outlive the model
};

struct ReadOptions {
  int64_t max_file_bytes = (int64_t{1} << 31) - 1;  // protobuf's own limit for a message
  int64_t max_nodes = 4'000'000;
  // Maximum number of objects that the reader adds to those of the file: nodes of inlined functions and
  // captured values.
  int64_t max_expansions = 1'000'000;
  int max_depth = 100;                 // nesting of bodies and functions
  HostAllocator* allocator = nullptr;  // for small tensors and decoded ones; null: no budget; not owned
  // Folder of the external data. Empty: the folder of the model's file.
  std::string data_folder = {};
  // Files of the external data that are in memory: they take the place of files with these names.
  std::vector<MemoryFile> files = {};
  bool export_notes = false;  // fill ModelInfo::export_notes
};

struct OpsetImport {
  std::string domain;  // "" is ai.onnx
  int64_t version = 0;
};

struct NamedType {
  std::string name;
  ValueType type;
};

// Entries of a node's metadata_props that PyTorch's exporter has written. Empty where an entry is absent.
struct ExportNote {
  std::string call;    // pkg.torch.onnx.fx_node: the call in PyTorch
  std::string scopes;  // pkg.torch.onnx.name_scopes: the modules that contain the call
  std::string rules;   // pkg.onnxscript.rewriter.rule_name: the rewrites that created the node
};

// The metadata of a model.
struct ModelInfo {
  int64_t ir_version = 0;
  std::string producer_name;
  std::string producer_version;
  std::string domain;
  int64_t model_version = 0;
  std::string doc;
  std::vector<OpsetImport> opsets;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<NamedType> inputs;   // as declared, in the order of graph.inputs()
  std::vector<NamedType> outputs;  // as declared (not checked), in the order of graph.outputs()
  // Names of inputs with a default value in the model. They are constants of the graph; the caller cannot
  // set them.
  std::vector<std::string> fixed_inputs;
  // One sentence for each tolerated violation of ONNX's rules: the violation, and how the reader interprets it.
  std::vector<std::string> deviations;
  std::vector<std::string> densified;  // names of sparse initializers, which are dense constants of the graph
  // By the name of a node's first output: nodes of the main graph outside of functions. Empty without ReadOptions::export_notes.
  std::map<std::string, ExportNote> export_notes;
};

struct Model {
  Graph graph;
  ModelInfo info;
  std::shared_ptr<const SourceFile> file = nullptr;  // nullptr for a model from memory
};

absl::StatusOr<Model> ReadModel(const std::string& path, const ReadOptions& options = {});

// Reads a model from memory. Its weights are views of the bytes if the alignment allows. `owner` keeps `bytes` alive; if it is
// null, `bytes` must outlive the model. External data needs a data_folder; without one it fails with kExternalData.
absl::StatusOr<Model> ReadModelBytes(Bytes bytes, std::shared_ptr<const void> owner, const ReadOptions& options = {});

}  // namespace mge::onnx
