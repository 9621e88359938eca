// SPDX-License-Identifier: Apache-2.0
// Settings of kernels' libraries, of kernels compiled at run time, of profiles and of debugging.
#pragma once

#include "core/env/setting.h"
#include "core/env/setting_checks.h"

namespace mge {

enum class JitBackend { kAuto, kHalide, kNvrtc, kMlir };

namespace setting_choices {
inline constexpr Choice kJitBackends[] = {
    {JitBackend::kAuto, "auto"},
    {JitBackend::kHalide, "halide"},
    {JitBackend::kNvrtc, "nvrtc"},
    {JitBackend::kMlir, "mlir"},
};
}  // namespace setting_choices

inline constexpr Setting<int64_t> kComputeNnpackThreads = {
    .key = "compute.nnpack_nthreads",
    .fallback = 4,
    .range = Range<int64_t>{1, 1024},
    .unit = "threads",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Threads of the accelerated convolutions on the CPU that stand in for NNPACK.",
    .aliases = "MXNET_CPU_NNPACK_NTHREADS",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<bool> kComputeMkldnn = {
    .key = "compute.mkldnn",
    .fallback = true,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Allows kernels of oneDNN on the CPU.",
    .aliases = "MXNET_MKLDNN_ENABLED",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<int64_t> kComputeMkldnnCache = {
    .key = "compute.mkldnn_cache_num",
    .fallback = -1,
    .range = Range<int64_t>{-1, 1'000'000},
    .unit = "primitives",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Prepared oneDNN primitives that are kept, the least recently used going first; -1 keeps "
        "all.",
    .aliases = "MXNET_MKLDNN_CACHE_NUM",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<int64_t> kComputeParallelCopy = {
    .key = "compute.parallel_copy_size",
    .fallback = 200'000,
    .range = Range<int64_t>{0, INT64_MAX},
    .unit = "elements",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Copies on the CPU of at least so many elements use several threads.",
    .aliases = "MXNET_CPU_PARALLEL_COPY_SIZE",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<Text> kComputeOperatorTuning = {
    .key = "compute.operator_tuning",
    .fallback = "1",
    .check = IsOperatorTuning,
    .allowed = "0, 1, or a list of float32, float64, float16, int8, uint8, int32, int64",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Element types whose operators use several threads only where a measured model says that "
        "it pays.",
    .aliases = "MXNET_USE_OPERATOR_TUNING MXNET_ENABLE_OPERATOR_TUNING",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<int64_t> kComputeTuningCores = {
    .key = "compute.operator_tuning_cores",
    .fallback = -1,
    .range = Range<int64_t>{-1, 1024},
    .unit = "threads",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Largest number of threads that operator tuning measures; -1 takes half of the processors.",
    .aliases = "MXNET_USE_NUM_CORES_OPERATOR_TUNING",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<JitBackend> kJitBackend = {
    .key = "jit.backend",
    .fallback = JitBackend::kAuto,
    .choices = setting_choices::kJitBackends,
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Generator of code for fused kernels; one that is absent is an error.",
    .aliases = "MGB_JIT_BACKEND",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<bool> kJitKeepFiles = {
    .key = "jit.keep_files",
    .fallback = false,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Keeps the files that the generation of kernels makes.",
    .aliases = "MGB_JIT_KEEP_INTERM",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<Path> kJitWorkDir = {
    .key = "jit.work_dir",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Directory of the files that the generation of kernels makes; empty makes a temporary one.",
    .aliases = "MGB_JIT_WORKDIR",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<Path> kJitCudaPath = {
    .key = "jit.cuda_path",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Directory of nvcc, from which the headers of CUDA are found too; empty searches PATH.",
    .aliases = "CUDA_BIN_PATH",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<bool> kProfileAutostart = {
    .key = "profile.autostart",
    .fallback = false,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Starts the profiler with the runtime.",
    .aliases = "MXNET_PROFILER_AUTOSTART",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<int64_t> kProfileMode = {
    .key = "profile.mode",
    .fallback = 0,
    .range = Range<int64_t>{0, 15},
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Events that the profiler records: 0 planned steps, 1 all operators, from 2 a sum of 1 "
        "planned, 2 eager, 4 calls "
        "and 8 memory.",
    .aliases = "MXNET_PROFILER_MODE",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<bool> kProfileOnlyWait = {
    .key = "profile.only_wait",
    .fallback = false,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Records only steps that wait for another queue, and copies.",
    .aliases = "MGB_PROFILE_ONLY_WAIT",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<int64_t> kDebugWatchValue = {
    .key = "debug.watch_value",
    .fallback = -1,
    .range = Range<int64_t>{-1, INT64_MAX},
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Id of a value whose bytes are checked again after every step, to find who overwrites "
        "them; -1 watches none.",
    .aliases = "MGB_DEBUG_VAR_SANITY_CHECK_LOG",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<bool> kDebugExternalAllocations = {
    .key = "debug.external_allocations",
    .fallback = false,
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Logs each allocation that an external engine such as TensorRT asks for.",
    .aliases = "MGB_LOG_TRT_MEM_ALLOC",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<bool> kDebugCollectives = {
    .key = "debug.collectives",
    .fallback = false,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Logs each execution of a collective operator with its rank and key.",
    .status = SettingStatus::kLater,
    .variable = "MGE_MM_OPR_DEBUG",
};
inline constexpr Setting<bool> kDebugDumpInputs = {
    .key = "debug.dump_inputs",
    .fallback = false,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Writes the inputs of each operator too when values are dumped.",
    .aliases = "MGB_DUMP_INPUT",
    .status = SettingStatus::kLater,
};

inline constexpr Setting<bool> kDebugCheckMemory = {
    .key = "debug.check_memory",
    .fallback = false,
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Watches the bytes beside every buffer of a run and names the kernel that writes there; devices with queues then work "
        "step by step.",
};

inline constexpr auto kComputeRows =
    SettingRows(kComputeNnpackThreads, kComputeMkldnn, kComputeMkldnnCache, kComputeParallelCopy,
                kComputeOperatorTuning, kComputeTuningCores, kJitBackend, kJitKeepFiles,
                kJitWorkDir, kJitCudaPath, kProfileAutostart, kProfileMode, kProfileOnlyWait,
                kDebugWatchValue, kDebugExternalAllocations, kDebugCollectives, kDebugDumpInputs,
                kDebugCheckMemory);

}  // namespace mge
