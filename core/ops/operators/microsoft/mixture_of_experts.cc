// SPDX-License-Identifier: Apache-2.0
// Layers of experts: small networks of two or three products, of which each token uses the k with the largest scores. The bodies
// compute every expert for every token. Kernels compute the chosen ones only.
#include <array>
#include <limits>

#include "core/ops/families/packed_bits.h"
#include "core/ops/infer_checks.h"
#include "fmt/format.h"

namespace mge::op_mixture_of_experts {
namespace {

enum Matrix { kFirst, kSecond, kThird };
constexpr int kInput = 0, kRouter = 1;

// The numbers of the inputs for each matrix of the experts; kNone: the operator has no such input.
struct InputNumbers {
  int weights[3], scales[3], biases[3], zeros[3], router_weights;
};
constexpr InputNumbers kFloatInputs = {{2, 4, 6}, {kNone, kNone, kNone}, {3, 5, 7}, {kNone, kNone, kNone}, kNone};
constexpr InputNumbers kPackedInputs = {{2, 5, 8}, {3, 6, 9}, {4, 7, 10}, {11, 12, 13}, 14};
constexpr int kFirstScaleOfOtherTypes = 15, kEndOfInputs = 18;  // inputs that another quant_type has

// The gate and the linear part of a gated activation.
enum class Gating { kNone, kInterleaved, kConcatenated, kSeparate };

struct Layer {
  int64_t experts = 0, hidden = 0, inner = 0, chosen = 0;
  int64_t bits[3] = {};  // of a weight; 0: floats
  int64_t block = 0;     // weights of a row that share a scale; 0: all of the row
  Gating gating = Gating::kNone;

