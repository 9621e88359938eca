// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "core/ops/families/normalization.h"
#include "core/ops/families/normalized.h"
#include "core/ops/function_body.h"
#include "core/ops/gradient.h"

namespace mge::op_batch_normalization {
namespace {

constexpr std::string_view kNames[] = {"X", "scale", "B", "input_mean", "input_var"};

// Before operator set 9, spatial = 0 gave each element of a sample its own parameters, which have the shape of the sample.
bool IsPerElement(const Attributes& attrs) { return attrs.Int("_per_element") != 0; }

absl::Status CheckParameter(const Attributes& attrs, std::span<const int64_t> x, int input, std::span<const int64_t> shape) {
  if (!IsPerElement(attrs)) return CheckPerChannel(x, kNames[input], shape);
  return RequireShape(kNames[input], shape, Shape(x.begin() + 1, x.end()));
}

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  if (x.has_rank) {
    if (x.dims.empty()) return ctx.Invalid("X is a scalar; a batch dimension is required");
    for (int i = 1; i < 5; ++i) {
      if (ctx.input(i).has_rank) MGE_RETURN_IF_ERROR(CheckParameter(ctx.attrs(), x.dims, i, ctx.input(i).dims));
    }
  }
  ctx.SetOutput(0, x);
  bool training = ctx.attrs().Int("training_mode") != 0;
  if (!training && (ctx.has_output(1) || ctx.has_output(2))) {
    return ctx.Invalid("outputs of running statistics require training_mode = 1");
  }
  for (int i = 1; i < 5; ++i) ctx.SetOutput(i, ctx.input(i % 2 == 1 ? 3 : 4));
  return absl::OkStatus();
}

struct Channels {
  int64_t batch, count, inner;
};

template <typename T>
void Normalize(const Tensor& x, Tensor& y, const Channels& c, const std::vector<double>& scale,
               const std::vector<double>& bias, const std::vector<double>& mean, const std::vector<double>& var,
               double epsilon) {
  const T* in = x.Data<T>().data();
  T* out = y.MutableData<T>().data();
  for (int64_t n = 0; n < c.batch; ++n) {
    for (int64_t ch = 0; ch < c.count; ++ch) {
      double factor = scale[ch] / std::sqrt(var[ch] + epsilon);
      int64_t at = (n * c.count + ch) * c.inner;
      for (int64_t i = at; i < at + c.inner; ++i) {
        out[i] = Rounded<T>((static_cast<double>(in[i]) - mean[ch]) * factor + bias[ch]);
      }
    }
  }
}

// Computes the mean and population variance of each channel over batch and space.
template <typename T>
void Statistics(const Tensor& x, const Channels& c, std::vector<double>& mean, std::vector<double>& var) {
  const T* in = x.Data<T>().data();
  double n = static_cast<double>(c.batch * c.inner);
  for (int pass = 0; pass < 2; ++pass) {
    std::vector<double>& out = pass == 0 ? mean : var;
    for (int64_t ch = 0; ch < c.count; ++ch) {
      double sum = 0;
      for (int64_t b = 0; b < c.batch; ++b) {
        const T* row = in + (b * c.count + ch) * c.inner;
        for (int64_t i = 0; i < c.inner; ++i) {
          double v = static_cast<double>(row[i]);
          sum += pass == 0 ? v : (v - mean[ch]) * (v - mean[ch]);
        }
      }
      out[ch] = sum / n;
    }
  }
}

absl::Status StoreRunning(EvalContext& ctx, int output, const Tensor& old, const std::vector<double>& now, double momentum) {
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(output, old.dtype(), old.shape()));
  DispatchFloating(old.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto before = old.Data<T>();
    auto out = y->MutableData<T>();
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = Rounded<T>(static_cast<double>(before[i]) * momentum + now[i] * (1 - momentum));
    }
  });
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (x.rank() < 1) return ctx.Invalid("X is a scalar; a batch dimension is required");
  for (int i = 1; i < 5; ++i) MGE_RETURN_IF_ERROR(CheckParameter(ctx.attrs(), x.shape(), i, ctx.input(i).shape()));
  Channels c{x.shape()[0], x.rank() > 1 ? x.shape()[1] : 1, 1};
  for (int64_t d = 2; d < x.rank(); ++d) (IsPerElement(ctx.attrs()) ? c.count : c.inner) *= x.shape()[d];
  std::vector<double> scale = Doubles(ctx.input(1)), bias = Doubles(ctx.input(2));
  std::vector<double> mean = Doubles(ctx.input(3)), var = Doubles(ctx.input(4));
  double epsilon = ctx.attrs().Float("epsilon"), momentum = ctx.attrs().Float("momentum");
  bool training = ctx.attrs().Int("training_mode") != 0;
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  DispatchFloating(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (training) Statistics<T>(x, c, mean, var);
    Normalize<T>(x, *y, c, scale, bias, mean, var, epsilon);
  });
  if (!training) return absl::OkStatus();
  MGE_RETURN_IF_ERROR(StoreRunning(ctx, 1, ctx.input(3), mean, momentum));
  MGE_RETURN_IF_ERROR(StoreRunning(ctx, 2, ctx.input(4), var, momentum));
  MGE_RETURN_IF_ERROR(StoreRunning(ctx, 3, ctx.input(3), mean, 0));
  return StoreRunning(ctx, 4, ctx.input(4), var, 0);
}

