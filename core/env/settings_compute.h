// SPDX-License-Identifier: Apache-2.0
// Settings of kernel libraries, of kernels compiled at run time, of profiles and of debugging.
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
    .default_value = 4,
    .range = Range<int64_t>{1, 1024},
    .unit = "threads",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Number of threads for the accelerated CPU convolutions that replace NNPACK.",
    .aliases = "MXNET_CPU_NNPACK_NTHREADS",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<bool> kComputeMkldnn = {
    .key = "compute.mkldnn",
    .default_value = true,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Allows oneDNN kernels on the CPU. Sets cpu.onednn, whose own value from the same source wins.",
    .aliases = "MXNET_MKLDNN_ENABLED",
    .sets = "cpu.onednn",
};
inline constexpr Setting<int64_t> kComputeMkldnnCache = {
    .key = "compute.mkldnn_cache_num",
    .default_value = -1,
    .range = Range<int64_t>{-1, 1'000'000},
    .unit = "primitives",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Maximum number of prepared oneDNN primitives that are kept; the least recently used is dropped first. -1 keeps "
        "all.",
    .aliases = "MXNET_MKLDNN_CACHE_NUM",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<int64_t> kComputeParallelCopy = {
    .key = "compute.parallel_copy_size",
    .default_value = 200'000,
    .range = Range<int64_t>{0, INT64_MAX},
    .unit = "elements",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Minimum number of elements for which a copy on the CPU uses several threads.",
    .aliases = "MXNET_CPU_PARALLEL_COPY_SIZE",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<Text> kComputeOperatorTuning = {
    .key = "compute.operator_tuning",
    .default_value = "1",
    .check = IsOperatorTuning,
    .allowed = "0, 1, or a list of float32, float64, float16, int8, uint8, int32, int64",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Element types whose operators use several threads only if a measured cost model predicts that "
        "this is faster.",
    .aliases = "MXNET_USE_OPERATOR_TUNING MXNET_ENABLE_OPERATOR_TUNING",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<int64_t> kComputeTuningCores = {
    .key = "compute.operator_tuning_cores",
    .default_value = -1,
    .range = Range<int64_t>{-1, 1024},
    .unit = "threads",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Maximum number of threads that operator tuning measures; -1 means half of the processors.",
    .aliases = "MXNET_USE_NUM_CORES_OPERATOR_TUNING",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<JitBackend> kJitBackend = {
    .key = "jit.backend",
    .default_value = JitBackend::kAuto,
    .choices = setting_choices::kJitBackends,
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Code generator for fused kernels; an error if it is not available.",
    .aliases = "MGB_JIT_BACKEND",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<bool> kJitKeepFiles = {
    .key = "jit.keep_files",
    .default_value = false,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Keeps the intermediate files of kernel generation.",
    .aliases = "MGB_JIT_KEEP_INTERM",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<Path> kJitWorkDir = {
    .key = "jit.work_dir",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Directory for the intermediate files of kernel generation; if empty, a temporary directory.",
    .aliases = "MGB_JIT_WORKDIR",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<Path> kJitCudaPath = {
    .key = "jit.cuda_path",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Directory of nvcc, also used to find the CUDA headers; if empty, PATH is searched.",
    .aliases = "CUDA_BIN_PATH",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<bool> kProfileAutostart = {
    .key = "profile.autostart",
    .default_value = false,
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Records all runs of the runtime's sessions, and writes profile.file when the runtime and its sessions are "
        "released. "
        "A run whose run control has a profile is recorded there instead.",
    .aliases = "MXNET_PROFILER_AUTOSTART",
};
inline constexpr Setting<Path> kProfileFile = {
    .key = "profile.file",
    .default_value = "profile.json",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "File of the recording that profile.autostart starts, in Chrome's trace format.",
};
inline constexpr Setting<int64_t> kProfileMode = {
    .key = "profile.mode",
    .default_value = 0,
    .range = Range<int64_t>{0, 15},
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Events that the profiler records: 0 for planned steps, 1 for all operators, from 2 on a sum of 1 "
        "(planned), 2 (eager), 4 (calls) "
        "and 8 (memory).",
    .aliases = "MXNET_PROFILER_MODE",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<bool> kProfileOnlyWait = {
    .key = "profile.only_wait",
    .default_value = false,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Writes to profile.file, of all steps, only copies and those that wait for another queue.",
    .aliases = "MGB_PROFILE_ONLY_WAIT",
};
inline constexpr Setting<int64_t> kDebugWatchValue = {
    .key = "debug.watch_value",
    .default_value = -1,
    .range = Range<int64_t>{-1, INT64_MAX},
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Id of a value whose bytes are checked after every step, to find the step that overwrites "
        "them; -1 checks no value.",
    .aliases = "MGB_DEBUG_VAR_SANITY_CHECK_LOG",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<bool> kDebugExternalAllocations = {
    .key = "debug.external_allocations",
    .default_value = false,
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Logs each allocation of an external engine such as TensorRT.",
    .aliases = "MGB_LOG_TRT_MEM_ALLOC",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<bool> kDebugCollectives = {
    .key = "debug.collectives",
    .default_value = false,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Logs each execution of a collective operator with its rank and key.",
    .status = SettingStatus::kLater,
    .variable = "MGE_MM_OPR_DEBUG",
};
inline constexpr Setting<bool> kDebugDumpInputs = {
    .key = "debug.dump_inputs",
    .default_value = false,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Includes the inputs of each operator when values are dumped.",
    .aliases = "MGB_DUMP_INPUT",
    .status = SettingStatus::kLater,
};

inline constexpr Setting<bool> kDebugCheckMemory = {
    .key = "debug.check_memory",
    .default_value = false,
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Checks the red zones beside every buffer of a run and names the kernel that writes there. Devices with queues then "
        "run one step at a time.",
};

inline constexpr auto kComputeRows =
    SettingRows(kComputeNnpackThreads, kComputeMkldnn, kComputeMkldnnCache, kComputeParallelCopy, kComputeOperatorTuning,
                kComputeTuningCores, kJitBackend, kJitKeepFiles, kJitWorkDir, kJitCudaPath, kProfileAutostart, kProfileFile,
                kProfileMode, kProfileOnlyWait, kDebugWatchValue, kDebugExternalAllocations, kDebugCollectives,
                kDebugDumpInputs, kDebugCheckMemory);

}  // namespace mge
