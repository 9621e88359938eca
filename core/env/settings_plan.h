// SPDX-License-Identifier: Apache-2.0
// Settings of the planner, of kernel selection and of memory.
#pragma once

#include "core/env/setting.h"
#include "core/env/setting_checks.h"

namespace mge {

// How kernels are chosen. Heuristic: by rank and cost estimate. Profile: by time. Both: by recorded
// times where there are some, else by heuristic, never timing anew. Reproducible: only kernels that
// repeat their bits. Optimized: no kernel that is marked as reference.
enum class Strategy : uint32_t { kHeuristic = 1, kProfile = 2, kReproducible = 4, kOptimized = 8 };

enum class ConvAutotune { kOff = 0, kLimited = 1, kFastest = 2 };
enum class TuningStore { kFile, kMemory };
enum class MemoryPool { kBackend, kNaive, kRound, kUnpooled, kGrowing };
enum class GpuPool { kNaive, kRound, kUnpooled };
enum class StaticMemory { kOff = 0, kStatic = 2, kDynamic = 3, kBoth = 4 };

namespace setting_choices {
inline constexpr Choice kStrategies[] = {
    {Strategy::kHeuristic, "heuristic"},
    {Strategy::kProfile, "profile"},
    {Strategy::kReproducible, "reproducible", "reproduceable"},
    {Strategy::kOptimized, "optimized"},
};
inline constexpr Choice kConvAutotune[] = {
    {ConvAutotune::kOff, "off", "0"},
    {ConvAutotune::kLimited, "limited", "1 limited_workspace"},
    {ConvAutotune::kFastest, "fastest", "2"},
};
inline constexpr Choice kTuningCaches[] = {
    {TuningStore::kFile, "file"},
    {TuningStore::kMemory, "memory"},
};
inline constexpr Choice kMemoryPools[] = {
    {MemoryPool::kBackend, "backend"},   {MemoryPool::kNaive, "naive"},     {MemoryPool::kRound, "round"},
    {MemoryPool::kUnpooled, "unpooled"}, {MemoryPool::kGrowing, "growing"},
};
inline constexpr Choice kGpuPools[] = {
    {GpuPool::kNaive, "naive"},
    {GpuPool::kRound, "round"},
    {GpuPool::kUnpooled, "unpooled"},
};
inline constexpr Choice kStaticMemory[] = {
    {StaticMemory::kOff, "off", "0"},
    {StaticMemory::kStatic, "static", "2 1"},
    {StaticMemory::kDynamic, "dynamic", "3"},
    {StaticMemory::kBoth, "both", "4"},
};
}  // namespace setting_choices

inline constexpr Setting<bool> kPlanInplace = {
    .key = "plan.inplace",
    .fallback = true,
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Lets an output take over the memory of an input that is needed no more.",
    .aliases = "MXNET_EXEC_ENABLE_INPLACE",
};
inline constexpr Setting<int64_t> kPlanCacheSize = {
    .key = "plan.cache_size",
    .fallback = 0,
    .range = Range<int64_t>{0, 1 << 20},
    .unit = "plans",
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Plans that a session keeps, one per signature of input shapes; the least recently used "
        "goes first. 0 is no limit.",
};
inline constexpr Setting<ByteCount> kPlanCacheMemory = {
    .key = "plan.cache_memory",
    .fallback = ByteCount{256 << 20},
    .unit = "bytes",
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Memory that the plans of a session may hold beside the one used last: packed or uploaded constants that it does not "
        "share, 4 KiB for each step, and buffers kept for the next run, which go first. 0 is no limit.",
};
inline constexpr Setting<TextList> kPlannerSkip = {
    .key = "planner.skip",
    .check = IsIdentifierWord,
    .allowed = "names of passes, rewrites and fusions separated by commas",
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Passes, rewrites and backends' fusions (BACKEND.NAME) that the planner leaves out; what does "
        "not exist cannot be left out.",
};
inline constexpr Setting<int64_t> kPlanMatchRange = {
    .key = "plan.match_range",
    .fallback = 16,
    .range = Range<int64_t>{0, 4096},
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Largest ratio of sizes between a buffer and a freed one that it takes over; the best of 1 "
        "to this is used, "
        "and 0 leaves in-place sharing only.",
    .aliases = "NNVM_EXEC_MATCH_RANGE",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<int64_t> kPlanNumTemp = {
    .key = "plan.num_temp",
    .fallback = 1,
    .range = Range<int64_t>{1, 1024},
    .unit = "workspaces",
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Most workspaces per device, and with them lanes that may run side by side.",
    .aliases = "MXNET_EXEC_NUM_TEMP",
    .status = SettingStatus::kLater,
};

inline constexpr Setting<Flags<Strategy>> kSelectStrategy = {
    .key = "select.strategy",
    .fallback = Strategy::kHeuristic,
    .choices = setting_choices::kStrategies,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "How kernels are chosen, instead of what a backend names; values are joined by \"_\", as in profile_reproducible.",
    .aliases = "MEGENGINE_EXECUTION_STRATEGY",
    .instead = "set_execution_strategy",
};
inline constexpr Setting<ConvAutotune> kSelectConvAutotune = {
    .key = "select.gpu_conv_autotune",
    .fallback = ConvAutotune::kLimited,
    .choices = setting_choices::kConvAutotune,
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Choice of GPU convolutions: by heuristic, by time within the workspace limit, or by time "
        "alone.",
    .aliases = "MXNET_CUDNN_AUTOTUNE_DEFAULT",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<bool> kSelectDeterministic = {
    .key = "select.deterministic",
    .fallback = false,
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Allows deterministic kernels only; an operator that has none is an error.",
    .aliases = "MXNET_ENFORCE_DETERMINISM",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<Seconds> kSelectProfilingTimeout = {
    .key = "select.profiling_timeout",
    .fallback = Seconds(0),
    .range = Range<Seconds>{Seconds(0), Seconds(1e6)},
    .unit = "seconds",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Time after which the timing of one candidate is given up; 0 sets no limit.",
    .aliases = "MGB_CONV_PROFILING_TIMEOUT",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<Seconds> kSelectTime = {
    .key = "select.time",
    .fallback = Seconds(0.05),
    .range = Range<Seconds>{Seconds(0), Seconds(1e6)},
    .unit = "seconds",
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Time after which no further run of a candidate begins when kernels are timed; each runs once at least.",
};
inline constexpr Setting<ByteCount> kSelectMemory = {
    .key = "select.memory",
    .fallback = ByteCount{0},
    .unit = "bytes",
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Most device memory that the timing of one candidate may take; 0 sets no limit but memory.limit.",
};
inline constexpr Setting<Path> kSelectFreeze = {
    .key = "select.freeze",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "File to which the chosen kernels are written, beside those that it holds, for select.frozen to repeat.",
};
inline constexpr Setting<Path> kSelectFrozen = {
    .key = "select.frozen",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Selection file whose kernels are taken; what it does not hold is chosen by select.strategy, and is an error with "
        "profile_reproducible.",
};
inline constexpr Setting<TuningStore> kSelectCacheType = {
    .key = "select.cache_type",
    .fallback = TuningStore::kFile,
    .choices = setting_choices::kTuningCaches,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Where measured times are kept: in files, or in memory until the runtime ends.",
    .variable = "MGE_FASTRUN_CACHE_TYPE",
};
inline constexpr Setting<Path> kSelectCacheDir = {
    .key = "select.cache_dir",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Directory of the files of measured times; empty takes mge/tuning in the user's cache directory.",
    .variable = "MGE_FASTRUN_CACHE_DIR",
};
inline constexpr Setting<bool> kSelectTensorCore = {
    .key = "select.tensor_core",
    .fallback = true,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Allows kernels that use the tensor cores of a GPU; without it select.tensor_core_conversion allows nothing.",
    .aliases = "MXNET_CUDA_ALLOW_TENSOR_CORE",
};
inline constexpr Setting<bool> kSelectTensorCoreConversion = {
    .key = "select.tensor_core_conversion",
    .fallback = false,
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Allows kernels that compute in less than the element type (float32 rounded to float16, bfloat16 or TF32), on "
        "every device, where select.tensor_core is on.",
    .aliases = "MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION",
};

inline constexpr Setting<MemoryPool> kMemoryPool = {
    .key = "memory.pool",
    .fallback = MemoryPool::kBackend,
    .choices = setting_choices::kMemoryPools,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Pool of every device's memory: what its backend brings or names, or one of the host's in its place.",
};
inline constexpr Setting<Text> kMemoryReserve = {
    .key = "memory.reserve",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "What the pool of a device takes before the first run and is left with when no session remains (bytes:SIZE, all), or "
        "leaves of the device to others (percent:N), or none; empty for what its backend brings or names.",
};
inline constexpr Setting<GpuPool> kMemoryGpuPool = {
    .key = "memory.gpu_pool",
    .fallback = GpuPool::kNaive,
    .choices = setting_choices::kGpuPools,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Pool of GPU memory; a value that was set wins over a backend's own pool.",
    .aliases = "MXNET_GPU_MEM_POOL_TYPE",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<int64_t> kMemoryGpuReserve = {
    .key = "memory.gpu_reserve_percent",
    .fallback = 5,
    .range = Range<int64_t>{0, 100},
    .unit = "percent",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Share of a GPU's memory that stays free: beyond it, cached blocks are given back before "
        "more is taken.",
    .aliases = "MXNET_GPU_MEM_POOL_RESERVE",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<int64_t> kMemoryRoundCutoff = {
    .key = "memory.gpu_round_linear_cutoff",
    .fallback = 24,
    .range = Range<int64_t>{20, 34},
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "In the pool round, sizes up to 2 to this power become powers of two, larger ones "
        "multiples of that power.",
    .aliases = "MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<ByteCount> kMemoryLargeRound = {
    .key = "memory.gpu_large_round",
    .fallback = ByteCount{2 << 20},
    .range = Range<ByteCount>{{1}, {INT64_MAX}},
    .unit = "bytes",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "In the pool naive, larger sizes are rounded up to a multiple of this; 1 rounds nothing.",
    .aliases = "MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<Text> kMemoryReserveCuda = {
    .key = "memory.reserve_cuda",
    .fallback = "0",
    .check = IsReserve,
    .allowed = "0, 1, or b: and a number of bytes",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Takes the memory of CUDA devices at start: nothing, nearly all, or so many bytes.",
    .aliases = "MGB_CUDA_RESERVE_MEMORY",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<Text> kMemoryReserveRocm = {
    .key = "memory.reserve_rocm",
    .fallback = "0",
    .check = IsReserve,
    .allowed = "0, 1, or b: and a number of bytes",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Takes the memory of ROCm devices at start: nothing, nearly all, or so many bytes.",
    .aliases = "MGB_ROCM_RESERVE_MEMORY",
    .status = SettingStatus::kLater,
};
inline constexpr Setting<StaticMemory> kMemoryStaticPolicy = {
    .key = "memory.static_policy",
    .fallback = StaticMemory::kOff,
    .choices = setting_choices::kStaticMemory,
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Memory shared between plans: none, among those of static shape, pages mapped on demand, "
        "or both.",
    .aliases = "GE_USE_STATIC_MEMORY ge.exec.staticMemoryPolicy static_memory_policy",
    .status = SettingStatus::kLater,
};

inline constexpr auto kPlanRows =
    SettingRows(kPlanInplace, kPlanCacheSize, kPlanCacheMemory, kPlannerSkip, kPlanMatchRange, kPlanNumTemp,
                kSelectStrategy, kSelectConvAutotune, kSelectDeterministic, kSelectProfilingTimeout, kSelectTime, kSelectMemory,
                kSelectFreeze, kSelectFrozen,
                kSelectCacheType, kSelectCacheDir, kSelectTensorCore, kSelectTensorCoreConversion,
                kMemoryPool, kMemoryReserve, kMemoryGpuPool, kMemoryGpuReserve, kMemoryRoundCutoff, kMemoryLargeRound,
                kMemoryReserveCuda, kMemoryReserveRocm, kMemoryStaticPolicy);

}  // namespace mge
