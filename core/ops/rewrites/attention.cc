// SPDX-License-Identifier: Apache-2.0
// Replaces Attention by matrix products with a softmax between them, for which backends have kernels and claims. All shapes
// must be known.
//
// Heads that share keys become a batch dimension of their own, over which keys, values and masks are broadcast. What a query
// may see by its position is a constant mask; with numbers of valid keys, it is a comparison of positions. A query that sees
// no key gets zeros behind the last product, so that the nodes before it stay as other exporters write them. If the nodes are
// made for gradients, its scores are zeros, too.
#include "core/ops/families/attention.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/rewrites/node_adder.h"
#include "fmt/format.h"

namespace mge::rewrite_attention {
namespace {

using enum AttentionInput;
using enum AttentionOutput;

// Adds the nodes that replace one Attention.
class Builder {
 public:
  Builder(Graph& graph, NodeId id, const AttentionDims& dims, HostAllocator& allocator)
      : graph_(graph),
        node_(graph.node(id)),
        nodes_(graph, node_),
        d_(dims),
        allocator_(allocator),
        type_(TypeOf(node_.inputs[kQ])) {}

  absl::Status Run(const AttentionWindow& window) {
    MGE_RETURN_IF_ERROR(MakeMasks(window));
    const ValueId q = Heads(node_.inputs[kQ], d_.q_heads, d_.head);
    const ValueId k = Joined(kK, kPastKey, kPresentKey, d_.head), v = Joined(kV, kPastValue, kPresentValue, d_.value_head);
    const Ints last_two = Shares() ? Ints{0, 1, 2, 4, 3} : Ints{0, 1, 3, 2};
    ValueId scores = Add("MatMul", {Scaled(q), Transpose(Grouped(k, 1, d_.keys(), d_.head), last_two)});
    Show(scores, 0);
    if (const float cap = node_.attrs.Float("softcap"); cap > 0) {
      const ValueId number = Number(cap);
      scores = Add("Mul", {Add("Tanh", {Add("Div", {scores, number})}), number});
    }
    Show(scores, 1);
    if (limits_ != kNone) scores = Add("Where", {limits_, scores, Lowest()});
    if (mask_ != kNone) {
      scores = MaskIsBool() ? Add("Where", {mask_, scores, Lowest()}) : Add("Add", {scores, mask_});
    }
    // Gradients go through the softmax, where NaN of such a query would reach the keys.
    if (sees_none_ != kNone && node_.recomputed) scores = Add("Where", {sees_none_, Number(0), scores});
    MGE_ASSIGN_OR_RETURN(const DType precision, ReadDType(node_.attrs, "softmax_precision", kFloating, type_));
    const ValueId weights = Add("Softmax", {Cast(scores, type_, precision)}, IntAttribute("axis", -1));
    const ValueId y = Add("MatMul", {Cast(weights, precision, type_), Grouped(v, 1, d_.keys(), d_.value_head)});
    Result(y);
    return absl::OkStatus();
  }

 private:
  DType TypeOf(ValueId v) const { return graph_.value(v).type.dtype; }
  bool Has(int input) const { return static_cast<size_t>(input) < node_.inputs.size() && node_.inputs[input] != kNone; }
  ValueId OutputOf(int output) const {
    return static_cast<size_t>(output) < node_.outputs.size() ? node_.outputs[output] : kNone;
  }
  bool MaskIsBool() const { return Has(kMask) && TypeOf(node_.inputs[kMask]) == DType::kBool; }
  bool Shares() const { return d_.q_heads != d_.kv_heads; }

  ValueId Add(std::string op, std::vector<ValueId> inputs, Attributes attrs = {}) {
    return nodes_.Add(std::move(op), std::move(inputs), std::move(attrs));
  }
  // Adds a constant, or returns the equal one that another Attention has added, so that equal nodes of several layers are
  // merged. The pass compares only small constants.
  ValueId Shared(std::string_view what, Tensor tensor) {
    const std::string name = fmt::format("attention.{}.{}{}", what, DTypeName(tensor.dtype()), ShapeText(tensor.shape()));
    if (const ValueId v = graph_.FindValue(name); IsConstant(graph_, v)) {
      const Tensor& old = graph_.value(v).constant;
      const bool same = old.dtype() == tensor.dtype() && old.shape() == tensor.shape() &&
                        std::memcmp(old.data(), tensor.data(), static_cast<size_t>(tensor.bytes())) == 0;
      if (same) return v;
    }
    return AddFreshConstant(graph_, name, std::move(tensor));
  }
  ValueId Number(double x) { return nodes_.Number(type_, x); }
  ValueId Lowest() { return Number(-std::numeric_limits<double>::infinity()); }
  ValueId Reshape(ValueId x, const Shape& shape) { return nodes_.Reshape(x, shape); }
  ValueId Transpose(ValueId x, Ints perm) { return nodes_.Transpose(x, std::move(perm)); }
  ValueId Cast(ValueId x, DType from, DType to) { return nodes_.Cast(x, from, to); }

