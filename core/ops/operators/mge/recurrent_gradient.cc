// SPDX-License-Identifier: Apache-2.0
// The gradients of LSTM, GRU and RNN.
//
// The output of the forward run holds the states before each step, so the arguments of all gates are products over all steps.
// The factors of the gradients in each step follow from them for all steps at once. Only the gradients of the states go from
// step to step, backwards, with one matrix product each. The gradients of X, W, R and B are products over all steps again.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/families/recurrent.h"
#include "core/ops/families/recursion.h"

namespace mge::op_recurrent_gradient {
namespace {

// The first inputs are those of the outputs, the gradients, in the same order.
enum Input { kX, kW, kR, kB, kH0, kC0, kGradients, kY = kGradients, kDy, kDyH, kDyC };

using Now = Recursion::Now;

absl::Status Infer(InferContext& ctx) {
  for (int i = 0; i < kGradients; ++i) ctx.SetOutput(i, ctx.has_input(i) ? ctx.input(i) : UnrankedType(ctx.input(kX).dtype));
  return absl::OkStatus();
}

Term Joined(ExpressionBuilder& b, const std::vector<Term>& parts) {
  std::vector<ValueId> ids;
  for (const Term& t : parts) ids.push_back(t.id());
  return b.Of("Concat", ids, IntAttribute("axis", -1));
}
Term Times(const Term& a, const Term& b) { return Binary("MatMul", a, b); }

// The operands of one direction: sequences [steps, batch, ...], states [batch, hidden], W and R as matrices.
struct Operands {
  Term x, w, r, y, h0, c0;
  Term dy, dy_h, dy_c;
  std::optional<Term> b;
};
// The gradients of one direction.
struct Gradients {
  Term x, w, r, b, h0, c0;
};

class Direction {
 public:
  Direction(FunctionBody& f, const Recurrent& r, int64_t gates, bool backwards, Operands operands)
      : f_(f),
        r_(r),
        width_(gates * r.hidden),
        backwards_(backwards),
        o_(std::move(operands)),
        before_(Before(o_.y, o_.h0)),
        biases_(o_.b ? f.Split(o_.b->id(), {width_, width_}) : std::vector{kNone, kNone}),
        from_x_(Product(Rows(o_.x, r.input), o_.w, biases_[0])),
        from_h_(Product(Rows(before_, r.hidden), o_.r, biases_[1])) {}

  Gradients Lstm() {
    const std::vector<Term> gates = Gates(from_x_ + from_h_);
    const Term in = Unary("Sigmoid", gates[0]), out = Unary("Sigmoid", gates[1]), forget = Unary("Sigmoid", gates[2]);
    const Term candidate = Unary("Tanh", gates[3]);
    Recursion cells = {.states = {o_.c0.id()}, .sequences = {forget.id(), (in * candidate).id()}, .steps = r_.steps};
    cells.reversed = backwards_;
    cells.step = [](const Now& n) {
      const Term c = n.states[0] * n.parts[0] + n.parts[1];
      return std::vector{c, c};
    };
    const Term c(f_, cells.AddTo(f_).sequences[0]), c_before = Before(c, o_.c0), shown = Unary("Tanh", c);
    const Term to_cell = out * (1 - shown * shown);
    const Term factors = Joined(f_, {candidate * in * (1 - in), shown * out * (1 - out), c_before * forget * (1 - forget),
                                     in * (1 - candidate * candidate)});
    const Recursion::Results g = Back({o_.dy_h, o_.dy_c}, {to_cell, factors, forget}, {o_.r}, [](const Now& n) {
      const Term dh = n.parts[0] + n.states[0], dc = n.states[1] + dh * n.parts[1];
      const Term gates = Joined(n.b, {dc, dh, dc, dc}) * n.parts[2];
      return std::vector{Times(gates, n.constants[0]), dc * n.parts[3], gates};
    });
    const Term gates_gradient(f_, g.sequences[0]);
    return Finish(gates_gradient, gates_gradient, g.states);
  }

  Gradients Gru(bool linear_before_reset) { return linear_before_reset ? GruWithResetProduct() : GruWithResetState(); }

  Gradients Rnn(bool relu) {
    const Term slope = relu ? f_.CastTo(Term(f_, o_.y > 0), f_.dtype()) : 1 - o_.y * o_.y;
    const Recursion::Results g = Back({o_.dy_h}, {slope}, {o_.r}, [](const Now& n) {
      const Term gate = (n.parts[0] + n.states[0]) * n.parts[1];
      return std::vector{Times(gate, n.constants[0]), gate};
    });
    const Term gate(f_, g.sequences[0]);
    return Finish(gate, gate, g.states);
  }

