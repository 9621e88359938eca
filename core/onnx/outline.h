// SPDX-License-Identifier: Apache-2.0
// Reads the structure of a model's file, also if MGE cannot run the model: unknown operators, operator sets and types are
// not errors. Weights are not read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/onnx/reader.h"

namespace mge::onnx {

// The nodes of one operator: in the main graph, in bodies and in the model's own functions.
struct OperatorUse {
  std::string domain;  // "" is ai.onnx
  std::string name;
  int64_t version = 0;       // the imported version of the domain; 0: the domain is not imported
  int64_t count = 0;         // nodes
  int64_t in_bodies = 0;     // number of those nodes in bodies of control flow
  std::string first_node;    // the name of the first node, or of its first output if it has no name
  bool is_function = false;  // the model defines the operator itself
};

struct OutlineNode {
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs;
};

struct Outline {
  ModelInfo info;  // without fixed_inputs
  std::string graph_name;
  std::vector<OutlineNode> nodes;  // the main graph's, in the file's order
  int64_t body_nodes = 0;
  int64_t body_count = 0;
  int64_t function_count = 0;
  std::vector<OperatorUse> operators;  // sorted by domain and name
  int64_t weight_count = 0;            // initializers, those of bodies included
  int64_t weight_bytes = 0;            // sum over the weights whose type and shape are known
  std::vector<std::string> notes;      // one sentence per part that could not be read
};

// Fails with kFileAccess, kNotOnnx or kMalformedModel, and with kLimit if bodies nest too deep.
absl::StatusOr<Outline> ReadOutline(const std::string& path, const ReadOptions& options = {});

}  // namespace mge::onnx
