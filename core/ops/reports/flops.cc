// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reports/flops.h"

#include <algorithm>
#include <set>
#include <vector>

#include "core/ops/families/einsum.h"

namespace mge {
namespace {

double Count(const TensorType& type) { return static_cast<double>(Elements(type.dims)); }

bool AllStatic(std::span<const TensorType* const> types) {
  return std::all_of(types.begin(), types.end(), [](const TensorType* t) { return !t || t->IsStatic(); });
}

// Counts kCount operations for each element of input 0.
template <int kCount>
double PerInput(const NodeTypes& t) {
  return kCount * Count(*t.inputs[0]);
}

// Returns the operations of a convolution. Each output element uses all weights of its channel. Input kW is [out
// channels, in channels / group, kernel...].
template <int kW>
double Conv(const NodeTypes& t) {
  const Shape& w = t.inputs[kW]->dims;
  return w.empty() || w[0] == 0 ? 0 : 2 * Count(*t.outputs[0]) * static_cast<double>(Elements(w) / w[0]);
}

// Returns the operations of a transposed convolution. Each input element uses all weights of its channel. W is [in
// channels, out channels / group, kernel...].
double ConvTranspose(const NodeTypes& t) {
  const Shape& w = t.inputs[1]->dims;
  return w.empty() || w[0] == 0 ? 0 : 2 * Count(*t.inputs[0]) * static_cast<double>(Elements(w) / w[0]);
}

// Returns the operations of the gradient of a Conv by its weights, which are output 0, from input 1, that of its output.
double ConvWeightGradient(const NodeTypes& t) {
  const Shape& w = t.outputs[0]->dims;
  return w.empty() || w[0] == 0 ? 0 : 2 * Count(*t.inputs[1]) * static_cast<double>(Elements(w) / w[0]);
}

// Returns the operations of a product that sums over A's last dimension.
double MatMul(const NodeTypes& t) {
  const Shape& a = t.inputs[0]->dims;
  return a.empty() ? 0 : 2 * Count(*t.outputs[0]) * static_cast<double>(a.back());
}

// Returns the operations of a product of A with N columns. The weights are packed.
double PackedWeights(const NodeTypes& t) { return 2 * Count(*t.inputs[0]) * static_cast<double>(t.node.attrs.Int("N")); }

double Gemm(const NodeTypes& t) {
  const Shape& a = t.inputs[0]->dims;
  const bool transposed = t.node.attrs.Int("transA") != 0;
  return a.size() != 2 ? 0 : 2 * Count(*t.outputs[0]) * static_cast<double>(a[transposed ? 0 : 1]);
}

// Returns the operations of multiplying factor by factor: two for each combination of the labels used so far.
double Einsum(const NodeTypes& t) {
  std::vector<Shape> shapes;
  for (const TensorType* input : t.inputs) shapes.push_back(input ? input->dims : Shape());
  const absl::StatusOr<EinsumEquation> equation = ParseEinsum(t.node.attrs.Text("equation"), shapes);
  if (!equation.ok()) return -1;
  auto combinations = [&](const std::set<int>& labels) {
    double product = 1;
    for (int label : labels) product *= static_cast<double>(equation->size.at(label));
    return product;
  };
  const std::vector<Labels>& terms = equation->terms;
  std::set<int> product(terms[0].begin(), terms[0].end());
  double flops = terms.size() == 1 ? combinations(product) : 0;
  for (size_t i = 1; i < terms.size(); ++i) {
    product.insert(terms[i].begin(), terms[i].end());
    flops += 2 * combinations(product);
    std::set<int> wanted(equation->output.begin(), equation->output.end());  // labels that are used later
    for (size_t j = i + 1; j < terms.size(); ++j) wanted.insert(terms[j].begin(), terms[j].end());
    std::erase_if(product, [&](int label) { return !wanted.contains(label); });
  }
  return flops;
}

// Returns the operations of one layer: products with W (input 1) and R (input 2) at every step of X [steps, batch,
// features].
double Recurrent(const NodeTypes& t) {
  const Shape& x = t.inputs[0]->dims;
  return x.size() != 3 ? 0 : 2 * static_cast<double>(x[0] * x[1]) * (Count(*t.inputs[1]) + Count(*t.inputs[2]));
}

double Pool(const NodeTypes& t) {
  return Count(*t.outputs[0]) * static_cast<double>(Elements(t.node.attrs.IntList("kernel_shape")));
}

constexpr OpWork kRows[] = {
    {"Conv", Conv<1>},
    {"ConvInteger", Conv<1>},
    {"QLinearConv", Conv<3>},
    {"ConvTranspose", ConvTranspose},
    {.op = "ConvInputGradient", .flops = ConvTranspose, .domain = "mge"},
    {.op = "ConvWeightGradient", .flops = ConvWeightGradient, .domain = "mge"},
    {"MatMul", MatMul},
    {"MatMulInteger", MatMul},
    {"QLinearMatMul", MatMul},
    {"Gemm", Gemm},
    {"Einsum", Einsum},
    {"LSTM", Recurrent},
    {"GRU", Recurrent},
    {"RNN", Recurrent},
    {.op = "DynamicQuantizeLSTM", .flops = Recurrent, .domain = "com.microsoft"},
    {.op = "MatMulNBits", .flops = PackedWeights, .domain = "com.microsoft"},
    {.op = "AveragePool", .flops = Pool, .cheap = true},
    {.op = "MaxPool", .flops = Pool, .cheap = true},
    {"LpPool", Pool},
    {.op = "GlobalAveragePool", .flops = PerInput<1>, .cheap = true},
    {.op = "GlobalMaxPool", .flops = PerInput<1>, .cheap = true},
    {"GlobalLpPool", PerInput<2>},
    {"ArgMax", PerInput<1>},
    {"ArgMin", PerInput<1>},
    {"CumSum", PerInput<1>},
    {"ReduceMax", PerInput<1>},
    {"ReduceMean", PerInput<1>},
    {"ReduceMin", PerInput<1>},
    {"ReduceProd", PerInput<1>},
    {"ReduceSum", PerInput<1>},
    {"ReduceL1", PerInput<2>},
    {"ReduceL2", PerInput<2>},
    {"ReduceLogSum", PerInput<1>},
    {"ReduceSumSquare", PerInput<2>},
    {"ReduceLogSumExp", PerInput<3>},
    {.op = "BatchNormalization", .flops = PerInput<2>, .cheap = true},
    {"QuantizeLinear", PerInput<2>},
    {"DequantizeLinear", PerInput<2>},
    {"DynamicQuantizeLinear", PerInput<4>},
    {.op = "Softmax", .flops = PerInput<5>, .cheap = true},
    {.op = "LogSoftmax", .flops = PerInput<5>, .cheap = true},
    {.op = "LpNormalization", .flops = PerInput<3>, .cheap = true},
    {.op = "LayerNormalization", .flops = PerInput<7>, .cheap = true},
    {.op = "RMSNormalization", .flops = PerInput<4>, .cheap = true},
    {.op = "InstanceNormalization", .flops = PerInput<7>, .cheap = true},
    {.op = "GroupNormalization", .flops = PerInput<7>, .cheap = true},
    {.op = "MeanVarianceNormalization", .flops = PerInput<7>, .cheap = true},
    {.op = "Compress", .reads_part = true},
    {.op = "Gather", .reads_part = true},
    {.op = "GatherElements", .reads_part = true},
    {.op = "GatherND", .reads_part = true},
    {.op = "Slice", .reads_part = true},
};

/*nullable*/ const OpWork* Row(const Node& node) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows),
                                 [&](const OpWork& r) { return r.op == node.op && r.domain == node.domain; });
  return row == std::end(kRows) ? nullptr : row;
}

}  // namespace

