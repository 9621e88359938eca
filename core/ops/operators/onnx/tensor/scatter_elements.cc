// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/scatter.h"

namespace mge::op_scatter_elements {
namespace {

constexpr OpDef Row(std::string_view name, std::string_view doc, OpDef more) {
  more.name = name;
  more.doc = doc;
  more.inputs = {{"data"}, {"indices", kIndex}, {"updates"}};
  more.outputs = {{"output"}};
  more.infer = InferScatterElements;
  more.eval = EvalScatterElements;
  more.gradient = ScatterElementsGradient;
  more.in_place = {{0, 0}};
  return more;
}

constexpr OpDef kRows[] = {
    Row("Scatter", "An older name of ScatterElements.",
        {.attrs = {AxisOf({"axis", 0, "the axis"})},
         .since = 9,
         .until = 10,
         .examples = {"(T[4,4], int64[1,4]<0,2,1,3>, T[1,4])"}}),
    Row("ScatterElements", "The data with elements set, or combined by `reduction`, at the indices.",
        {.attrs = {AxisOf({"axis", 0, "the axis"}), {"reduction", "none", "none, add, mul, max or min"}},
         .since = 11,
         .examples = {"(T[4,4], int64[1,4]<0,2,1,3>, T[1,4])",
                      "(T[4,4], int64[3,2]<3,0,0,1,-3,2>, T[3,2]) {axis=1, reduction=\"add\"}"}}),
};

}  // namespace

MGE_OPS(scatter_elements) = kRows;

}  // namespace mge::op_scatter_elements
