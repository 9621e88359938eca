// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/control_flow.h"
#include "core/ops/families/unroll.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_scan {
namespace {

// The numbers of inputs and outputs. Node inputs: states, then the scanned sequences. Operator set 8 has an input with
// the sequences' lengths before them, and a batch dimension in front of all dimensions (attribute "_batched").
struct Layout {
  int first = 0;  // index of the first state
  int states = 0;
  int scans_in = 0;
  int scans_out = 0;
  bool batched = false;
};

absl::StatusOr<Layout> LayoutOf(const Node& node, const Graph& body) {
  Layout l;
  l.batched = node.attrs.Int("_batched") != 0;
  l.first = l.batched ? 1 : 0;
  int inputs = static_cast<int>(node.inputs.size()) - l.first;
  int64_t scans = node.attrs.Int("num_scan_inputs");
  if (scans < 1 || scans > inputs) {
    return BadNode(fmt::format("num_scan_inputs is {}; it must be in [1, {}]", scans, inputs));
  }
  l.scans_in = static_cast<int>(scans);
  l.states = inputs - l.scans_in;
  l.scans_out = static_cast<int>(body.outputs().size()) - l.states;
  if (FormalInputs(body) != inputs || l.scans_out < 0) {
    return BadNode(fmt::format("{} states and {} scanned inputs; the body has {} inputs and {} outputs", l.states,
                               l.scans_in, FormalInputs(body), body.outputs().size()));
  }
  if (static_cast<int>(node.outputs.size()) > l.states + l.scans_out) {
    return BadNode(
        fmt::format("the node has {} outputs, but the body has only {}", node.outputs.size(), l.states + l.scans_out));
  }
  for (int i = 0; i < inputs; ++i) {
    if (node.inputs[l.first + i] == kNone) return BadNode(fmt::format("input {} is absent", l.first + i));
  }
  return l;
}

// Returns entry i of a list of axes or directions; 0 if the attribute is absent.
absl::StatusOr<int64_t> Entry(const Attributes& attrs, std::string_view name, int i, int count) {
  if (!attrs.Has(name)) return 0;
  Ints list = attrs.IntList(name);
  if (static_cast<int>(list.size()) != count) {
    return BadNode(fmt::format("{} has {} entries; it must have {}", name, list.size(), count));
  }
  return list[i];
}

absl::StatusOr<bool> Reversed(const Attributes& attrs, std::string_view name, int i, int count) {
  MGE_ASSIGN_OR_RETURN(int64_t direction, Entry(attrs, name, i, count));
  if (direction != 0 && direction != 1) return BadNode(fmt::format("{}: {} is not allowed; use 0 or 1", name, direction));
  return direction == 1;
}

// Returns the dimension of input i, batch included, along which it is scanned.
absl::StatusOr<int64_t> InputAxis(const Attributes& attrs, const Layout& l, int i, int64_t rank) {
  if (l.batched) {
    if (rank < 2) return BadNode(fmt::format("scanned input {} has no batch and sequence dimensions", i));
    return 1;
  }
  MGE_ASSIGN_OR_RETURN(int64_t axis, Entry(attrs, "scan_input_axes", i, l.scans_in));
  return NormalizeAxis(axis, rank);
}

void DropBatch(TensorType& type) {
  if (type.has_rank && !type.dims.empty()) type.dims.erase(type.dims.begin());
  type.symbols.clear();
}

absl::Status Infer(InferContext& ctx) {
  GraphPtr body = ctx.attrs().GraphOrNull("body");
  MGE_ASSIGN_OR_RETURN(Layout l, LayoutOf(ctx.node(), *body));
  std::vector<ValueType> inputs;
  int64_t batch = kUnknownDim, steps = kUnknownDim;
  for (int i = 0; i < l.states; ++i) {
    TensorType type = ctx.input(l.first + i);
    if (l.batched) {
      if (type.has_rank && !type.dims.empty()) MergeDim(&batch, type.dims[0]);
      DropBatch(type);
    }
    inputs.push_back({std::move(type)});
  }
  for (int i = 0; i < l.scans_in; ++i) {
    TensorType type = ctx.input(l.first + l.states + i);
    type.symbols.clear();
    if (type.has_rank) {
      MGE_ASSIGN_OR_RETURN(int64_t axis, InputAxis(ctx.attrs(), l, i, type.dims.size()));
      if (!MergeDim(&steps, type.dims[axis])) {
        return ctx.Invalid(fmt::format("scanned input {} has {} steps, but another one has {}", i, type.dims[axis], steps));
      }
      type.dims.erase(type.dims.begin() + axis);
      if (l.batched) {
        MergeDim(&batch, type.dims[0]);
        DropBatch(type);
      }
    }
    inputs.push_back({std::move(type)});
  }
  MGE_ASSIGN_OR_RETURN(std::vector<ValueType> outputs, InferCarried(ctx, *body, std::move(inputs), 0, 0, l.states));
  for (int i = 0; i < l.states + l.scans_out; ++i) {
    TensorType type = outputs[i].type;
    type.symbols.clear();
    if (type.has_rank && i >= l.states) {
      int64_t axis = 0;
      if (!l.batched) {
        MGE_ASSIGN_OR_RETURN(axis, Entry(ctx.attrs(), "scan_output_axes", i - l.states, l.scans_out));
        MGE_ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, type.dims.size() + 1));
      }
      type.dims.insert(type.dims.begin() + axis, steps);
    }
    if (type.has_rank && l.batched) type.dims.insert(type.dims.begin(), batch);
    ctx.SetOutput(i, std::move(type));
  }
  return absl::OkStatus();
}

