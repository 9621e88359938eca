// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/window_function.h"

namespace mge::op_hamming_window {
namespace {

absl::Status Eval(EvalContext& ctx) { return EvalWindowFunction(ctx, 25.0 / 46.0, 21.0 / 46.0, 0); }

}  // namespace

MGE_OP(hamming_window) = {
    .name = "HammingWindow",
    .doc = "The Hamming window of a given size, periodic or symmetric.",
    .inputs = {{"size", kIndex}},
    .outputs = {{"output"}},
    .attrs = {{"output_datatype", 1, "the element type of the result"},
              {"periodic", 1, "not 0: for spectra, else symmetric"}},
    .infer = InferWindowFunction,
    .eval = Eval,
    .since = 17,
    .examples = {"(int64[]<8>)"},
};

}  // namespace mge::op_hamming_window
