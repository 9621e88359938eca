// SPDX-License-Identifier: Apache-2.0
// The data of `mge demo`, embedded into the command: a network for handwritten digits, and images that were not used for its
// training. mge_embed_digits() generates it from packaging/digits.
#pragma once

#include <span>

namespace mge::cli {

std::span<const unsigned char> DemoModel();   // ONNX: image float32[N,1,8,8] -> probabilities float32[N,10]
std::span<const unsigned char> DemoImages();  // npy: float32[48,1,8,8], 0 is paper and 1 is ink
std::span<const unsigned char> DemoLabels();  // npy: int64[48], the true digits

}  // namespace mge::cli
