// SPDX-License-Identifier: Apache-2.0
// The settings of this backend.
#pragma once

#include "mge/plugin.hpp"

namespace mge::cpu {

inline constexpr mge_setting kIsaSetting =
    Dynamic(ChoiceSetting("cpu.isa", "auto", "auto|portable|avx2|avx512",
                          "Highest instruction set that kernels use; never more than the processor has."));
inline constexpr mge_setting kOnednnSetting =
    Dynamic(BoolSetting("cpu.onednn", "true", "Offer oneDNN's kernels beside our own."));
inline constexpr mge_setting kOpenblasSetting =
    Dynamic(BoolSetting("cpu.openblas", "true", "Offer OpenBLAS's kernels beside our own."));
inline constexpr mge_setting kHugePagesSetting =
    BoolSetting("cpu.huge_pages", "true", "Advise the system to back large slabs of memory with huge pages.");

}  // namespace mge::cpu