  ValueId Scaled(ValueId q) {
    const double scale = AttentionScale(node_.attrs, d_.head);
    const ValueId grouped = Grouped(q, d_.heads_per_key(), d_.queries, d_.head);
    return scale == 1 ? grouped : Add("Mul", {grouped, Number(scale)});
  }
  // Moves the heads of an operand out of its rows.
  ValueId Heads(ValueId x, int64_t heads, int64_t size) {
    if (!d_.in_rows) return x;
    const int64_t tokens = graph_.value(x).type.dims[1];
    return Transpose(Reshape(x, {d_.batch, tokens, heads, size}), {0, 2, 1, 3});
  }
  // Returns the keys or values, behind those of the past.
  ValueId Joined(int now, int past, int present, int64_t size) {
    const ValueId x = Heads(node_.inputs[now], d_.kv_heads, size), output = OutputOf(present);
    if (!Has(past)) {
      if (output != kNone) nodes_.AddTo({output}, "Identity", {x});
      return x;
    }
    if (output == kNone) return Add("Concat", {node_.inputs[past], x}, IntAttribute("axis", 2));
    nodes_.AddTo({output}, "Concat", {node_.inputs[past], x}, IntAttribute("axis", 2));
    return output;
  }
  // Gives the `heads` heads that share keys a dimension of their own, if there are such heads.
  ValueId Grouped(ValueId x, int64_t heads, int64_t rows, int64_t size) {
    return Shares() ? Reshape(x, {d_.batch, d_.kv_heads, heads, rows, size}) : x;
  }
  // Sets the fourth output to the scores of a stage.
  void Show(ValueId scores, int64_t stage) {
    const ValueId output = OutputOf(kScores);
    if (output == kNone || node_.attrs.Int("qk_matmul_output_mode") != stage) return;
    nodes_.ReshapeTo(output, scores, {d_.batch, d_.q_heads, d_.queries, d_.keys()});
  }
  // Moves the heads of the result back into its rows, and gives zeros to the queries that see no key. A Transpose of the node
  // behind it, which does the same, is part of that.
  void Result(ValueId y) {
    ValueId none = sees_none_, output = node_.outputs[kY];
    Shape shape = d_.Output();
    const NodeId next = d_.in_rows ? kNone : OnlyReader(graph_, output).node;
    const bool transposed =
        next != kNone && IsOp(graph_.node(next), "Transpose") && graph_.node(next).attrs.IntList("perm") == Ints{0, 2, 1, 3};
    if (transposed) {
      output = graph_.node(next).outputs[0];
      shape = {d_.batch, d_.queries, d_.q_heads, d_.value_head};
    }
    if (d_.in_rows || transposed) {
      const Ints perm = Shares() ? Ints{0, 3, 1, 2, 4} : Ints{0, 2, 1, 3};
      y = Transpose(y, perm);
      if (none != kNone) none = Transpose(none, perm);
    }
    if (none != kNone) y = Add("Where", {none, Number(0), y});
    nodes_.ReshapeTo(output, y, shape);
    if (transposed) graph_.RemoveNode(next);
  }