 private:
  // h = (1 - update) * tanh(from_x + reset * from_h) + update * h
  Gradients GruWithResetProduct() {
    const std::vector<Term> x = Gates(from_x_), h = Gates(from_h_);
    const Term update = Unary("Sigmoid", x[0] + h[0]), reset = Unary("Sigmoid", x[1] + h[1]);
    const Term hidden = Unary("Tanh", x[2] + reset * h[2]);
    const Term of_update = (before_ - hidden) * update * (1 - update);
    const Term of_hidden = (1 - update) * (1 - hidden * hidden), of_reset = of_hidden * h[2] * reset * (1 - reset);
    const Term to_inputs = Joined(f_, {of_update, of_reset, of_hidden});
    const Term to_states = Joined(f_, {of_update, of_reset, of_hidden * reset});
    const Recursion::Results g = Back({o_.dy_h}, {to_states, update}, {o_.r}, [](const Now& n) {
      const Term dh = n.parts[0] + n.states[0];
      return std::vector{Times(Joined(n.b, {dh, dh, dh}) * n.parts[1], n.constants[0]) + dh * n.parts[2], dh};
    });
    const Term dh(f_, g.sequences[0]), all = Joined(f_, {dh, dh, dh});
    return Finish(all * to_inputs, all * to_states, g.states);
  }

  // h = (1 - update) * tanh(from_x + R (reset * h)) + update * h
  Gradients GruWithResetState() {
    const std::vector<Term> x = Gates(from_x_), h = Gates(from_h_);
    const Term update = Unary("Sigmoid", x[0] + h[0]), reset = Unary("Sigmoid", x[1] + h[1]), kept = reset * before_;
    const std::vector<ValueId> weights =
        f_.Add("Split", {o_.r.id(), f_.Integers({2 * r_.hidden, r_.hidden})}, 2, IntAttribute("axis", 0));
    const Term of_gates(f_, weights[0]), of_hidden(f_, weights[1]);
    const ValueId bias = o_.b ? f_.Split(o_.b->id(), {2 * width_ - r_.hidden, r_.hidden})[1] : kNone;
    const Term hidden = Unary("Tanh", x[2] + Product(Rows(kept, r_.hidden), of_hidden, bias));
    const Term to_update = (before_ - hidden) * update * (1 - update), to_hidden = (1 - update) * (1 - hidden * hidden);
    const Term to_reset = before_ * reset * (1 - reset);
    const std::vector<Term> sequences = {to_update, to_reset, to_hidden, update, reset};
    const Recursion::Results g = Back({o_.dy_h}, sequences, {of_gates, of_hidden}, [](const Now& n) {
      const Term dh = n.parts[0] + n.states[0], hidden = dh * n.parts[3], kept = Times(hidden, n.constants[1]);
      const Term gates = Joined(n.b, {dh * n.parts[1], kept * n.parts[2]});
      const Term before = Times(gates, n.constants[0]) + kept * n.parts[5] + dh * n.parts[4];
      return std::vector{before, Joined(n.b, {gates, hidden})};
    });
    const Term gates(f_, g.sequences[0]);
    Gradients out = Finish(gates, gates, g.states);
    const std::vector<ValueId> rows = f_.Split(Rows(gates, width_).id(), {2 * r_.hidden, r_.hidden});
    const Term first = Across({f_, rows[0]}, Rows(before_, r_.hidden)), last = Across({f_, rows[1]}, Rows(kept, r_.hidden));
    out.r = f_.Of("Concat", {first.id(), last.id()}, IntAttribute("axis", 0));
    return out;
  }

  std::vector<Term> Gates(const Term& arguments) {
    std::vector<Term> out;
    for (ValueId v : f_.Split(arguments.id(), std::vector<int64_t>(static_cast<size_t>(width_ / r_.hidden), r_.hidden))) {
      out.emplace_back(f_, v);
    }
    return out;
  }
  // Adds the steps from the last to the first. The first sequence is dY.
  Recursion::Results Back(const std::vector<Term>& states, const std::vector<Term>& sequences,
                          const std::vector<Term>& constants, std::function<std::vector<Term>(const Now&)> step) {
    Recursion back = {.states = {}, .sequences = {o_.dy.id()}, .steps = r_.steps, .reversed = !backwards_};
    for (const Term& t : states) back.states.push_back(t.id());
    for (const Term& t : sequences) back.sequences.push_back(t.id());
    for (const Term& t : constants) back.constants.push_back(t.id());
    back.step = std::move(step);
    return back.AddTo(f_);
  }
  // Returns the gradients, from those of the gates' products with W and with R, and those of the initial states.
  Gradients Finish(const Term& inputs, const Term& states, const std::vector<ValueId>& initial) {
    const Term of_x = Rows(inputs, width_), of_h = Rows(states, width_);
    const Term x(f_, f_.Reshape(Times(of_x, o_.w).id(), {r_.steps, r_.batch, r_.input}));
    const Term b = f_.Of("Concat", {SumOfRows(of_x), SumOfRows(of_h)}, IntAttribute("axis", 0));
    return {.x = x,
            .w = Across(of_x, Rows(o_.x, r_.input)),
            .r = Across(of_h, Rows(before_, r_.hidden)),
            .b = b,
            .h0 = {f_, initial[0]},
            .c0 = {f_, initial.back()}};
  }