// The location of the steps of one sequence in a tensor that is scanned or filled along an axis.
struct Track {
  int64_t offset = 0;
  int64_t stride = 0;    // distance between steps, in elements
  Shape shape, strides;  // shape and strides of one step
};

Track TrackOf(std::span<const int64_t> shape, int64_t axis, bool batched, int64_t batch) {
  Track track;
  Shape strides = Strides(shape);
  if (batched) track.offset = batch * strides[0];
  track.stride = strides[axis];
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    if (d == axis || (batched && d == 0)) continue;
    track.shape.push_back(shape[d]);
    track.strides.push_back(strides[d]);
  }
  return track;
}

// The evaluation of one Scan node.
class Scanner {
 public:
  Scanner(EvalContext& ctx, const Graph& body, Layout layout) : ctx_(ctx), body_(body), l_(layout) {}

  absl::Status Run();

 private:
  absl::Status Prepare();
  absl::StatusOr<HostValue> Step(int scan, int64_t batch, int64_t step);
  absl::Status Store(int scan, int64_t batch, int64_t step, const Tensor& value);
  absl::Status RunSequence(int64_t batch, int64_t length);
  absl::Status StoreState(int state, int64_t batch, const Tensor& value);

  const Tensor& scanned(int i) const { return ctx_.input(l_.first + l_.states + i); }

  EvalContext& ctx_;
  const Graph& body_;
  Layout l_;
  int64_t steps_ = 0;
  int64_t batches_ = 1;
  Ints in_axes_, out_axes_;
  std::vector<bool> in_reversed_, out_reversed_;
  std::vector<Tensor*> outputs_;  // scan outputs and batched states; null before the first value
};

