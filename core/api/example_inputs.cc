// SPDX-License-Identifier: Apache-2.0
// Generation of example inputs, and the report "mge.inputs/1" that describes them.
#include "core/ops/examples/example_inputs.h"

#include "core/api/json.h"
#include "core/api/objects.h"
#include "core/api/options.h"
#include "core/base/errors.h"
#include "fmt/format.h"

using mge::api::Json;
using mge::api::Misuse;

namespace {

absl::StatusOr<mge::ExampleOptions> ExampleOptionsOf(const mge_example_options* given) {
  MGE_ASSIGN_OR_RETURN(const mge_example_options o,
                       mge::api::CopyOptions(given, mge_example_options_init, "mge_example_options"));
  mge::ExampleOptions options;
  options.seed = o.seed;
  options.variant = o.variant;
  MGE_ASSIGN_OR_RETURN(std::vector<mge::Assignment> shapes, mge::api::Assignments(o.shapes, o.shape_count));
  for (const mge::Assignment& a : shapes) {
    MGE_ASSIGN_OR_RETURN(options.shapes[a.name], mge::ParseShapeText(a.text));
  }
  return options;
}

Json Rows(const mge::Graph& graph, const std::vector<mge::ExampleInput>& made) {
  Json rows = Json::array();
  for (size_t i = 0; i < made.size(); ++i) {
    const mge::Value& value = graph.value(graph.inputs()[i]);
    Json chosen = Json::array();
    for (const mge::ChosenSize& c : made[i].chosen) {
      chosen.push_back({{"axis", c.axis}, {"name", c.name}, {"size", c.size}, {"reason", c.reason}});
    }
    const std::vector<int64_t> shape(made[i].shape.begin(), made[i].shape.end());
    rows.push_back({{"name", value.name},
                    {"dtype", mge::DTypeName(value.type.dtype)},
                    {"shape", shape},
                    {"given", made[i].given},
                    {"chosen", std::move(chosen)},
                    {"values", made[i].values}});
  }
  return rows;
}

}  // namespace

mge_status* mge_session_example_inputs(mge_session* s, const mge_example_options* given, mge_tensor** inputs, size_t count,
                                       mge_string** out) try {
  MGE_API_NEEDS({"session", s}, {"inputs", count == 0 || inputs != nullptr}, {"out", out});
  if (count != mge_session_input_count(s)) {
    return Misuse("mge_session_example_inputs",
                  fmt::format("the model has {} inputs, input_count is {}", mge_session_input_count(s), count));
  }
  MGE_API_ASSIGN_OR_RETURN(mge::ExampleOptions options, ExampleOptionsOf(given));
  const mge::Graph& graph = s->session->graph();
  std::vector<mge::HostValue> values(count);
  for (size_t i = 0; i < count; ++i) {
    if (inputs[i]) values[i] = inputs[i]->value;
  }
  MGE_API_ASSIGN_OR_RETURN(std::vector<mge::ExampleInput> made, mge::MakeExampleInputs(graph, options, values));
  auto text = std::unique_ptr<mge_string>(
      mge::api::NewString(mge::api::Dump({{"schema", "mge.inputs/1"}, {"inputs", Rows(graph, made)}})));
  std::vector<std::unique_ptr<mge_tensor>> tensors(count);  // on error the caller gets none of them
  for (size_t i = 0; i < count; ++i) {
    if (!inputs[i]) tensors[i] = std::make_unique<mge_tensor>(mge_tensor{std::move(values[i])});
  }
  for (size_t i = 0; i < count; ++i) {
    if (tensors[i]) inputs[i] = tensors[i].release();
  }
  *out = text.release();
  return nullptr;
}
MGE_API_CATCH
