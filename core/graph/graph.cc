// SPDX-License-Identifier: Apache-2.0
#include "core/graph/graph.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {

std::string TensorType::ToString() const { return TypeText(ValueKind::kTensor, *this); }

std::string TypeText(ValueKind kind, const TensorType& type) {
  constexpr std::string_view kKinds[] = {"", "seq ", "optional ", "optional seq ", "map ", "seq map "};
  std::string out(kKinds[static_cast<int>(kind)]);
  out += type.dtype == DType::kUndefined ? "?" : std::string(DTypeName(type.dtype));
  if (!type.has_rank) return out;
  out += "[";
  for (size_t i = 0; i < type.dims.size(); ++i) {
    if (i) out += ",";
    if (type.dims[i] >= 0) {
      out += std::to_string(type.dims[i]);
    } else {
      out += i < type.symbols.size() && !type.symbols[i].empty() ? type.symbols[i] : "?";
    }
  }
  return out + "]";
}

absl::StatusOr<TensorType> MergeTypes(const TensorType& declared, const TensorType& inferred, std::string_view where) {
  auto contradiction = [&] {
    return Fail(errors::kInvalidGraph, fmt::format("the declared type of '{}' contradicts the computed type", where),
                {.what = fmt::format("declared {}, computed {}", declared.ToString(), inferred.ToString()),
                 .fix = "remove or correct the model's type information for this value"});
  };
  TensorType out = declared;
  if (out.dtype == DType::kUndefined) {
    out.dtype = inferred.dtype;
  } else if (inferred.dtype != DType::kUndefined && inferred.dtype != out.dtype) {
    return contradiction();
  }
  if (!inferred.has_rank) return out;
  if (!out.has_rank) {
    out.has_rank = true;
    out.dims = inferred.dims;
    out.symbols = inferred.symbols;
    return out;
  }
  if (out.dims.size() != inferred.dims.size()) return contradiction();
  for (size_t i = 0; i < out.dims.size(); ++i) {
    if (inferred.dims[i] < 0) {
      if (out.dims[i] < 0 && i < inferred.symbols.size() && !inferred.symbols[i].empty()) {
        out.symbols.resize(out.dims.size());
        if (out.symbols[i].empty()) out.symbols[i] = inferred.symbols[i];
      }
    } else if (out.dims[i] < 0) {
      out.dims[i] = inferred.dims[i];
    } else if (out.dims[i] != inferred.dims[i]) {
      return contradiction();
    }
  }
  return out;
}

std::span<const ValueId> CapturesOf(const Node& node, const Graph& body) {
  size_t first = 0;
  for (const auto& [name, value] : node.attrs) {
    const GraphPtr* candidate = std::get_if<GraphPtr>(&value);
    if (!candidate || !*candidate) continue;
    const std::vector<ValueId>& inputs = (*candidate)->inputs();
    size_t count = std::count_if(inputs.begin(), inputs.end(),
                                 [&](ValueId v) { return (*candidate)->value(v).role == Role::kCapture; });
    if (candidate->get() == &body) return std::span<const ValueId>(node.captures).subspan(first, count);
    first += count;
  }
  return {};
}

ValueId Graph::AddValue(Value value) {
  names_.try_emplace(value.name, value_count());
  values_.push_back(std::move(value));
  if (index_) {
    index_->readers.emplace_back();
    index_->outputs.push_back(0);
  }
  return value_count() - 1;
}

ValueId Graph::AddInput(std::string name, TensorType type) {
  ValueId id = AddValue({.name = std::move(name), .type = std::move(type), .role = Role::kInput});
  inputs_.push_back(id);
  return id;
}

ValueId Graph::AddConstant(std::string name, Tensor tensor) {
  Value v;
  v.name = std::move(name);
  v.type.dtype = tensor.dtype();
  v.type.has_rank = true;
  v.type.dims = tensor.shape();
  v.role = Role::kConstant;
  v.constant = std::move(tensor);
  return AddValue(std::move(v));
}

NodeId Graph::AddNode(Node node) {
  NodeId id = node_count();
  for (ValueId out : node.outputs) {
    if (out != kNone) values_[out].producer = id;
  }
  nodes_.push_back(std::move(node));
  if (index_) Reindex(id);
  return id;
}

ValueId Graph::AddTemporary(std::string_view stem, TensorType type) {
  std::string name(stem);
  for (int64_t i = value_count(); names_.contains(name); ++i) name = fmt::format("{}_{}", stem, i);
  return AddValue({.name = std::move(name), .type = std::move(type)});
}

std::vector<std::vector<NodeId>> Graph::Consumers() const {
  std::vector<std::vector<NodeId>> out(values_.size());
  for (NodeId id = 0; id < node_count(); ++id) {
    const Node& n = nodes_[id];
    if (n.dead) continue;
    for (ValueId v : n.inputs) {
      if (v != kNone) out[v].push_back(id);
    }
    for (ValueId v : n.captures) out[v].push_back(id);
  }
  return out;
}