  // Returns the mask in the form of the scores.
  ValueId MaskInGroups() {
    const ValueId mask = node_.inputs[kMask];
    Shape dims = graph_.value(mask).type.dims;
    const ValueId cast = MaskIsBool() ? mask : Cast(mask, TypeOf(mask), type_);
    mask_dims_ = dims;
    if (!Shares() || dims.size() < 3) return cast;
    const bool one = dims[dims.size() - 3] == 1;
    dims.insert(dims.end() - 2, one ? 1 : d_.heads_per_key());
    dims[dims.size() - 4] = one ? 1 : d_.kv_heads;
    mask_dims_ = dims;
    return Reshape(cast, dims);
  }
  // Makes `limits_` and `mask_`, and the queries that see no key. Allocates all memory before it adds nodes.
  absl::Status MakeMasks(const AttentionWindow& window) {
    by_position_ = window.limits();
    if (Has(kValidKeys)) {
      LimitByValidKeys(window);
    } else if (window.limits()) {
      MGE_ASSIGN_OR_RETURN(Tensor limits, Tensor::Create(DType::kBool, {d_.queries, d_.keys()}, allocator_));
      auto to = limits.MutableData<bool>().begin();
      for (int64_t i = 0; i < d_.queries; ++i) {
        for (int64_t j = 0; j < d_.keys(); ++j) *to++ = window.Sees(i + d_.past, j);
      }
      limits_ = Shared("window", std::move(limits));
    }
    if (Has(kMask)) mask_ = MaskInGroups();
    if (Has(kMask) || Has(kValidKeys) || window.left >= 0 || window.right >= 0) sees_none_ = SeesNone();
    return absl::OkStatus();
  }
  // Limits the keys by the positions of the queries: query i of a batch with n valid keys has the position n + i - queries.
  void LimitByValidKeys(const AttentionWindow& w) {
    Shape shape(Shares() ? 5 : 4, 1);
    shape[0] = d_.batch;
    const ValueId n = Reshape(node_.inputs[kValidKeys], shape);
    std::vector<int64_t> numbers(static_cast<size_t>(std::max(d_.keys(), d_.queries)));
    std::iota(numbers.begin(), numbers.end(), int64_t{0});
    const std::span<const int64_t> all_keys(numbers.data(), static_cast<size_t>(d_.keys()));
    const ValueId keys = Shared("keys", Tensor::Vector(all_keys));
    numbers.resize(static_cast<size_t>(d_.queries));
    for (int64_t& row : numbers) row -= d_.queries;
    const ValueId rows = Shared("queries", Tensor::Of<int64_t>({d_.queries, 1}, numbers)), positions = Add("Add", {n, rows});
    limits_ = Add("Less", {keys, n});
    const auto limit = [&](std::string op, ValueId bound) {
      limits_ = Add("And", {limits_, Add(std::move(op), {keys, bound})});
    };
    const int64_t all = d_.keys() + d_.queries;  // a wider window has no limit, and its sums might overflow
    if (w.causal) limit("LessOrEqual", positions);
    if (w.right >= 0) limit("LessOrEqual", Add("Add", {positions, nodes_.Integers({std::min(w.right, all)})}));
    if (w.left >= 0) limit("GreaterOrEqual", Add("Sub", {positions, nodes_.Integers({std::min(w.left, all)})}));
  }
  // Returns which queries see no key, in the form of the scores with one column.
  ValueId SeesNone() {
    ValueId bias = mask_;
    if (MaskIsBool()) bias = Add("Where", {mask_, Number(0), Lowest()});
    if (limits_ != kNone) bias = Add("Where", {limits_, bias == kNone ? Number(0) : bias, Lowest()});
    const ValueId none =
        Add("Equal", {Add("ReduceMax", {bias, nodes_.Integers({-1})}, IntAttribute("keepdims", 1)), Lowest()});
    Shape shape(Shares() ? 5 : 4, 1);
    for (size_t i = 2; i <= mask_dims_.size(); ++i) shape[shape.size() - i] = mask_dims_[mask_dims_.size() - i];
    if (by_position_) shape[shape.size() - 2] = d_.queries;
    if (Has(kValidKeys)) shape[0] = d_.batch;
    return Reshape(none, shape);
  }

  Graph& graph_;
  const Node node_;  // a copy: adding nodes moves it
  NodeAdder nodes_;
  const AttentionDims d_;
  HostAllocator& allocator_;
  const DType type_;
  ValueId mask_ = kNone;  // the node's mask: is added to the scores; or bool: keeps a score
  Shape mask_dims_;
  ValueId limits_ = kNone;     // bool: keeps a score
  bool by_position_ = false;   // the limits differ from query to query
  ValueId sees_none_ = kNone;  // bool
};

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator& allocator) {
  const Node& node = graph.node(id);
  if (!IsOp(node, "Attention")) return false;
  const auto has = [&](size_t i) { return i < node.inputs.size() && node.inputs[i] != kNone; };
  const auto type = [&](size_t i) -> const TensorType& { return graph.value(node.inputs[i]).type; };
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (has(i) && !type(i).IsStatic()) return false;
  }
  if (type(kQ).dtype != type(kV).dtype || !kFloating.Contains(type(kQ).dtype)) return false;
  absl::StatusOr<AttentionDims> dims =
      ResolveAttention(node.attrs, type(kQ).dims, type(kK).dims, type(kV).dims,
                       has(kPastKey) ? &type(kPastKey).dims : nullptr, has(kPastValue) ? &type(kPastValue).dims : nullptr);
  absl::StatusOr<AttentionWindow> window = ReadAttentionWindow(node.attrs);
  if (!dims.ok() || !window.ok() || dims->keys() == 0) return false;
  const bool shows = node.outputs.size() > kScores && node.outputs[kScores] != kNone;
  if (has(kMask) && type(kMask).dims.back() != dims->keys()) return false;  // the rest of the keys is masked
  if (shows && node.attrs.Int("qk_matmul_output_mode") > 1) return false;   // the weights of a query that sees no key
  if (absl::Status s = Builder(graph, id, *dims, allocator).Run(*window); !s.ok()) return s;
  graph.RemoveNode(id);
  return true;
}

}  // namespace

MGE_REWRITE(attention) = {
    .name = "attention", .doc = "Replaces Attention by matrix products with a softmax between them.", .apply = Apply};

}  // namespace mge::rewrite_attention
