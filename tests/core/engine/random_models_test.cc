// SPDX-License-Identifier: Apache-2.0
// Compares random models, of many operators and types, with the reference evaluators run node by node. The models run on the
// CPU and the virtual GPU, with fusion and memory placement. Results of exact arithmetic must be equal in every bit.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "core/base/errors.h"
#include "core/engine/session.h"
#include "core/ops/op.h"
#include "fmt/format.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

constexpr char kPlugins[] = MGE_BINARY_DIR "/lib/mge/plugins";
constexpr double kLargest = 1e4;  // larger numbers would overflow or cancel in later nodes
constexpr int64_t kMaxElements = 4000;

double Number(const Tensor& t, int64_t i) {
  double out = 0;
  DispatchNumeric(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    out = static_cast<double>(static_cast<Compute<T>>(t.Data<T>()[static_cast<size_t>(i)]));
  });
  if (t.dtype() == DType::kBool) out = t.Data<bool>()[static_cast<size_t>(i)];
  return out;
}

bool IsHalf(DType t) { return t == DType::kF16 || t == DType::kBF16; }
bool IsFloat(DType t) { return t == DType::kF32 || t == DType::kF64 || IsHalf(t); }

class RandomModel {
 public:
  explicit RandomModel(unsigned seed) : random_(seed), symbolic_(seed % 2 == 0) {
    for (int i = 0, n = 1 + Below(10); i < n; ++i) AddNode();
    std::vector<int32_t> uses(static_cast<size_t>(graph.value_count()), 0);
    for (NodeId id = 0; id < graph.node_count(); ++id) {
      for (ValueId v : graph.node(id).inputs) ++uses[static_cast<size_t>(v)];
    }
    for (const Known& k : known_) {
      if (graph.value(k.id).producer == kNone) continue;
      if (uses[static_cast<size_t>(k.id)] == 0 || Below(6) == 0) outputs.push_back(k), graph.outputs().push_back(k.id);
    }
  }

  struct Known {
    ValueId id;
    Tensor tensor;
    bool exact;  // every implementation gives the same bits
  };
  Graph graph;
  std::vector<HostValue> inputs;
  std::vector<Known> outputs;

  // Returns inputs of other shapes: each size that is not 1 becomes another one, the same everywhere. Sets `results` to the
  // outputs for them. Returns nothing if the model has fixed shapes or is not valid for these.
  std::vector<HostValue> OtherShapes(unsigned seed, std::vector<Known>* results) {
    if (!symbolic_) return {};
    std::vector<HostValue> others;
    for (const HostValue& input : inputs) {
      Shape shape = input.tensor.shape();
      for (int64_t& d : shape) d = d > 1 ? 2 + (d + 5 * seed) % 19 : d;
      others.emplace_back().tensor = Values(input.tensor.dtype(), shape);
    }
    std::vector<HostValue> values(static_cast<size_t>(graph.value_count()));
    for (ValueId v = 0; v < graph.value_count(); ++v) values[static_cast<size_t>(v)].tensor = graph.value(v).constant;
    for (size_t i = 0; i < others.size(); ++i) values[static_cast<size_t>(graph.inputs()[i])] = others[i];
    for (NodeId id = 0; id < graph.node_count(); ++id) {
      const Node& node = graph.node(id);
      std::vector<HostValue> in;
      for (ValueId v : node.inputs) in.push_back(values[static_cast<size_t>(v)]);
      auto made = Evaluate(node, in);
      if (!made.ok()) return {};
      for (size_t i = 0; i < made->size(); ++i) {
        if (!IsModerate((*made)[i].tensor)) return {};
        values[static_cast<size_t>(node.outputs[i])] = (*made)[i];
      }
    }
    results->clear();
    for (const Known& k : outputs) results->push_back({k.id, values[static_cast<size_t>(k.id)].tensor, k.exact});
    return others;
  }

 private:
  static bool IsModerate(const Tensor& t) {
    if (t.elements() > kMaxElements) return false;
    for (int64_t i = 0; i < t.elements(); ++i) {
      if (!(std::abs(Number(t, i)) < kLargest)) return false;
    }
    return true;
  }
  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  template <typename T>
  T OneOf(std::initializer_list<T> list) {
    return list.begin()[Below(static_cast<int>(list.size()))];
  }

