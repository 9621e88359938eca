// SPDX-License-Identifier: Apache-2.0
// Inputs that are made up, to try or to time a model that nobody gave data for.
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
  std::map<std::string, Shape> shapes = {};  // by input, of those that are made up
  // 0: floats in [-1, 1), integers by rule. 1: floats in (0, 1]. 2: all floats 1, all integers 1 where that is allowed.
  int variant = 0;
};

// A size that the model leaves open.
struct ChosenSize {
  int axis = 0;
  std::string name;  // of the dimension; may be empty
  int64_t size = 0;
  std::string reason;
};

// How one input was made.
struct ExampleInput {
  bool given = false;  // by the caller: nothing was made up
  Shape shape = {};
  std::vector<ChosenSize> chosen = {};
  std::string values = {};  // "floats in [-1, 1)"
};

// Fills the undefined ones of `inputs`, one per input of the graph. Sizes that the graph leaves open are chosen so that all shapes
// of the graph fit, as far as they follow from its inputs. kBadInput if no size that was tried does, or if a shape is given for
// what is no input. The same options give the same values on every machine.
absl::StatusOr<std::vector<ExampleInput>> MakeExampleInputs(const Graph& graph, const ExampleOptions& options,
                                                            std::span<HostValue> inputs,
                                                            HostAllocator& allocator = UnlimitedHostAllocator());

// "1x3x224x224"; kUsage otherwise.
absl::StatusOr<Shape> ParseShapeText(std::string_view text);

// The parts of MakeExampleInputs. Shapes: gives `typed`, a copy of the graph, the chosen types and infers the rest.
absl::Status ChooseExampleShapes(const Graph& graph, const ExampleOptions& options, std::span<const HostValue> given,
                                 std::vector<ExampleInput>* out, Graph* typed);
// Values of one input, whose shape is known.
absl::StatusOr<HostValue> MakeExampleValue(const Graph& typed, size_t input, const ExampleOptions& options, const Shape& shape,
                                           HostAllocator& allocator, std::string* words);

}  // namespace mge
