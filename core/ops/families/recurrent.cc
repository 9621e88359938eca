// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/recurrent.h"

#include <algorithm>

#include "core/base/lower_case.h"
#include "core/ops/op_helpers.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Reads the activations. Names are case-insensitive. The values of alpha and beta belong, in order, to the activations
// that have that parameter.
absl::StatusOr<std::vector<Activation>> ReadActivations(const Attributes& attrs, const RecurrentKind& kind,
                                                        int64_t directions) {
  Texts names = attrs.TextList("activations");
  if (names.empty()) {
    for (int64_t d = 0; d < directions; ++d) names.insert(names.end(), kind.activations.begin(), kind.activations.end());
  }
  const size_t wanted = kind.activations.size() * static_cast<size_t>(directions);
  if (names.size() != wanted) {
    return BadNode(fmt::format("attribute activations has {} names; {} are needed", names.size(), wanted));
  }
  const Floats alphas = attrs.FloatList("activation_alpha"), betas = attrs.FloatList("activation_beta");
  size_t alpha = 0, beta = 0;
  std::vector<Activation> result;
  for (const std::string& name : names) {
    const std::string lower = LowerCase(name);
    const auto* row = std::ranges::find_if(kGateFunctions, [&](const GateFunctionRow& r) { return r.name == lower; });
    if (row == std::end(kGateFunctions)) return BadNode(fmt::format("activation \"{}\" is not known", EscapeControl(name)));
    Activation a{static_cast<GateFunction>(row - kGateFunctions), row->alpha, row->beta};
    if (row->takes_alpha && alpha < alphas.size()) a.alpha = alphas[alpha++];
    if (row->takes_beta && beta < betas.size()) a.beta = betas[beta++];
    result.push_back(a);
  }
  if (alpha < alphas.size() || beta < betas.size()) {
    return BadNode(
        fmt::format("activation_alpha or activation_beta has more values than the activations take ({}, {})", alpha, beta));
  }
  return result;
}

absl::Status CheckShapes(const Recurrent& r, const RecurrentKind& kind, const RecurrentShapes& shapes) {
  auto check = [&](int input, std::string_view name, Shape wanted) {
    return shapes[input] ? RequireShape(name, *shapes[input], wanted) : absl::OkStatus();
  };
  int64_t rows = kUnknownDim;
  if (r.hidden != kUnknownDim && !CheckedMul(r.hidden, 2 * kind.gates, &rows)) {
    return BadNode(fmt::format("hidden size {} is too large", r.hidden));
  }
  const int64_t half = rows == kUnknownDim ? kUnknownDim : rows / 2;
  MGE_RETURN_IF_ERROR(check(kWeights, "W", {r.directions, half, r.input}));
  MGE_RETURN_IF_ERROR(check(kRecurrence, "R", {r.directions, half, r.hidden}));
  MGE_RETURN_IF_ERROR(check(kBias, "B", {r.directions, rows}));
  MGE_RETURN_IF_ERROR(check(kLengths, "sequence_lens", {r.batch}));
  MGE_RETURN_IF_ERROR(check(kInitialH, "initial_h", r.StateShape()));
  MGE_RETURN_IF_ERROR(check(kInitialC, "initial_c", r.StateShape()));
  return check(kPeepholes, "P", {r.directions, r.hidden == kUnknownDim ? kUnknownDim : rows / 8 * 3});
}

}  // namespace

double Activation::operator()(double x) const {
  switch (kind) {
    case GateFunction::kRelu: return std::max(x, 0.0);
    case GateFunction::kTanh: return std::tanh(x);
    case GateFunction::kSigmoid: return 1 / (1 + std::exp(-x));
    case GateFunction::kAffine: return alpha * x + beta;
    case GateFunction::kLeakyRelu: return x >= 0 ? x : alpha * x;
    case GateFunction::kThresholdedRelu: return x > alpha ? x : 0;
    case GateFunction::kScaledTanh: return alpha * std::tanh(beta * x);
    case GateFunction::kHardSigmoid: return std::min(std::max(alpha * x + beta, 0.0), 1.0);
    case GateFunction::kElu: return x >= 0 ? x : alpha * std::expm1(x);
    case GateFunction::kSoftsign: return x / (1 + std::abs(x));
    case GateFunction::kSoftplus: return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  }
  return x;
}

Shape Recurrent::SequenceShape() const {
  return batch_first ? Shape{batch, steps, directions, hidden} : Shape{steps, directions, batch, hidden};
}

Shape Recurrent::StateShape() const {
  return batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
}

