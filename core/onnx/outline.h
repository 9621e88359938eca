// SPDX-License-Identifier: Apache-2.0
// What a model's file says, read without asking whether MGE can run it: unknown operators, operator sets and types are facts
// here, not errors. Weights are not read.
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
  int64_t version = 0;     // of its domain, as imported; 0: the domain is not imported
  int64_t count = 0;
  int64_t in_bodies = 0;   // of these in bodies of control flow
  std::string first_node;  // its name, or that of its first output
  bool is_function = false;  // the model defines it itself
};

struct OutlineNode {
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs;
};

struct Outline {
  ModelInfo info;  // without fixed_inputs
  std::string graph_name;
  std::vector<OutlineNode> nodes;  // of the main graph, in the file's order
  int64_t body_nodes = 0;
  int64_t body_count = 0;
  int64_t function_count = 0;
  std::vector<OperatorUse> operators;  // by domain and name
  int64_t weight_count = 0;            // initializers, those of bodies included
  int64_t weight_bytes = 0;            // where their type and shape are known
  std::vector<std::string> notes;      // what could not be read, in sentences
};

// kFileAccess, kNotOnnx, kMalformedModel, and kLimit for what nests too deep.
absl::StatusOr<Outline> ReadOutline(const std::string& path, const ReadOptions& options = {});

}  // namespace mge::onnx