  // Returns multiples of 1/8 from -4 to 4, which are exact in every float type; integers from 0 to 8.
  Tensor Values(DType type, const Shape& shape) {
    Tensor t = *Tensor::Create(type, shape);
    DispatchNumeric(type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (T& v : t.MutableData<T>())
        v = static_cast<T>(IsFloat(type) ? static_cast<float>(Below(65) - 32) / 8 : static_cast<float>(Below(9)));
    });
    if (type == DType::kBool) {
      for (bool& b : t.MutableData<bool>()) b = Below(2);
    }
    return t;
  }
  Shape AnyShape(int least, int most) {
    Shape shape;
    for (int i = 0, n = least + Below(most - least + 1); i < n; ++i) shape.push_back(OneOf<int64_t>({1, 2, 3, 4, 5, 8, 17}));
    return shape;
  }
  Known New(DType type, const Shape& shape, bool constant) { return New(Values(type, shape), constant); }
  Known New(Tensor tensor, bool constant) {
    std::string name = fmt::format("{}{}", constant ? "c" : "x", graph.value_count());
    Known k{kNone, tensor, true};
    if (constant) {
      k.id = graph.AddConstant(name, tensor);
    } else {
      TensorType type = {tensor.dtype(), true, tensor.shape(), {}};
      if (symbolic_) std::fill(type.dims.begin(), type.dims.end(), kUnknownDim);
      k.id = graph.AddInput(name, type);
      inputs.push_back({});
      inputs.back().tensor = tensor;
    }
    known_.push_back(k);
    return k;
  }
  Known Ints(std::vector<int64_t> values) { return New(Tensor::Vector<int64_t>(values), Below(4) > 0); }
  template <typename Fits>
  Known Some(Fits fits, DType type, Shape shape) {
    std::vector<size_t> found;
    for (size_t i = 0; i < known_.size(); ++i) {
      if (fits(known_[i].tensor)) found.push_back(i);
    }
    if (!found.empty() && Below(4))
      return known_[found[found.size() - 1 - static_cast<size_t>(Below(static_cast<int>(found.size()))) / 2]];
    return New(type, shape, Below(3) == 0);
  }
  Known Float(int least, int most) {
    auto fits = [=](const Tensor& t) { return IsFloat(t.dtype()) && t.rank() >= least && t.rank() <= most; };
    return Some(fits, OneOf({DType::kF32, DType::kF32, DType::kF16, DType::kBF16, DType::kF64}), AnyShape(least, most));
  }
  Known Any(int least, int most) {
    auto fits = [=](const Tensor& t) { return t.rank() >= least && t.rank() <= most; };
    return Some(fits, OneOf({DType::kF32, DType::kF16, DType::kI64, DType::kI32, DType::kI8, DType::kBool}),
                AnyShape(least, most));
  }
  // Returns a value that can be broadcast to x.
  Known Beside(const Known& x) {
    Shape shape = x.tensor.shape();
    for (int64_t& d : shape) d = Below(4) ? d : 1;
    if (Below(3) == 0) shape.erase(shape.begin(), shape.begin() + Below(static_cast<int>(shape.size()) + 1));
    auto fits = [&](const Tensor& t) { return t.dtype() == x.tensor.dtype() && t.shape() == x.tensor.shape(); };
    return Some(fits, x.tensor.dtype(), shape);
  }

  // Adds the node if its evaluator accepts it and its results stay below kLargest. `exact`: it rounds at most once.
  void Add(const char* op, std::vector<Known> in, Attributes attrs = {}, bool exact = true, int outputs = 1,
           const char* domain = "") {
    Node node;
    node.op = op;
    node.domain = domain;
    node.version = *domain ? 3 : 20;
    node.name = fmt::format("{}_{}", op, graph.node_count());
    node.attrs = std::move(attrs);
    std::vector<HostValue> values(in.size());
    for (size_t i = 0; i < in.size(); ++i) {
      node.inputs.push_back(in[i].id);
      values[i].tensor = in[i].tensor;
      exact = exact && in[i].exact;
    }
    for (int i = 0; i < outputs; ++i) node.outputs.push_back(0);
    Node trial = node;
    Graph scratch = graph;
    for (ValueId& v : trial.outputs) v = scratch.AddTemporary("t");
    NodeId bound = scratch.AddNode(trial);
    if (!BindNode(scratch, bound).ok()) return;
    auto results = Evaluate(scratch.node(bound), values);
    if (!results.ok()) return;
    for (const HostValue& r : *results) {
      if (!IsModerate(r.tensor) || (!exact && IsHalf(r.tensor.dtype()) && Below(3))) return;
    }
    for (ValueId& v : node.outputs) v = graph.AddTemporary("v");
    NodeId id = graph.AddNode(node);
    ASSERT_TRUE(BindNode(graph, id).ok());
    for (size_t i = 0; i < node.outputs.size(); ++i) known_.push_back({node.outputs[i], (*results)[i].tensor, exact});
  }
  static Attributes With(std::initializer_list<std::pair<const char*, AttributeValue>> list) {
    Attributes a;
    for (const auto& [name, value] : list) a.Set(name, value);
    return a;
  }

  void AddNode() {
    switch (Below(26)) {
      case 25: return AddClassifier();
      case 22: {  // many readers of one value, joined again
        Known x = Float(1, 3);
        std::vector<Known> all;
        for (int i = 0, n = 2 + Below(Below(4) ? 6 : 60); i < n; ++i) {
          const size_t before = known_.size();
          Add(OneOf({"Abs", "Neg", "Relu", "Floor", "Sign"}), {x});
          if (known_.size() > before) all.push_back(known_.back());
        }
        if (all.empty()) return;
        return Add("Concat", all, With({{"axis", int64_t{0}}}));
      }
      case 23: {  // an operator of any number of inputs
        Known x = Float(0, 3);
        std::vector<Known> all = {x};
        for (int i = 0, n = Below(Below(4) ? 8 : 100); i < n; ++i) all.push_back(Below(3) ? Beside(x) : x);
        const char* op = OneOf({"Sum", "Max", "Min", "Mean"});
        return Add(op, all, {}, std::string_view(op) == "Max" || std::string_view(op) == "Min" || all.size() == 1);
      }
      case 24: {
        Known x = Any(1, 3);
        const int64_t axis = Below(static_cast<int>(x.tensor.rank())), size = x.tensor.shape()[static_cast<size_t>(axis)];
        if (size < 2) return;
        return Add("Split", {x}, With({{"axis", axis}, {"num_outputs", size}}), true, static_cast<int>(size));
      }
      case 0:
      case 1: return Add(OneOf({"Abs", "Neg", "Relu", "Floor", "Ceil", "Round", "Sign", "Sqrt", "Identity"}), {Float(0, 4)});
      case 2:
        return Add(OneOf({"Exp", "Tanh", "Sigmoid", "Erf", "Softplus", "Gelu", "Elu", "HardSwish", "LeakyRelu", "Log"}),
                   {Float(0, 4)}, {}, false);
      case 3:
      case 4:
      case 5:
      case 6: {
        Known x = Float(0, 4);
        return Add(OneOf({"Add", "Sub", "Mul", "Div", "Max", "Min", "Add", "Mul"}), {x, Beside(x)});
      }
      case 7: {
        Known x = Any(0, 3);
        if (!x.exact || x.tensor.dtype() == DType::kBool) return;
        return Add(OneOf({"Less", "Greater", "Equal", "GreaterOrEqual"}),
                   {x, New(Values(x.tensor.dtype(), x.tensor.shape()), Below(2))});
      }
      case 8: {
        Known x = Any(0, 4);
        if (x.exact || IsFloat(x.tensor.dtype())) {
          return Add("Cast", {x},
                     With({{"to", x.exact ? OneOf<int64_t>({1, 1, 7, 6, 10, 11, 16}) : OneOf<int64_t>({1, 11})}}));
        }
        return;
      }
      case 9: {
        Known x = Float(0, 3);
        return Add("Where", {New(DType::kBool, x.tensor.shape(), Below(2)), x, Beside(x)});
      }
      case 10: {
        Known x = Any(1, 4);
        mge::Ints perm;
        for (int64_t i = 0; i < x.tensor.rank(); ++i) perm.push_back(i);
        std::shuffle(perm.begin(), perm.end(), random_);
        return Add("Transpose", {x}, With({{"perm", perm}}));
      }
      case 11: {
        Known x = Any(1, 4);
        return Add("Reshape", {x, Ints(x.tensor.shape()[0] % 2 ? std::vector<int64_t>{-1} : std::vector<int64_t>{2, -1})});
      }
      case 12: {
        Known x = Any(1, 4);
        int64_t axis = Below(static_cast<int>(x.tensor.rank()));
        Shape more = x.tensor.shape();
        more[static_cast<size_t>(axis)] = 1 + Below(3);
        Known y = New(x.tensor.dtype(), more, Below(2));
        return Add("Concat", Below(2) ? std::vector{x, y} : std::vector{y, x, y}, With({{"axis", axis}}));
      }
      case 13: {
        Known x = Any(1, 4);
        int64_t axis = Below(static_cast<int>(x.tensor.rank())), size = x.tensor.shape()[static_cast<size_t>(axis)];
        if (size == 0) return;
        return Add("Slice", {x, Ints({Below(static_cast<int>(size))}), Ints({size}), Ints({axis}), Ints({1 + Below(2)})});
      }
      case 14: {
        Known x = Any(1, 3);
        return Add("Gather", {x, Ints({0, x.tensor.shape()[0] - 1, 0})}, With({{"axis", int64_t{0}}}));
      }
      case 15: {
        Known x = Any(1, 3);
        if (Below(2)) return Add("Unsqueeze", {x, Ints({Below(static_cast<int>(x.tensor.rank()) + 1)})});
        return Add("Expand", {x, Ints({2, 1})});
      }
      case 16: {
        Known x = Float(1, 4);
        const char* op = OneOf({"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceSumSquare"});
        bool exact = std::string_view(op) == "ReduceMax" || std::string_view(op) == "ReduceMin";
        std::vector<Known> in = {x};
        if (Below(4)) in.push_back(Ints({Below(static_cast<int>(x.tensor.rank()))}));
        return Add(op, in, With({{"keepdims", int64_t{Below(2)}}, {"noop_with_empty_axes", int64_t{Below(4) == 0}}}), exact);
      }
      case 17: return Add(OneOf({"Softmax", "LogSoftmax"}), {Float(1, 3)}, With({{"axis", int64_t{-1}}}), false);
      case 18: {
        Known x = Float(2, 3);
        return Add("MatMul", {x, New(x.tensor.dtype(), {x.tensor.shape().back(), 1 + Below(9)}, Below(2))}, {}, false);
      }
      case 19: {
        int64_t group = OneOf<int64_t>({1, 1, 2}), channels = group * OneOf<int64_t>({1, 2, 4, 8});
        Known x =
            Some([&](const Tensor& t) { return t.dtype() == DType::kF32 && t.rank() == 4 && t.shape()[1] == channels; },
                 DType::kF32, {1 + Below(2), channels, 1 + Below(9), 1 + Below(9)});
        int64_t out = group * OneOf<int64_t>({1, 3, 8}), kernel = 1 + Below(3);
        return Add(
            "Conv",
            {x, New(DType::kF32, {out, channels / group, kernel, kernel}, Below(3) > 0), New(DType::kF32, {out}, true)},
            With({{"group", group},
                  {"strides", mge::Ints{1 + Below(2), 1 + Below(2)}},
                  {"pads", mge::Ints{1, Below(2), 1, 1}}}),
            false);
      }
      case 20: {
        Known x = Some([](const Tensor& t) { return t.dtype() == DType::kF32 && t.rank() == 4; }, DType::kF32,
                       {1, OneOf<int64_t>({1, 3, 8}), 1 + Below(9), 1 + Below(9)});
        bool largest = Below(2);
        return Add(largest ? "MaxPool" : "AveragePool", {x},
                   With({{"kernel_shape", mge::Ints{1 + Below(3), 1 + Below(3)}},
                         {"strides", mge::Ints{1 + Below(3), 2}},
                         {"ceil_mode", int64_t{Below(2)}}}),
                   largest);
      }
      default: {
        Known x = Float(2, 4);
        return Add("LayerNormalization", {x, New(x.tensor.dtype(), {x.tensor.shape().back()}, Below(2))}, {}, false);
      }
    }
  }

  // Adds a classifier of two or three labels, which has one score for two of them: the other one follows from it.
  void AddClassifier() {
    auto fits = [](const Tensor& t) { return t.dtype() == DType::kF32 && t.rank() == 2; };
    const Known x = Some(fits, DType::kF32, AnyShape(2, 2));
    if (!x.exact) return;  // a rounded score may belong to another label
    const int64_t labels = 2 + Below(2), scores = labels == 2 ? 1 + Below(2) : labels;
    const char* transform = OneOf({"NONE", "NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"});
    std::vector<float> weights(static_cast<size_t>(scores * x.tensor.shape()[1])), offsets(static_cast<size_t>(scores));
    for (float& w : weights) w = static_cast<float>(Below(33) - 16) / 8;
    for (float& o : offsets) o = static_cast<float>(Below(9) - 4) / 8;
    mge::Ints names;
    for (int64_t i = 0; i < labels; ++i) names.push_back(10 * i + Below(10));
    Add("LinearClassifier", {x},
        With({{"coefficients", weights},
              {"intercepts", offsets},
              {"classlabels_ints", names},
              {"post_transform", std::string(transform)}}),
        false, 2, "ai.onnx.ml");
  }

  std::mt19937 random_;
  bool symbolic_;
  std::vector<Known> known_;
};

