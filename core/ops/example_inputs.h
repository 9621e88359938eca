// SPDX-License-Identifier: Apache-2.0
// Makes up inputs, to try or to time a model without data.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/tensor.h"
#include "core/graph/graph.h"

namespace mge {

struct ExampleOptions {
  uint64_t seed = 0;
  std::map<std::string, Shape> shapes = {};  // chosen shapes of made-up inputs, by name
  // 0: floats in [-1, 1) and integers by rule. 1: floats in (0, 1]. 2: floats all 1, integers all 1 where 1 is allowed.
  int variant = 0;
};

// A size that the model leaves open.
struct ChosenSize {
  int axis = 0;
  std::string name;  // the dimension's; may be empty
  int64_t size = 0;
  std::string reason;
};

// A report of how one input was made.
struct ExampleInput {
  bool given = false;  // the caller gave it
  Shape shape = {};
  std::vector<ChosenSize> chosen = {};
  std::string values = {};  // "floats in [-1, 1)"
};

// Fills the undefined elements of `inputs`, which has one element per input of the graph. Chooses open sizes so that all shapes
// of the graph that follow from its inputs fit. Fails with kBadInput if no size that was tried fits, and with kUsage if
// `options.shapes` names no input. The same options give the same values on every machine.
absl::StatusOr<std::vector<ExampleInput>> MakeExampleInputs(const Graph& graph, const ExampleOptions& options,
                                                            std::span<HostValue> inputs,
                                                            HostAllocator& allocator = UnlimitedHostAllocator());

// Reads "1x3x224x224". Fails with kUsage.
absl::StatusOr<Shape> ParseShapeText(std::string_view text);

// The two parts of MakeExampleInputs. Sets `typed` to a copy of the graph with the chosen types, the others inferred;
// leaves it alone if all inputs are given.
absl::Status ChooseExampleShapes(const Graph& graph, const ExampleOptions& options, std::span<const HostValue> given,
                                 std::vector<ExampleInput>* out, Graph* typed);
// Returns values for one input. Sets `words` to a description of them.
absl::StatusOr<HostValue> MakeExampleValue(const Graph& typed, size_t input, const ExampleOptions& options, const Shape& shape,
                                           HostAllocator& allocator, std::string* words);

}  // namespace mge