absl::Status Scanner::Prepare() {
  const Attributes& attrs = ctx_.attrs();
  for (int i = 0; i < l_.scans_in; ++i) {
    const Shape& shape = scanned(i).shape();
    MGE_ASSIGN_OR_RETURN(int64_t axis, InputAxis(attrs, l_, i, shape.size()));
    MGE_ASSIGN_OR_RETURN(bool reversed, Reversed(attrs, "scan_input_directions", i, l_.scans_in));
    in_axes_.push_back(axis);
    in_reversed_.push_back(reversed);
    if (i == 0) {
      steps_ = shape[axis];
      if (l_.batched) batches_ = shape[0];
    } else if (shape[axis] != steps_ || (l_.batched && shape[0] != batches_)) {
      return ctx_.Invalid(fmt::format("scanned input {} has shape {}; it must have {} steps along axis {}", i,
                                      ShapeText(shape), steps_, axis));
    }
  }
  for (int i = 0; i < l_.scans_out; ++i) {
    MGE_ASSIGN_OR_RETURN(int64_t axis, Entry(attrs, "scan_output_axes", i, l_.scans_out));
    MGE_ASSIGN_OR_RETURN(bool reversed, Reversed(attrs, "scan_output_directions", i, l_.scans_out));
    out_axes_.push_back(axis);
    out_reversed_.push_back(reversed);
  }
  for (int i = 0; l_.batched && i < l_.states; ++i) {
    const Shape& shape = ctx_.input(l_.first + i).shape();
    if (shape.empty() || shape[0] != batches_) {
      return ctx_.Invalid(fmt::format("state {} has shape {}; the batch has size {}", i, ShapeText(shape), batches_));
    }
  }
  outputs_.resize(l_.states + l_.scans_out, nullptr);
  return absl::OkStatus();
}

absl::StatusOr<HostValue> Scanner::Step(int scan, int64_t batch, int64_t step) {
  const Tensor& x = scanned(scan);
  Track track = TrackOf(x.shape(), in_axes_[scan], l_.batched, batch);
  MGE_ASSIGN_OR_RETURN(Tensor cut, Tensor::Create(x.dtype(), track.shape, ctx_.allocator()));
  CopyStrided(x, track.offset + step * track.stride, track.strides, cut);
  return TensorValue(std::move(cut));
}

absl::Status Scanner::Store(int scan, int64_t batch, int64_t step, const Tensor& value) {
  int output = l_.states + scan;
  if (!ctx_.has_output(output)) return absl::OkStatus();
  Tensor*& y = outputs_[output];
  int64_t axis = l_.batched ? 1 : out_axes_[scan];
  if (!l_.batched) {
    MGE_ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, value.rank() + 1));
  }
  if (!y) {
    Shape shape = value.shape();
    if (l_.batched) shape.insert(shape.begin(), batches_);
    shape.insert(shape.begin() + axis, steps_);
    MGE_ASSIGN_OR_RETURN(y, ctx_.Output(output, value.dtype(), std::move(shape)));
    if (l_.batched) Fill(*y, nullptr);  // pads shorter sequences with zeros
  }
  bool fits = y->rank() == value.rank() + (l_.batched ? 2 : 1) && y->dtype() == value.dtype();
  Track track = fits ? TrackOf(y->shape(), axis, l_.batched, batch) : Track();
  if (!fits || track.shape != value.shape()) {
    return ctx_.Invalid(fmt::format("scan output {} is {}{} in step {}; it differs from earlier steps", scan,
                                    DTypeName(value.dtype()), ShapeText(value.shape()), step));
  }
  CopyRegion(value, 0, Strides(value.shape()), *y, track.offset + step * track.stride, track.strides, track.shape);
  return absl::OkStatus();
}

absl::Status Scanner::StoreState(int state, int64_t batch, const Tensor& value) {
  if (!ctx_.has_output(state)) return absl::OkStatus();
  Tensor*& y = outputs_[state];
  if (!y) {
    Shape shape = value.shape();
    shape.insert(shape.begin(), batches_);
    MGE_ASSIGN_OR_RETURN(y, ctx_.Output(state, value.dtype(), std::move(shape)));
  }
  if (y->rank() != value.rank() + 1 || y->dtype() != value.dtype() ||
      !std::equal(value.shape().begin(), value.shape().end(), y->shape().begin() + 1)) {
    return ctx_.Invalid(fmt::format("state {} of batch entry {} ends as {}{}; it differs from other entries", state, batch,
                                    DTypeName(value.dtype()), ShapeText(value.shape())));
  }
  CopyElements(value, 0, *y, batch * value.elements(), value.elements());
  return absl::OkStatus();
}

