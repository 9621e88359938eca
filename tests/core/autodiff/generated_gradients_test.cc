// SPDX-License-Identifier: Apache-2.0
// Gradients of random nodes agree with finite differences: windows, pads, axes, steps, modes and broadcasts that the examples of
// the operators' rows do not have. MGE_TEST_GRADIENT_CASES is the number of cases.
#include <cstdlib>
#include <map>
#include <random>

#include "core/ops/gradient.h"
#include "fmt/ranges.h"
#include "tests/core/autodiff/finite_differences.h"

namespace mge {
namespace {

constexpr int kCases = 500;  // unless the variable says otherwise

// Draws the parts of a spec (core/conform/cases.h).
class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}

  int64_t Int(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  bool Chance() { return Int(0, 1) == 1; }
  template <typename T>
  T Pick(std::initializer_list<T> list) {
    return list.begin()[Int(0, static_cast<int64_t>(list.size()) - 1)];
  }
  Ints Many(int64_t count, int64_t low, int64_t high) {
    Ints out;
    for (int64_t i = 0; i < count; ++i) out.push_back(Int(low, high));
    return out;
  }
  std::string Data(const Ints& shape) { return fmt::format("T[{}]", fmt::join(shape, ",")); }
  std::string Constant(const Ints& values) { return fmt::format("int64[{}]<{}>", values.size(), fmt::join(values, ",")); }
  std::string List(const Ints& values) { return fmt::format("[{}]", fmt::join(values, ",")); }

 private:
  std::mt19937_64 random_;
};

std::string Conv(Draw& d, bool transposed) {
  const int64_t rank = d.Int(1, 2), group = d.Int(1, 2), in = group * d.Int(1, 2), out = group * d.Int(1, 2);
  Ints x = {d.Int(1, 2), in}, w = transposed ? Ints{in, out / group} : Ints{out, in / group};
  for (const int64_t size : d.Many(rank, 5, 7)) x.push_back(size);
  for (const int64_t size : d.Many(rank, 1, 3)) w.push_back(size);
  std::string attrs = fmt::format("group={}, strides={}", group, d.List(d.Many(rank, 1, 2)));
  if (d.Int(0, 2) == 0) {
    attrs += fmt::format(", auto_pad=\"{}\"", d.Pick({"SAME_UPPER", "SAME_LOWER", "VALID"}));
  } else {
    attrs += fmt::format(", pads={}, dilations={}", d.List(d.Many(2 * rank, 0, 1)), d.List(d.Many(rank, 1, 2)));
  }
  const std::string bias = d.Chance() ? ", " + d.Data({out}) : "";
  return fmt::format("{}({}, {}{}) {{{}}}", transposed ? "ConvTranspose" : "Conv", d.Data(x), d.Data(w), bias, attrs);
}

std::string Pool(Draw& d) {
  const int64_t rank = d.Int(1, 2);
  const bool average = d.Int(0, 2) > 0;
  Ints x = {d.Int(1, 2), d.Int(1, 3)};
  for (const int64_t size : d.Many(rank, 5, 8)) x.push_back(size);
  std::string attrs = fmt::format("kernel_shape={}, strides={}, ceil_mode={}", d.List(d.Many(rank, 2, 3)),
                                  d.List(d.Many(rank, 1, 3)), d.Int(0, 1));
  attrs += fmt::format(", pads={}, dilations={}", d.List(d.Many(2 * rank, 0, 1)), d.List(d.Many(rank, 1, 2)));
  if (average) attrs += fmt::format(", count_include_pad={}", d.Int(0, 1));
  return fmt::format("{}({}) {{{}}}", average ? "AveragePool" : "MaxPool", d.Data(x), attrs);
}

std::string Slice(Draw& d) {
  const int64_t rank = d.Int(1, 3);
  Ints steps;
  for (int64_t i = 0; i < rank; ++i) steps.push_back(d.Pick<int64_t>({-3, -2, -1, 1, 2, 3}));
  Ints axes(static_cast<size_t>(rank));
  for (int64_t i = 0; i < rank; ++i) axes[static_cast<size_t>(i)] = i - (d.Chance() ? rank : 0);
  return fmt::format("Slice({}, {}, {}, {}, {})", d.Data(d.Many(rank, 1, 6)), d.Constant(d.Many(rank, -7, 7)),
                     d.Constant(d.Many(rank, -7, 7)), d.Constant(axes), d.Constant(steps));
}

std::string Pad(Draw& d) {
  const int64_t rank = d.Int(1, 3);
  const char* mode = d.Pick({"constant", "reflect", "edge", "wrap"});
  const bool constant = mode == std::string_view("constant");
  return fmt::format("Pad({}, {}{}) {{mode=\"{}\"}}", d.Data(d.Many(rank, 4, 6)), d.Constant(d.Many(2 * rank, -1, 3)),
                     constant && d.Chance() ? ", T[]" : "", mode);
}

std::string Scatter(Draw& d) {
  const char* reduction = d.Pick({"none", "add", "mul", "min", "max"});
  const int64_t rows = d.Int(3, 5), columns = d.Int(2, 4);
  // Without a reduction, the indices must differ.
  const bool none = reduction == std::string_view("none");
  const int64_t axis = d.Int(0, 1), count = d.Int(1, axis == 0 ? rows : columns);
  if (d.Chance()) {
    const int64_t others = axis == 0 ? columns : rows;
    Ints indices;
    for (int64_t i = 0; i < count * others; ++i) {
      const int64_t line = axis == 0 ? i / others : i % count;
      indices.push_back(none ? line : d.Int(-(axis == 0 ? rows : columns), (axis == 0 ? rows : columns) - 1));
    }
    const Ints shape = axis == 0 ? Ints{count, others} : Ints{others, count};
    return fmt::format("ScatterElements({}, int64[{}]<{}>, {}) {{axis={}, reduction=\"{}\"}}", d.Data({rows, columns}),
                       fmt::join(shape, ","), fmt::join(indices, ","), d.Data(shape), axis, reduction);
  }
  Ints indices;
  for (int64_t i = 0; i < std::min(count, rows); ++i) indices.push_back(none ? i : d.Int(0, rows - 1));
  const auto updates = static_cast<int64_t>(indices.size());
  return fmt::format("ScatterND({}, int64[{},1]<{}>, {}) {{reduction=\"{}\"}}", d.Data({rows, columns}), updates,
                     fmt::join(indices, ","), d.Data({updates, columns}), reduction);
}

std::string GridSample(Draw& d) {
  const int64_t axes = d.Int(1, 2), batch = d.Int(1, 2);
  Ints x = {batch, d.Int(1, 2)}, grid = {batch};
  for (const int64_t size : d.Many(axes, 2, 5)) x.push_back(size);
  for (const int64_t size : d.Many(axes, 1, 3)) grid.push_back(size);
  grid.push_back(axes);
  return fmt::format("GridSample({}, {}@-1.7:1.7) {{mode=\"{}\", padding_mode=\"{}\", align_corners={}}}", d.Data(x),
                     d.Data(grid), d.Pick({"linear", "nearest", "cubic"}), d.Pick({"zeros", "border", "reflection"}),
                     d.Int(0, 1));
}

std::string Reduction(Draw& d) {
  const int64_t rank = d.Int(1, 3);
  const char* op = d.Pick({"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                           "ReduceSumSquare", "ReduceLogSumExp"});
  const int64_t axis = d.Int(-rank, rank - 1);
  return fmt::format("{}({}, {}) {{keepdims={}}}", op, d.Data(d.Many(rank, 1, 4)), d.Constant({axis}), d.Int(0, 1));
}

std::string Broadcast(Draw& d) {
  const int64_t rank = d.Int(1, 3);
  Ints a = d.Many(rank, 1, 3), b = a;
  for (size_t i = 0; i < a.size(); ++i) {
    if (d.Chance()) (d.Chance() ? a : b)[i] = 1;
  }
  if (d.Chance()) b.erase(b.begin());
  const char* op = d.Pick({"Add", "Sub", "Mul", "Div", "Min", "Max", "Mean", "Sum"});
  return fmt::format("{}({}, {}@0.5:2)", op, d.Data(a), d.Data(b));
}

std::string Clip(Draw& d) {
  return fmt::format("Clip({}{}{})", d.Data(d.Many(d.Int(0, 2), 2, 6)), d.Chance() ? ", T[]@-1:0.2" : ", _",
                     d.Chance() ? ", T[]@-0.2:1" : "");
}

std::string OneHot(Draw& d) {
  const int64_t count = d.Int(1, 5);
  return fmt::format("OneHot({}, int64[]<{}>, T[2]) {{axis={}}}", d.Constant(d.Many(count, -4, 4)), d.Int(1, 5),
                     d.Int(-2, 1));
}

std::string Transform(Draw& d) {
  const bool inverse = d.Chance(), one_sided = d.Chance();
  const int64_t parts = one_sided ? (inverse ? 2 : 1) : d.Int(1, 2);
  const int64_t axis = d.Int(0, 1);
  const std::string length = d.Chance() ? fmt::format("int64[]<{}>", d.Int(2, 9)) : "_";
  return fmt::format("DFT({}, {}, int64[]<{}>) {{inverse={}, onesided={}}}", d.Data({d.Int(2, 6), d.Int(2, 6), parts}),
                     length, axis - (d.Chance() ? 3 : 0), int{inverse}, int{one_sided});
}

std::string Columns(Draw& d) {
  const Ints block = d.Many(2, 1, 3), image = d.Many(2, 4, 6), strides = d.Many(2, 1, 2), pads = d.Many(4, 0, 1);
  int64_t windows = 1;
  for (size_t i = 0; i < 2; ++i) windows *= (image[i] + pads[i] + pads[i + 2] - block[i]) / strides[i] + 1;
  return fmt::format("Col2Im({}, {}, {}) {{strides={}, pads={}}}",
                     d.Data({d.Int(1, 2), d.Int(1, 2) * block[0] * block[1], windows}), d.Constant(image), d.Constant(block),
                     d.List(strides), d.List(pads));
}

std::string Normalization(Draw& d) {
  const int64_t channels = d.Int(1, 4);
  const Ints x = {d.Int(2, 3), channels, d.Int(2, 3)};
  const std::string p = d.Data({channels});
  if (d.Chance()) return fmt::format("BatchNormalization({}, {}, {}, {}, {}@0.5:2)", d.Data(x), p, p, p, p);
  return fmt::format("LayerNormalization({}, {}, {}) {{axis={}}}", d.Data(x), d.Data({x[2]}), d.Data({x[2]}),
                     d.Pick({-1, 2}));
}

std::string Determinant(Draw& d) {
  const int64_t n = d.Int(1, 5);
  return fmt::format("Det({})", d.Data({d.Int(1, 3), n, n}));
}

std::string Product(Draw& d) {
  const int64_t m = d.Int(1, 4), k = d.Int(1, 4), n = d.Int(1, 4);
  if (d.Chance()) {
    const int64_t a = d.Int(0, 1), b = d.Int(0, 1);
    return fmt::format("Gemm({}, {}, {}) {{transA={}, transB={}, alpha=0.5, beta=2.0}}", d.Data(a ? Ints{k, m} : Ints{m, k}),
                       d.Data(b ? Ints{n, k} : Ints{k, n}), d.Data(d.Chance() ? Ints{n} : Ints{m, 1}), a, b);
  }
  Ints left = {m, k}, right = {k, n};
  if (d.Chance()) left.insert(left.begin(), d.Chance() ? 1 : 2);
  if (d.Chance()) right.insert(right.begin(), 2);
  return fmt::format("MatMul({}, {})", d.Data(left), d.Data(right));
}

std::string RandomSpec(Draw& d) {
  using Family = std::string (*)(Draw&);
  constexpr Family kFamilies[] = {[](Draw& r) { return Conv(r, false); },
                                  [](Draw& r) { return Conv(r, true); },
                                  Pool,
                                  Slice,
                                  Pad,
                                  Scatter,
                                  GridSample,
                                  Reduction,
                                  Broadcast,
                                  Clip,
                                  OneHot,
                                  Transform,
                                  Columns,
                                  Normalization,
                                  Determinant,
                                  Product};
  return kFamilies[d.Int(0, std::ssize(kFamilies) - 1)](d);
}

TEST(GeneratedGradients, AgreeWithFiniteDifferences) {
  const char* variable = std::getenv("MGE_TEST_GRADIENT_CASES");
  const int cases = variable ? std::atoi(variable) : kCases;
  std::map<std::string, int> compared;  // by operator: cases
  int invalid = 0;
  for (int i = 0; i < cases && !testing::Test::HasFailure(); ++i) {
    Draw draw(static_cast<uint64_t>(i));
    const std::string spec = RandomSpec(draw);
    SCOPED_TRACE(fmt::format("case {}: {}", i, spec));
    const std::string name = conform::ParseSpec(spec).op;
    const auto row =
        std::ranges::find_if(AllOps(), [&](const OpDef* def) { return def->name == name && def->domain.empty(); });
    ASSERT_NE(row, AllOps().end());
    absl::StatusOr<conform::Case> made = conform::MakeCase(**row, DType::kF64, spec);
    if (!made.ok()) {  // sizes that do not fit together
      ++invalid;
      continue;
    }
    compared[name] += Compare(*std::move(made), [](const OpDef&, size_t) { return false; }) > 0;
  }
  // An empty slice has nothing to compare, and some windows do not fit, but not many.
  EXPECT_LT(invalid, cases / 4);
  for (const auto& [name, count] : compared) EXPECT_GT(count, 0) << name;
  EXPECT_GE(compared.size(), cases < kCases ? 1u : 16u);
}

}  // namespace
}  // namespace mge