  Term Rows(const Term& x, int64_t size) { return {f_, f_.Reshape(x.id(), {r_.steps * r_.batch, size})}; }
  // Returns the states before each step, from those after it.
  Term Before(const Term& after, const Term& initial) {
    const ValueId first = f_.Add("Unsqueeze", {initial.id(), f_.Integers({0})});
    if (r_.steps == 1) return {f_, first};
    const int64_t begin = backwards_ ? 1 : 0;
    const ValueId others =
        f_.Add("Slice", {after.id(), f_.Integers({begin}), f_.Integers({begin + r_.steps - 1}), f_.Integers({0})});
    return f_.Of("Concat", backwards_ ? std::vector{others, first} : std::vector{first, others}, IntAttribute("axis", 0));
  }
  // Returns [steps, batch, ...]: rows times transposed weights, plus a bias or kNone.
  Term Product(const Term& rows, const Term& weights, ValueId bias) {
    std::vector<ValueId> inputs = {rows.id(), weights.id()};
    if (bias != kNone) inputs.push_back(bias);
    return {f_, f_.Reshape(f_.Add("Gemm", inputs, IntAttribute("transB", 1)), {r_.steps, r_.batch, -1})};
  }
  // Returns the transposed rows of a times those of b.
  Term Across(const Term& a, const Term& b) { return f_.Of("Gemm", {a.id(), b.id()}, IntAttribute("transA", 1)); }
  ValueId SumOfRows(const Term& x) { return f_.Add("ReduceSum", {x.id(), f_.Integers({0})}, IntAttribute("keepdims", 0)); }

  FunctionBody& f_;
  const Recurrent& r_;
  const int64_t width_;  // of all gates
  const bool backwards_;
  const Operands o_;
  const Term before_;                  // states before each step
  const std::vector<ValueId> biases_;  // those of W and R, or kNone
  const Term from_x_, from_h_;         // arguments of the gates, in two parts
};

// Reads the operands of all directions, and joins their gradients.
class Directions {
 public:
  Directions(FunctionBody& f, const Recurrent& r) : f_(f), r_(r) {}

  Operands Of(int64_t d) {
    const Term zeros = f_.Of("Expand", {f_.Number(0).id(), f_.Integers({r_.batch, r_.hidden})});
    const auto state = [&](int input) { return f_.has_input(input) ? Part(input, r_.batch_first ? 1 : 0, d) : zeros; };
    const Term y = Steps(Part(kY, r_.batch_first ? 2 : 1, d));
    const Term dy = f_.has_input(kDy) ? Steps(Part(kDy, r_.batch_first ? 2 : 1, d)) : f_.Fill(0, y);
    Operands o = {.x = Steps(f_.x(kX)),
                  .w = Part(kW, 0, d),
                  .r = Part(kR, 0, d),
                  .y = y,
                  .h0 = state(kH0),
                  .c0 = state(kC0),
                  .dy = dy,
                  .dy_h = state(kDyH),
                  .dy_c = state(kDyC),
                  .b = {}};
    if (f_.has_input(kB)) o.b = Part(kB, 0, d);
    return o;
  }
  void Add(const Gradients& g) { all_.push_back(g); }
  void Finish() {
    Term x = all_[0].x;
    if (all_.size() == 2) x = x + all_[1].x;
    f_.Result(kX, "Identity", {Steps(x).id()});
    Join(kW, &Gradients::w, 0);
    Join(kR, &Gradients::r, 0);
    Join(kB, &Gradients::b, 0);
    Join(kH0, &Gradients::h0, r_.batch_first ? 1 : 0);
    Join(kC0, &Gradients::c0, r_.batch_first ? 1 : 0);
  }