absl::StatusOr<Recurrent> ResolveRecurrent(const Attributes& attrs, const RecurrentKind& kind,
                                           const RecurrentShapes& shapes) {
  Recurrent r;
  MGE_ASSIGN_OR_RETURN(int direction, ReadChoice(attrs, "direction", {"forward", "reverse", "bidirectional"}));
  r.directions = direction == 2 ? 2 : 1;
  r.reverse = direction == 1;
  const int64_t layout = attrs.Int("layout");
  if (layout != 0 && layout != 1) return BadNode(fmt::format("attribute layout = {} must be 0 or 1", layout));
  r.batch_first = layout == 1;
  if (attrs.Has("clip")) {
    r.clip = attrs.Float("clip");
    if (!(r.clip > 0)) return BadNode(fmt::format("attribute clip = {} must be positive", r.clip));
  }
  MGE_ASSIGN_OR_RETURN(r.activations, ReadActivations(attrs, kind, r.directions));
  const Shape& x = *shapes[kSequenceX];
  const Shape& recurrence = *shapes[kRecurrence];
  MGE_RETURN_IF_ERROR(RequireRank("X", x, 3));
  MGE_RETURN_IF_ERROR(RequireRank("R", recurrence, 3));
  r.steps = x[r.batch_first ? 1 : 0];
  r.batch = x[r.batch_first ? 0 : 1];
  r.input = x[2];
  r.hidden = recurrence[2];
  if (attrs.Has("hidden_size")) {
    const int64_t hidden = attrs.Int("hidden_size");
    if (hidden < 1) return BadNode(fmt::format("attribute hidden_size = {} must be at least 1", hidden));
    MGE_RETURN_IF_ERROR(RequireSize("the last dimension of R (attribute hidden_size)", r.hidden, hidden));
    r.hidden = hidden;
  }
  MGE_RETURN_IF_ERROR(CheckShapes(r, kind, shapes));
  return r;
}

absl::Status InferRecurrent(InferContext& ctx, const RecurrentKind& kind) {
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {kSequenceX, kWeights, kRecurrence, kBias, kInitialH, kInitialC, kPeepholes}));
  const DType dtype = ctx.input(kSequenceX).dtype;
  RecurrentShapes shapes(8, nullptr);
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (ctx.has_input(i) && ctx.input(i).has_rank) shapes[i] = &ctx.input(i).dims;
  }
  if (!shapes[kSequenceX] || !shapes[kRecurrence]) {
    for (int i = 0; i < 3; ++i) ctx.SetOutput(i, UnrankedType(dtype));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(Recurrent r, ResolveRecurrent(ctx.attrs(), kind, shapes));
  ctx.SetOutput(0, MakeType(dtype, r.SequenceShape()));
  ctx.SetOutput(1, MakeType(dtype, r.StateShape()));
  ctx.SetOutput(2, MakeType(dtype, r.StateShape()));
  return absl::OkStatus();
}

absl::Status NormalizeRecurrent(Attributes& attrs, const RecurrentKind& kind) {
  const int64_t directions = attrs.Text("direction") == "bidirectional" ? 2 : 1;
  MGE_ASSIGN_OR_RETURN(const std::vector<Activation> activations, ReadActivations(attrs, kind, directions));
  Texts names;
  Floats alphas, betas;
  for (const Activation& a : activations) {
    const GateFunctionRow& row = kGateFunctions[static_cast<size_t>(a.kind)];
    names.emplace_back(row.name);
    if (row.takes_alpha) alphas.push_back(static_cast<float>(a.alpha));
    if (row.takes_beta) betas.push_back(static_cast<float>(a.beta));
  }
  attrs.SetImplied("activations", std::move(names));
  attrs.SetImplied("activation_alpha", std::move(alphas));
  attrs.SetImplied("activation_beta", std::move(betas));
  return absl::OkStatus();
}

absl::Status UpgradeRecurrent(Graph&, Node& node) {
  if (node.version < 7) node.attrs.Remove("output_sequence");
  return absl::OkStatus();
}

absl::Status RecurrentGradient(GradientContext& g, const std::string& op, const RecurrentKind& kind) {
  const auto refuse = [&](std::string_view what) { return g.Unsupported(fmt::format("{} with {}", op, what)); };
  if (g.has_input(kLengths)) return refuse("sequence_lens");
  if (g.has_input(kPeepholes)) return refuse("peepholes");
  if (g.attrs().Has("clip")) return refuse("the attribute clip");
  if (g.attrs().Int("input_forget") != 0) return refuse("the attribute input_forget");
  const Texts names = g.attrs().TextList("activations");
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = LowerCase(names[i]);
    const bool has_rule =
        name == LowerCase(kind.activations[i % kind.activations.size()]) || (op == "RNN" && name == "relu");
    if (!has_rule) return refuse("activation " + names[i]);
  }
  std::vector<ValueId> inputs;
  for (int i : {kSequenceX, kWeights, kRecurrence, kBias, kInitialH, kInitialC}) {
    inputs.push_back(g.has_input(i) ? g.x(i).id() : kNone);
  }
  inputs.push_back(g.y().id());
  for (int i = 0; i < 3; ++i) inputs.push_back(g.has_dy(i) ? g.dy(i).id() : kNone);
  Attributes attrs = g.attrs();
  attrs.Remove("input_forget");
  attrs.Set("kind", op);
  const std::vector<ValueId> gradients = g.AddOurs("RecurrentGradient", inputs, 6, std::move(attrs));
  size_t next = 0;
  for (int i : {kSequenceX, kWeights, kRecurrence, kBias, kInitialH, kInitialC}) {
    MGE_RETURN_IF_ERROR(g.Set(i, {g, gradients[next++]}));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> ReadLengths(EvalContext& ctx, const Recurrent& r) {
  if (!ctx.has_input(kLengths)) return std::vector<int64_t>();
  std::vector<int64_t> lengths = ctx.input(kLengths).ToInts();
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0 || lengths[i] > r.steps) {
      return Fail(errors::kIndexOutOfRange,
                  fmt::format("{}: sequence_lens[{}] = {} is outside of 0..{}", ctx.node().op, i, lengths[i], r.steps),
                  {.where = NodePlace(ctx.node()), .fix = "Check the data that becomes sequence_lens."});
    }
  }
  return lengths;
}

}  // namespace mge
