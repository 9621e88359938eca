// SPDX-License-Identifier: Apache-2.0
// Replaces Attention by matrix products with a softmax between them, for which backends have kernels and claims. The batch and
// the numbers of queries and keys may be unknown, so that the nodes serve a range of lengths.
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
    const bool known = d_.batch != kUnknownDim && tokens != kUnknownDim;
    x = known ? Reshape(x, {d_.batch, tokens, heads, size}) : nodes_.ReshapePartly(x, {0, 0, heads, size});
    return Transpose(x, {0, 2, 1, 3});
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
    if (!Shares()) return x;
    const bool known = d_.batch != kUnknownDim && rows != kUnknownDim;
    return known ? Reshape(x, {d_.batch, d_.kv_heads, heads, rows, size})
                 : nodes_.ReshapePartly(x, {0, d_.kv_heads, heads, -1, size});
  }
  // Sets the fourth output to the scores of a stage.
  void Show(ValueId scores, int64_t stage) {
    const ValueId output = OutputOf(kScores);
    if (output == kNone || node_.attrs.Int("qk_matmul_output_mode") != stage) return;
    const Shape shape = {d_.batch, d_.q_heads, d_.queries, d_.keys()};
    d_.IsStatic() ? nodes_.ReshapeTo(output, scores, shape) : nodes_.AddTo({output}, "Identity", {scores});
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
    if (std::ranges::find(shape, kUnknownDim) == shape.end()) {
      nodes_.ReshapeTo(output, y, shape);
    } else if (d_.in_rows) {
      nodes_.ReshapePartlyTo(output, y, {0, 0, shape[2]});
    } else {
      nodes_.ReshapePartlyTo(output, y, transposed ? Shape{0, 0, shape[2], shape[3]} : Shape{0, shape[1], -1, shape[3]});
    }
    if (transposed) graph_.RemoveNode(next);
  }

  // Returns the mask in the form of the scores.
  ValueId MaskInGroups() {
    const ValueId mask = node_.inputs[kMask];
    Shape dims = graph_.value(mask).type.dims;
    ValueId cast = MaskIsBool() ? mask : Cast(mask, TypeOf(mask), type_);
    mask_dims_ = dims;
    const bool groups = Shares() && dims.size() >= 3;
    const bool known = dims.back() != kUnknownDim && d_.keys() != kUnknownDim;
    if (known && !groups) return cast;
    Shape heads;
    if (groups) {
      const bool one = dims[dims.size() - 3] == 1;
      heads = {one ? 1 : d_.kv_heads, one ? 1 : d_.heads_per_key()};
      dims.erase(dims.end() - 3);
      dims.insert(dims.end() - 2, heads.begin(), heads.end());
      mask_dims_ = dims;
    }
    if (known && std::ranges::find(dims, kUnknownDim) == dims.end()) return Reshape(cast, dims);
    return Add("Reshape", {cast, MaskShape(heads)}, IntAttribute("allowzero", 1));
  }
  // Returns the shape of the mask as a value. The numbers of heads, if there are any, replace that of the mask. The last size is the
  // number of keys: a mask for fewer keys is then an error of the sizes, and is never broadcast.
  ValueId MaskShape(const Shape& heads) {
    const ValueId mask = node_.inputs[kMask];
    const auto rank = static_cast<int64_t>(graph_.value(mask).type.dims.size());
    std::vector<ValueId> parts;
    const auto add = [&](int64_t first, int64_t last) {
      if (first < last) parts.push_back(SizesOf(mask, first, last));
    };
    if (heads.empty()) {
      add(0, rank - 1);
    } else {
      add(0, rank - 3);
      parts.push_back(nodes_.Integers(heads));
      add(rank - 2, rank - 1);
    }
    parts.push_back(KeyCount());
    return parts.size() == 1 ? parts[0] : Add("Concat", std::move(parts), IntAttribute("axis", 0));
  }
  // Returns sizes of a value, as a vector.
  ValueId SizesOf(ValueId v, int64_t first, int64_t last) {
    Attributes attrs = IntAttribute("start", first);
    attrs.Set("end", last);
    return Add("Shape", {v}, std::move(attrs));
  }
  // Return numbers as vectors of one element.
  ValueId QueryCount() {
    if (d_.queries != kUnknownDim) return nodes_.Integers({d_.queries});
    const int64_t axis = d_.in_rows ? 1 : 2;
    return SizesOf(node_.inputs[kQ], axis, axis + 1);
  }
  ValueId PastCount() { return d_.past == kUnknownDim ? SizesOf(node_.inputs[kPastKey], 2, 3) : nodes_.Integers({d_.past}); }
  ValueId KeyCount() {
    if (d_.keys() != kUnknownDim) return nodes_.Integers({d_.keys()});
    const int64_t axis = d_.in_rows ? 1 : 2;
    const ValueId now = SizesOf(node_.inputs[kK], axis, axis + 1);
    return Has(kPastKey) ? Add("Add", {PastCount(), now}) : now;
  }
  // Returns 0, 1, ... for a number of which `known` is the value, or kUnknownDim.
  ValueId Numbers(std::string_view what, int64_t known, ValueId count) {
    if (known == kUnknownDim) {
      const auto scalar = [&](ValueId v) { return Add("Squeeze", {v}); };
      return Add("Range", {nodes_.Number(DType::kI64, 0), scalar(count), nodes_.Number(DType::kI64, 1)});
    }
    std::vector<int64_t> numbers(static_cast<size_t>(known));
    std::iota(numbers.begin(), numbers.end(), int64_t{0});
    return Shared(what, Tensor::Vector(std::span<const int64_t>(numbers)));
  }
  // Makes `limits_` and `mask_`, and the queries that see no key. Allocates all memory before it adds nodes.
  absl::Status MakeMasks(const AttentionWindow& window) {
    by_position_ = window.limits();
    if (Has(kValidKeys)) {
      LimitByValidKeys(window);
    } else if (d_.queries == 1 && d_.new_keys == 1 && window.left < 0 && window.right < 0) {
      by_position_ = false;  // the last token sees all keys
    } else if (window.limits() && d_.IsStatic()) {
      MGE_ASSIGN_OR_RETURN(Tensor limits, Tensor::Create(DType::kBool, {d_.queries, d_.keys()}, allocator_));
      auto to = limits.MutableData<bool>().begin();
      for (int64_t i = 0; i < d_.queries; ++i) {
        for (int64_t j = 0; j < d_.keys(); ++j) *to++ = window.Sees(i + d_.past, j);
      }
      limits_ = Shared("window", std::move(limits));
    } else if (window.limits()) {
      const ValueId rows = Add("Unsqueeze", {Numbers("queries", d_.queries, QueryCount()), nodes_.Integers({1})});
      LimitByPositions(window, Numbers("keys", d_.keys(), KeyCount()), Add("Add", {rows, PastCount()}));
    }
    if (Has(kMask)) mask_ = MaskInGroups();
    if (Has(kMask) || Has(kValidKeys) || window.left >= 0 || window.right >= 0) sees_none_ = SeesNone();
    return absl::OkStatus();
  }
  // Limits the keys by the positions of the queries: query i of a batch with n valid keys has the position n + i - queries.
  void LimitByValidKeys(const AttentionWindow& w) {
    Shape shape(Shares() ? 5 : 4, 1);
    shape[0] = d_.batch == kUnknownDim ? -1 : d_.batch;
    const ValueId n = d_.batch == kUnknownDim ? nodes_.ReshapePartly(node_.inputs[kValidKeys], shape)
                                              : Reshape(node_.inputs[kValidKeys], shape);
    const ValueId keys = Numbers("keys", d_.keys(), KeyCount());
    const ValueId rows =
        Add("Sub", {Add("Unsqueeze", {Numbers("queries", d_.queries, QueryCount()), nodes_.Integers({1})}), QueryCount()});
    limits_ = Add("Less", {keys, n});
    LimitByPositions(w, keys, Add("Add", {n, rows}));
  }
  // Adds to `limits_` what a query at each of `positions`, a column, may see of the keys.
  void LimitByPositions(const AttentionWindow& w, ValueId keys, ValueId positions) {
    const auto limit = [&](std::string op, ValueId bound) {
      const ValueId sees = Add(std::move(op), {keys, bound});
      limits_ = limits_ == kNone ? sees : Add("And", {limits_, sees});
    };
    constexpr int64_t kAll = int64_t{1} << 40;  // a wider window has no limit, and its sums might overflow
    if (w.causal) limit("LessOrEqual", positions);
    if (w.right >= 0) limit("LessOrEqual", Add("Add", {positions, nodes_.Integers({std::min(w.right, kAll)})}));
    if (w.left >= 0) limit("GreaterOrEqual", Add("Sub", {positions, nodes_.Integers({std::min(w.left, kAll)})}));
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
    if (std::ranges::find(shape, kUnknownDim) == shape.end()) return Reshape(none, shape);
    const size_t rank = Has(kValidKeys) ? shape.size() : std::max(mask_dims_.size(), size_t{limits_ == kNone ? 0U : 2U});
    std::vector<int64_t> ones(shape.size() - rank);
    std::iota(ones.begin(), ones.end(), int64_t{0});
    return ones.empty() ? none : Add("Unsqueeze", {none, nodes_.Integers(ones)});
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
    if (has(i) && !type(i).has_rank) return false;
  }
  if (type(kQ).dtype != type(kV).dtype || !kFloating.Contains(type(kQ).dtype)) return false;
  absl::StatusOr<AttentionDims> dims =
      ResolveAttention(node.attrs, type(kQ).dims, type(kK).dims, type(kV).dims,
                       has(kPastKey) ? &type(kPastKey).dims : nullptr, has(kPastValue) ? &type(kPastValue).dims : nullptr);
  absl::StatusOr<AttentionWindow> window = ReadAttentionWindow(node.attrs);
  if (!dims.ok() || !window.ok() || dims->keys() == 0 || !dims->KnowsHeads()) return false;
  const bool shows = node.outputs.size() > kScores && node.outputs[kScores] != kNone, shares = dims->heads_per_key() != 1;
  if (shows && shares && !dims->IsStatic()) return false;  // the shape of that output would be a computed one
  if (has(kMask)) {
    const Shape& mask = type(kMask).dims;
    const bool known = mask.empty() || (mask.back() != kUnknownDim && dims->keys() != kUnknownDim);
    if (mask.empty() || (known && mask.back() != dims->keys())) return false;              // the rest of the keys is masked
    if (shares && mask.size() >= 3 && mask[mask.size() - 3] == kUnknownDim) return false;  // one for all heads, or one each
  }
  if (shows && node.attrs.Int("qk_matmul_output_mode") > 1) return false;  // the weights of a query that sees no key
  if (absl::Status s = Builder(graph, id, *dims, allocator).Run(*window); !s.ok()) return s;
  graph.RemoveNode(id);
  return true;
}

}  // namespace

MGE_REWRITE(attention) = {
    .name = "attention", .doc = "Replaces Attention by matrix products with a softmax between them.", .apply = Apply};

}  // namespace mge::rewrite_attention
