// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plugins/gpu/support/attention_mask.h"
#include "plugins/gpu/support/row.h"

namespace mge::gpu {
namespace {

constexpr int kMaxBatchRank = 6;

bool HasElements(const Value& v) { return v.is_static() && v.elements() > 0; }

// The columns of a tensor that one output of a Split has, maybe with a Reshape of the rows behind it.
struct Part {
  int split = -1, reshape = -1;  // nodes; -1: absent
  int64_t start = 0;             // elements in front of it
  std::vector<int64_t> strides;
};

// A matrix with batch dimensions in front, read through strides.
struct View {
  int32_t value = -1;
  int64_t start = 0;
  std::vector<int64_t> dims, strides;
  Part part;  // another way to read it
};

// Collects the nodes of one attention.
class Finder {
 public:
  Finder(const Graph& graph, Attention& found) : graph_(graph), found_(found) {}

  bool Run(int softmax) {
    const Node n = graph_.node(softmax);
    const int second = LastProduct(n);
    if (second < 0) return false;
    const Node last = graph_.node(second);
    found_.type = last.output(0).dtype();
    const Value x = n.input(0);
    if (!Joins(n, "Softmax") || n.Int("axis") != x.rank() - 1) return false;
    if (x.rank() < 2 || x.rank() > kMaxBatchRank + 2) return false;
    Take(softmax);
    const int32_t weights = SkipCasts(last.input_id(0));
    if (!Joins(last, "MatMul") || weights != n.output_id(0) || last.input_id(1) == last.input_id(0)) return false;
    Take(second);
    const std::vector<int64_t> scores(x.dims().begin(), x.dims().end());
    found_.args.queries = scores[scores.size() - 2];
    found_.args.keys = scores.back();
    const int first = FindScores(n.input_id(0), scores);
    if (first < 0) return false;
    View q, k, v;
    if (!Follow(graph_.node(first).input_id(0), true, &q) || !Follow(graph_.node(first).input_id(1), true, &k) ||
        !Follow(last.input_id(1), false, &v)) {
      return false;
    }
    if (q.part.split >= 0 && k.part.split == q.part.split && v.part.split == q.part.split) {
      for (View* view : {&q, &k, &v}) ReadPart(view);
      Take(q.part.split);
    }
    std::swap(k.dims[k.dims.size() - 2], k.dims.back());  // MatMul reads keys transposed
    std::swap(k.strides[k.strides.size() - 2], k.strides.back());
    return SetArgs(scores, q, k, v, last);
  }

 private:
  // Returns whether a value between the products may have this type.
  bool IsType(mge_dtype t) const { return t == MGE_DTYPE_F32 || t == found_.type; }
  bool IsPlain(const Value& v) const { return IsType(v.dtype()) && HasElements(v); }
  // Returns whether the node is of this operator, and computes one floating value of known shape. Does not look at inputs
  // before number `from`.
  bool Joins(const Node& n, std::string_view op, int from = 0) const {
    if (!n.Is(op) || HasOwnMeaning(n) || n.output_count() != 1 || !n.has_output(0) || !IsPlain(n.output(0))) return false;
    for (int i = from; i < n.input_count(); ++i) {
      if (!n.has_input(i) || !IsPlain(n.input(i))) return false;
    }
    return true;
  }
  // Returns whether the node is a product of the attention's type.
  bool IsProduct(const Node& n) const { return Joins(n, "MatMul") && n.output(0).dtype() == found_.type; }
  void Take(int node) { found_.nodes.push_back(node); }
  // Returns the node that computes a value with a single reader, or -1.
  int MakerOf(int32_t value) const { return graph_.value(value).uses() == 1 ? graph_.producer(value) : -1; }
  // Returns the only reader of a value, or -1.
  int ReaderOf(int32_t value) const {
    if (graph_.value(value).uses() != 1) return -1;
    for (int i = 0; i < graph_.node_count(); ++i) {
      for (int k = 0; k < graph_.node(i).input_count(); ++k) {
        if (graph_.node(i).input_id(k) == value) return i;
      }
    }
    return -1;
  }