absl::Status Scanner::RunSequence(int64_t batch, int64_t length) {
  std::vector<HostValue> states;
  for (int i = 0; i < l_.states; ++i) {
    const HostValue& initial = ctx_.value(l_.first + i);
    if (!l_.batched) {
      states.push_back(initial);
      continue;
    }
    Shape shape(initial.tensor.shape().begin() + 1, initial.tensor.shape().end());
    MGE_ASSIGN_OR_RETURN(Tensor own, Tensor::Create(initial.tensor.dtype(), std::move(shape), ctx_.allocator()));
    CopyElements(initial.tensor, batch * own.elements(), own, 0, own.elements());
    states.push_back(TensorValue(std::move(own)));
  }
  for (int64_t t = 0; t < length; ++t) {
    MGE_RETURN_IF_ERROR(ctx_.CheckStop());
    std::vector<HostValue> inputs = std::move(states);
    for (int i = 0; i < l_.scans_in; ++i) {
      MGE_ASSIGN_OR_RETURN(HostValue cut, Step(i, batch, in_reversed_[i] ? length - 1 - t : t));
      inputs.push_back(std::move(cut));
    }
    MGE_ASSIGN_OR_RETURN(std::vector<HostValue> results, ctx_.RunBody(body_, std::move(inputs)));
    for (int i = 0; i < l_.scans_out; ++i) {
      MGE_RETURN_IF_ERROR(Store(i, batch, out_reversed_[i] ? length - 1 - t : t, results[l_.states + i].tensor));
    }
    results.resize(l_.states);
    states = std::move(results);
  }
  for (int i = 0; i < l_.states; ++i) {
    if (l_.batched) {
      MGE_RETURN_IF_ERROR(StoreState(i, batch, states[i].tensor));
    } else {
      MGE_RETURN_IF_ERROR(ctx_.SetOutput(i, std::move(states[i])));
    }
  }
  return absl::OkStatus();
}