  bool packed() const { return bits[kFirst] != 0; }
  int64_t columns(int m) const {
    if (m == kSecond) return hidden;
    return m == kFirst && (gating == Gating::kInterleaved || gating == Gating::kConcatenated) ? 2 * inner : inner;
  }
  int64_t depth(int m) const { return m == kSecond ? inner : hidden; }
  int64_t blocks(int m) const { return block ? depth(m) / block : 1; }
  Shape weights(int m) const { return {experts, columns(m), packed() ? depth(m) * bits[m] / 8 : depth(m)}; }
  Shape scales(int m) const { return block ? Shape{experts, columns(m), blocks(m)} : Shape{experts, columns(m)}; }
  Shape zeros(int m) const {
    if (block) return {experts, columns(m), (blocks(m) * bits[m] + 7) / 8};
    return {experts, (columns(m) * bits[m] + 7) / 8};
  }
};

// Returns how the linear part of the activation is given, and fails if the attributes contradict each other.
template <typename Context>
absl::StatusOr<Gating> ReadGating(Context& ctx, bool has_third) {
  const std::string activation = ctx.attrs().Text("activation_type");
  const int64_t fusion = ctx.attrs().Int("swiglu_fusion");
  if (fusion < 0 || fusion > 2) return ctx.Invalid(fmt::format("swiglu_fusion = {} is not 0, 1 or 2", fusion));
  const bool glu = activation == "swiglu" || activation == "geglu";
  if (!glu) return has_third ? Gating::kSeparate : Gating::kNone;
  if (fusion != 0 && has_third) return ctx.Invalid("fc3_experts_weights needs swiglu_fusion = 0");
  if (fusion == 0 && !has_third) return ctx.Invalid(activation + " with swiglu_fusion = 0 needs fc3_experts_weights");
  return fusion == 0 ? Gating::kSeparate : fusion == 1 ? Gating::kInterleaved : Gating::kConcatenated;
}

template <typename Context>
absl::Status CheckAttributes(Context& ctx, bool packed) {
  const Attributes& attrs = ctx.attrs();
  MGE_RETURN_IF_ERROR(
      ReadChoice(attrs, "activation_type", {"relu", "gelu", "silu", "swiglu", "identity", "relu2", "geglu"}).status());
  if (attrs.Int("k") < 1) return ctx.Invalid(fmt::format("k = {} is below 1", attrs.Int("k")));
  if (attrs.Int("use_sparse_mixer") != 0 && attrs.Int("k") != 2) {
    return ctx.Invalid(fmt::format("use_sparse_mixer needs k = 2, not {}", attrs.Int("k")));
  }
  if (!packed) return absl::OkStatus();
  if (attrs.Text("quant_type") != "int") {
    return ctx.Unsupported(fmt::format("the attribute quant_type = '{}'; only 'int' is", attrs.Text("quant_type")));
  }
  for (int i = kFirstScaleOfOtherTypes; i < kEndOfInputs; ++i) {
    if (ctx.has_input(i)) return ctx.Invalid(fmt::format("input {} belongs to another quant_type than 'int'", i));
  }
  if (attrs.Int("weights_prepacked") == 1) {
    return ctx.Unsupported("the attribute weights_prepacked = 1, an order of bytes for CUDA; export with 0");
  }
  return absl::OkStatus();
}

// Reads and checks a node. `type_of(i)` is the type of a present input. The weights' shapes must be known.
template <typename Context, typename TypeOf>
absl::StatusOr<Layer> ReadLayer(Context& ctx, const InputNumbers& in, TypeOf&& type_of) {
  const bool packed = in.scales[kFirst] != kNone;
  MGE_RETURN_IF_ERROR(CheckAttributes(ctx, packed));
  const Attributes& attrs = ctx.attrs();
  const bool has_third = ctx.has_input(in.weights[kThird]);
  Layer layer;
  MGE_ASSIGN_OR_RETURN(layer.gating, ReadGating(ctx, has_third));
  layer.chosen = attrs.Int("k");
  const int matrices = has_third ? 3 : 2;
  for (int m = 0; m < matrices; ++m) {
    const std::string name = fmt::format("fc{}_experts_weights", m + 1);
    MGE_RETURN_IF_ERROR(RequireRank(name, type_of(in.weights[m]).dims, 3));
    if (!packed) continue;
    const std::string own = fmt::format("fc{}_expert_weight_bits", m + 1);
    layer.bits[m] = attrs.Has(own) ? attrs.Int(own) : attrs.Int("expert_weight_bits");
    if (layer.bits[m] != 2 && layer.bits[m] != 4 && layer.bits[m] != 8) {
      return ctx.Unsupported(fmt::format("weights of {} bits; 2, 4 and 8 are", layer.bits[m]));
    }
  }
  const Shape& first = type_of(in.weights[kFirst]).dims;
  const Shape& second = type_of(in.weights[kSecond]).dims;
  layer.experts = first[0];
  layer.hidden = second[1];
  layer.inner = packed ? second[2] * 8 / layer.bits[kSecond] : second[2];
  if (layer.experts < layer.chosen) {
    return ctx.Invalid(fmt::format("k = {} is more than the {} experts", layer.chosen, layer.experts));
  }
  if (layer.hidden < 1 || layer.inner < 1) return ctx.Invalid("the experts' weights are empty");
  layer.block = packed && attrs.Has("block_size") ? std::max<int64_t>(attrs.Int("block_size"), 0) : 0;
  for (int m = 0; m < matrices; ++m) {
    const auto check = [&](int i, const char* what, const Shape& wanted) -> absl::Status {
      if (!ctx.has_input(i) || !type_of(i).has_rank) return absl::OkStatus();
      return RequireShape(fmt::format("fc{}_{}", m + 1, what), type_of(i).dims, wanted);
    };
    if (layer.block && layer.depth(m) % layer.block != 0) {
      return ctx.Invalid(fmt::format("block_size = {} does not divide the {} columns of fc{}_experts_weights", layer.block,
                                     layer.depth(m), m + 1));
    }
    MGE_RETURN_IF_ERROR(check(in.weights[m], "experts_weights", layer.weights(m)));
    MGE_RETURN_IF_ERROR(check(in.biases[m], "experts_bias", {layer.experts, layer.columns(m)}));
    if (!packed) continue;
    if (!ctx.has_input(in.scales[m])) return ctx.Invalid(fmt::format("fc{}_scales is absent", m + 1));
    MGE_RETURN_IF_ERROR(check(in.scales[m], "scales", layer.scales(m)));
    MGE_RETURN_IF_ERROR(check(in.zeros[m], "zero_points", layer.zeros(m)));
  }
  return layer;
}

// ---------------------------------------------------------------- the body

// Adds nodes that compute in float32.
class BodyBuilder {
 public:
  BodyBuilder(FunctionBody& f, const InputNumbers& in, const Layer& layer) : f_(f), in_(in), layer_(layer) {}

