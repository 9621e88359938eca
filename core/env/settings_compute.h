// SPDX-License-Identifier: Apache-2.0
// Settings of kernel libraries, of kernels compiled at run time, of profiles and of debugging.
#pragma once

#include "core/env/setting.h"
#include "core/env/setting_checks.h"

namespace mge {

enum class JitBackend { kAuto, kNvrtc, kHiprtc, kHalide, kMlir };
enum class CastRule { kSaturate, kWrap };

namespace setting_choices {
inline constexpr Choice kJitBackends[] = {
    {JitBackend::kAuto, "auto"},     {JitBackend::kNvrtc, "nvrtc"}, {JitBackend::kHiprtc, "hiprtc"},
    {JitBackend::kHalide, "halide"}, {JitBackend::kMlir, "mlir"},
};
inline constexpr Choice kCastRules[] = {
    {CastRule::kSaturate, "saturate"},
    {CastRule::kWrap, "wrap"},
};
}  // namespace setting_choices

inline constexpr Setting<int64_t> kComputeNnpackThreads = {
    .key = "compute.nnpack_threads",
    .default_value = 4,
    .range = Range<int64_t>{1, 1024},
    .unit = "threads",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Maximum number of threads that MGE's own convolution kernels on the CPU use, which replace NNPACK. Has an effect "
        "only if it is set. Sets cpu.conv_threads, whose own value from the same source wins.",
    .aliases = "MXNET_CPU_NNPACK_NTHREADS",
    .sets = "cpu.conv_threads",
    .unstable = true,
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
    .key = "compute.mkldnn_cache_count",
    .default_value = -1,
    .range = Range<int64_t>{0, 1'000'000},
    .word = {"unlimited", -1},
    .unit = "primitives",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Maximum number of oneDNN primitives that are kept for later plans; the least recently used is dropped "
        "first. Has an effect only if it is set. Sets cpu.onednn_cache_count, whose own value from the same source "
        "wins.",
    .aliases = "MXNET_MKLDNN_CACHE_NUM",
    .sets = "cpu.onednn_cache_count",
    .unstable = true,
};
inline constexpr Setting<int64_t> kComputeParallelCopy = {
    .key = "compute.parallel_copy_elements",
    .default_value = 200'000,
    .range = Range<int64_t>{0, 1'000'000'000'000'000},
    .unit = "elements",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Minimum number of elements for which a copy on the CPU uses several threads. Has an effect only if it is set. Sets "
        "cpu.parallel_copy_elements, whose own value from the same source wins.",
    .aliases = "MXNET_CPU_PARALLEL_COPY_SIZE",
    .sets = "cpu.parallel_copy_elements",
    .unstable = true,
};
inline constexpr Setting<Text> kComputeOperatorTuning = {
    .key = "compute.operator_tuning",
    .default_value = "1",
    .check = IsOperatorTuning,
    .allowed = "0, 1, or a list of float32, float64, float16, int8, uint8, int32, int64",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Element types whose elementwise operators use several threads of the CPU only if measured times say that this is "
        "faster: all (1), none (0), or a list. Operators of the others always use them. Has an effect only if it is set; "
        "otherwise estimates decide. Sets cpu.operator_tuning, whose own value from the same source wins.",
    .aliases = "MXNET_USE_OPERATOR_TUNING MXNET_ENABLE_OPERATOR_TUNING",
    .sets = "cpu.operator_tuning",
    .unstable = true,
};
inline constexpr Setting<int64_t> kComputeTuningCores = {
    .key = "compute.operator_tuning_threads",
    .default_value = -1,
    .range = Range<int64_t>{-1, 1024},
    .unit = "threads",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Maximum number of threads that operator tuning measures; with less than 2 it uses one thread. -1 means half of the "
        "processors, at least 2. Sets cpu.operator_tuning_threads, whose own value from the same source wins.",
    .aliases = "MXNET_USE_NUM_CORES_OPERATOR_TUNING",
    .sets = "cpu.operator_tuning_threads",
    .unstable = true,
};
inline constexpr Setting<CastRule> kNumericsCast = {
    .key = "numerics.cast",
    .default_value = CastRule::kSaturate,
    .choices = setting_choices::kCastRules,
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "What Cast makes of a real number beyond the range of an integer type, which ONNX leaves undefined. saturate: the "
        "nearest limit of the type, as PyTorch does on GPUs. wrap: the lowest bits of the number as int64, so 300 becomes "
        "44 "
        "in uint8, as NumPy and ONNX Runtime do on x86 for types of 8 and 16 bits. NaN becomes 0.",
};
inline constexpr Setting<JitBackend> kJitBackend = {
    .key = "jit.backend",
    .default_value = JitBackend::kAuto,
    .choices = setting_choices::kJitBackends,
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Compiler of the code that backends generate for chains of elementwise operators. auto: that of the backend; "
        "without it, chains are interpreted. halide, mlir: the CPU backend uses this compiler for the chains that it can "
        "express; it is an error if its package (mge-jit-halide, mge-jit-mlir) is missing, or to open a GPU. nvrtc, hiprtc: "
        "it "
        "is an error to open a GPU on which this compiler cannot be used; the CPU backend ignores them.",
    .aliases = "MGB_JIT_BACKEND",
};
inline constexpr Setting<bool> kJitKeepFiles = {
    .key = "jit.keep_files",
    .default_value = false,
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Keeps the source and the code of each kernel that a backend generates as files in jit.work_dir. The CPU backend "
        "keeps the list of its instructions and the machine code.",
    .aliases = "MGB_JIT_KEEP_INTERM",
};
inline constexpr Setting<Path> kJitWorkDir = {
    .key = "jit.work_dir",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Folder for the files that jit.keep_files keeps; it is created if it is missing. If empty, a new folder in /tmp, "
        "which a "
        "message names. Without jit.keep_files, kernels are generated in memory and no file is written.",
    .aliases = "MGB_JIT_WORKDIR",
};
inline constexpr Setting<Path> kJitCudaPath = {
    .key = "jit.cuda_path",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Folder of the CUDA toolkit, or of its nvcc. The libraries NVRTC, cuBLASLt, cuDNN and NCCL are searched there "
        "before they "
        "are searched on the system.",
    .aliases = "CUDA_BIN_PATH",
};
inline constexpr Setting<bool> kProfileAutostart = {
    .key = "profile.autostart",
    .default_value = false,
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Records all runs of the runtime's sessions, and writes profile.file when the runtime and its sessions are "
        "released. A run whose run control has a profile is recorded there instead. Steps of recorded runs are waited for "
        "one "
        "by one, whatever engine.type and engine.bulk_inference are.",
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
    .range = Range<int64_t>{0, 31},
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Events in profile.file: 0 for the steps of the model's operators, 1 for all steps, with the copies and reorders "
        "that the planner added, and with the operators of eager mode. From 2 on a sum: 1 (steps of operators), 2 (steps "
        "that the planner added), 4 (runs, plans and planning), 8 (memory of the device), 16 (the same of eager operators "
        "too). profile.only_wait chooses steps in place of 1 and 2.",
    .aliases = "MXNET_PROFILER_MODE",
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
    .range = Range<int64_t>{0, INT32_MAX},
    .word = {"none", -1},
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Id of a value, as `mge plan --why` shows it. Its bytes are checked after every step until its last reader has "
        "ended, and a run fails with the name of the step that changes them. Steps then run one at a time.",
    .aliases = "MGB_DEBUG_VAR_SANITY_CHECK_LOG",
};
inline constexpr Setting<bool> kDebugExternalAllocations = {
    .key = "debug.external_allocations",
    .default_value = false,
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Logs memory that others than MGE's plans take. Each block of host memory that a backend, or an engine inside of "
        "it such as TensorRT, asks MGE for, with its size, alignment and address; the backends cuda and rocm also log the "
        "device memory that cuDNN, NCCL, rocBLAS, MIOpen and RCCL take when their handles and communicators are created. "
        "cpu and virtual take none. Blocks that are freed are not logged.",
    .aliases = "MGB_LOG_TRT_MEM_ALLOC",
};
inline constexpr Setting<bool> kDebugCollectives = {
    .key = "debug.collectives",
    .default_value = false,
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Logs each execution of a collective operator with its rank and the name of its node. Steps then run one at a time.",
    .aliases = "MGE_MM_OPR_DEBUG",
};
inline constexpr Setting<bool> kDebugDumpInputs = {
    .key = "debug.dump_inputs",
    .default_value = false,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Also writes the inputs of each step to debug.dump_dir. Has no effect without that setting.",
    .aliases = "MGB_DUMP_INPUT",
};
inline constexpr Setting<Path> kDebugDumpDir = {
    .key = "debug.dump_dir",
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Directory to which a run writes each value that a step computes, as ID_NAME.npy, with the id of `mge plan --why`. "
        "Values inside of fused kernels do not exist and are not written. Steps then run one at a time. If empty, nothing "
        "is written.",
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
                kComputeTuningCores, kNumericsCast, kJitBackend, kJitKeepFiles, kJitWorkDir, kJitCudaPath, kProfileAutostart,
                kProfileFile, kProfileMode, kProfileOnlyWait, kDebugWatchValue, kDebugExternalAllocations, kDebugCollectives,
                kDebugDumpInputs, kDebugDumpDir, kDebugCheckMemory);

}  // namespace mge