absl::Status Scanner::Run() {
  MGE_RETURN_IF_ERROR(Prepare());
  const bool has_lengths = l_.batched && ctx_.has_input(0);
  if (has_lengths) {
    MGE_RETURN_IF_ERROR(RequireShape("sequence_lens", ctx_.input(0).shape(), Shape{batches_}));
    if (ctx_.input(0).dtype() != DType::kI64) return ctx_.Invalid("sequence_lens is not int64");
  }
  for (int64_t b = 0; b < batches_; ++b) {
    int64_t length = has_lengths ? ctx_.input(0).Data<int64_t>()[b] : steps_;
    if (length < 0 || length > steps_) {
      return ctx_.Invalid(fmt::format("sequence_lens[{}] is {}; it must be in [0, {}]", b, length, steps_));
    }
    MGE_RETURN_IF_ERROR(RunSequence(b, length));
  }
  for (int i = 0; i < l_.states + l_.scans_out; ++i) {  // no value was stored: no step, or an empty batch
    if (!ctx_.has_output(i) || outputs_[i] || (i < l_.states && !l_.batched)) continue;
    MGE_ASSIGN_OR_RETURN(Tensor * y, EmptyOutput(ctx_, i));
    Fill(*y, nullptr);
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  GraphPtr body = ctx.attrs().GraphOrNull("body");
  MGE_ASSIGN_OR_RETURN(Layout l, LayoutOf(ctx.node(), *body));
  return Scanner(ctx, *body, l).Run();
}

// The steps one after the other.
absl::StatusOr<bool> GradientBody(FunctionBody& f) {
  if (!f.IsStatic()) return false;
  const GraphPtr body = f.attrs().GraphOrNull("body");
  const auto scans_in = static_cast<int>(f.attrs().Int("num_scan_inputs"));
  if (f.attrs().Int("_batched") != 0) return f.Unsupported("the gradient of a Scan of operator set 8");
  const int states = f.input_count() - scans_in, scans_out = static_cast<int>(body->outputs().size()) - states;
  Layout layout{.states = states, .scans_in = scans_in, .scans_out = scans_out};
  std::vector<ValueId> initial;
  for (int i = 0; i < states; ++i) initial.push_back(f.input(i));
  Ints axes;
  std::vector<bool> reversed;
  for (int i = 0; i < scans_in; ++i) {
    MGE_ASSIGN_OR_RETURN(const int64_t axis, InputAxis(f.attrs(), layout, i, f.rank(states + i)));
    MGE_ASSIGN_OR_RETURN(const bool backwards, Reversed(f.attrs(), "scan_input_directions", i, scans_in));
    axes.push_back(axis);
    reversed.push_back(backwards);
  }
  const int64_t steps = f.dims(states)[static_cast<size_t>(axes[0])];
  Unrolled iterations(f, *body, std::move(initial));
  std::vector<std::vector<ValueId>> scanned(static_cast<size_t>(scans_out));
  for (int64_t t = 0; t < steps; ++t) {
    std::vector<ValueId> cuts;
    for (int i = 0; i < scans_in; ++i) {
      const auto at = static_cast<size_t>(i);
      const ValueId step = f.Constant(Tensor::Scalar<int64_t>(reversed[at] ? steps - 1 - t : t));
      cuts.push_back(f.Add("Gather", {f.input(states + i), step}, IntAttribute("axis", axes[at])));
    }
    MGE_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, iterations.Add({}, cuts));
    iterations.Pass(outputs, 0);
    for (size_t i = 0; i < scanned.size(); ++i) scanned[i].push_back(outputs[static_cast<size_t>(states) + i]);
  }
  for (int i = 0; i < states; ++i) f.Result(i, "Identity", {iterations.states()[static_cast<size_t>(i)]});
  for (int i = 0; i < scans_out; ++i) {
    MGE_ASSIGN_OR_RETURN(const int64_t axis, Entry(f.attrs(), "scan_output_axes", i, scans_out));
    MGE_ASSIGN_OR_RETURN(const bool prepends, Reversed(f.attrs(), "scan_output_directions", i, scans_out));
    std::vector<ValueId>& parts = scanned[static_cast<size_t>(i)];
    if (prepends) std::ranges::reverse(parts);
    MGE_RETURN_IF_ERROR(StackResult(f, states + i, parts, axis));
  }
  return true;
}

absl::Status Upgrade(Graph&, Node& node) {
  if (node.version >= 9) return absl::OkStatus();
  node.attrs.Set("_batched", int64_t{1});
  if (const AttributeValue* directions = node.attrs.Find("directions")) {
    AttributeValue value = *directions;
    node.attrs.Remove("directions");
    node.attrs.Set("scan_input_directions", std::move(value));
  }
  return absl::OkStatus();
}

}  // namespace

MGE_OP(scan) = {
    .name = "Scan",
    .doc = "Runs a body for every step of sequences. Passes states from step to step.",
    // The first input may be absent. Before operator set 9 it holds the lengths of the sequences.
    .inputs = {{"first", kAnyType, Arity::kOptional}, {"initial_state_and_scan_inputs", kAnyType, Arity::kVariadic}},
    .outputs = {{"final_state_and_scan_outputs", {}, Arity::kVariadic}},
    .attrs = {{"body", AttrType::kGraph, Presence::kRequired, "the body"},
              {"num_scan_inputs", AttrType::kInt, Presence::kRequired, "the number of inputs that are scanned"},
              {"scan_input_axes", AttrType::kInts, Presence::kOptional, "absent: 0"},
              {"scan_input_directions", AttrType::kInts, Presence::kOptional, "1: backwards; absent: 0"},
              {"scan_output_axes", AttrType::kInts, Presence::kOptional, "absent: 0"},
              {"scan_output_directions", AttrType::kInts, Presence::kOptional, "1: prepends; absent: 0"},
              {"_batched", AttrType::kInt}},
    .infer = Infer,
    .eval = Eval,
    .upgrade = Upgrade,
    .gradient = ReplacementGradient,
    .gradient_body = GradientBody,
    .traits = kHostOnly,
    .since = 8};

}  // namespace mge::op_scan