std::span<const OpWork> AllOpWork() { return kRows; }

bool IsCheap(const Node& node) {
  const OpWork* row = Row(node);
  return node.def->Is(kElementwise) || node.def->KeepsBytes() || node.def->Is(kTranspose) || (row && row->cheap);
}

double FlopsOf(const NodeTypes& t) {
  if (!AllStatic(t.inputs) || !AllStatic(t.outputs)) return -1;
  if (const OpWork* row = Row(t.node)) return row->flops ? row->flops(t) : 0;
  const bool counts = t.node.def->Is(kElementwise) && !t.node.def->KeepsBytes() && !t.outputs.empty() && t.outputs[0];
  return counts ? Count(*t.outputs[0]) : 0;
}

double FlopsOf(const Graph& graph, const Node& node) {
  std::vector<const TensorType*> inputs, outputs;
  for (const ValueId v : node.inputs) inputs.push_back(v == kNone ? nullptr : &graph.value(v).type);
  for (const ValueId v : node.outputs) outputs.push_back(v == kNone ? nullptr : &graph.value(v).type);
  return FlopsOf({node, inputs, outputs});
}

double BytesOf(const TensorType& type) {
  if (!type.IsStatic()) return -1;
  return type.dtype == DType::kString ? 0 : Count(type) * static_cast<double>(ElementBytes(type.dtype));
}

double BytesRead(const NodeTypes& t, int i) {
  const double all = BytesOf(*t.inputs[static_cast<size_t>(i)]);
  const OpWork* row = Row(t.node);
  if (i > 0 || !row || !row->reads_part || t.outputs.empty() || !t.outputs[0]) return all;
  const double part = BytesOf(*t.outputs[0]);
  return part < 0 ? part : std::min(part, all);
}

}  // namespace mge