  void Build() {
    const ValueId x = f_.ReshapePartly(Floats(kInput), {1, -1, layer_.hidden});
    const Term y = {f_, Product(Activated(x), kSecond)};
    // The weight of each expert for each token; 0: not chosen, whatever the expert returns.
    const ValueId weights = f_.ReshapePartly(f_.Transpose(RoutingWeights(), {1, 0}), {layer_.experts, -1, 1});
    const ValueId unused = f_.Add("Equal", {weights, Zero()});
    const ValueId masked = f_.Add("Where", {unused, Zero(), f_.Add("Mul", {y.id(), weights})});
    const ValueId sum = f_.Add("ReduceSum", {masked, f_.Integers({0})}, IntAttribute("keepdims", 0));
    const ValueId shaped = f_.Add("Reshape", {sum, f_.Add("Shape", {f_.input(kInput)})}, IntAttribute("allowzero", 1));
    f_.Result(0, "Cast", {shaped}, CastTo(f_.dtype(kInput)));
  }

 private:
  ValueId Zero() { return f_.Number(DType::kF32, 0); }
  ValueId Floats(int i) { return f_.Cast(f_.input(i), f_.dtype(i), DType::kF32); }

  // Returns the weights of a matrix as floats [experts, columns, depth].
  ValueId Weights(int m) {
    const ValueId source = f_.input(in_.weights[m]);
    if (!layer_.packed()) return Floats(in_.weights[m]);
    const int64_t bits = layer_.bits[m], columns = layer_.columns(m), blocks = layer_.blocks(m);
    const Shape scales = {layer_.experts, columns, blocks};
    const ValueId q = UnpackedBits(f_, source, layer_.weights(m), bits);
    ValueId zero = kNone;
    if (f_.has_input(in_.zeros[m])) {
      const Shape packed = layer_.zeros(m);
      zero = UnpackedBits(f_, f_.input(in_.zeros[m]), packed, bits);
      const int64_t wanted = layer_.block ? blocks : columns, spare = packed.back() * 8 / bits - wanted;
      if (spare > 0) zero = f_.Split(zero, {wanted, spare})[0];
      zero = f_.Reshape(zero, scales);
    }
    const int64_t block = layer_.block ? layer_.block : layer_.depth(m);
    return DequantizedBlocks(f_, q, f_.Reshape(Floats(in_.scales[m]), scales), zero, scales, block, bits);
  }

  // Returns the products of `x` [1 or experts, tokens, depth] with a matrix of all experts.
  ValueId Product(ValueId x, int m) {
    const ValueId y = f_.Add("MatMul", {x, f_.Transpose(Weights(m), {0, 2, 1})});
    if (!f_.has_input(in_.biases[m])) return y;
    return f_.Add("Add", {y, f_.Reshape(Floats(in_.biases[m]), {layer_.experts, 1, layer_.columns(m)})});
  }

  ValueId Activated(ValueId x) {
    const ValueId first = Product(x, kFirst);
    switch (layer_.gating) {
      case Gating::kNone: return Activation(first);
      case Gating::kSeparate: return Gated(first, Product(x, kThird));
      case Gating::kConcatenated: {
        const std::vector<ValueId> parts = f_.Split(first, {layer_.inner, layer_.inner});
        return Gated(parts[0], parts[1]);
      }
      case Gating::kInterleaved: {
        const ValueId pairs = f_.ReshapePartly(first, {layer_.experts, -1, layer_.inner, 2});
        const std::vector<ValueId> parts = f_.Split(pairs, {1, 1});
        const Shape shape = {layer_.experts, -1, layer_.inner};
        return Gated(f_.ReshapePartly(parts[0], shape), f_.ReshapePartly(parts[1], shape));
      }
    }
    return first;
  }

  ValueId Activation(ValueId x) {
    const std::string name = f_.attrs().Text("activation_type");
    if (name == "identity") return x;
    if (name == "gelu" || name == "geglu") return f_.Add("Gelu", {x}, OneAttribute("approximate", std::string("tanh")));
    if (name == "silu" || name == "swiglu") {
      const float alpha = name == "swiglu" ? f_.attrs().Float("activation_alpha") : 1.0f;
      return f_.Add("Swish", {x}, OneAttribute("alpha", alpha));
    }
    const ValueId positive = f_.Add("Relu", {x});
    return name == "relu2" ? f_.Add("Mul", {positive, positive}) : positive;
  }

