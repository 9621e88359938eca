// SPDX-License-Identifier: Apache-2.0
// Shared parts of RNN, GRU and LSTM: the schema, shapes, activations, and the loop over directions, steps and batch.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/ops/gradient.h"
#include "core/ops/infer_checks.h"
#include "mge/plugin/gate.hpp"

namespace mge {

// An ONNX activation function of recurrent operators, with its parameters.
struct Activation {
  GateFunction kind = GateFunction::kTanh;
  double alpha = 0;
  double beta = 0;

  double operator()(double x) const;
};

// The properties of one kind of recurrent operator.
struct RecurrentKind {
  int gates;                                      // matrices in W and R: 1, 3 or 4
  std::span<const std::string_view> activations;  // defaults for one direction
  bool has_cell = false;                          // LSTM only: initial_c, P, Y_c
};

inline constexpr std::string_view kLstmActivations[] = {"Sigmoid", "Tanh", "Tanh"};
inline constexpr std::string_view kGruActivations[] = {"Sigmoid", "Tanh"};
inline constexpr std::string_view kRnnActivations[] = {"Tanh"};
inline constexpr RecurrentKind kLstmKind = {.gates = 4, .activations = kLstmActivations, .has_cell = true};
inline constexpr RecurrentKind kGruKind = {.gates = 3, .activations = kGruActivations};
inline constexpr RecurrentKind kRnnKind = {.gates = 1, .activations = kRnnActivations};

// The gradient rule of LSTM, GRU and RNN. `op` is the operator's name. Refuses sequence_lens, peepholes, clip, input_forget and
// activations other than the default ones; an RNN may have Relu.
absl::Status RecurrentGradient(GradientContext& g, const std::string& op, const RecurrentKind& kind);

// Return the common schema, extended by `more`.
constexpr InputList RecurrentInputs(std::initializer_list<Slot> more = {}) {
  InputList out = {{"X", kFloating},
                   {"W", kFloating},
                   {"R", kFloating},
                   {"B", kFloating, Arity::kOptional},
                   {"sequence_lens", {DType::kI32}, Arity::kOptional},
                   {"initial_h", kFloating, Arity::kOptional}};
  for (const Slot& slot : more) out.items[out.count++] = slot;
  return out;
}
constexpr OutputList RecurrentOutputs(std::initializer_list<Slot> more = {}) {
  OutputList out = {{.name = "Y", .arity = Arity::kOptional}, {.name = "Y_h", .arity = Arity::kOptional}};
  for (const Slot& slot : more) out.items[out.count++] = slot;
  return out;
}
inline constexpr Attr kGatesAttr = {
    "activations", AttrType::kTexts, Presence::kNormal,
    "functions of the gates of each direction, in lower case; the usual ones if a model lacks it"};
inline constexpr Attr kGateAlphaAttr = {"activation_alpha", AttrType::kFloats, Presence::kNormal,
                                        "alpha of the functions that have it; ONNX's default if a model lacks it"};
inline constexpr Attr kGateBetaAttr = {"activation_beta", AttrType::kFloats, Presence::kNormal,
                                       "beta of the functions that have it; ONNX's default if a model lacks it"};
constexpr AttrList RecurrentAttrs(std::initializer_list<Attr> more = {}) {
  AttrList out = {
      kGateAlphaAttr,
      kGateBetaAttr,
      kGatesAttr,
      {"clip", AttrType::kFloat, Presence::kOptional, "the limit of the inputs of activations; absent: no limit"},
      {"direction", "forward", "forward, reverse or bidirectional"},
      {"hidden_size", AttrType::kInt, Presence::kOptional, "absent: the size that R has"},
      {"layout", 0, "1: the batch is the first axis"}};
  for (const Attr& attr : more) out.items[out.count++] = attr;
  return out;
}

// The attributes and sizes of one recurrent node.
struct Recurrent {
  // Attribute layout = 1: X is [batch, steps, input], Y is [batch, steps, directions, hidden].
  bool batch_first = false;
  bool reverse = false;  // direction 0 runs backwards (direction 1 always does)
  int64_t directions = 1;
  int64_t steps = 0, batch = 0, input = 0, hidden = 0;
  double clip = std::numeric_limits<double>::infinity();  // limit of the activations' arguments
  std::vector<Activation> activations;                    // of all directions

