// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/cast.h"
#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_split {
namespace {

// Returns the sizes of the parts of a dimension. `lengths` is null if the node does not give them.
absl::StatusOr<Ints> Parts(const Node& node, int64_t size, /*nullable*/ const Ints* lengths) {
  int64_t count = static_cast<int64_t>(node.outputs.size());
  if (lengths) {
    if (static_cast<int64_t>(lengths->size()) != count) {
      return BadNode(fmt::format("{} lengths for {} outputs", lengths->size(), count));
    }
    int64_t sum = 0;
    for (int64_t n : *lengths) {
      if (!CheckedAdd(sum, n, &sum)) return BadNode(fmt::format("the lengths {} are not valid sizes", ShapeText(*lengths)));
    }
    if (sum != size) {
      return BadNode(fmt::format("the lengths {} add up to {}, but the dimension has {}", ShapeText(*lengths), sum, size));
    }
    return *lengths;
  }
  bool uneven_allowed = node.attrs.Has("num_outputs");
  if (!uneven_allowed && size % count != 0) {
    return BadNode(fmt::format("a dimension of {} cannot be split into {} equal parts", size, count));
  }
  int64_t part = size / count + (size % count != 0);
  Ints out;
  for (int64_t i = 0; i < count; ++i) {
    out.push_back(std::min(part, size));
    size -= out.back();
  }
  return out;
}

absl::Status CheckOutputs(const Node& node) {
  if (node.outputs.empty()) return BadNode("the node has no output");
  int64_t wanted = node.attrs.Int("num_outputs", node.outputs.size());
  if (wanted != static_cast<int64_t>(node.outputs.size())) {
    return BadNode(fmt::format("num_outputs is {}, but the node has {} outputs", wanted, node.outputs.size()));
  }
  return absl::OkStatus();
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(CheckOutputs(ctx.node()));
  if (ctx.has_input(1) && ctx.attrs().Has("num_outputs")) {
    return ctx.Invalid("both lengths (input \"split\") and num_outputs are given");
  }
  const TensorType& x = ctx.input(0);
  if (!x.has_rank) {
    for (int i = 0; i < ctx.output_count(); ++i) ctx.SetOutput(i, UnrankedType(x.dtype));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), x.dims.size()));
  auto lengths = KnownInts(ctx, 1);
  Ints parts(ctx.output_count(), kUnknownDim);
  if (x.dims[axis] != kUnknownDim && (lengths || !ctx.has_input(1))) {
    MGE_ASSIGN_OR_RETURN(parts, Parts(ctx.node(), x.dims[axis], lengths ? &*lengths : nullptr));
  } else if (lengths && static_cast<int>(lengths->size()) == ctx.output_count()) {
    for (int i = 0; i < ctx.output_count(); ++i) parts[i] = std::max<int64_t>((*lengths)[i], kUnknownDim);
  }
  for (int i = 0; i < ctx.output_count(); ++i) {
    Shape dims = x.dims;
    dims[axis] = parts[i];
    ctx.SetOutput(i, MakeType(x.dtype, std::move(dims)));
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  MGE_RETURN_IF_ERROR(CheckOutputs(ctx.node()));
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), x.rank()));
  Ints lengths;
  if (ctx.has_input(1)) {
    MGE_ASSIGN_OR_RETURN(lengths, IntsInput(ctx, 1, ctx.output_count()));
  }
  MGE_ASSIGN_OR_RETURN(Ints parts, Parts(ctx.node(), x.shape()[axis], ctx.has_input(1) ? &lengths : nullptr));
  Shape strides = Strides(x.shape());
  int64_t at = 0;
  for (int i = 0; i < ctx.output_count(); ++i) {
    if (ctx.has_output(i)) {
      Shape shape = x.shape();
      shape[axis] = parts[i];
      MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(i, x.dtype(), std::move(shape)));
      CopyStrided(x, at * strides[axis], strides, *y);
    }
    at += parts[i];
  }
  return absl::OkStatus();
}

// Before operator set 13 the lengths were an attribute. In set 1 they could also be an input, of the data's own type.
absl::Status Upgrade(Graph& graph, Node& node) {
  if (node.version < 13) MoveAttributeToInput(graph, node, "split", 1);
  if (node.version >= 2 || node.inputs.size() < 2 || node.inputs[1] == kNone) return absl::OkStatus();
  const Value& lengths = graph.value(node.inputs[1]);
  if (lengths.role != Role::kConstant || lengths.type.dtype == DType::kI64) return absl::OkStatus();
  MGE_ASSIGN_OR_RETURN(Tensor integers, CastTensor(lengths.constant, DType::kI64, UnlimitedHostAllocator()));
  node.inputs[1] = graph.AddConstant(node.name + "_split", std::move(integers));
  return absl::OkStatus();
}

absl::Status Gradient(GradientContext& g) {
  std::vector<ValueId> parts;
  for (int i = 0; i < g.output_count(); ++i) parts.push_back(g.dy(i).id());
  return g.Set(0, g.Of("Concat", parts, IntAttribute("axis", g.attrs().Int("axis"))));
}

}  // namespace

MGE_OP(split) = {.name = "Split",
                 .doc = "Splits the input along `axis` into parts of given or equal lengths.",
                 .inputs = {{"input"}, {"split", {DType::kI64}, Arity::kOptional}},
                 .outputs = {{"outputs", kAnyType, Arity::kVariadic}},
                 .attrs = {AxisOf({"axis", 0, "the axis"}),
                           {"num_outputs", AttrType::kInt, Presence::kOptional,
                            "the number of equal parts; absent: the input split has their sizes"}},
                 .infer = Infer,
                 .eval = Eval,
                 .upgrade = Upgrade,
                 .gradient = Gradient,
                 .examples = {"(T[7,6]) {axis=1, num_outputs=3} -> 3", "(T[7,3], int64[2]<2,5>) -> 2"}};

}  // namespace mge::op_split