  ValueId Gated(ValueId gate, ValueId linear) {
    const Attributes& attrs = f_.attrs();
    if (attrs.Text("activation_type") != "swiglu") return f_.Add("Mul", {Activation(gate), linear});
    const bool limited = attrs.Has("swiglu_limit");
    const double limit = limited ? attrs.Float("swiglu_limit") : 0;
    const auto at_most = [&](ValueId x) { return f_.Add("Min", {x, f_.Number(DType::kF32, limit)}); };
    const bool late = attrs.Int("swiglu_limit_after_activation") != 0;
    ValueId g = Activation(limited && !late ? at_most(gate) : gate);
    if (limited && late) g = at_most(g);
    if (limited) linear = f_.Add("Max", {at_most(linear), f_.Number(DType::kF32, -limit)});
    return f_.Add("Mul", {g, f_.Add("Add", {linear, f_.Number(DType::kF32, attrs.Float("activation_beta"))})});
  }

  // Returns the weight of each expert [tokens, experts]; 0: not chosen.
  ValueId RoutingWeights() {
    const ValueId scores = Floats(kRouter);
    if (f_.attrs().Int("use_sparse_mixer") != 0) return SparseMixer(scores);
    const bool normalized = f_.attrs().Int("normalize_routing_weights") != 0;
    const std::vector<ValueId> top = f_.Add("TopK", {scores, f_.Integers({layer_.chosen})}, 2, IntAttribute("axis", -1));
    ValueId chosen = kNone;
    if (in_.router_weights != kNone && f_.has_input(in_.router_weights)) {
      chosen = f_.Add("GatherElements", {Floats(in_.router_weights), top[1]}, IntAttribute("axis", -1));
      if (normalized) chosen = Share(chosen);
    } else if (layer_.packed() || normalized) {  // the operator with packed weights normalizes always
      chosen = Softmax(top[0]);
    } else {
      chosen = f_.Add("GatherElements", {Softmax(scores), top[1]}, IntAttribute("axis", -1));
    }
    return Scatter(scores, top[1], chosen);
  }
  ValueId Softmax(ValueId x) { return f_.Add("Softmax", {x}, IntAttribute("axis", -1)); }
  ValueId Share(ValueId x) {
    return f_.Add("Div", {x, f_.Add("ReduceSum", {x, f_.Integers({-1})}, IntAttribute("keepdims", 1))});
  }
  ValueId Scatter(ValueId like, ValueId indices, ValueId updates) {
    const ValueId zeros = f_.Add("Expand", {Zero(), f_.Add("Shape", {like})});
    return f_.Add("ScatterElements", {zeros, indices, updates}, IntAttribute("axis", -1));
  }

  // The first expert has the largest score, the second one the largest of the others. The weight of each is its probability among
  // the scores close to it: those that differ by at most 2 * 0.01 of the larger one's amount.
  ValueId SparseMixer(ValueId scores) {
    const ValueId never = f_.Number(DType::kF32, -std::numeric_limits<double>::infinity());
    ValueId left = scores, weights = kNone;
    for (int i = 0; i < 2; ++i) {
      const std::vector<ValueId> top = f_.Add("TopK", {left, f_.Integers({1})}, 2, IntAttribute("axis", -1));
      const ValueId scale = f_.Add("Max", {f_.Add("Abs", {scores}), top[0]});
      const ValueId distance = f_.Add("Div", {f_.Add("Sub", {top[0], scores}), scale});
      const ValueId far = f_.Add("Greater", {distance, f_.Number(DType::kF32, 0.02)});
      const ValueId close = Softmax(f_.Add("Where", {far, never, left}));
      const ValueId weight = f_.Add("GatherElements", {close, top[1]}, IntAttribute("axis", -1));
      const ValueId one = Scatter(scores, top[1], weight);
      weights = i == 0 ? one : f_.Add("Add", {weights, one});
      const ValueId nothing = f_.Add("Expand", {never, f_.Add("Shape", {top[0]})});
      left = f_.Add("ScatterElements", {left, top[1], nothing}, IntAttribute("axis", -1));
    }
    return weights;
  }

