// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/abi_graph.h"

#include <algorithm>
#include <unordered_map>

#include "core/ops/effects.h"
#include "core/ops/op.h"

namespace mge {
namespace {

mge_text TextOf(std::string_view s) { return {s.data(), s.size()}; }

// Joins a list of texts into one text: "Sigmoid,Tanh". Returns false if another list would give the same text.
bool Join(const Texts& texts, std::string* out) {
  for (const std::string& text : texts) {
    if (text.empty() || text.find(',') != std::string::npos) return false;
    out->append(out->empty() ? "" : ",").append(text);
  }
  return true;
}

// Converts an attribute. Returns false for one that is not passed to backends (tensors, bodies). `joined` receives the text
// of a list of texts, to which `out` then points.
bool ToAbi(const std::string& name, const AttributeValue& value, mge_attr* out, std::string* joined) {
  *out = {};
  out->struct_size = sizeof(mge_attr);
  out->name = TextOf(name);
  if (const auto* i = std::get_if<int64_t>(&value)) {
    out->type = MGE_ATTR_INT;
    out->i = *i;
  } else if (const auto* f = std::get_if<float>(&value)) {
    out->type = MGE_ATTR_FLOAT;
    out->f = *f;
  } else if (const auto* t = std::get_if<std::string>(&value)) {
    out->type = MGE_ATTR_TEXT;
    out->text = TextOf(*t);
  } else if (const auto* texts = std::get_if<Texts>(&value)) {
    if (!Join(*texts, joined)) return false;
    out->type = MGE_ATTR_TEXT;
    out->text = TextOf(*joined);
  } else if (const auto* ints = std::get_if<Ints>(&value)) {
    out->type = MGE_ATTR_INTS;
    out->ints = ints->data();
    out->count = ints->size();
  } else if (const auto* floats = std::get_if<Floats>(&value)) {
    out->type = MGE_ATTR_FLOATS;
    out->floats = floats->data();
    out->count = floats->size();
  } else {
    return false;
  }
  return true;
}

int32_t AbiRole(Role role) {
  switch (role) {
    case Role::kConstant: return MGE_ROLE_CONSTANT;
    case Role::kState: return MGE_ROLE_STATE;
    case Role::kInput:
    case Role::kCapture: return MGE_ROLE_INPUT;
    case Role::kTemporary: break;
  }
  return MGE_ROLE_TEMPORARY;
}

}  // namespace

AbiGraph::AbiGraph(const Graph& graph, std::span<const NodeId> nodes, std::span<const int32_t> uses)
    : node_ids_(nodes.begin(), nodes.end()) {
  std::unordered_map<ValueId, int32_t> index;  // index in values_, by ValueId
  std::vector<uint32_t> inner_uses;
  std::vector<bool> produced, external;
  auto value_index = [&](ValueId id) {
    auto [it, fresh] = index.try_emplace(id, static_cast<int32_t>(values_.size()));
    if (fresh) {
      const Value& v = graph.value(id);
      mge_value& out = values_.emplace_back();
      out.struct_size = sizeof(mge_value);
      out.role = AbiRole(v.role);
      if (StateOf(graph, id) != kNone) {
        out.role = MGE_ROLE_STATE;
        out.version = VersionOf(graph, id);
      }
      out.dtype = static_cast<mge_dtype>(v.type.dtype);
      out.rank = v.type.has_rank ? static_cast<int32_t>(v.type.dims.size()) : -1;
      out.dims = v.type.dims.data();
      if (v.role == Role::kConstant && v.type.dtype != DType::kString) {
        out.data = v.constant.data();
        out.data_bytes = static_cast<uint64_t>(v.constant.bytes());
      }
      out.name = TextOf(v.name);
      out.uses = static_cast<uint32_t>(uses[id]);
      value_ids_.push_back(id);
      inner_uses.push_back(0);
      produced.push_back(false);
      external.push_back(false);
    }
    return it->second;
  };

  for (NodeId id : nodes) {
    const Node& n = graph.node(id);
    mge_node& out = nodes_.emplace_back();
    out.struct_size = sizeof(mge_node);
    out.version = n.version;
    // A backend needs no kernel of an update: it is given the operator that computes the same elements.
    const bool plain = n.def && n.def->Is(kAccumulates);
    out.op = TextOf(plain ? PlainForm(*n.def).name : n.op);
    out.domain = TextOf(plain ? PlainForm(*n.def).domain : n.domain);
    out.name = TextOf(n.name);
    auto& ins = indices_.emplace_back();
    for (ValueId v : n.inputs) {
      int32_t i = v == kNone ? -1 : value_index(v);
      ins.push_back(i);
      if (i < 0) continue;
      ++inner_uses[i];
      if (!produced[i] && !external[i]) {
        external[i] = true;
        inputs_.push_back(i);
      }
    }
    auto& outs = indices_.emplace_back();
    for (ValueId v : n.outputs) {
      outs.push_back(v == kNone ? -1 : value_index(v));
      if (v != kNone) produced[outs.back()] = true;
    }
    out.inputs = ins.data();
    out.input_count = ins.size();
    out.outputs = outs.data();
    out.output_count = outs.size();
    auto& list = attr_lists_.emplace_back();
    for (const auto& [name, value] : n.attrs) {
      mge_attr attr;
      if (ToAbi(name, value, &attr, &texts_.emplace_back())) list.push_back(&attrs_.emplace_back(attr));
    }
    out.attrs = list.data();
    out.attr_count = list.size();
  }
  // An output without readers is an operand too: the kernel writes it.
  for (size_t i = 0; i < values_.size(); ++i) {
    uint32_t all = static_cast<uint32_t>(uses[value_ids_[i]]);
    if (produced[i] && (all == 0 || all > inner_uses[i])) outputs_.push_back(static_cast<int32_t>(i));
  }
  for (int32_t i : inputs_) input_ids_.push_back(value_ids_[i]);
  for (int32_t i : outputs_) output_ids_.push_back(value_ids_[i]);
  for (const mge_value& v : values_) value_ptrs_.push_back(&v);
  for (const mge_node& n : nodes_) node_ptrs_.push_back(&n);
  graph_ = {sizeof(mge_graph),  0,
            node_ptrs_.data(),  node_ptrs_.size(),
            value_ptrs_.data(), value_ptrs_.size(),
            inputs_.data(),     inputs_.size(),
            outputs_.data(),    outputs_.size()};
}

ReorderProblem::ReorderProblem(const TensorType& type, const mge_layout& from, const mge_layout& to, uint32_t threads)
    : dims_(type.dims), layouts_{from, to}, value_ptrs_{&values_[0], &values_[1]}, node_ptr_(&node_) {
  for (int i = 0; i < 2; ++i) {
    values_[i].struct_size = sizeof(mge_value);
    values_[i].role = i == 0 ? MGE_ROLE_INPUT : MGE_ROLE_TEMPORARY;
    values_[i].dtype = static_cast<mge_dtype>(type.dtype);
    values_[i].rank = static_cast<int32_t>(dims_.size());
    values_[i].dims = dims_.data();
    values_[i].layout = &layouts_[i];
    values_[i].uses = 1;
  }
  node_.struct_size = sizeof(mge_node);
  node_.version = 1;
  node_.op = TextOf("Reorder");
  node_.domain = TextOf("mge");
  node_.inputs = &in_;
  node_.input_count = 1;
  node_.outputs = &out_;
  node_.output_count = 1;
  graph_ = {sizeof(mge_graph), 0, &node_ptr_, 1, value_ptrs_, 2, &in_, 1, &out_, 1};
  problem_ = {sizeof(mge_problem), threads, &graph_, nullptr, nullptr, 0};
}

bool VisibleToBackends(const Graph& graph, const Node& node) {
  if (node.def == nullptr || node.def->Is(kHostOnly) || !node.captures.empty()) return false;
  // Two kinds of attributes are not passed on. Some give a node the meaning of an older operator set (see UpgradeFn). For
  // others the ABI has no type. A kernel that does not see them would compute something else.
  for (const auto& [name, value] : node.attrs) {
    mge_attr crossed;
    std::string joined;
    if (name.starts_with('_') || !ToAbi(name, value, &crossed, &joined)) return false;
  }
  auto fits = [&](ValueId id) {
    if (id == kNone) return true;
    const Value& v = graph.value(id);
    return v.kind == ValueKind::kTensor && v.type.IsStatic() && kFixedSize.Contains(v.type.dtype);
  };
  return std::all_of(node.inputs.begin(), node.inputs.end(), fits) &&
         std::all_of(node.outputs.begin(), node.outputs.end(), fits);
}

}  // namespace mge
