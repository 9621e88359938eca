// SPDX-License-Identifier: Apache-2.0
#include "core/ops/function_body.h"

namespace mge::op_microsoft_grid_sample {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  Attributes attrs = f.attrs();
  const std::string mode = attrs.Text("mode");
  attrs.Set("mode", std::string(mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode));
  f.Result(0, "GridSample", {f.input(0), f.input(1)}, std::move(attrs));
  return true;
}

}  // namespace

MGE_OP(microsoft_grid_sample) = {
    .name = "GridSample",
    .domain = "com.microsoft",
    .doc = "Samples an image at the points of a grid, as in ONNX.",
    .inputs = {{"X", kFloating}, {"Grid", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"align_corners", 0, "not 0: -1 and 1 are the centers of the corners, else their edges"},
              {"mode", "bilinear", "bilinear, nearest or bicubic"},
              {"padding_mode", "zeros", "zeros, border or reflection"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[1,2,4,5], T[1,3,3,2])", "(T[1,2,4,5], T[1,3,3,2]) {mode=\"nearest\", align_corners=1}"},
};

}  // namespace mge::op_microsoft_grid_sample
