// SPDX-License-Identifier: Apache-2.0
// Settings of the planner, of kernel selection and of memory.
#pragma once

#include "core/env/setting.h"
#include "core/env/setting_checks.h"

namespace mge {

// The way in which kernels are chosen. kHeuristic: by rank and estimated cost. kProfile: by measured time. Both together: by
// recorded times if there are any, else by heuristic, without new measurements. kReproducible: only kernels with
// bit-identical results. kOptimized: no kernels that are marked as reference.
enum class Strategy : uint32_t { kHeuristic = 1, kProfile = 2, kReproducible = 4, kOptimized = 8 };

enum class ConvAutotune { kOff = 0, kLimited = 1, kFastest = 2 };
enum class PlanRanges { kOff, kAuto };
enum class TuningStore { kFile, kMemory };
enum class MemoryPool { kBackend, kNaive, kRound, kUnpooled, kGrowing };
enum class GpuPool { kBackend, kNaive, kRound, kUnpooled };
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
inline constexpr Choice kPlanRanges[] = {
    {PlanRanges::kOff, "off"},
    {PlanRanges::kAuto, "auto"},
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
    {GpuPool::kBackend, "backend"},
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
    .default_value = true,
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Lets an output reuse the memory of an input that is not used afterwards.",
    .aliases = "MXNET_EXEC_ENABLE_INPLACE",
};
inline constexpr Setting<int64_t> kPlanCacheCount = {
    .key = "plan.cache_count",
    .default_value = INT64_MAX,
    .range = Range<int64_t>{1, 1 << 20},
    .word = {"unlimited", INT64_MAX},
    .unit = "plans",
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Maximum number of plans that a session keeps, one per signature of input shapes; the least recently used "
        "plan is dropped first.",
};
inline constexpr Setting<ByteCount> kPlanCacheBytes = {
    .key = "plan.cache_bytes",
    .default_value = ByteCount{256 << 20},
    .range = Range<ByteCount>{ByteCount{1}, ByteCount{int64_t{1} << 46}},
    .word = {"unlimited", ByteCount{INT64_MAX}},
    .unit = "bytes",
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Maximum memory of a session's plans, without the one used last: packed or uploaded constants that are not shared "
        "with it, 4 KiB for each step, and buffers kept for the next run, which are freed first.",
};
inline constexpr Setting<TextList> kPlanSkip = {
    .key = "plan.skip",
    .check = IsIdentifierWord,
    .allowed = "names of passes, rewrites and fusions separated by commas",
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Passes, rewrites and backends' fusions (BACKEND.NAME) that the planner does not run; an unknown "
        "name is an error.",
};
inline constexpr Setting<int64_t> kPlanMatchRange = {
    .key = "plan.match_range",
    .default_value = 16,
    .range = Range<int64_t>{0, 4096},
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Maximum ratio of sizes between a new buffer and a freed one that it reuses. The sharing planner tries the ratios "
        "from 1 to this one and uses the best. If this setting is set, it also binds the offset planner. "
        "0 allows in-place sharing only.",
    .aliases = "NNVM_EXEC_MATCH_RANGE",
    .unstable = true,
};
inline constexpr Setting<int64_t> kPlanWorkspaces = {
    .key = "plan.workspaces",
    .default_value = 1,
    .range = Range<int64_t>{1, 1024},
    .unit = "workspaces",
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Maximum number of workspaces per device, and so of lanes whose kernels run in parallel. On a GPU, a lane is a "
        "compute queue; there are no more than engine.gpu_worker_threads. On a CPU, lanes exist if engine.bulk_inference "
        "is false: each kernel is then an operation of the engine, and there are no more lanes than its workers for the "
        "CPU. Otherwise the kernels of a CPU run one after another. Unless this setting is set, a plan uses as many queues "
        "as make it faster.",
    .aliases = "MXNET_EXEC_NUM_TEMP",
    .unset = "as many queues as make it faster",
};
inline constexpr Setting<bool> kPlanHostCompute = {
    .key = "plan.host_compute",
    .default_value = false,
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Computes elementwise operators of at most 7 elements on the host if their inputs are in host memory, instead of "
        "by a kernel of a device with memory of its own. In eager mode, a tensor of at most 7 elements that the program "
        "created, or that the host computed, stays in host memory until a kernel reads it. Off by default, so that a "
        "device computes what it is asked for.",
    .aliases = "MEGENGINE_HOST_COMPUTE",
};
inline constexpr Setting<PlanRanges> kPlanRanges = {
    .key = "plan.ranges",
    .default_value = PlanRanges::kAuto,
    .choices = setting_choices::kPlanRanges,
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Whether the plans for several sizes of an input share their decisions. auto: once a session has seen three "
        "signatures of input shapes, sizes that vary have ranges (59 to 73, 74 to 92, and so on). The kernels, layouts and "
        "buffers of a range are chosen for its largest size, and each other size is planned from them in a small part of "
        "the "
        "time. off: each signature of shapes is planned by itself. Devices with queues, training, and choices of kernels "
        "that "
        "are reproducible, recorded or replayed have no ranges.",
};
inline constexpr Setting<bool> kPlanStaticInputShape = {
    .key = "plan.static_input_shape",
    .default_value = false,
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Keeps the input shapes of a session's first run for all its runs: other shapes are an error. If false, a session "
        "has one plan for each signature of input shapes.",
    .aliases = "MEGENGINE_INPUT_NODE_USE_STATIC_SHAPE",
};

inline constexpr Setting<Flags<Strategy>> kSelectStrategy = {
    .key = "select.strategy",
    .default_value = Strategy::kHeuristic,
    .choices = setting_choices::kStrategies,
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "The way in which kernels are chosen; replaces the backend's default. Join values by \"_\", as in "
        "profile_reproducible.",
    .aliases = "MEGENGINE_EXECUTION_STRATEGY",
    .instead = "set_execution_strategy",
    .unset = "the backend's",
};
inline constexpr Setting<ConvAutotune> kSelectConvAutotune = {
    .key = "select.gpu_conv_autotune",
    .default_value = ConvAutotune::kLimited,
    .choices = setting_choices::kConvAutotune,
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "The way in which the kernels of convolutions on GPUs are chosen: by estimates (off) or by times (limited), both "
        "within select.workspace_bytes, or by times alone (fastest). Has an effect only if it is set, and then replaces "
        "select.strategy for them, except that `reproducible` forbids times.",
    .aliases = "MXNET_CUDNN_AUTOTUNE_DEFAULT",
    .unset = "that of select.strategy",
};
inline constexpr Setting<ByteCount> kSelectWorkspaceBytes = {
    .key = "select.workspace_bytes",
    .default_value = ByteCount{1 << 30},
    .unit = "bytes",
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Maximum workspace of the kernel of a convolution on a GPU if select.gpu_conv_autotune is set to off or limited.",
};
inline constexpr Setting<bool> kSelectDeterministic = {
    .key = "select.deterministic",
    .default_value = false,
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Allows only deterministic kernels, whatever the strategy; an operator whose kernels are all nondeterministic is an "
        "error.",
    .aliases = "MXNET_ENFORCE_DETERMINISM",
};
inline constexpr Setting<Seconds> kSelectProfilingTimeout = {
    .key = "select.profiling_timeout_seconds",
    .default_value = Seconds(0),
    .range = Range<Seconds>{Seconds(1e-9), Seconds(1e6)},
    .word = {"unlimited", Seconds(0)},
    .unit = "seconds",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Time limit for timing one candidate. With a limit, candidates of devices in host memory and of "
        "virtual devices are timed in the program mge-worker. One that takes longer, or that crashes, is killed with its "
        "process and left out of the choice. The tuning cache stores this: it is timed again only if a larger limit is set. "
        "On other devices, and if mge-worker is missing, candidates are timed in the process without a limit, and a warning "
        "says so.",
    .aliases = "MGB_CONV_PROFILING_TIMEOUT",
};
inline constexpr Setting<Seconds> kSelectMeasuringTime = {
    .key = "select.measuring_seconds",
    .default_value = Seconds(0.05),
    .range = Range<Seconds>{Seconds(0), Seconds(1e6)},
    .unit = "seconds",
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Time after which no further run of a candidate starts when kernels are measured; each candidate runs at least "
        "once.",
};
inline constexpr Setting<ByteCount> kSelectMeasuringBytes = {
    .key = "select.measuring_bytes",
    .default_value = ByteCount{INT64_MAX},
    .range = Range<ByteCount>{ByteCount{1}, ByteCount{int64_t{1} << 46}},
    .word = {"unlimited", ByteCount{INT64_MAX}},
    .unit = "bytes",
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Maximum device memory for measuring one candidate; memory.limit applies in any case.",
};
inline constexpr Setting<Path> kSelectRecord = {
    .key = "select.record",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "File to which the chosen kernels are added, for use as select.replay in later runs.",
};
inline constexpr Setting<Path> kSelectReplay = {
    .key = "select.replay",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Selection file with the kernels to use. For operators that are not in the file, select.strategy chooses, or fails "
        "if it is profile_reproducible.",
};
inline constexpr Setting<TuningStore> kSelectCacheType = {
    .key = "select.cache_type",
    .default_value = TuningStore::kFile,
    .choices = setting_choices::kTuningCaches,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Place for measured times: files, or memory until the runtime ends.",
    .aliases = "MGE_FASTRUN_CACHE_TYPE",
};
inline constexpr Setting<Path> kSelectCacheDir = {
    .key = "select.cache_dir",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Directory for the files of measured times; if empty, mge/tuning in the user's cache directory.",
    .aliases = "MGE_FASTRUN_CACHE_DIR",
};
inline constexpr Setting<bool> kSelectTensorCore = {
    .key = "select.tensor_core",
    .default_value = true,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Allows kernels that use the tensor cores of a GPU. If false, select.tensor_core_conversion has no effect.",
    .aliases = "MXNET_CUDA_ALLOW_TENSOR_CORE",
};
inline constexpr Setting<bool> kSelectTensorCoreConversion = {
    .key = "select.tensor_core_conversion",
    .default_value = false,
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Allows kernels that compute with less precision than the element type (float32 rounded to float16, bfloat16 or "
        "TF32), on every device, if select.tensor_core is true.",
    .aliases = "MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION",
};

inline constexpr Setting<MemoryPool> kMemoryPool = {
    .key = "memory.pool",
    .default_value = MemoryPool::kBackend,
    .choices = setting_choices::kMemoryPools,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Memory pool of every device: the backend's own or default pool (backend), or one of MGE's pools in its place.",
};
inline constexpr Setting<Text> kMemoryReserve = {
    .key = "memory.reserve",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Memory that the pool of a device allocates before the first run and keeps without sessions (bytes:SIZE, all), or "
        "share of the device that it leaves free for others (percent:N), or none; if empty, the backend's default.",
};
inline constexpr Setting<GpuPool> kMemoryGpuPool = {
    .key = "memory.gpu_pool",
    .default_value = GpuPool::kBackend,
    .choices = setting_choices::kGpuPools,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Memory pool of GPUs; overrides memory.pool. Backend: memory.pool or, if that is not set, the backend's pool.",
    .aliases = "MXNET_GPU_MEM_POOL_TYPE",
};
inline constexpr Setting<int64_t> kMemoryGpuReserve = {
    .key = "memory.gpu_reserve_percent",
    .default_value = 5,
    .range = Range<int64_t>{0, 100},
    .unit = "percent",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Share of a GPU's memory that stays free, if this setting or memory.gpu_pool is set. To keep it free, the pool "
        "releases cached blocks before it allocates more.",
    .aliases = "MXNET_GPU_MEM_POOL_RESERVE",
    .unset = "0, or 5 with memory.gpu_pool",
};
inline constexpr Setting<int64_t> kMemoryRoundCutoff = {
    .key = "memory.gpu_round_linear_cutoff",
    .default_value = 24,
    .range = Range<int64_t>{20, 34},
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "In the pool round of a GPU, sizes up to 2 to the power of this value are rounded up to powers of two, larger "
        "sizes to multiples of that power.",
    .aliases = "MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF",
    .unstable = true,
};
inline constexpr Setting<ByteCount> kMemoryLargeRound = {
    .key = "memory.gpu_large_round_bytes",
    .default_value = ByteCount{2 << 20},
    .range = Range<ByteCount>{{1}, {INT64_MAX}},
    .unit = "bytes",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "In the pool naive of a GPU, sizes above this value are rounded up to a multiple of it; 1 disables rounding.",
    .aliases = "MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE",
    .unstable = true,
};
inline constexpr Setting<Text> kMemoryReserveCuda = {
    .key = "memory.reserve_cuda",
    .default_value = "0",
    .check = IsReserve,
    .allowed = "0, 1, or b: and a number of bytes",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Memory of CUDA devices that their pools allocate before the first run and keep: nothing (0), nearly all (1), or a "
        "number of bytes (b:BYTES). Overrides memory.reserve.",
    .aliases = "MGB_CUDA_RESERVE_MEMORY",
};
inline constexpr Setting<Text> kMemoryReserveRocm = {
    .key = "memory.reserve_rocm",
    .default_value = "0",
    .check = IsReserve,
    .allowed = "0, 1, or b: and a number of bytes",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Memory of ROCm devices that their pools allocate before the first run and keep: nothing (0), nearly all (1), or a "
        "number of bytes (b:BYTES). Overrides memory.reserve.",
    .aliases = "MGB_ROCM_RESERVE_MEMORY",
};
inline constexpr Setting<StaticMemory> kMemoryStaticPolicy = {
    .key = "memory.static_policy",
    .default_value = StaticMemory::kOff,
    .choices = setting_choices::kStaticMemory,
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Memory that plans share: none (off); one arena per device for models with fixed shapes, whose runs must not "
        "overlap (static); pages that runs of other models take and return (dynamic); both. A variable and an option with "
        "different values are an error.",
    .aliases = "GE_USE_STATIC_MEMORY ge.exec.staticMemoryPolicy static_memory_policy",
    .one_source = true,
};

inline constexpr auto kPlanRows = SettingRows(
    kPlanInplace, kPlanCacheCount, kPlanCacheBytes, kPlanSkip, kPlanMatchRange, kPlanWorkspaces, kPlanHostCompute,
    kPlanRanges, kPlanStaticInputShape, kSelectStrategy, kSelectConvAutotune, kSelectWorkspaceBytes, kSelectDeterministic,
    kSelectProfilingTimeout, kSelectMeasuringTime, kSelectMeasuringBytes, kSelectRecord, kSelectReplay, kSelectCacheType,
    kSelectCacheDir, kSelectTensorCore, kSelectTensorCoreConversion, kMemoryPool, kMemoryReserve, kMemoryGpuPool,
    kMemoryGpuReserve, kMemoryRoundCutoff, kMemoryLargeRound, kMemoryReserveCuda, kMemoryReserveRocm, kMemoryStaticPolicy);

}  // namespace mge
