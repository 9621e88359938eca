// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/lstm.h"
#include "core/ops/families/quantization.h"

namespace mge::op_dynamic_quantize_lstm {
namespace {

enum QuantizedInput { kWeightScale = 8, kWeightZero, kRecurrenceScale, kRecurrenceZero };

// Converts the stored shape of W or R, [directions, k, 4 * hidden], to LSTM's: [directions, 4 * hidden, k].
Shape Turned(const Shape& shape) { return shape.size() == 3 ? Shape{shape[0], shape[2], shape[1]} : shape; }

// Checks the shape of a scale or zero point: one for each direction, or one for each direction and column.
absl::Status CheckScale(std::string_view name, const Shape& shape, const Recurrent& r) {
  if (shape.size() == 1) return RequireShape(name, shape, Shape{r.directions});
  const int64_t columns = r.hidden == kUnknownDim ? kUnknownDim : 4 * r.hidden;
  return RequireShape(name, shape, Shape{r.directions, columns});
}

absl::Status CheckScales(const Recurrent& r, const std::function<const Shape*(int)>& shape) {
  constexpr std::string_view kNames[] = {"W_scale", "W_zero_point", "R_scale", "R_zero_point"};
  for (int i = kWeightScale; i <= kRecurrenceZero; ++i) {
    if (shape(i)) MGE_RETURN_IF_ERROR(CheckScale(kNames[i - kWeightScale], *shape(i), r));
  }
  return absl::OkStatus();
}

absl::StatusOr<Recurrent> Resolve(const Attributes& attrs, const std::function<const Shape*(int)>& shape) {
  RecurrentShapes shapes;
  for (int i = 0; i < 8; ++i) shapes.push_back(shape(i));
  const Shape weights = shapes[kWeights] ? Turned(*shapes[kWeights]) : Shape(), recurrence = Turned(*shapes[kRecurrence]);
  if (shapes[kWeights]) shapes[kWeights] = &weights;
  shapes[kRecurrence] = &recurrence;
  MGE_ASSIGN_OR_RETURN(Recurrent r, ResolveRecurrent(attrs, kLstmKind, shapes));
  MGE_RETURN_IF_ERROR(CheckScales(r, shape));
  return r;
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {kWeights, kWeightZero}));
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {kRecurrence, kRecurrenceZero}));
  auto shape = [&](int i) { return ctx.has_input(i) && ctx.input(i).has_rank ? &ctx.input(i).dims : nullptr; };
  if (!shape(kSequenceX) || !shape(kRecurrence)) {
    for (int i = 0; i < 3; ++i) ctx.SetOutput(i, UnrankedType(DType::kF32));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(Recurrent r, Resolve(ctx.attrs(), shape));
  ctx.SetOutput(0, MakeType(DType::kF32, r.SequenceShape()));
  ctx.SetOutput(1, MakeType(DType::kF32, r.StateShape()));
  ctx.SetOutput(2, MakeType(DType::kF32, r.StateShape()));
  return absl::OkStatus();
}

// The quantization of DynamicQuantizeLinear: one range, which always contains 0.
struct Quantizer {
  float low = 0, high = 0;
  void Cover(float x) {
    low = std::min(low, x);
    high = std::max(high, x);
  }
  // Returns x quantized and dequantized.
  double Rounded(float x) const {
    const float scale = high == low ? 1.0f : (high - low) / 255.0f;
    const double zero = std::nearbyint(std::clamp(0.0f - low / scale, 0.0f, 255.0f));
    return (Saturate<uint8_t>(std::nearbyint(x / scale) + zero) - zero) * static_cast<double>(scale);
  }
};

absl::StatusOr<Tensor> AsDouble(EvalContext& ctx, const Tensor& x) {
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(DType::kF64, x.shape(), ctx.allocator()));
  std::copy_n(x.Data<float>().data(), x.elements(), out.MutableData<double>().data());
  return out;
}

// Dequantizes weights [directions, k, columns] to [directions, columns, k].
absl::StatusOr<Tensor> Weights(EvalContext& ctx, int input) {
  const Tensor& q = ctx.input(input);
  const Tensor& scales = ctx.input(input == kWeights ? kWeightScale : kRecurrenceScale);
  const Tensor& zeros = ctx.input(input == kWeights ? kWeightZero : kRecurrenceZero);
  const int64_t directions = q.shape()[0], k = q.shape()[1], columns = q.shape()[2];
  const std::vector<int64_t> zero = zeros.ToInts();
  auto at = [&](const Tensor& t, int64_t d, int64_t column) { return t.shape().size() == 1 ? d : d * columns + column; };
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(DType::kF64, Turned(q.shape()), ctx.allocator()));
  double* to = out.MutableData<double>().data();
  auto turn = [&](auto from) {
    for (int64_t d = 0; d < directions; ++d) {
      for (int64_t column = 0; column < columns; ++column) {
        const double scale = scales.Data<float>()[at(scales, d, column)];
        for (int64_t i = 0; i < k; ++i) {
          const int64_t whole = from[(d * k + i) * columns + column] - zero[at(zeros, d, column)];
          *to++ = static_cast<double>(whole) * scale;
        }
      }
    }
  };
  if (q.dtype() == DType::kI8)
    turn(q.Data<int8_t>());
  else
    turn(q.Data<uint8_t>());
  return out;
}

