// SPDX-License-Identifier: Apache-2.0
// The settings of this backend.
#pragma once

#include "mge/plugin.hpp"

namespace mge::cpu {

inline constexpr mge_setting kIsaSetting = Dynamic(
    ChoiceSetting("cpu.isa", "auto", "auto|portable|avx2|avx2_vnni|avx512",
                  "Highest instruction set that kernels use; never more than the processor has. auto: everything that it "
                  "has, including AVX-512 VNNI."));
inline constexpr mge_setting kJitSetting = Dynamic(
    BoolSetting("cpu.jit", "true",
                "Generate machine code for elementwise chains when a plan is made; needs AVX2. Otherwise, chains are "
                "interpreted."));
inline constexpr mge_setting kOnednnSetting =
    Dynamic(BoolSetting("cpu.onednn", "true", "Offer oneDNN's kernels beside our own."));
inline constexpr mge_setting kOpenblasSetting =
    Dynamic(BoolSetting("cpu.openblas", "true", "Offer OpenBLAS's kernels beside our own."));
inline constexpr mge_setting kOnednnCacheSetting =
    IntSetting("cpu.onednn_cache_count", "1024", -1, 1e6, "primitives",
               "Maximum number of oneDNN primitives that are kept for later plans; -1 keeps all, 0 none.");
inline constexpr mge_setting kConvThreadsSetting =
    IntSetting("cpu.conv_threads", "0", 0, 1024, "threads",
               "Maximum number of threads of our own convolution kernels; 0: those of the run.");
inline constexpr mge_setting kParallelCopySetting =
    IntSetting("cpu.parallel_copy_elements", "-1", -1, 9e15, "elements",
               "Minimum number of elements for which a copy uses several threads; -1: by an estimate.");
inline constexpr mge_setting kOperatorTuningSetting = TextSetting(
    "cpu.operator_tuning", "",
    "Element types whose elementwise kernels use several threads only if measured times say that this is faster: 1 "
    "(all), 0 (none) or a list such as float32,int8. Kernels of the others always use them. If empty, estimates "
    "decide.");
inline constexpr mge_setting kTuningCoresSetting =
    IntSetting("cpu.operator_tuning_threads", "-1", -1, 1024, "threads",
               "Maximum number of threads that operator tuning measures; less than 2: it uses one thread. -1: half of the "
               "processors, at least 2.");
inline constexpr mge_setting kHugePagesSetting =
    BoolSetting("cpu.huge_pages", "true", "Advise the system to back large slabs of memory with huge pages.");

}  // namespace mge::cpu
