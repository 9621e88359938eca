// SPDX-License-Identifier: Apache-2.0
// What `mge demo` runs, as bytes inside the command: a network for handwritten digits and images it was not trained on.
// Made from packaging/digits by mge_embed_digits(); the bytes live as long as the process.
#pragma once

#include <span>

namespace mge::cli {

std::span<const unsigned char> DemoModel();   // ONNX: image float32[N,1,8,8] -> probabilities float32[N,10]
std::span<const unsigned char> DemoImages();  // npy: float32[48,1,8,8], 0 is paper and 1 is ink
std::span<const unsigned char> DemoLabels();  // npy: int64[48], the true digits

}  // namespace mge::cli