// Before operator set 14, a node was in training if it had more outputs than Y. Before set 9, spatial could be 0.
absl::Status Upgrade(Graph&, Node& node) {
  if (node.version >= 14) {
    if (node.outputs.size() <= 3) return absl::OkStatus();
    return BadNode(fmt::format("BatchNormalization: has {} outputs, expected 1 to 3", node.outputs.size()));
  }
  if (node.version < 9 && node.attrs.Int("spatial", 1) != 1) node.attrs.Set("_per_element", int64_t{1});
  if (node.attrs.Int("is_test") != 0 && node.outputs.size() > 1) node.outputs.resize(1);
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNone) node.attrs.Set("training_mode", int64_t{1});
  }
  node.attrs.Remove("spatial");
  node.attrs.Remove("is_test");
  node.attrs.Remove("consumed_inputs");
  return absl::OkStatus();
}

// Replaces a node in training by elementwise operators and means, which the planner shares with the gradient. The reference
// evaluator, which computes in float64, keeps the nodes of 16-bit types.
absl::StatusOr<bool> Body(FunctionBody& f) {
  for (int i = 1; i < 5; ++i) {  // a size that is not known yet may be wrong, and the body would broadcast it
    if (!f.type(i).IsStatic() || f.rank(0) < 2 || f.dims(0)[1] == kUnknownDim) return false;
  }
  if (IsPerElement(f.attrs()) && f.attrs().Int("training_mode") == 0 && f.has_rank(0)) {
    const Term scale = f.x(1) / Unary("Sqrt", f.x(4) + f.attrs().Float("epsilon"));
    f.Result(0, "Add", {((f.x() - f.x(3)) * scale).id(), f.x(2).id()});
    return true;
  }
  const bool exact = f.dtype(0) == DType::kF32 || f.dtype(0) == DType::kF64;
  if (f.attrs().Int("training_mode") == 0 || !f.has_rank(0) || !exact || IsPerElement(f.attrs())) return false;
  const PerChannel channels(f, f.rank(0));
  const Normalized n(f, f.x(), channels.others(), f.attrs().Float("epsilon"));
  // Scale and bias may have another type than x.
  auto wide = [&](int i) { return channels.Wide(f.dtype(i) == f.dtype(0) ? f.x(i) : f.CastTo(f.x(i), f.dtype(0))); };
  f.Result(0, "Add", {(n.x * wide(1)).id(), wide(2).id()});
  const double momentum = f.attrs().Float("momentum");
  auto running = [&](int output, int input, const Term& now) {
    const Term old = f.x(input);
    const DType type = f.dtype(input);  // may differ, too
    const Term flat = f.ReshapeLike(type == f.dtype(0) ? now : f.CastTo(now, type), old);
    if (f.output(output + 2) != kNone) f.Result(output + 2, "Identity", {flat.id()});
    const ValueId keep = f.Number(type, momentum), take = f.Number(type, 1 - momentum);
    f.Result(output, "Add", {f.Add("Mul", {old.id(), keep}), f.Add("Mul", {flat.id(), take})});
  };
  running(1, 3, n.mean);
  running(2, 4, n.variance);
  return true;
}

