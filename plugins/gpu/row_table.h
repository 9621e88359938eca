// SPDX-License-Identifier: Apache-2.0
// Declares operators. The table is generated from the files of ops/.
//
//   // ops/relu.cc
//   constexpr KernelRow kRows[] = {{"Relu", Offer, Make}};
//   MGE_GPU_OPS(relu) = kRows;
#pragma once

#include <span>

#include "mge/plugin.hpp"

namespace mge::gpu {

using OpFamily = std::span<const KernelRow>;

// Declares the rows of file ops/ID.cc. ID must be the file's name.
#define MGE_GPU_OPS(id)                   \
  extern const OpFamily mge_gpu_ops_##id; \
  constexpr OpFamily mge_gpu_ops_##id

}  // namespace mge::gpu
