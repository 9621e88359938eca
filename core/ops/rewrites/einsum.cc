// SPDX-License-Identifier: Apache-2.0
// Replaces an Einsum by matrix products, for which backends have fast kernels.
//
// Algorithm: multiplies two factors at a time, the pair with the least work first, until one factor is left. A product
// that sums over labels becomes a MatMul or Gemm; transposes and reshapes bring its operands into matrix form. Other
// products are computed element by element. Diagonals and sums over the labels of one factor are removed before. If
// 16-bit floats would be rounded more than once, all steps compute in float32.
#include "core/ops/families/einsum.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/families/movement.h"
#include "core/ops/rewrites/pattern.h"

namespace mge::rewrite_einsum {
namespace {

// A planned operator of the replacement, before it is in the graph. The output of step i, counted from 1, has the value
// id ~i.
struct Step {
  std::string op;
  std::vector<ValueId> inputs;
  std::vector<Ints> constants = {};  // more inputs
  std::vector<std::pair<std::string, AttributeValue>> attrs = {};
};

// An intermediate value. Each dimension has its own label and that label's full size. Dimensions of size 1 are removed.
struct Factor {
  ValueId value = kNone;
  Labels labels;
  bool constant = false;  // a transpose of it costs nothing in a run
};

bool Has(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

template <typename Keep>
Labels Those(const Labels& labels, Keep keep) {
  Labels out;
  std::copy_if(labels.begin(), labels.end(), std::back_inserter(out), keep);
  return out;
}

Labels Joined(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Returns the labels in the order of `like`, followed by those that are not in `like`.
Labels InOrderOf(const Labels& like, const Labels& labels) {
  return Joined(Those(like, [&](int l) { return Has(labels, l); }), Those(labels, [&](int l) { return !Has(like, l); }));
}

// Plans the steps that compute an equation. Multiplies the cheapest pair of factors until one is left. Each product
// sums the labels that are not needed later, as a matrix product where possible, else element by element.
class Expansion {
 public:
  explicit Expansion(EinsumEquation equation) : eq_(std::move(equation)) {}

  std::vector<Step> steps;
  int roundings = 0;  // number of steps that round their results

  // Plans the whole equation. Returns false if that is not possible; the graph is not changed.
  bool Run(std::span<const ValueId> inputs, std::span<const Shape> shapes, std::span<const char> constant) {
    std::vector<Factor> factors;
    for (size_t i = 0; i < inputs.size(); ++i) {
      std::optional<Factor> f = Taken(inputs[i], shapes[i], eq_.terms[i]);
      if (!f) return false;
      f->constant = constant[i];
      factors.push_back(*std::move(f));
    }
    const Labels output = Those(eq_.output, [&](int l) { return eq_.size.at(l) != 1; });
    while (factors.size() > 1) {
      auto [i, j] = CheapestPair(factors);
      Labels keep = output;
      for (size_t k = 0; k < factors.size(); ++k) {
        if (k != i && k != j) keep = Joined(keep, factors[k].labels);
      }
      factors[i] = Multiply(factors[i], factors[j], keep, factors.size() == 2 ? output : Labels());
      factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(j));
    }
    Factor result = Moved(SumOver(factors[0], output), output);
    Shape dims = SizesOf(eq_.output);
    if (dims != SizesOf(output)) result.value = Reshaped(result.value, dims);
    if (steps.empty()) Add({"Identity", {result.value}});
    return true;
  }

 private:
  ValueId Add(Step step) {
    steps.push_back(std::move(step));
    return ~static_cast<ValueId>(steps.size());
  }
  Shape SizesOf(const Labels& labels) const {
    Shape sizes;
    for (int l : labels) sizes.push_back(eq_.size.at(l));
    return sizes;
  }
  double ElementsOf(const Labels& labels) const {
    double n = 1;
    for (int l : labels) n *= static_cast<double>(eq_.size.at(l));
    return n;
  }
  int64_t ProductOf(const Labels& labels) const { return Elements(SizesOf(labels)); }

  ValueId Reshaped(ValueId value, std::span<const int64_t> dims) {
    return Add({"Reshape", {value}, {Ints(dims.begin(), dims.end())}, {{"allowzero", int64_t{1}}}});
  }
  Factor Moved(Factor f, const Labels& labels) {
    if (f.labels == labels) return f;
    Ints perm;
    for (int l : labels) perm.push_back(std::find(f.labels.begin(), f.labels.end(), l) - f.labels.begin());
    return {Add({"Transpose", {f.value}, {}, {{"perm", perm}}}), labels, f.constant};
  }
  Factor SumOver(Factor f, const Labels& keep) {
    Ints axes;
    for (size_t d = 0; d < f.labels.size(); ++d) {
      if (!Has(keep, f.labels[d])) axes.push_back(static_cast<int64_t>(d));
    }
    if (axes.empty()) return f;
    ++roundings;
    f.value = Add({"ReduceSum", {f.value}, {axes}, {{"keepdims", int64_t{0}}}});
    f.labels = Those(f.labels, [&](int l) { return Has(keep, l); });
    return f;
  }

  // Removes an input's dimensions of size 1 and takes the diagonal of each repeated label. Returns nullopt for an empty
  // diagonal.
  std::optional<Factor> Taken(ValueId value, const Shape& shape, const Labels& term) {
    Factor f = {value, {}};
    Shape dims;
    for (size_t d = 0; d < term.size(); ++d) {
      if (shape[d] == 1) continue;
      f.labels.push_back(term[d]);
      dims.push_back(shape[d]);
    }
    if (dims.size() != shape.size()) f.value = Reshaped(f.value, dims);
    for (size_t d = 0; d < f.labels.size();) {
      int label = f.labels[d];
      if (std::count(f.labels.begin(), f.labels.end(), label) == 1) {
        ++d;
        continue;
      }
      if (Elements(dims) == 0) return std::nullopt;
      TakeDiagonal(f, dims, label);
      d = 0;
    }
    return f;
  }
  // Moves the first two dimensions of `label` to the end, merges them to n * n elements and keeps every (n+1)-th
  // element.
  void TakeDiagonal(Factor& f, Shape& dims, int label) {
    Ints perm, ends;
    Labels labels;
    Shape left;
    for (size_t d = 0; d < f.labels.size(); ++d) {
      bool moves = f.labels[d] == label && ends.size() < 2;
      (moves ? ends : perm).push_back(static_cast<int64_t>(d));
      if (moves) continue;
      labels.push_back(f.labels[d]);
      left.push_back(dims[d]);
    }
    const int64_t n = dims[static_cast<size_t>(ends[0])], axis = static_cast<int64_t>(left.size());
    perm.insert(perm.end(), ends.begin(), ends.end());
    if (!std::is_sorted(perm.begin(), perm.end())) f.value = Add({"Transpose", {f.value}, {}, {{"perm", perm}}});
    left.push_back(n * n);
    f.value = Reshaped(f.value, left);
    f.value = Add({"Slice", {f.value}, {{0}, {n * n}, {axis}, {n + 1}}});
    left.back() = n;
    labels.push_back(label);
    f.labels = labels;
    dims = left;
  }

  // Returns the pair whose product needs the least work; the first one if several are equal.
  std::pair<size_t, size_t> CheapestPair(const std::vector<Factor>& factors) const {
    std::pair<size_t, size_t> best = {0, 1};
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < factors.size(); ++i) {
      for (size_t j = i + 1; j < factors.size(); ++j) {
        double work = ElementsOf(InOrderOf(factors[i].labels, Joined(factors[j].labels, factors[i].labels)));
        if (work < least) {
          least = work;
          best = {i, j};
        }
      }
    }
    return best;
  }

  // Returns the product of two factors, summed over labels that are not in `keep`. `target` is the preferred order of
  // labels.
  Factor Multiply(Factor x, Factor y, const Labels& keep, const Labels& target) {
    x = SumOver(x, Joined(keep, y.labels));
    y = SumOver(y, Joined(keep, x.labels));
    const Labels summed = Those(x.labels, [&](int l) { return Has(y.labels, l) && !Has(keep, l); });
    const bool whole = x.labels.size() == summed.size() && y.labels.size() == summed.size();
    const bool pairs = x.labels.size() == y.labels.size() &&
                       std::all_of(x.labels.begin(), x.labels.end(), [&](int l) { return Has(y.labels, l); });
    if (!summed.empty() && (whole || !pairs)) return MatrixProduct(x, y, summed, target);
    // Multiplies element by element. That includes batches of scalar products, which are too small for matrix products.
    Labels order = InOrderOf(target, Joined(x.labels, Those(y.labels, [&](int l) { return !Has(x.labels, l); })));
    ++roundings;
    Factor product = {Add({"Mul", {Spread(x, order), Spread(y, order)}}), order};
    return SumOver(product, keep);
  }

  // Returns the factor with its labels in the given order, and dimensions of size 1 for labels that it does not have.
  ValueId Spread(const Factor& f, const Labels& order) {
    Factor moved = Moved(f, Those(order, [&](int l) { return Has(f.labels, l); }));
    Shape dims;
    for (int l : order) {
      if (Has(f.labels, l) || !dims.empty()) dims.push_back(Has(f.labels, l) ? eq_.size.at(l) : 1);
    }
    return dims.size() == moved.labels.size() ? moved.value : Reshaped(moved.value, dims);
  }

  // A factor as matrices: transposed to (batch, first, second), or used as it is with a transposing Gemm.
  struct Matrices {
    Labels order;
    bool transposed = false;
    double moved = 0;  // number of elements to transpose
  };
  Matrices PlanMatrices(const Factor& f, const Labels& batch, const Labels& first, const Labels& second) const {
    Labels order = Joined(batch, Joined(first, second));
    if (f.labels == order) return {order};
    if (batch.empty() && f.labels == Joined(second, first)) return {f.labels, true};
    return {order, false, f.constant ? 0 : ElementsOf(f.labels)};
  }

  // Multiplies (batch, rows, summed) by (batch, summed, columns). Tries all 64 orders of factors and labels, and uses
  // the one that transposes the fewest elements.
  Factor MatrixProduct(const Factor& x, const Factor& y, const Labels& summed, const Labels& target) {
    struct Arrangement {
      const Factor *a = nullptr, *b = nullptr;
      Matrices am = {}, bm = {};
      Labels batch, rows, summed, columns, result;
      double cost = std::numeric_limits<double>::infinity();
    } best;
    for (int choice = 0; choice < 64; ++choice) {
      Arrangement now;
      now.a = choice & 1 ? &y : &x;
      now.b = choice & 1 ? &x : &y;
      auto wish = [&](int bit, const Labels& own) { return InOrderOf(choice & bit ? target : own, own); };
      now.summed = InOrderOf((choice & 2 ? now.b : now.a)->labels, summed);
      now.batch = Those((choice & 4 ? now.b : now.a)->labels,
                        [&](int l) { return Has(x.labels, l) && Has(y.labels, l) && !Has(summed, l); });
      now.batch = wish(8, now.batch);
      now.rows = wish(16, Those(now.a->labels, [&](int l) { return !Has(now.b->labels, l); }));
      now.columns = wish(32, Those(now.b->labels, [&](int l) { return !Has(now.a->labels, l); }));
      now.am = PlanMatrices(*now.a, now.batch, now.rows, now.summed);
      now.bm = PlanMatrices(*now.b, now.batch, now.summed, now.columns);
      now.result = Joined(now.batch, Joined(now.rows, now.columns));
      now.cost = now.am.moved + now.bm.moved + (target.empty() || now.result == target ? 0 : ElementsOf(now.result));
      if (now.cost < best.cost) best = now;
    }
    constexpr size_t kMaxBatches = 3;  // more batch dimensions are merged into one
    const int64_t m = ProductOf(best.rows), k = ProductOf(best.summed), n = ProductOf(best.columns);
    auto batched = [&](std::initializer_list<int64_t> matrix) {
      Shape dims = best.batch.size() > kMaxBatches ? Shape{ProductOf(best.batch)} : SizesOf(best.batch);
      dims.insert(dims.end(), matrix);
      return dims;
    };
    auto matrices = [&](const Factor& f, const Matrices& plan, int64_t rows, int64_t columns) {
      Shape dims = plan.transposed ? batched({columns, rows}) : batched({rows, columns});
      Factor moved = Moved(f, plan.order);
      return SizesOf(moved.labels) == dims ? moved.value : Reshaped(moved.value, dims);
    };
    ValueId a = matrices(*best.a, best.am, m, k), b = matrices(*best.b, best.bm, k, n);
    ++roundings;
    Factor product = {kNone, best.result};
    if (best.am.transposed || best.bm.transposed) {
      Step gemm = {"Gemm", {a, b}};
      if (best.am.transposed) gemm.attrs.emplace_back("transA", int64_t{1});
      if (best.bm.transposed) gemm.attrs.emplace_back("transB", int64_t{1});
      product.value = Add(std::move(gemm));
    } else {
      product.value = Add({"MatMul", {a, b}});
    }
    if (Shape split = SizesOf(best.result); batched({m, n}) != split) product.value = Reshaped(product.value, split);
    return product;
  }

  const EinsumEquation eq_;
};

// Replaces the node by the steps. With `wide`, computes 16-bit floats in float32.
void Emit(Graph& graph, NodeId id, const std::vector<Step>& steps, bool wide) {
  const Node root = graph.node(id);
  const auto narrow = static_cast<int64_t>(graph.value(root.inputs[0]).type.dtype);
  auto add = [&](std::string op, std::vector<ValueId> inputs, bool last) {
    Node node;
    node.op = std::move(op);
    node.name = root.name + "." + node.op;
    node.device = root.device;
    node.inputs = std::move(inputs);
    node.outputs = {last ? root.outputs[0] : graph.AddTemporary(node.name)};
    return node;
  };
  auto cast = [&](ValueId value, int64_t to, bool last) {
    Node node = add("Cast", {value}, last);
    node.attrs.Set("to", to);
    return graph.node(graph.AddNode(std::move(node))).outputs[0];
  };
  std::map<ValueId, ValueId> widened;
  std::vector<ValueId> results;
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool last = i + 1 == steps.size() && !wide;
    std::vector<ValueId> inputs;
    for (ValueId v : steps[i].inputs) {
      if (v < kNone) {
        v = results[static_cast<size_t>(~v - 1)];
      } else if (wide) {
        auto [at, fresh] = widened.try_emplace(v, kNone);
        if (fresh) at->second = cast(v, static_cast<int64_t>(DType::kF32), false);
        v = at->second;
      }
      inputs.push_back(v);
    }
    Node node = add(steps[i].op, std::move(inputs), last);
    for (const auto& [name, value] : steps[i].attrs) node.attrs.Set(name, value);
    for (const Ints& list : steps[i].constants) {
      SetConstantInput(graph, node, static_cast<int>(node.inputs.size()), "list", Tensor::Vector<int64_t>(list));
    }
    results.push_back(node.outputs[0]);
    graph.AddNode(std::move(node));
  }
  if (wide) cast(results.back(), narrow, true);
  graph.RemoveNode(id);
}

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator&) {
  const Node node = graph.node(id);
  if (!IsOp(node, "Einsum")) return false;
  std::vector<Shape> shapes;
  std::vector<char> constant;
  for (ValueId v : node.inputs) {
    if (!graph.value(v).type.IsStatic()) return false;
    shapes.push_back(graph.value(v).type.dims);
    constant.push_back(IsConstant(graph, v));
  }
  constexpr TypeSet kTypes = kFloating | TypeSet{DType::kI32, DType::kI64, DType::kU32, DType::kU64};  // types of MatMul
  const DType dtype = graph.value(node.inputs[0]).type.dtype;
  if (!kTypes.Contains(dtype)) return false;
  MGE_ASSIGN_OR_RETURN(EinsumEquation equation, ParseEinsum(node.attrs.Text("equation"), shapes));
  Expansion expansion(std::move(equation));
  if (!expansion.Run(node.inputs, shapes, constant)) return false;
  const bool half = dtype == DType::kF16 || dtype == DType::kBF16;
  Emit(graph, id, expansion.steps, half && expansion.roundings > 1);
  return true;
}

}  // namespace

MGE_REWRITE(einsum) = {
    .name = "einsum", .doc = "Replaces an Einsum by matrix products with transposes, sums and reshapes.", .apply = Apply};

}  // namespace mge::rewrite_einsum