// Returns "" if the result is equal to the expected one, within a tolerance where its arithmetic rounds.
std::string Difference(const RandomModel::Known& expected, const Tensor& got) {
  const Tensor& want = expected.tensor;
  if (got.dtype() != want.dtype() || got.shape() != want.shape()) {
    return fmt::format("{}{} instead of {}{}", DTypeName(got.dtype()), ShapeText(got.shape()), DTypeName(want.dtype()),
                       ShapeText(want.shape()));
  }
  double largest = 1;
  for (int64_t i = 0; i < want.elements(); ++i) largest = std::max(largest, std::abs(Number(want, i)));
  const double allowed = expected.exact || !IsFloat(want.dtype()) ? 0 : (IsHalf(want.dtype()) ? 5e-2 : 2e-3) * largest;
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double a = Number(got, i), b = Number(want, i);
    if (!(std::abs(a - b) <= allowed)) return fmt::format("element {} is {} instead of {}", i, a, b);
  }
  return "";
}

TEST(RandomModels, GiveTheResultsOfTheirSingleNodesOnEveryDevice) {
  const char* asked = std::getenv("MGE_TEST_RANDOM_MODELS");
  const unsigned count = asked ? static_cast<unsigned>(std::strtoul(asked, nullptr, 10)) : 300;
  RuntimeOptions options;
  options.built_in_plugins = false;
  options.plugin_directories = {kPlugins};
  options.sources.call = {{"engine.cpu_worker_threads", "3"}};  // for steps that are operations of their own
  unsigned shapes = 0, ranges = 0;
  std::vector<std::string> devices = {"cpu0"};
  if (std::filesystem::exists(std::string(kPlugins) + "/mge_virtual.so")) {
    options.sources.call.push_back({"virtual.devices", "1"});
    options.sources.call.push_back({"virtual.compute_queues", "3"});
    devices.emplace_back("virtual0");
  }
  auto runtime = Runtime::Create(std::move(options));
  ASSERT_TRUE(runtime.ok()) << FormatError(runtime.status());
  for (unsigned seed = 1; seed <= count; ++seed) {
    RandomModel random(seed);
    if (random.outputs.empty()) continue;
    for (const std::string& device : devices) {
      const std::string bulk = seed % 3 ? "true" : "false";
      const std::string place = fmt::format("seed {} on {}, bulk {}\n{}", seed, device, bulk, GraphText(random.graph));
      onnx::Model model;
      model.graph = random.graph;
      const std::string checked = seed % 5 ? "false" : "true";
      auto session = Session::Create(
          *runtime, std::move(model),
          {.device = device, .settings = {{"engine.bulk_inference", bulk}, {"debug.check_memory", checked}}});
      ASSERT_TRUE(session.ok()) << FormatError(session.status()) << "\n" << place;
      auto run = [&](const std::vector<HostValue>& inputs, const std::vector<RandomModel::Known>& expected,
                     std::string_view which) {
        std::vector<HostValue> out(expected.size());
        RunState control;
        absl::Status status = (*session)->Run(inputs, out, control);
        ASSERT_TRUE(status.ok()) << FormatError(status) << "\n" << which << " shapes, " << place;
        for (size_t i = 0; i < out.size(); ++i) {
          EXPECT_EQ(Difference(expected[i], out[i].tensor), "") << "output " << i << ", " << which << " shapes, " << place;
        }
      };
      run(random.inputs, random.outputs, "the first");
      for (unsigned other = 1; other <= 10; ++other) {
        std::vector<RandomModel::Known> expected;
        const std::vector<HostValue> inputs = random.OtherShapes(other, &expected);
        if (inputs.empty()) continue;
        ++shapes;
        run(inputs, expected, "other");
        ranges += !(*session)->last_plan()->report.ranges.empty();
        run(random.inputs, random.outputs, "the first");
      }
      if (::testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(shapes, count / 4) << "runs with other shapes";
  EXPECT_GT(ranges, count / 10) << "plans of ranges of sizes";
}

}  // namespace
}  // namespace mge
