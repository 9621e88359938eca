// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/window_function.h"

namespace mge::op_blackman_window {
namespace {

absl::Status Eval(EvalContext& ctx) { return EvalWindowFunction(ctx, 0.42, 0.5, 0.08); }

}  // namespace

MGE_OP(blackman_window) = {
    .name = "BlackmanWindow",
    .doc = "The Blackman window of a given size, periodic or symmetric.",
    .inputs = {{"size", kIndex}},
    .outputs = {{"output"}},
    .attrs = {{"output_datatype", 1, "the element type of the result"},
              {"periodic", 1, "not 0: for spectra, else symmetric"}},
    .infer = InferWindowFunction,
    .eval = Eval,
    .since = 17,
    .examples = {"(int64[]<8>)"},
};

}  // namespace mge::op_blackman_window