int Graph::OutputUses(ValueId id) const {
  return index_ ? index_->outputs[id] : static_cast<int>(std::count(outputs_.begin(), outputs_.end(), id));
}

bool Graph::AnyReader(ValueId value, absl::FunctionRef<bool(NodeId)> test) const {
  auto reads = [&](NodeId id) {
    const Node& n = nodes_[id];
    return !n.dead && (std::find(n.inputs.begin(), n.inputs.end(), value) != n.inputs.end() ||
                       std::find(n.captures.begin(), n.captures.end(), value) != n.captures.end());
  };
  if (index_) {
    const std::vector<NodeId>& readers = index_->readers[value];
    return std::any_of(readers.begin(), readers.end(), [&](NodeId id) { return reads(id) && test(id); });
  }
  for (NodeId id = 0; id < node_count(); ++id) {
    if (reads(id) && test(id)) return true;
  }
  return false;
}

ValueId Graph::FindValue(const std::string& name) const {
  auto at = names_.find(name);
  return at == names_.end() ? kNone : at->second;
}

void Graph::CreateIndex() {
  index_.emplace(Index{std::vector<std::vector<NodeId>>(values_.size()), std::vector<int>(values_.size(), 0)});
  for (NodeId id = 0; id < node_count(); ++id) {
    if (!nodes_[id].dead) Reindex(id);
  }
  for (ValueId v : outputs_) ++index_->outputs[v];
}

void Graph::Reindex(NodeId id) {
  for (const auto* list : {&nodes_[id].inputs, &nodes_[id].captures}) {
    for (ValueId v : *list) {
      if (v == kNone) continue;
      std::vector<NodeId>& readers = index_->readers[v];
      if (readers.empty() || readers.back() != id) readers.push_back(id);
    }
  }
}

bool Graph::DropIndex() {
  Index old = *std::move(index_);
  index_.reset();
  for (ValueId v : outputs_) --old.outputs[v];
  if (std::any_of(old.outputs.begin(), old.outputs.end(), [](int uses) { return uses != 0; })) return false;
  for (std::vector<NodeId>& readers : old.readers) std::sort(readers.begin(), readers.end());
  for (NodeId id = 0; id < node_count(); ++id) {
    if (nodes_[id].dead) continue;
    for (const auto* list : {&nodes_[id].inputs, &nodes_[id].captures}) {
      for (ValueId v : *list) {
        if (v != kNone && !std::binary_search(old.readers[v].begin(), old.readers[v].end(), id)) return false;
      }
    }
  }
  return true;
}

void Graph::ReplaceUses(ValueId from, ValueId to) {
  auto replace = [&](NodeId id) {
    Node& n = nodes_[id];
    std::replace(n.inputs.begin(), n.inputs.end(), from, to);
    std::replace(n.captures.begin(), n.captures.end(), from, to);
  };
  if (index_) {
    for (NodeId id : std::exchange(index_->readers[from], {})) {
      if (nodes_[id].dead) continue;
      replace(id);
      index_->readers[to].push_back(id);
    }
    if (OutputUses(from) == 0) return;
    index_->outputs[to] += std::exchange(index_->outputs[from], 0);
  } else {
    for (NodeId id = 0; id < node_count(); ++id) {
      if (!nodes_[id].dead) replace(id);
    }
  }
  std::replace(outputs_.begin(), outputs_.end(), from, to);
}

void Graph::RemoveNode(NodeId id) {
  Node& n = nodes_[id];
  n.dead = true;
  for (ValueId v : n.outputs) {
    if (v == kNone || values_[v].producer != id) continue;
    values_[v].dead = true;
    values_[v].producer = kNone;
  }
}

absl::Status Graph::Compact() {
  MGE_ASSIGN_OR_RETURN(std::vector<NodeId> order, TopologicalOrder());
  std::vector<ValueId> new_value(values_.size(), kNone);
  std::vector<Value> values;
  names_.clear();
  for (ValueId v = 0; v < value_count(); ++v) {
    if (values_[v].dead) continue;
    new_value[v] = static_cast<ValueId>(values.size());
    names_.try_emplace(values_[v].name, new_value[v]);
    values.push_back(std::move(values_[v]));
  }
  std::vector<Node> nodes;
  nodes.reserve(order.size());
  auto renumber = [&](std::vector<ValueId>& list) {
    for (ValueId& v : list) {
      if (v != kNone) v = new_value[v];
    }
  };
  for (NodeId old : order) {
    Node& n = nodes_[old];
    renumber(n.inputs);
    renumber(n.outputs);
    renumber(n.captures);
    for (ValueId v : n.outputs) {
      if (v != kNone) values[v].producer = static_cast<NodeId>(nodes.size());
    }
    nodes.push_back(std::move(n));
  }
  values_ = std::move(values);
  nodes_ = std::move(nodes);
  renumber(inputs_);
  renumber(outputs_);
  return absl::OkStatus();
}

}  // namespace mge