  FunctionBody& f_;
  const InputNumbers& in_;
  const Layer& layer_;
};

template <const InputNumbers& kIn>
absl::StatusOr<bool> Body(FunctionBody& f) {
  for (int m : {kFirst, kSecond, kThird}) {
    if (f.has_input(kIn.weights[m]) && !f.type(kIn.weights[m]).IsStatic()) return false;
  }
  MGE_ASSIGN_OR_RETURN(const Layer layer, ReadLayer(f, kIn, [&](int i) { return f.type(i); }));
  BodyBuilder(f, kIn, layer).Build();
  return true;
}

template <const InputNumbers& kIn>
absl::Status Infer(InferContext& ctx) {
  TensorType y = ctx.input(kInput);
  bool known = true;
  for (int m : {kFirst, kSecond, kThird}) {
    known = known && (!ctx.has_input(kIn.weights[m]) || ctx.input(kIn.weights[m]).IsStatic());
  }
  if (known) {
    MGE_ASSIGN_OR_RETURN(const Layer layer, ReadLayer(ctx, kIn, [&](int i) { return ctx.input(i); }));
    if (y.has_rank) {
      if (y.dims.size() != 2 && y.dims.size() != 3) {
        return ctx.Invalid(fmt::format("input has rank {}; it must be 2 or 3", y.dims.size()));
      }
      MGE_RETURN_IF_ERROR(RequireSize("the last dimension of input", y.dims.back(), layer.hidden));
      y.dims.back() = layer.hidden;
    }
    for (int i : {kRouter, kIn.router_weights}) {
      if (i == kNone || !ctx.has_input(i) || !ctx.input(i).has_rank) continue;
      const char* name = i == kRouter ? "router_probs" : "router_weights";
      MGE_RETURN_IF_ERROR(RequireRank(name, ctx.input(i).dims, 2));
      MGE_RETURN_IF_ERROR(RequireSize(fmt::format("the columns of {}", name), ctx.input(i).dims[1], layer.experts));
      if (y.IsStatic()) {
        MGE_RETURN_IF_ERROR(
            RequireSize(fmt::format("the rows of {}", name), ctx.input(i).dims[0], Elements(y.dims) / layer.hidden));
      }
    }
  }
  ctx.SetOutput(0, std::move(y));
  return absl::OkStatus();
}

constexpr TypeSet kTypes = {DType::kF32, DType::kF16, DType::kBF16};
constexpr Arity kMaybe = Arity::kOptional;

constexpr Attr kActivation = {"activation_type", "relu", "relu, gelu, silu, swiglu, identity, relu2 or geglu"};
constexpr Attr kAlpha = {"activation_alpha", 1.0f, "swiglu: the factor in the sigmoid"};
constexpr Attr kBeta = {"activation_beta", 0.0f, "swiglu: added to the linear part"};
constexpr Attr kChosen = {"k", 1, "the experts of a token"};
constexpr Attr kMixer = {"use_sparse_mixer", 0, "not 0: weights are relative to scores close to the expert's; needs k = 2"};
constexpr Attr kFusion = {
    "swiglu_fusion", 0,
    "fc1 has the gate and the linear part: 1: in turn, 2: one after the other; 0: fc3 has the linear part"};
constexpr Attr kLimit = {"swiglu_limit", AttrType::kFloat, Presence::kOptional,
                         "the limit of the gate and of the linear part; absent: none"};
constexpr Attr kLateLimit = {"swiglu_limit_after_activation", 0, "1: the activated gate is limited instead of the gate"};

constexpr OpDef kRows[] = {
    MicrosoftFunction({.name = "MoE",
                       .doc = "For each token, the weighted sum of the k experts with the largest scores.",
                       .inputs = {{"input", kTypes},
                                  {"router_probs", kTypes},
                                  {"fc1_experts_weights", kTypes},
                                  {"fc1_experts_bias", kTypes, kMaybe},
                                  {"fc2_experts_weights", kTypes},
                                  {"fc2_experts_bias", kTypes, kMaybe},
                                  {"fc3_experts_weights", kTypes, kMaybe},
                                  {"fc3_experts_bias", kTypes, kMaybe}},
                       .outputs = {{"output"}},
                       .attrs = {kActivation,
                                 kAlpha,
                                 kBeta,
                                 kChosen,
                                 {"normalize_routing_weights", 0, "not 0: the weights of a token have the sum 1"},
                                 kMixer,
                                 kFusion,
                                 kLimit,
                                 kLateLimit},
                       .infer = Infer<kFloatInputs>,
                       .body = Body<kFloatInputs>,
                       .examples = {"(T[5,12], T[5,4], T[4,8,12], T[4,8], T[4,12,8], T[4,12]) {k=2}",
                                    "(T[2,3,12], T[6,4], T[4,16,12], _, T[4,12,8]) {k=2, activation_type=\"swiglu\", "
                                    "swiglu_fusion=1, activation_beta=1.0, swiglu_limit=0.5}",
                                    "(T[1,12], T[1,4], T[4,8,12], _, T[4,12,8], _, T[4,8,12]) {activation_type=\"silu\", "
                                    "normalize_routing_weights=1}"}}),
    MicrosoftFunction(
        {.name = "QMoE",
         .doc = "MoE with weights of 2, 4 or 8 bits, with a scale for each row or for each block of a row.",
         .inputs = {{"input", kTypes},
                    {"router_probs", kTypes},
                    {"fc1_experts_weights", {DType::kU8}},
                    {"fc1_scales", kTypes, kMaybe},
                    {"fc1_experts_bias", kTypes, kMaybe},
                    {"fc2_experts_weights", {DType::kU8}},
                    {"fc2_scales", kTypes, kMaybe},
                    {"fc2_experts_bias", kTypes, kMaybe},
                    {"fc3_experts_weights", {DType::kU8}, kMaybe},
                    {"fc3_scales", kTypes, kMaybe},
                    {"fc3_experts_bias", kTypes, kMaybe},
                    {"fc1_zero_points", {DType::kU8}, kMaybe},
                    {"fc2_zero_points", {DType::kU8}, kMaybe},
                    {"fc3_zero_points", {DType::kU8}, kMaybe},
                    {"router_weights", kTypes, kMaybe},
                    {"fc1_global_scale", {DType::kF32}, kMaybe},
                    {"fc2_global_scale", {DType::kF32}, kMaybe},
                    {"fc1_act_scale", {DType::kF32}, kMaybe}},
         .outputs = {{"output"}},
         .attrs = {kActivation,
                   kAlpha,
                   kBeta,
                   kChosen,
                   {"normalize_routing_weights", 0,
                    "not 0: the weights from router_weights have the sum 1; others always have"},
                   kMixer,
                   kFusion,
                   kLimit,
                   kLateLimit,
                   {"accuracy_level", 0, "4 allows 8-bit products"},
                   {"block_size", AttrType::kInt, Presence::kOptional,
                    "elements of a row that share a scale, 0: all of them; absent: all of them"},
                   {"expert_weight_bits", 4, "the bits of a weight"},
                   {"fc1_expert_weight_bits", AttrType::kInt, Presence::kOptional, "absent: expert_weight_bits"},
                   {"fc2_expert_weight_bits", AttrType::kInt, Presence::kOptional, "absent: expert_weight_bits"},
                   {"fc3_expert_weight_bits", AttrType::kInt, Presence::kOptional, "absent: expert_weight_bits"},
                   {"quant_type", "int", "must be int"},
                   {"weights_prepacked", -1, "must be -1 or 0"}},
         .infer = Infer<kPackedInputs>,
         .body = Body<kPackedInputs>,
         .examples = {"(T[5,16], T[5,4], uint8[4,16,8], T[4,16], T[4,16], uint8[4,16,8], T[4,16], T[4,16]) {k=2}",
                      "(T[1,2,32], T[2,4], uint8[4,32,16], T[4,32,2], _, uint8[4,32,8], T[4,32,1], _, _, _, _, "
                      "uint8[4,32,1], uint8[4,32,1]) {k=2, block_size=16, activation_type=\"swiglu\", swiglu_fusion=1}",
                      "(T[3,16], T[3,4], uint8[4,16,16], T[4,16], _, uint8[4,16,16], T[4,16]) {k=2, expert_weight_bits=8, "
                      "activation_type=\"silu\"}"}}),
};

}  // namespace

MGE_OPS(mixture_of_experts) = kRows;

}  // namespace mge::op_mixture_of_experts
