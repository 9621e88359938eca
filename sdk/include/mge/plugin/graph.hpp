// SPDX-License-Identifier: Apache-2.0
// Views of values, nodes, graphs and problems of the host. They copy nothing and are valid during the call. An absent
// operand fails an assert().
#pragma once

#include <cassert>
#include <cstdint>
#include <span>
#include <string_view>

#include "mge/plugin/error.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

inline uint64_t ElementBytes(mge_dtype dtype) {
  switch (dtype) {
    case MGE_DTYPE_U8:
    case MGE_DTYPE_I8:
    case MGE_DTYPE_BOOL: return 1;
    case MGE_DTYPE_U16:
    case MGE_DTYPE_I16:
    case MGE_DTYPE_F16:
    case MGE_DTYPE_BF16: return 2;
    case MGE_DTYPE_F32:
    case MGE_DTYPE_I32:
    case MGE_DTYPE_U32: return 4;
    case MGE_DTYPE_F64:
    case MGE_DTYPE_I64:
    case MGE_DTYPE_U64:
    case MGE_DTYPE_C64: return 8;
    case MGE_DTYPE_C128: return 16;
    default: return 0;
  }
}

// A view of a value. dim(i) counts from the end if i is negative.
class Value {
 public:
  explicit Value(const mge_value* v) : v_(v) {}
  mge_dtype dtype() const { return v_->dtype; }
  int rank() const { return v_->rank; }
  std::span<const int64_t> dims() const { return {v_->dims, v_->rank > 0 ? static_cast<size_t>(v_->rank) : 0}; }
  int64_t dim(int i) const { return v_->dims[i < 0 ? i + v_->rank : i]; }
  bool is_static() const {
    if (v_->rank < 0) return false;
    for (int64_t d : dims()) {
      if (d < 0) return false;
    }
    return true;
  }
  uint64_t elements() const {
    uint64_t n = 1;
    for (int64_t d : dims()) n *= static_cast<uint64_t>(d);
    return n;
  }
  uint64_t bytes() const { return elements() * ElementBytes(dtype()); }
  bool is_constant() const { return v_->data != nullptr; }
  // Returns whether it is a state: memory that lasts between runs and that steps update. Its elements are not known, but a
  // kernel may ask for a packed form of it, like that of a constant.
  bool is_state() const { return v_->role == MGE_ROLE_STATE; }
  // Returns the elements of a constant. T must match dtype().
  template <typename T>
  std::span<const T> data() const {
    return {static_cast<const T*>(v_->data), v_->data ? static_cast<size_t>(elements()) : 0};
  }
  uint32_t uses() const { return v_->uses; }
  const mge_layout* layout() const { return v_->layout; }
  const mge_value* raw() const { return v_; }

 private:
  const mge_value* v_;
};

// A view of a node. Int(), Float(), Word() and Ints() read attributes. The host has added the defaults, so that only
// attributes that OPERATORS.md calls optional may be absent: for them, pass a fallback.
class Node {
 public:
  Node(const mge_graph* g, const mge_node* n) : g_(g), n_(n) {}
  std::string_view op() const { return View(n_->op); }
  std::string_view domain() const { return View(n_->domain); }
  bool Is(std::string_view op, std::string_view domain = "") const { return this->op() == op && this->domain() == domain; }
  int input_count() const { return static_cast<int>(n_->input_count); }
  int output_count() const { return static_cast<int>(n_->output_count); }
  bool has_input(int i) const { return i >= 0 && i < input_count() && n_->inputs[i] >= 0; }
  bool has_output(int i) const { return i >= 0 && i < output_count() && n_->outputs[i] >= 0; }
  int32_t input_id(int i) const { return i >= 0 && i < input_count() ? n_->inputs[i] : -1; }
  int32_t output_id(int i) const { return i >= 0 && i < output_count() ? n_->outputs[i] : -1; }
  Value input(int i) const { return assert(has_input(i)), Value(g_->values[n_->inputs[i]]); }
  Value output(int i) const { return assert(has_output(i)), Value(g_->values[n_->outputs[i]]); }
  const mge_attr* attr(std::string_view name) const {
    for (uint64_t i = 0; i < n_->attr_count; ++i) {
      if (View(n_->attrs[i]->name) == name) return n_->attrs[i];
    }
    return nullptr;
  }
  int64_t Int(std::string_view name, int64_t fallback = 0) const {
    const mge_attr* a = attr(name);
    return a && a->type == MGE_ATTR_INT ? a->i : fallback;
  }
  float Float(std::string_view name, float fallback = 0) const {
    const mge_attr* a = attr(name);
    return a && a->type == MGE_ATTR_FLOAT ? static_cast<float>(a->f) : fallback;
  }
  std::string_view Word(std::string_view name, std::string_view fallback = "") const {
    const mge_attr* a = attr(name);
    return a && a->type == MGE_ATTR_TEXT ? View(a->text) : fallback;
  }
  std::span<const int64_t> Ints(std::string_view name) const {
    const mge_attr* a = attr(name);
    return a && a->type == MGE_ATTR_INTS ? std::span<const int64_t>(a->ints, a->count) : std::span<const int64_t>();
  }
  const mge_node* raw() const { return n_; }