// With training_mode, mean and variance are those of the batch and depend on X; else they are inputs.
absl::Status Gradient(GradientContext& g) {
  if (g.has_dy(1) || g.has_dy(2)) return g.Unsupported("a loss of running statistics");
  if (IsPerElement(g.attrs())) return g.Unsupported("the attribute spatial = 0");
  if (g.has_dy(3) || g.has_dy(4)) return g.Unsupported("a loss of saved statistics");
  MGE_ASSIGN_OR_RETURN(const int64_t rank, g.Rank(0));
  const float epsilon = g.attrs().Float("epsilon");
  if (g.attrs().Int("training_mode") != 0) {
    const std::vector<ValueId> gradients =
        g.AddOurs("BatchNormalizationGradient", {g.dy().id(), g.x().id(), g.x(1).id()}, 3, OneAttribute("epsilon", epsilon));
    for (int i = 0; i < 3; ++i) MGE_RETURN_IF_ERROR(g.Set(i, {g, gradients[static_cast<size_t>(i)]}));
    for (int i = 3; i < 5; ++i) {  // Y does not depend on the running statistics
      if (g.wants(i)) MGE_RETURN_IF_ERROR(g.Set(i, g.Fill(0, g.x(i))));
    }
    return absl::OkStatus();
  }
  const PerChannel channels(g, rank);
  // Parameters and statistics may have other types than x.
  auto in = [&](const Term& x, DType from, DType to) { return from == to ? x : g.CastTo(x, to); };
  auto wide = [&](int i) { return channels.Wide(in(g.x(i), g.type(i).dtype, g.dtype())); };
  auto set = [&](int i, const Term& each) { return g.Set(i, in(channels.Sum(each), g.dtype(), g.type(i).dtype)); };
  const Term scale = 1 / Unary("Sqrt", wide(4) + epsilon), moved = in(g.x(), g.type(0).dtype, g.dtype()) - wide(3);
  const Term dy = in(g.dy(), g.type(0).dtype, g.dtype()), scaled = dy * wide(1) * scale;
  if (g.wants(0)) MGE_RETURN_IF_ERROR(g.Set(0, in(scaled, g.dtype(), g.type(0).dtype)));
  if (g.wants(1)) MGE_RETURN_IF_ERROR(set(1, dy * (moved * scale)));
  if (g.wants(2)) MGE_RETURN_IF_ERROR(set(2, dy));
  if (g.wants(3)) MGE_RETURN_IF_ERROR(set(3, -scaled));
  return g.wants(4) ? set(4, scaled * moved * scale * scale * -0.5) : absl::OkStatus();
}

}  // namespace

MGE_OP(batch_normalization) = {
    .name = "BatchNormalization",
    .doc = "Normalizes each channel with running statistics. In training, uses the batch's own and updates them.",
    .inputs =
        {{"X", kFloating}, {"scale", kFloating}, {"B", kFloating}, {"input_mean", kFloating}, {"input_var", kFloating}},
    .outputs = {{"Y"},
                {"running_mean", kAnyType, Arity::kOptional},
                {"running_var", kAnyType, Arity::kOptional},
                {"saved_mean", kAnyType, Arity::kOptional},
                {"saved_var", kAnyType, Arity::kOptional}},
    .attrs = {{"epsilon", 1e-5f, "added to the variance"},
              {"momentum", 0.9f, "the weight of the old running statistics"},
              {"training_mode", 0, "not 0: uses the batch's statistics and updates the running ones"},
              {"_per_element", AttrType::kInt}},
    .infer = Infer,
    .eval = Eval,
    .upgrade = Upgrade,
    .gradient = Gradient,
    .fixed_inputs = 0b11000,
    .body = Body,
    .in_place = {{0, 0}},
    .examples = {"(T[2,5,3,4], T[5], T[5], T[5], T[5]@0.5:2)",
                 "(T[2,5,3,4], T[5], T[5], T[5], T[5]@0.5:2) {training_mode=1}",
                 "(T[2,5,3,4], T[5], T[5], T[5], T[5]@0.5:2) {training_mode=1} -> 3"},
};

}  // namespace mge::op_batch_normalization