  // Returns the value that the casts before `value` read, or `value` if there are none.
  int32_t SkipCasts(int32_t value) {
    for (int i = MakerOf(value); i >= 0 && Joins(graph_.node(i), "Cast"); i = MakerOf(value)) {
      Take(i);
      value = graph_.node(i).input_id(0);
    }
    return value;
  }
  // Returns the product that reads the weights, maybe behind casts, or -1. Its type is that of the attention.
  int LastProduct(const Node& softmax) const {
    if (softmax.output_count() != 1 || !softmax.has_output(0)) return -1;
    int i = ReaderOf(softmax.output_id(0));
    while (i >= 0 && graph_.node(i).Is("Cast")) i = ReaderOf(graph_.node(i).output_id(0));
    if (i < 0 || !graph_.node(i).Is("MatMul") || !graph_.node(i).has_output(0)) return -1;
    const mge_dtype t = graph_.node(i).output(0).dtype();
    return t == MGE_DTYPE_F32 || t == MGE_DTYPE_F16 || t == MGE_DTYPE_BF16 ? i : -1;
  }

  // Reads a node that multiplies or divides by a constant number. Returns the other operand, or -1 if it is no such node.
  int32_t Scaled(const Node& n, float* scale) const {
    const bool product = Joins(n, "Mul");
    if (!product && !Joins(n, "Div")) return -1;
    for (int k = product ? 0 : 1; k < 2; ++k) {
      float number;
      if (!ConstantFloat(n.input(k), &number) || n.input(k).rank() > n.input(1 - k).rank()) continue;
      *scale = product ? *scale * number : *scale / number;
      return n.input_id(1 - k);
    }
    return -1;
  }

  // Finds the product of queries and keys, and the scale and the masks behind it. Returns the product's node, or -1.
  int FindScores(int32_t value, const std::vector<int64_t>& dims) {
    value = SkipCasts(value);
    const int node = MakerOf(value);
    if (node < 0) return -1;
    const Node n = graph_.node(node);
    for (int k = 0; k < n.input_count(); ++k) {
      Mask mask;
      if (!ReadMask(n, k, dims, &mask)) continue;
      const Attention before = found_;
      Take(node);
      if (AddMask(mask)) {
        if (const int product = FindScores(n.input_id(k), dims); product >= 0) return product;
      }
      found_ = before;
    }
    return FindProduct(value);
  }
  // Reads a node that masks its operand k.
  bool ReadMask(const Node& n, int k, const std::vector<int64_t>& dims, Mask* mask) const {
    if (!n.has_input(k) || !std::ranges::equal(n.input(k).dims(), dims)) return false;
    if (Joins(n, "Add")) {
      const Value other = n.input(1 - k);
      *mask = {n.input_id(1 - k), other.dtype() == found_.type ? kMaskAdds : kMaskAddsFloats, 0};
      return true;
    }
    if (k == 0 || !Joins(n, "Where", 1)) return false;
    *mask = {n.input_id(0), k == 1 ? kMaskKeeps : kMaskReplaces, 0};
    return n.input(0).dtype() == MGE_DTYPE_BOOL && HasElements(n.input(0)) && ConstantFloat(n.input(3 - k), &mask->fill);
  }
  // Adds a mask to the attention, which has room for a causal one and another.
  bool AddMask(const Mask& mask) {
    AttentionArgs& a = found_.args;
    CausalMask causal;
    if (a.causal.kind == kNotCausal && ReadCausal(graph_, mask, a.queries, a.keys, &causal)) {
      causal.last = found_.mask < 0;  // masks are found from the last one on
      return a.causal = causal, true;
    }
    if (found_.mask >= 0) return false;
    found_.mask = mask.value;
    a.mask_kind = mask.kind;
    a.fill = mask.fill;
    return true;
  }
  int FindProduct(int32_t value) {
    float scale = 1;
    for (int i = MakerOf(value); i >= 0; i = MakerOf(value)) {
      const Node n = graph_.node(i);
      if (IsProduct(n)) {
        Take(i);
        found_.args.scale = scale;
        return i;
      }
      if (value = Joins(n, "Cast") ? n.input_id(0) : Scaled(n, &scale); value < 0) return -1;
      Take(i);
    }
    return -1;
  }