// Quantizes and dequantizes X, with one range for the steps up to the end of the longest sequence.
absl::StatusOr<Tensor> Input(EvalContext& ctx, const Recurrent& r) {
  const Tensor& x = ctx.input(kSequenceX);
  MGE_ASSIGN_OR_RETURN(std::vector<int64_t> lengths, ReadLengths(ctx, r));
  const int64_t longest = lengths.empty() ? r.steps : *std::max_element(lengths.begin(), lengths.end());
  const int64_t count = longest * r.batch * r.input;
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(DType::kF64, x.shape(), ctx.allocator()));
  Quantizer quantizer;
  for (int64_t i = 0; i < count; ++i) quantizer.Cover(x.Data<float>()[i]);
  for (int64_t i = 0; i < count; ++i) out.MutableData<double>()[i] = quantizer.Rounded(x.Data<float>()[i]);
  return out;
}

absl::Status Eval(EvalContext& ctx) {
  auto shape = [&](int i) { return ctx.has_input(i) ? &ctx.input(i).shape() : nullptr; };
  MGE_ASSIGN_OR_RETURN(Recurrent r, Resolve(ctx.attrs(), shape));
  std::vector<Tensor> in(8);
  MGE_ASSIGN_OR_RETURN(in[kSequenceX], Input(ctx, r));
  MGE_ASSIGN_OR_RETURN(in[kWeights], Weights(ctx, kWeights));
  MGE_ASSIGN_OR_RETURN(in[kRecurrence], Weights(ctx, kRecurrence));
  for (int i : {kBias, kInitialH, kInitialC, kPeepholes}) {
    if (!ctx.has_input(i)) continue;
    MGE_ASSIGN_OR_RETURN(in[i], AsDouble(ctx, ctx.input(i)));
  }
  // The states of a step share one range. Sequences that have ended are ignored.
  auto see = [&](const double* h, const std::vector<bool>& active, double* seen) {
    Quantizer quantizer;
    for (int64_t i = 0; i < r.batch * r.hidden; ++i) {
      if (active[static_cast<size_t>(i / r.hidden)]) quantizer.Cover(static_cast<float>(h[i]));
    }
    for (int64_t i = 0; i < r.batch * r.hidden; ++i) seen[i] = quantizer.Rounded(static_cast<float>(h[i]));
  };
  const bool input_forget = ctx.attrs().Int("input_forget") != 0;
  return RunRecurrent<float, double>(ctx, r, kLstmKind, in, see,
                                     [&](const auto& cell, const auto& step) { StepLstm(cell, step, input_forget); });
}

constexpr TypeSet kFloat = {DType::kF32};

}  // namespace

MGE_OP(dynamic_quantize_lstm) = {
    .name = "DynamicQuantizeLSTM",
    .domain = "com.microsoft",
    .doc = "LSTM with 8-bit weights. Quantizes X and the state of each step to uint8 by their own range.",
    .inputs = {{"X", kFloat},
               {"W", kQuantized8},
               {"R", kQuantized8},
               {"B", kFloat, Arity::kOptional},
               {"sequence_lens", {DType::kI32}, Arity::kOptional},
               {"initial_h", kFloat, Arity::kOptional},
               {"initial_c", kFloat, Arity::kOptional},
               {"P", kFloat, Arity::kOptional},
               {"W_scale", kFloat},
               {"W_zero_point", kQuantized8},
               {"R_scale", kFloat},
               {"R_zero_point", kQuantized8}},
    .outputs = RecurrentOutputs({{.name = "Y_c", .arity = Arity::kOptional}}),
    .attrs = {kGateAlphaAttr,
              kGateBetaAttr,
              kGatesAttr,
              {"clip", AttrType::kFloat, Presence::kOptional, "the limit of the inputs of activations; absent: no limit"},
              {"direction", "forward", "forward, reverse or bidirectional"},
              {"hidden_size", AttrType::kInt, Presence::kOptional, "absent: the size that R has"},
              {"input_forget", 0, "not 0: the forget gate is 1 - the input gate"}},
    .infer = Infer,
    .eval = Eval,
    .normalize = NormalizeRecurrent<kLstmKind>,
    .examples = {"(T[3,2,4], int8[1,4,20], int8[1,5,20], _, _, _, _, _, T[1]<0.01>, int8[1]<0>, T[1]<0.01>, int8[1]<0>) "
                 "{hidden_size=5} -> 3"},
};

}  // namespace mge::op_dynamic_quantize_lstm
