// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/scatter.h"
#include "core/ops/families/window.h"
#include "core/ops/function_body.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_col2_im {
namespace {

// The sizes of the windows. All lists have one entry for each spatial dimension.
struct Geometry {
  Ints image, block, dilations, pads, strides;
  Ints counts = {};     // of windows
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
    g.counts.push_back((padded - reach - 1) / g.strides[d] + 1);
    if (!CheckedMul(g.windows, g.counts[d], &g.windows) || !CheckedMul(g.kernel, block[d], &g.kernel)) {
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

// Returns the pixel of its plane to which element `i` of the input is added, or -1 for one in the padding.
int64_t PixelOf(const Geometry& g, int64_t i) {
  int64_t window = i % g.windows, row = i / g.windows % g.kernel, at = 0, stride = 1;
  for (size_t d = g.image.size(); d-- > 0;) {
    const int64_t p = window % g.counts[d] * g.strides[d] + row % g.block[d] * g.dilations[d] - g.pads[d];
    if (p < 0 || p >= g.image[d]) return -1;
    window /= g.counts[d];
    row /= g.block[d];
    at += p * stride;
    stride *= g.image[d];
  }
  return at;
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Ints image, IntsInput(ctx, 1));
  MGE_ASSIGN_OR_RETURN(Ints block, IntsInput(ctx, 2));
  MGE_ASSIGN_OR_RETURN(Geometry g, Resolve(ctx.attrs(), image, block));
  MGE_ASSIGN_OR_RETURN(Shape shape, Result(x.shape(), g));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), shape));
  Fill(*y, nullptr);
  const int64_t pixels = Product(shape, 2, shape.size());
  return DispatchReduction(ctx, x.dtype(), "add", [&](auto tag, auto add) {
    using T = typename decltype(tag)::type;
    auto in = x.Data<T>();
    auto out = y->MutableData<T>();
    for (int64_t i = 0; i < x.elements(); ++i) {
      const int64_t pixel = PixelOf(g, i);
      if (pixel < 0) continue;
      const int64_t at = i / g.windows / g.kernel * pixels + pixel;
      out[at] = add(out[at], in[i]);
    }
  });
}

// Adds each element of a plane's columns to its pixel. Elements in the padding are added to one more, which is dropped.
absl::StatusOr<bool> GradientBody(FunctionBody& f) {
  if (!f.IsStatic() || !f.constant(1) || !f.constant(2) || Elements(f.dims(0)) == 0) return false;
  const Ints image = f.constant(1)->ToInts(), block = f.constant(2)->ToInts();
  MGE_ASSIGN_OR_RETURN(const Geometry g, Resolve(f.attrs(), image, block));
  MGE_ASSIGN_OR_RETURN(const Shape shape, Result(f.dims(0), g));
  const int64_t planes = shape[0] * shape[1], pixels = Product(shape, 2, static_cast<int64_t>(shape.size()));
  const int64_t elements = g.kernel * g.windows;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < elements; ++i) {
    const int64_t place = PixelOf(g, i);
    places.push_back(place < 0 ? pixels : place);
  }
  const ValueId all =
      f.Add("Expand", {f.Constant(Tensor::Of<int64_t>({1, elements}, places)), f.Integers({planes, elements})});
  const ValueId zeros = f.Add("Expand", {f.Number(0).id(), f.Integers({planes, pixels + 1})});
  Attributes add = IntAttribute("axis", 1);
  add.Set("reduction", std::string("add"));
  const ValueId sums = f.Add("ScatterElements", {zeros, all, f.Reshape(f.input(0), {planes, elements})}, std::move(add));
  const ValueId kept = f.Add("Slice", {sums, f.Integers({0}), f.Integers({pixels}), f.Integers({1})});
  f.ReshapeTo(f.output(0), kept, shape);
  return true;
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
    .gradient = ReplacementGradient,
    .gradient_body = GradientBody,
    .since = 18,
    .examples = {"(T[1,5,5], int64[2]<5,5>, int64[2]<1,5>)",
                 "(T[2,12,9], int64[2]<5,4>, int64[2]<2,3>) {pads=[1,1,0,1], strides=[2,1], dilations=[1,2]}"}};

}  // namespace mge::op_col2_im
