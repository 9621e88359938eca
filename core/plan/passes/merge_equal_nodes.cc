// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/ops/effects.h"
#include "core/ops/op.h"
#include "core/plan/passes/pass.h"
#include "core/plan/passes/replacements.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Appends the number of a value. For a small constant, appends its content, because exporters write equal constants again.
void AppendInput(const Graph& graph, ValueId v, std::string& key) {
  constexpr int64_t kSmallBytes = 64;
  if (v != kNone && graph.value(v).role == Role::kConstant) {
    const Tensor& tensor = graph.value(v).constant;
    if (tensor.dtype() != DType::kString && tensor.bytes() <= kSmallBytes) {
      absl::StrAppend(&key, static_cast<int>(tensor.dtype()), "[", absl::StrJoin(tensor.shape(), ","), "]:");
      key.append(static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes()));
      key += ',';
      return;
    }
  }
  absl::StrAppend(&key, v, ",");
}

// Returns a text that is equal for equal nodes, or "" if the node must not be merged.
std::string NodeKey(const Graph& graph, const Node& node) {
  std::string key = absl::StrCat(node.recomputed ? "again " : "", node.domain, "|", node.op, "|", node.version, "|");
  for (ValueId v : node.inputs) AppendInput(graph, v, key);
  absl::StrAppend(&key, "|", node.outputs.size(), "|");
  std::vector<std::string> attrs;
  for (const auto& [name, value] : node.attrs) {
    std::string text = name + "=";
    if (const auto* i = std::get_if<int64_t>(&value)) {
      absl::StrAppend(&text, "i", *i);
    } else if (const auto* f = std::get_if<float>(&value)) {
      text += fmt::format("f{:a}", *f);
    } else if (const auto* t = std::get_if<std::string>(&value)) {
      text += fmt::format("t{}:{}", t->size(), *t);
    } else if (const auto* ints = std::get_if<Ints>(&value)) {
      for (int64_t x : *ints) absl::StrAppend(&text, x, ",");
    } else if (const auto* floats = std::get_if<Floats>(&value)) {
      for (float x : *floats) text += fmt::format("{:a},", x);
    } else {
      return "";
    }
    attrs.push_back(std::move(text));
  }
  std::sort(attrs.begin(), attrs.end());
  for (const std::string& a : attrs) key += a + "|";
  return key;
}

}  // namespace

absl::StatusOr<int> MergeEqualNodes(Graph& graph, const PassContext&) {
  int changes = 0;
  std::unordered_map<std::string, NodeId> seen;
  Replacements replacements(graph);
  MGE_ASSIGN_OR_RETURN(std::vector<NodeId> order, graph.TopologicalOrder());
  for (NodeId id : order) {
    Node& node = graph.node(id);
    replacements.Update(node);
    if (!node.def || !IsPure(*node.def) || !node.captures.empty()) continue;
    std::string key = NodeKey(graph, node);
    if (key.empty()) continue;
    auto [it, fresh] = seen.try_emplace(key, id);
    if (fresh) continue;
    const Node& twin = graph.node(it->second);
    bool given_out = std::any_of(node.outputs.begin(), node.outputs.end(),
                                 [&](ValueId v) { return v != kNone && replacements.GivenOut(v); });
    if (given_out) continue;
    bool same_outputs = node.outputs.size() == twin.outputs.size();
    for (size_t i = 0; same_outputs && i < node.outputs.size(); ++i) {
      same_outputs = (node.outputs[i] == kNone) == (twin.outputs[i] == kNone);
    }
    if (!same_outputs) continue;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNone) replacements.Replace(node.outputs[i], twin.outputs[i]);
    }
    graph.RemoveNode(id);
    ++changes;
  }
  replacements.Finish();
  return changes;
}

}  // namespace mge
