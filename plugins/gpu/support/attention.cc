// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plugins/gpu/support/row.h"

namespace mge::gpu {
namespace {

constexpr int kMaxBatchRank = 6;

bool IsPlain(const Value& v) { return v.dtype() == MGE_DTYPE_F32 && v.is_static() && v.elements() > 0; }

// A matrix with batch dimensions in front, read through strides.
struct View {
  int32_t value = -1;
  std::vector<int64_t> dims, strides;
};

// Collects the nodes of one attention.
class Finder {
 public:
  Finder(const Graph& graph, Attention& found) : graph_(graph), found_(found) {}

  bool Run(int softmax) {
    const Node n = graph_.node(softmax);
    const Value x = n.input(0);
    if (!Joins(n, "Softmax") || AxisOf(n.Int("axis", -1), x.rank()) != x.rank() - 1) return false;
    if (x.rank() < 2 || x.rank() > kMaxBatchRank + 2) return false;
    Take(softmax);
    const std::vector<int64_t> scores(x.dims().begin(), x.dims().end());
    const int first = FindScores(n.input_id(0), scores);
    const int second = ReaderOf(n.output_id(0));
    if (first < 0 || second < 0) return false;
    const Node last = graph_.node(second);
    if (!Joins(last, "MatMul") || last.input_id(0) != n.output_id(0) || last.input_id(1) == n.output_id(0)) return false;
    Take(second);
    View q, k, v;
    if (!Follow(graph_.node(first).input_id(0), true, &q) || !Follow(graph_.node(first).input_id(1), true, &k) ||
        !Follow(last.input_id(1), false, &v)) {
      return false;
    }
    std::swap(k.dims[k.dims.size() - 2], k.dims.back());  // MatMul reads keys transposed
    std::swap(k.strides[k.strides.size() - 2], k.strides.back());
    return SetArgs(scores, q, k, v, last);
  }

 private:
  // Returns whether the node is of this operator, and computes one float32 value of known shape.
  static bool Joins(const Node& n, std::string_view op) {
    if (!n.Is(op) || HasOwnMeaning(n) || n.output_count() != 1 || !n.has_output(0) || !IsPlain(n.output(0))) return false;
    for (int i = 0; i < n.input_count(); ++i) {
      if (!n.has_input(i) || !IsPlain(n.input(i))) return false;
    }
    return true;
  }
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

  // Reads a node that multiplies or divides by a constant number. Returns the other operand, or -1 if it is no such node.
  int32_t Scaled(const Node& n, float* scale) const {
    const bool product = Joins(n, "Mul");
    if (!product && !Joins(n, "Div")) return -1;
    for (int k = product ? 0 : 1; k < 2; ++k) {
      const Value number = n.input(k);
      if (!number.is_constant() || number.elements() != 1 || number.rank() > n.input(1 - k).rank()) continue;
      *scale = product ? *scale * number.data<float>()[0] : *scale / number.data<float>()[0];
      return n.input_id(1 - k);
    }
    return -1;
  }

  // Finds the product of queries and keys, and the scale and the mask behind it. Returns the product's node, or -1.
  int FindScores(int32_t value, const std::vector<int64_t>& dims) {
    const int sum = MakerOf(value);
    if (sum < 0) return -1;
    const Node n = graph_.node(sum);
    if (!Joins(n, "Add")) return FindProduct(value);
    for (int k = 0; k < 2; ++k) {
      if (!std::ranges::equal(n.input(k).dims(), dims)) continue;
      const size_t before = found_.nodes.size();
      const int product = FindProduct(n.input_id(k));
      if (product >= 0) {
        Take(sum);
        found_.mask = n.input_id(1 - k);
        return product;
      }
      found_.nodes.resize(before);
    }
    return -1;
  }
  int FindProduct(int32_t value) {
    float scale = 1;
    for (int i = MakerOf(value); i >= 0; i = MakerOf(value)) {
      const Node n = graph_.node(i);
      if (Joins(n, "MatMul")) {
        Take(i);
        found_.args.scale = scale;
        return i;
      }
      if (value = Scaled(n, &scale); value < 0) return -1;
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
    if (!IsPlain(v) || v.rank() != rank) return false;
    const std::vector<int64_t> strides = StridesOf(v.dims());
    view->value = value;
    for (size_t d : order) {
      view->dims.push_back(v.dims()[d]);
      view->strides.push_back(strides[d]);
    }
    return true;
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
    a.queries = scores[rank - 2];
    a.keys = scores[rank - 1];
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
    if (found_.mask < 0) return true;
    const Value m = graph_.value(found_.mask);
    if (m.rank() > static_cast<int>(scores.size())) return false;
    if (IsCausal(m)) {
      found_.args.causal = 1;
      found_.mask = -1;
      return true;
    }
    View view{found_.mask, {}, {}};
    view.dims.assign(scores.size() - static_cast<size_t>(m.rank()), 1);
    view.dims.insert(view.dims.end(), m.dims().begin(), m.dims().end());
    view.strides = StridesOf(view.dims);
    const size_t rank = scores.size();
    if (!Batch(view, scores, found_.args.mask_batch)) return false;
    for (size_t i = rank - 2; i < rank; ++i) {
      if (view.dims[i] != 1 && view.dims[i] != scores[i]) return false;
    }
    found_.args.mask_row = view.dims[rank - 2] == 1 ? 0 : view.strides[rank - 2];
    found_.args.mask_column = view.dims[rank - 1] == 1 ? 0 : view.strides[rank - 1];
    return true;
  }

  // Returns whether a constant mask is 0 for the keys up to i + keys - queries of query i, and excludes all others.
  bool IsCausal(const Value& m) const {
    const AttentionArgs& a = found_.args;
    if (!m.is_constant() || a.keys < a.queries || m.elements() != static_cast<uint64_t>(a.queries * a.keys)) return false;
    if (m.rank() < 2 || m.dim(-1) != a.keys || m.dim(-2) != a.queries) return false;
    constexpr float kExcluded = -1e30f;  // exp(score + this - maximum) is 0
    const std::span<const float> values = m.data<float>();
    for (int64_t i = 0; i < a.queries; ++i) {
      for (int64_t j = 0; j < a.keys; ++j) {
        const float v = values[static_cast<size_t>(i * a.keys + j)];
        if (j <= i + a.keys - a.queries ? v != 0 : !(v <= kExcluded)) return false;
      }
    }
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
      if (graph.node(node).output_id(0) != found.output) saved += GpuUs(kAverageRoofs, 2.0 * static_cast<double>(y.bytes()));
    }
    claims.Offer("attention", found.nodes, saved);
  }
}

}  // namespace mge::gpu