  // Finds the operand of a product behind transposes and, if `scales`, products with numbers.
  bool Follow(int32_t value, bool scales, View* view) {
    const int rank = graph_.value(value).rank();
    if (rank < 2) return false;
    std::vector<size_t> order(static_cast<size_t>(rank));  // order[i]: the operand's dimension that dimension i is
    std::iota(order.begin(), order.end(), size_t{0});
    for (int i = MakerOf(value); i >= 0; i = MakerOf(value)) {
      const Node n = graph_.node(i);
      int32_t next = scales ? Scaled(n, &found_.args.scale) : -1;
      if (next < 0) {
        const std::span<const int64_t> perm = n.Ints("perm");
        if (!Joins(n, "Transpose") || perm.size() != order.size()) break;
        for (size_t& d : order) d = static_cast<size_t>(perm[d]);
        next = n.input_id(0);
      }
      Take(i);
      value = next;
    }
    const Value v = graph_.value(value);
    if (v.dtype() != found_.type || !HasElements(v) || v.rank() != rank) return false;
    const std::vector<int64_t> strides = StridesOf(v.dims());
    const Part part = PartOf(value);
    view->value = value;
    view->part = part;
    for (size_t i = 0; i < order.size(); ++i) {
      view->dims.push_back(v.dims()[order[i]]);
      view->strides.push_back(strides[order[i]]);
      if (part.split >= 0) view->part.strides[i] = part.strides[order[i]];
    }
    return true;
  }

  // Finds the Split into three that gives a value, if nothing else reads the output.
  Part PartOf(int32_t value) const {
    Part part;
    const std::span<const int64_t> dims = graph_.value(value).dims();
    int i = MakerOf(value);
    if (i >= 0 && graph_.node(i).Is("Reshape") && graph_.node(i).input(1).is_constant()) {
      part.reshape = i;
      value = graph_.node(i).input_id(0);
      i = MakerOf(value);
    }
    if (i < 0) return {};
    const Node n = graph_.node(i);
    if (!n.Is("Split") || HasOwnMeaning(n) || n.output_count() != 3 || !HasElements(n.input(0))) return {};
    const Value whole = n.input(0);
    if (n.Int("axis") != whole.rank() - 1) return {};
    const int64_t columns = whole.dims().back(), own = graph_.value(value).dims().back();
    for (int k = 0; n.output_id(k) != value; ++k) part.start += n.output(k).dims().back();
    // Dimensions outside of a row have strides of whole rows.
    bool keeps_rows = false;
    int64_t stride = 1;
    part.strides.resize(dims.size());
    for (size_t d = dims.size(); d-- > 0; stride *= dims[d]) {
      keeps_rows |= stride == own;
      part.strides[d] = keeps_rows ? stride / own * columns : stride;
    }
    if (!keeps_rows && stride != own) return {};
    part.split = i;
    return part;
  }
  // Reads an operand in the tensor that the Split divides.
  void ReadPart(View* view) {
    if (view->part.reshape >= 0) Take(view->part.reshape);
    view->value = graph_.node(view->part.split).input_id(0);
    view->start = view->part.start;
    view->strides = view->part.strides;
  }

  // Sets the strides of the batch dimensions. Returns false if the operand does not broadcast to them.
  static bool Batch(const View& view, const std::vector<int64_t>& dims, int64_t* strides) {
    if (view.dims.size() > dims.size()) return false;
    const size_t missing = dims.size() - view.dims.size();
    for (size_t i = 0; i + 2 < dims.size(); ++i) {
      const int64_t d = i < missing ? 1 : view.dims[i - missing];
      if (d != 1 && d != dims[i]) return false;
      strides[i] = d == 1 ? 0 : view.strides[i - missing];
    }
    return true;
  }