  Shape SequenceShape() const;  // shape of Y
  Shape StateShape() const;     // shape of Y_h, Y_c and the initial states
  double Clip(double x) const { return std::isnan(x) ? x : std::min(std::max(x, -clip), clip); }
};

// The input indices of all three operators.
enum RecurrentInput { kSequenceX, kWeights, kRecurrence, kBias, kLengths, kInitialH, kInitialC, kPeepholes };

// The shape of each input; null if absent or unknown. X, W and R must be present.
using RecurrentShapes = std::vector<const Shape*>;

// Reads the attributes and checks all shapes. Sizes may be unknown. Fails with kInvalidNode.
absl::StatusOr<Recurrent> ResolveRecurrent(const Attributes& attrs, const RecurrentKind& kind,
                                           const RecurrentShapes& shapes);

absl::Status InferRecurrent(InferContext& ctx, const RecurrentKind& kind);

// Completes the activations and their parameters.
absl::Status NormalizeRecurrent(Attributes& attrs, const RecurrentKind& kind);
template <const RecurrentKind& kKind>
absl::Status NormalizeRecurrent(InferContext&, Attributes& attrs) {
  return NormalizeRecurrent(attrs, kKind);
}

// Removes the attribute output_sequence of operator sets before 7. The presence of output 0 replaces it.
absl::Status UpgradeRecurrent(Graph& graph, Node& node);

// Returns sequence_lens, or an empty list if absent (all sequences have `steps` steps). Fails with kInvalidNode if a
// length is not in 0..steps.
absl::StatusOr<std::vector<int64_t>> ReadLengths(EvalContext& ctx, const Recurrent& r);

// The parameters of one direction in compute type A. `bias` and `peepholes` may be null. All memory is borrowed.
template <typename A>
struct RecurrentCell {
  const Recurrent& r;
  std::span<const Activation> activations;
  const A* recurrence;  // [gates, hidden, hidden]
  const A* bias;        // [gates, hidden]: the recurrent half of B
  const A* peepholes;   // [3, hidden]

