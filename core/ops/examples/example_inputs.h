// SPDX-License-Identifier: Apache-2.0
// Generates inputs, so that a model can be tried or timed without data.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/tensor.h"
#include "core/graph/graph.h"

namespace mge {

// The user's choices for generated inputs.
struct ExampleOptions {
  uint64_t seed = 0;
  std::map<std::string, Shape> shapes = {};  // shapes of generated inputs, by input name
  // The range of values. 0: floats in [-1, 1), integers by rule. 1: floats in (0, 1]. 2: all floats 1; all integers 1
  // if allowed.
  int variant = 0;
};

// A size that the model leaves open, and the chosen value.
struct ChosenSize {
  int axis = 0;
  std::string name;  // name of the dimension; may be empty
  int64_t size = 0;
  std::string reason;
};

// The description of one input.
struct ExampleInput {
  bool given = false;  // true if the caller supplied the value
  Shape shape = {};
  std::vector<ChosenSize> chosen = {};
  std::string values = {};  // a description, such as "floats in [-1, 1)"
};

// Generates values for the undefined elements of `inputs`, which must have one element per graph input. Chooses open
// sizes so that all shapes that follow from the inputs are valid. Fails with kBadInput if no valid sizes were found,
// and with kUsage if `options.shapes` names an unknown input. The same options give the same values on every machine.
absl::StatusOr<std::vector<ExampleInput>> MakeExampleInputs(const Graph& graph, const ExampleOptions& options,
                                                            std::span<HostValue> inputs,
                                                            HostAllocator& allocator = UnlimitedHostAllocator());

// Parses a shape such as "1x3x224x224". Fails with kUsage.
absl::StatusOr<Shape> ParseShapeText(std::string_view text);

// Chooses the shapes; the first part of MakeExampleInputs. Sets `typed` to a copy of the graph with the chosen and
// inferred types. Leaves `typed` unchanged if the caller supplied all inputs.
absl::Status ChooseExampleShapes(const Graph& graph, const ExampleOptions& options, std::span<const HostValue> given,
                                 std::vector<ExampleInput>* out, Graph* typed);

}  // namespace mge