  bool SetArgs(const std::vector<int64_t>& scores, const View& q, const View& k, const View& v, const Node& last) {
    AttentionArgs& a = found_.args;
    const size_t rank = scores.size();
    if (q.dims.back() > kMaxHeadSize || v.dims.back() > kMaxHeadSize) return false;
    a.head_size = static_cast<int32_t>(q.dims.back());
    a.value_size = static_cast<int32_t>(v.dims.back());
    a.batch_rank = static_cast<int32_t>(rank) - 2;
    a.batch = 1;
    for (int32_t i = 0; i < a.batch_rank; ++i) a.batch *= a.batch_dims[i] = scores[static_cast<size_t>(i)];
    if (!Batch(q, scores, a.q_batch) || !Batch(k, scores, a.k_batch) || !Batch(v, scores, a.v_batch)) return false;
    auto matrix = [](const View& view, int64_t* row, int64_t* column) {
      *row = view.strides[view.strides.size() - 2];
      *column = view.strides.back();
    };
    matrix(q, &a.q_row, &a.q_column);
    matrix(k, &a.k_row, &a.k_column);
    matrix(v, &a.v_row, &a.v_column);
    found_.q = q.value;
    found_.k = k.value;
    found_.v = v.value;
    found_.q_start = q.start;
    found_.k_start = k.start;
    found_.v_start = v.start;
    return SetOutput(scores, last) && SetMask(scores);
  }

  // Sets the strides of the output, behind a transpose if there is one.
  bool SetOutput(const std::vector<int64_t>& scores, const Node& last) {
    AttentionArgs& a = found_.args;
    found_.output = last.output_id(0);
    const Value y = last.output(0);
    if (y.rank() != static_cast<int>(scores.size())) return false;  // v has batch dimensions that the scores lack
    if (!std::equal(scores.begin(), scores.end() - 2, y.dims().begin())) return false;
    std::vector<int64_t> strides = StridesOf(y.dims());
    if (const int next = ReaderOf(found_.output); next >= 0 && Joins(graph_.node(next), "Transpose")) {
      const Node n = graph_.node(next);
      const std::span<const int64_t> perm = n.Ints("perm");
      if (perm.size() == strides.size()) {
        const std::vector<int64_t> stored = StridesOf(n.output(0).dims());
        for (size_t i = 0; i < perm.size(); ++i) strides[static_cast<size_t>(perm[i])] = stored[i];
        found_.output = n.output_id(0);
        Take(next);
      }
    }
    a.y_column = strides.back();
    a.y_row = strides[strides.size() - 2];
    std::copy(strides.begin(), strides.end() - 2, a.y_batch);
    return true;
  }

  bool SetMask(const std::vector<int64_t>& scores) {
    AttentionArgs& a = found_.args;
    if (a.causal.kind != kNotCausal) SetEnough({found_.mask, a.mask_kind, a.fill}, found_.type, &a.causal);
    if (found_.mask < 0) return true;
    const Value m = graph_.value(found_.mask);
    if (m.rank() > static_cast<int>(scores.size())) return false;
    View view;
    view.value = found_.mask;
    view.dims.assign(scores.size() - static_cast<size_t>(m.rank()), 1);
    view.dims.insert(view.dims.end(), m.dims().begin(), m.dims().end());
    view.strides = StridesOf(view.dims);
    const size_t rank = scores.size();
    if (!Batch(view, scores, a.mask_batch)) return false;
    for (size_t i = rank - 2; i < rank; ++i) {
      if (view.dims[i] != 1 && view.dims[i] != scores[i]) return false;
    }
    a.mask_row = view.dims[rank - 2] == 1 ? 0 : view.strides[rank - 2];
    a.mask_column = view.dims[rank - 1] == 1 ? 0 : view.strides[rank - 1];
    return true;
  }

  const Graph& graph_;
  Attention& found_;
};

}  // namespace

bool FindAttention(const Graph& graph, int softmax, Attention* found) {
  *found = {};
  if (!Finder(graph, *found).Run(softmax)) return false;
  std::ranges::sort(found->nodes);
  return std::isfinite(found->args.scale);
}

void OfferAttention(const Pattern& pattern, ClaimList& claims) {
  const Graph& graph = pattern.graph();
  for (int i = 0; i < graph.node_count(); ++i) {
    Attention found;
    if (!graph.node(i).Is("Softmax") || !FindAttention(graph, i, &found)) continue;
    // Saves the writes and reads of the values between the nodes, and all launches but one.
    double saved = 0;
    for (int32_t node : found.nodes) {
      const Value y = graph.node(node).output(0);
      if (graph.node(node).Is("Reshape")) continue;  // it copies nothing
      if (graph.node(node).output_id(0) != found.output) saved += GpuUs(kAverageRoofs, 2.0 * static_cast<double>(y.bytes()));
    }
    claims.Offer("attention", found.nodes, saved);
  }
}

}  // namespace mge::gpu
