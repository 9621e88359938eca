// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/families/random.h"
#include "core/ops/gradient.h"

namespace mge::op_dropout {
namespace {

absl::Status Infer(InferContext& ctx) {
  ctx.SetOutput(0, ctx.input(0));
  TensorType mask = ctx.input(0);
  if (ctx.attrs().Int("_mask_as_data") == 0) mask.dtype = DType::kBool;
  ctx.SetOutput(1, std::move(mask));
  return absl::OkStatus();
}

// Returns the fraction of elements that is dropped: 0 outside of training.
absl::StatusOr<double> Ratio(EvalContext& ctx) {
  if (!ctx.has_input(2)) return 0.0;
  const Tensor& training = ctx.input(2);
  if (training.elements() != 1) return ctx.Invalid("training_mode must have one element");
  if (!training.Data<bool>()[0]) return 0.0;
  double ratio = 0.5;
  if (ctx.has_input(1)) {
    MGE_ASSIGN_OR_RETURN(ratio, ScalarFloat("ratio", ctx.input(1)));
  }
  if (!(ratio >= 0 && ratio < 1)) return ctx.Invalid(fmt::format("ratio is {}, expected [0, 1)", ratio));
  return ratio;
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(double ratio, Ratio(ctx));
  Tensor* mask = nullptr;
  if (ctx.has_output(1)) {
    DType type = ctx.attrs().Int("_mask_as_data") != 0 ? x.dtype() : DType::kBool;
    MGE_ASSIGN_OR_RETURN(mask, ctx.Output(1, type, x.shape()));
    DispatchFixedSize(type, [&](auto tag) {
      using M = typename decltype(tag)::type;
      for (M& m : mask->MutableData<M>()) m = M(1.0f);
    });
  }
  if (ratio == 0) return ctx.SetOutput(0, ctx.value(0));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  RandomStream stream(ctx.seed());
  DispatchFloating(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto in = x.Data<T>();
    auto out = y->MutableData<T>();
    for (size_t i = 0; i < in.size(); ++i) {
      bool keep = stream.Uniform() >= ratio;
      out[i] = keep ? static_cast<T>(static_cast<Compute<T>>(static_cast<double>(in[i]) / (1 - ratio))) : T(0.0f);
      if (mask) mask->MutableData<bool>()[i] = keep;
    }
  });
  return absl::OkStatus();
}

// Before operator set 12 the ratio was an attribute. These nodes are treated as inference.
absl::Status Upgrade(Graph& graph, Node& node) {
  if (node.version >= 12) return absl::OkStatus();
  node.attrs.Remove("consumed_inputs");
  node.attrs.Remove("is_test");
  if (node.version < 10) node.attrs.Set("_mask_as_data", int64_t{1});
  MoveAttributeToInput(graph, node, "ratio", 1);
  return absl::OkStatus();
}

absl::Status Gradient(GradientContext& g) {
  const Tensor *ratio = g.constant(1), *training = g.constant(2);
  if (!g.has_input(2) || (training && !training->Data<bool>()[0])) return g.Set(0, g.dy());
  if (!training || (g.has_input(1) && !ratio)) return g.Unsupported("a Dropout whose ratio or mode is not constant");
  double dropped = 0.5;
  if (ratio)
    DispatchFloating(ratio->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      dropped = static_cast<double>(static_cast<Compute<T>>(ratio->Data<T>()[0]));
    });
  if (dropped >= 1) return g.Set(0, g.Fill(0, g.x()));
  return g.Set(0, g.dy() * g.CastTo(g.y(1), g.type(0).dtype) / (1 - dropped));
}

}  // namespace

MGE_OP(dropout) = {
    .name = "Dropout",
    .doc = "The input unchanged. In training, random elements become 0 and the others are scaled up.",
    .inputs = {{"data", kFloating}, {"ratio", kFloating, Arity::kOptional}, {"training_mode", kBoolean, Arity::kOptional}},
    .outputs = {{"output"}, {"mask", kAnyType, Arity::kOptional}},
    .attrs = {{"seed", AttrType::kInt, Presence::kOptional, "the seed; absent: that of the run"},
              {"_mask_as_data", AttrType::kInt}},
    .infer = Infer,
    .eval = Eval,
    .upgrade = Upgrade,
    .gradient = Gradient,
    .fixed_inputs = 0b10,
    .in_place = {{0, 0}},
    .traits = kRandom,
    .examples = {"(T[3,7])"},
};

}  // namespace mge::op_dropout
