// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/scatter.h"
#include "core/ops/families/window.h"
#include "core/ops/op_helpers.h"

namespace mge::op_col2_im {
namespace {

// The sizes of the windows. All lists have one entry for each spatial dimension.
struct Geometry {
  Ints image, block, dilations, pads, strides;
  int64_t windows = 1;  // columns of the input
  int64_t kernel = 1;   // elements of a block
};

absl::StatusOr<Geometry> Resolve(const Attributes& attrs, const Ints& image, const Ints& block) {
  const size_t n = image.size();
  Geometry g{image, block, attrs.IntList("dilations", Ints(n, 1)), attrs.IntList("pads", Ints(2 * n, 0)),
             attrs.IntList("strides", Ints(n, 1))};
  if (n == 0 || block.size() != n || g.dilations.size() != n || g.pads.size() != 2 * n || g.strides.size() != n) {
    return BadNode(fmt::format("image {}, block {}, dilations {}, pads {} and strides {} do not match", ShapeText(image),
                               ShapeText(block), ShapeText(g.dilations), ShapeText(g.pads), ShapeText(g.strides)));
  }
  for (size_t d = 0; d < n; ++d) {
    int64_t reach, padded, pads;
    bool good = image[d] > 0 && block[d] > 0 && g.dilations[d] > 0 && g.strides[d] > 0 &&
                CheckedMul(block[d] - 1, g.dilations[d], &reach) && CheckedAdd(g.pads[d], g.pads[n + d], &pads) &&
                CheckedAdd(image[d], pads, &padded) && reach < padded;
    if (!good) {
      return BadNode(
          fmt::format("dimension {}: a block of {} with dilation {}, stride {} and pads {} and {} does not "
                      "fit into an image of {}",
                      d, block[d], g.dilations[d], g.strides[d], g.pads[d], g.pads[n + d], image[d]));
    }
    if (!CheckedMul(g.windows, (padded - reach - 1) / g.strides[d] + 1, &g.windows) ||
        !CheckedMul(g.kernel, block[d], &g.kernel)) {
      return BadNode("size overflow");
    }
  }
  return g;
}

absl::StatusOr<Shape> Result(std::span<const int64_t> x, const Geometry& g) {
  MGE_RETURN_IF_ERROR(RequireRank("input", x, 3));
  MGE_RETURN_IF_ERROR(RequireSize("the number of blocks", x[2], g.windows));
  if (x[1] != kUnknownDim && x[1] % g.kernel != 0) {
    return BadNode(fmt::format("{} rows are not a multiple of a block's {} elements", x[1], g.kernel));
  }
  Shape out = {x[0], x[1] == kUnknownDim ? kUnknownDim : x[1] / g.kernel};
  out.insert(out.end(), g.image.begin(), g.image.end());
  return out;
}

absl::Status Normalize(InferContext& ctx, Attributes& attrs) {
  if (const auto image = KnownInts(ctx, 1)) NormalizeWindow(attrs, *ctx.node().def, image->size());
  return absl::OkStatus();
}

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  auto image = KnownInts(ctx, 1), block = KnownInts(ctx, 2);
  if (!image || !block) {
    ctx.SetOutput(0, UnrankedType(x.dtype));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(Geometry g, Resolve(ctx.attrs(), *image, *block));
  MGE_ASSIGN_OR_RETURN(Shape dims, Result(x.has_rank ? x.dims : Shape(3, kUnknownDim), g));
  ctx.SetOutput(0, MakeType(x.dtype, std::move(dims)));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Ints image, IntsInput(ctx, 1));
  MGE_ASSIGN_OR_RETURN(Ints block, IntsInput(ctx, 2));
  MGE_ASSIGN_OR_RETURN(Geometry g, Resolve(ctx.attrs(), image, block));
  MGE_ASSIGN_OR_RETURN(Shape shape, Result(x.shape(), g));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), shape));
  Fill(*y, nullptr);
  const size_t n = image.size();
  const int64_t pixels = Product(shape, 2, shape.size());
  Shape strides = Strides(image);
  Ints counts(n);
  for (size_t d = 0; d < n; ++d) {
    counts[d] = (image[d] + g.pads[d] + g.pads[n + d] - (block[d] - 1) * g.dilations[d] - 1) / g.strides[d] + 1;
  }
  return DispatchReduction(ctx, x.dtype(), "add", [&](auto tag, auto add) {
    using T = typename decltype(tag)::type;
    auto in = x.Data<T>();
    auto out = y->MutableData<T>();
    for (int64_t i = 0; i < x.elements(); ++i) {
      int64_t window = i % g.windows, row = i / g.windows % g.kernel, plane = i / g.windows / g.kernel;
      int64_t at = plane * pixels;
      bool inside = true;
      for (size_t d = n; d-- > 0;) {
        int64_t p = window % counts[d] * g.strides[d] + row % block[d] * g.dilations[d] - g.pads[d];
        window /= counts[d];
        row /= block[d];
        inside = inside && p >= 0 && p < image[d];
        at += p * strides[d];
      }
      if (inside) out[at] = add(out[at], in[i]);
    }
  });
}

}  // namespace

MGE_OP(col2_im) = {
    .name = "Col2Im",
    .doc = "Adds blocks, stored as columns, to the image from which they were taken.",
    .inputs = {{"input", kFixedSize | kComplex}, {"image_shape", {DType::kI64}}, {"block_shape", {DType::kI64}}},
    .outputs = {{"output"}},
    .attrs = {kDilationsAttr, kPadsAttr, kStridesAttr},
    .infer = Infer,
    .eval = Eval,
    .normalize = Normalize,
    .since = 18,
    .examples = {"(T[1,5,5], int64[2]<5,5>, int64[2]<1,5>)"}};

}  // namespace mge::op_col2_im