  // Returns the product of h with row `unit` of gate `gate` in R, without bias.
  A Recur(int64_t gate, int64_t unit, const A* h) const {
    const A* row = recurrence + (gate * r.hidden + unit) * r.hidden;
    A sum = 0;
    for (int64_t i = 0; i < r.hidden; ++i) sum += row[i] * h[i];
    return sum;
  }
  A Bias(int64_t gate, int64_t unit) const { return bias ? bias[gate * r.hidden + unit] : A(0); }
  // Applies activation number `which` to a sum of a gate, which the attribute clip limits.
  A Activate(int which, A x) const { return Unclipped(which, static_cast<A>(r.Clip(static_cast<double>(x)))); }
  A Unclipped(int which, A x) const { return static_cast<A>(activations[which](static_cast<double>(x))); }
};

// Returns inputs 0 to 7 in the compute type. Absent inputs and sequence_lens are undefined tensors.
inline absl::StatusOr<std::vector<Tensor>> RecurrentOperands(EvalContext& ctx) {
  std::vector<Tensor> in(8);
  for (int i = 0; i < std::min(ctx.input_count(), 8); ++i) {
    if (!ctx.has_input(i) || i == kLengths) continue;
    MGE_ASSIGN_OR_RETURN(in[i], ToComputeType(ctx.input(i), ctx.allocator()));
  }
  return in;
}

// The memory of one sequence at one step. `gates` is [gates, hidden] = W x + its bias. `seen` is the state that the
// recurrent product reads; it may be equal to `h`. The step updates the state `h`, and `c` if the kind has one.
template <typename A>
struct RecurrentStep {
  A* gates;
  const A* seen;
  A* h;
  A* c;
};

// Runs all directions. T is the element type, A the type of the operands. `see(h, active, seen)` writes to `seen` the
// states that the recurrent products read instead of h [batch, hidden]. If `see` is null, they read h.
template <typename T, typename A>
absl::Status RunRecurrent(EvalContext& ctx, const Recurrent& r, const RecurrentKind& kind, std::span<const Tensor> in,
                          const std::function<void(const A*, const std::vector<bool>&, A*)>& see,
                          const std::function<void(const RecurrentCell<A>&, const RecurrentStep<A>&)>& step) {
  MGE_ASSIGN_OR_RETURN(std::vector<int64_t> lengths, ReadLengths(ctx, r));
  const DType dtype = ctx.input(kSequenceX).dtype();
  Tensor* out[3] = {};
  for (int i = 0; i < (kind.has_cell ? 3 : 2); ++i) {
    if (!ctx.has_output(i)) continue;
    MGE_ASSIGN_OR_RETURN(out[i], ctx.Output(i, dtype, i == 0 ? r.SequenceShape() : r.StateShape()));
  }
  if (std::none_of(out, out + 3, [](const Tensor* t) { return t && t->elements() > 0; })) {
    return absl::OkStatus();
  }
  if (out[0]) {
    std::fill_n(out[0]->MutableData<T>().data(), out[0]->elements(), static_cast<T>(0.0f));
  }
  const int64_t rows = kind.gates * r.hidden, states = r.batch * r.hidden;
  MGE_ASSIGN_OR_RETURN(Tensor scratch, Scratch<A>(ctx, rows + 3 * states));
  A* gates = scratch.MutableData<A>().data();
  A* h = gates + rows;
  A* c = h + states;
  A* seen = see ? c + states : h;
  auto data = [&](int i) -> const A* { return in[i].defined() ? in[i].Data<A>().data() : nullptr; };
  auto length = [&](int64_t b) { return lengths.empty() ? r.steps : lengths[b]; };
  const int64_t longest = lengths.empty() ? r.steps : *std::max_element(lengths.begin(), lengths.end());

  for (int64_t d = 0; d < r.directions; ++d) {
    const bool backwards = d == 1 || r.reverse;
    const A* w = data(kWeights) + d * rows * r.input;
    const A* w_bias = data(kBias) ? data(kBias) + d * 2 * rows : nullptr;
    const size_t per_direction = r.activations.size() / static_cast<size_t>(r.directions);
    const RecurrentCell<A> cell = {r, std::span(r.activations).subspan(d * per_direction, per_direction),
                                   data(kRecurrence) + d * rows * r.hidden, w_bias ? w_bias + rows : nullptr,
                                   data(kPeepholes) ? data(kPeepholes) + d * 3 * r.hidden : nullptr};
    auto state = [&](int64_t b) { return (r.batch_first ? b * r.directions + d : d * r.batch + b) * r.hidden; };
    for (int64_t b = 0; b < r.batch; ++b) {
      const bool empty = length(b) == 0;  // its final state is 0, as in ONNX Runtime
      for (int64_t i = 0; i < r.hidden; ++i) {
        h[b * r.hidden + i] = data(kInitialH) && !empty ? data(kInitialH)[state(b) + i] : A(0);
        c[b * r.hidden + i] = data(kInitialC) && !empty ? data(kInitialC)[state(b) + i] : A(0);
      }
    }
    std::vector<bool> active(see ? static_cast<size_t>(r.batch) : 0);
    for (int64_t s = 0; s < longest; ++s) {
      if (see) {
        for (int64_t b = 0; b < r.batch; ++b) active[b] = s < length(b);
        see(h, active, seen);
      }
      for (int64_t b = 0; b < r.batch; ++b) {
        if (s >= length(b)) continue;
        MGE_RETURN_IF_ERROR(ctx.CheckStop());
        const int64_t t = backwards ? length(b) - 1 - s : s;
        const A* x = data(kSequenceX) + (r.batch_first ? b * r.steps + t : t * r.batch + b) * r.input;
        for (int64_t row = 0; row < rows; ++row) {
          A sum = w_bias ? w_bias[row] : A(0);
          for (int64_t i = 0; i < r.input; ++i) sum += w[row * r.input + i] * x[i];
          gates[row] = sum;
        }
        A* now = h + b * r.hidden;
        step(cell, {gates, seen + b * r.hidden, now, c + b * r.hidden});
        if (!out[0]) continue;
        const int64_t place = r.batch_first ? (b * r.steps + t) * r.directions + d : (t * r.directions + d) * r.batch + b;
        for (int64_t i = 0; i < r.hidden; ++i) out[0]->MutableData<T>()[place * r.hidden + i] = static_cast<T>(now[i]);
      }
    }
    for (int64_t b = 0; b < r.batch; ++b) {
      for (int64_t i = 0; i < r.hidden; ++i) {
        if (out[1]) out[1]->MutableData<T>()[state(b) + i] = static_cast<T>(h[b * r.hidden + i]);
        if (out[2]) out[2]->MutableData<T>()[state(b) + i] = static_cast<T>(c[b * r.hidden + i]);
      }
    }
  }
  return absl::OkStatus();
}

// Does the same in T's compute type, without `see`.
template <typename T>
absl::Status RunRecurrent(
    EvalContext& ctx, const Recurrent& r, const RecurrentKind& kind,
    const std::function<void(const RecurrentCell<Compute<T>>&, const RecurrentStep<Compute<T>>&)>& step) {
  MGE_ASSIGN_OR_RETURN(std::vector<Tensor> in, RecurrentOperands(ctx));
  return RunRecurrent<T, Compute<T>>(ctx, r, kind, in, nullptr, step);
}

// Resolves the node and calls run(TypeTag<T>, recurrent) for its element type. Fails with kUnsupportedType for other
// types.
template <typename Run>
absl::Status EvalRecurrent(EvalContext& ctx, const RecurrentKind& kind, Run run) {
  RecurrentShapes shapes(8, nullptr);
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (ctx.has_input(i)) shapes[i] = &ctx.input(i).shape();
  }
  MGE_ASSIGN_OR_RETURN(Recurrent r, ResolveRecurrent(ctx.attrs(), kind, shapes));
  absl::Status status;
  const DType dtype = ctx.input(kSequenceX).dtype();
  bool known = DispatchFloating(dtype, [&](auto tag) { status = run(tag, r); });
  return known ? status : ctx.Unsupported(std::string(DTypeName(dtype)));
}

}  // namespace mge
