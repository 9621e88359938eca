// SPDX-License-Identifier: Apache-2.0
#include "core/train/unpack_sequences.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/ops/known_values.h"
#include "core/ops/rewrites/node_adder.h"

namespace mge {
namespace {

// Returns the integers of a known tensor; none if it is not known or has another type.
std::optional<std::vector<int64_t>> Integers(const Graph& graph, const std::vector<Tensor>& known, ValueId v) {
  const Tensor& computed = known[static_cast<size_t>(v)];
  const Tensor& t = computed.defined() ? computed : graph.value(v).constant;
  if (!t.defined() || !t.Held().ok()) return std::nullopt;
  const Tensor held = *t.Held();
  if (held.dtype() == DType::kI64) return std::vector<int64_t>(held.Data<int64_t>().begin(), held.Data<int64_t>().end());
  if (held.dtype() == DType::kI32) return std::vector<int64_t>(held.Data<int32_t>().begin(), held.Data<int32_t>().end());
  return std::nullopt;
}

// Returns the lengths of the parts; none if they are not known.
std::optional<std::vector<int64_t>> PartsOf(const Graph& graph, const std::vector<Tensor>& known, const Node& node) {
  if (node.inputs.size() < 2 || node.inputs[1] == kNone) return std::nullopt;
  const TensorType& split = graph.value(node.inputs[1]).type;
  std::optional<std::vector<int64_t>> lengths = Integers(graph, known, node.inputs[1]);
  if (!lengths || !split.has_rank || !split.dims.empty()) return split.has_rank ? lengths : std::nullopt;
  const TensorType& whole = graph.value(node.inputs[0]).type;  // a scalar is the length of all parts but the last
  const int64_t axis = node.attrs.Int("axis") + (node.attrs.Int("axis") < 0 ? static_cast<int64_t>(whole.dims.size()) : 0);
  if (!whole.has_rank || axis < 0 || axis >= static_cast<int64_t>(whole.dims.size())) return std::nullopt;
  int64_t rest = whole.dims[static_cast<size_t>(axis)];
  const int64_t length = lengths->at(0);
  constexpr int64_t kMaxParts = 1 << 16;
  if (length <= 0 || rest < 0 || rest / length > kMaxParts) return std::nullopt;
  std::vector<int64_t> out;
  for (; rest > 0; rest -= length) out.push_back(std::min(rest, length));
  return out;
}

// A node that reads one part of a sequence.
struct PartReader {
  NodeId node;
  size_t part;
};

// Returns the readers of a sequence; none if one of them is not a SequenceAt of a known part.
std::optional<std::vector<PartReader>> ReadersOf(const Graph& graph, const std::vector<Tensor>& known, ValueId sequence,
                                                 int64_t parts) {
  if (graph.OutputUses(sequence) > 0) return std::nullopt;
  std::vector<PartReader> out;
  const bool other = graph.AnyReader(sequence, [&](NodeId id) {
    const Node& node = graph.node(id);
    if (node.op != "SequenceAt" || !node.domain.empty() || graph.OutputUses(node.outputs[0]) > 0) return true;
    const auto at = Integers(graph, known, node.inputs[1]);
    if (!at || at->size() != 1) return true;
    const int64_t part = at->at(0) + (at->at(0) < 0 ? parts : 0);
    if (part < 0 || part >= parts) return true;
    out.push_back({id, static_cast<size_t>(part)});
    return false;
  });
  return other ? std::nullopt : std::optional(std::move(out));
}

}  // namespace

absl::Status UnpackSequences(Graph& graph) {
  const auto splits = [](const Node& node) { return !node.dead && node.op == "SplitToSequence" && node.domain.empty(); };
  bool any = false;
  for (NodeId id = 0; id < graph.node_count() && !any; ++id) any = splits(graph.node(id));
  if (!any) return absl::OkStatus();
  std::vector<Tensor> known;
  MGE_RETURN_IF_ERROR(InferKnownValues(graph, &known));
  for (NodeId id = 0, count = graph.node_count(); id < count; ++id) {
    if (!splits(graph.node(id))) continue;
    const Node node = graph.node(id);  // a copy: adding nodes moves it
    const auto lengths = PartsOf(graph, known, node);
    if (!lengths || lengths->empty()) continue;
    const auto readers = ReadersOf(graph, known, node.outputs[0], static_cast<int64_t>(lengths->size()));
    if (!readers) continue;
    NodeAdder add(graph, node);
    const std::vector<ValueId> parts = add.Add("Split", {node.inputs[0], add.Integers(*lengths)}, lengths->size(),
                                               IntAttribute("axis", node.attrs.Int("axis")));
    for (const PartReader& reader : *readers) {
      const ValueId old = graph.node(reader.node).outputs[0];
      graph.RemoveNode(reader.node);
      graph.ReplaceUses(old, parts[reader.part]);
    }
    graph.RemoveNode(id);
  }
  return absl::OkStatus();
}

}  // namespace mge