 private:
  const mge_graph* g_;
  const mge_node* n_;
};

// A view of a graph.
class Graph {
 public:
  explicit Graph(const mge_graph* g) : g_(g) {}
  int node_count() const { return static_cast<int>(g_->node_count); }
  Node node(int i) const { return Node(g_, g_->nodes[i]); }
  Value value(int32_t id) const { return Value(g_->values[id]); }
  // Returns the index of the node that produces a value, or -1 if it comes from outside.
  int producer(int32_t id) const {
    for (int i = 0; i < node_count(); ++i) {
      for (uint64_t k = 0; k < g_->nodes[i]->output_count; ++k) {
        if (g_->nodes[i]->outputs[k] == id) return i;
      }
    }
    return -1;
  }
  const mge_graph* raw() const { return g_; }

 private:
  const mge_graph* g_;
};

// A group of nodes to compute. Operands are numbered as in graph->inputs and graph->outputs.
class Problem {
 public:
  explicit Problem(const mge_problem* p, mge_device* device = nullptr) : p_(p), graph_(p->graph), device_(device) {}
  Graph graph() const { return graph_; }
  int node_count() const { return graph_.node_count(); }
  Node node(int i = 0) const { return graph_.node(i); }
  Node last() const { return graph_.node(node_count() - 1); }
  int input_count() const { return static_cast<int>(p_->graph->input_count); }
  int output_count() const { return static_cast<int>(p_->graph->output_count); }
  Value input(int i) const { return assert(i >= 0 && i < input_count()), graph_.value(p_->graph->inputs[i]); }
  Value output(int i) const { return assert(i >= 0 && i < output_count()), graph_.value(p_->graph->outputs[i]); }
  // Returns the operand number of a value of the group, or -1 if it is internal or absent.
  int operand(int32_t value_id) const {
    for (int i = 0; i < input_count(); ++i) {
      if (p_->graph->inputs[i] == value_id) return i;
    }
    return -1;
  }
  // Returns the operand number of input k of node i.
  int operand(int i, int k) const { return operand(node(i).input_id(k)); }
  uint32_t threads() const { return p_->threads; }
  mge_device* handle() const { return device_; }  // of the device
  // Returns the pairs of an output and the input whose memory it must use.
  std::span<const mge_in_place> aliases() const {
    if (!Covers(p_, &mge_problem::alias_count)) return {};
    return {p_->aliases, static_cast<size_t>(p_->alias_count)};
  }
  // Returns whether the result is added to the output (MGE_WRITE_ADD) instead of replacing it.
  bool adds(int output) const { return write_mode(output) == MGE_WRITE_ADD; }
  int32_t write_mode(int output) const {
    return Covers(p_, &mge_problem::write_modes) && p_->write_modes ? p_->write_modes[output] : int32_t{MGE_WRITE};
  }
  bool is_static() const {
    for (int i = 0; i < input_count(); ++i) {
      if (!input(i).is_static()) return false;
    }
    for (int i = 0; i < output_count(); ++i) {
      if (!output(i).is_static()) return false;
    }
    return true;
  }
  // Returns the device of the request as the backend's own class.
  template <typename D>
  D& device() const {
    return internal::As<D>(device_);
  }
  const mge_problem* raw() const { return p_; }

 private:
  const mge_problem* p_;
  Graph graph_;
  mge_device* device_;
};

}  // namespace MGE_HIDDEN