 private:
  // Swaps batch and steps if the layout has the batch first.
  Term Steps(const Term& x) {
    return r_.batch_first ? f_.Of("Transpose", {x.id()}, OneAttribute("perm", Ints{1, 0, 2})) : x;
  }
  Term Part(int input, int64_t axis, int64_t d) {
    ValueId v = f_.input(input);
    if (r_.directions > 1) v = f_.Add("Slice", {v, f_.Integers({d}), f_.Integers({d + 1}), f_.Integers({axis})});
    return f_.Of("Squeeze", {v, f_.Integers({axis})});
  }
  void Join(int output, Term Gradients::*member, int64_t axis) {
    std::vector<ValueId> parts;
    for (const Gradients& g : all_) parts.push_back(f_.Add("Unsqueeze", {(g.*member).id(), f_.Integers({axis})}));
    if (f_.output(output) != kNone) f_.Result(output, "Concat", parts, IntAttribute("axis", axis));
  }

  FunctionBody& f_;
  const Recurrent& r_;
  std::vector<Gradients> all_;
};

const RecurrentKind& KindOf(const Attributes& attrs) {
  const std::string kind = attrs.Text("kind");
  return kind == "LSTM" ? kLstmKind : kind == "GRU" ? kGruKind : kRnnKind;
}

absl::Status Normalize(InferContext&, Attributes& attrs) { return NormalizeRecurrent(attrs, KindOf(attrs)); }

absl::StatusOr<bool> Body(FunctionBody& f) {
  if (!f.IsStatic()) return false;
  const std::string kind = f.attrs().Text("kind");
  const RecurrentKind& properties = KindOf(f.attrs());
  const Shape x = f.dims(kX), w = f.dims(kW), recurrence = f.dims(kR);
  RecurrentShapes shapes(8, nullptr);
  shapes[kSequenceX] = &x;
  shapes[kWeights] = &w;
  shapes[kRecurrence] = &recurrence;
  MGE_ASSIGN_OR_RETURN(const Recurrent r, ResolveRecurrent(f.attrs(), properties, shapes));
  if (r.steps == 0) return f.Unsupported("a sequence without steps");
  Directions all(f, r);
  for (int64_t d = 0; d < r.directions; ++d) {
    Direction one(f, r, properties.gates, r.reverse || d == 1, all.Of(d));
    all.Add(kind == "LSTM"  ? one.Lstm()
            : kind == "GRU" ? one.Gru(f.attrs().Int("linear_before_reset") != 0)
                            : one.Rnn(r.activations[static_cast<size_t>(d)].kind == GateFunction::kRelu));
  }
  all.Finish();
  return true;
}

}  // namespace

MGE_OP(recurrent_gradient) = {
    .name = "RecurrentGradient",
    .domain = "mge",
    .doc =
        "The gradients of an LSTM, GRU or RNN (attribute `kind`) with the default activations by its inputs, from its "
        "output Y "
        "and the gradients of its outputs. A gradient that is absent is zero.",
    .inputs = {{"X", kFloating},
               {"W", kFloating},
               {"R", kFloating},
               {"B", kFloating, Arity::kOptional},
               {"initial_h", kFloating, Arity::kOptional},
               {"initial_c", kFloating, Arity::kOptional},
               {"Y", kFloating},
               {"dY", kFloating, Arity::kOptional},
               {"dY_h", kFloating, Arity::kOptional},
               {"dY_c", kFloating, Arity::kOptional}},
    .outputs = {{"dX"},
                {"dW"},
                {"dR"},
                {"dB", kAnyType, Arity::kOptional},
                {"dinitial_h", kAnyType, Arity::kOptional},
                {"dinitial_c", kAnyType, Arity::kOptional}},
    .attrs = RecurrentAttrs({{"kind", AttrType::kText, Presence::kRequired, "RNN, GRU or LSTM"},
                             {"linear_before_reset", 0, "not 0: the reset gate multiplies after the product"}}),
    .infer = Infer,
    .eval = EvalByBody,
    .normalize = Normalize,
    .body = Body,
    .examples = {"(T[3,2,4], T[1,20,4], T[1,20,5], T[1,40], T[1,2,5], T[1,2,5], T[3,1,2,5], T[3,1,2,5], T[1,2,5], T[1,2,5]) "
                 "{kind=\"LSTM\"} -> 6",
                 "(T[3,2,4], T[2,15,4], T[2,15,5], _, _, _, T[3,2,2,5], T[3,2,2,5]) {kind=\"GRU\", "
                 "direction=\"bidirectional\"} -> 3",
                 "(T[2,3,4], T[1,5,4], T[1,5,5], _, _, _, T[2,3,1,5], _, T[2,1,5]) {kind=\"RNN\", layout=1, "
                 "direction=\"reverse\"} -> 3"},
};

}  // namespace mge::op_recurrent_gradient
