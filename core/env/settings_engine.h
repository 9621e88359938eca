// SPDX-License-Identifier: Apache-2.0
// Settings of the dependency engine, its workers and bulk execution.
#pragma once

#include "core/env/setting.h"

namespace mge {

enum class EngineType { kNaive, kThreaded, kThreadedPerDevice };

namespace setting_choices {
inline constexpr Choice kEngineTypes[] = {
    {EngineType::kNaive, "naive", "NaiveEngine"},
    {EngineType::kThreaded, "threaded", "ThreadedEngine"},
    {EngineType::kThreadedPerDevice, "threaded_per_device", "ThreadedEnginePerDevice"},
};
}  // namespace setting_choices

inline constexpr Range<int64_t> kWorkerRange = {1, 1024};

inline constexpr Setting<EngineType> kEngineType = {
    .key = "engine.type",
    .default_value = EngineType::kThreadedPerDevice,
    .choices = setting_choices::kEngineTypes,
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Engine that runs operations: in the caller's thread, step after step (naive), on one pool of 16 threads, as "
        "many for asynchronous runs, and one thread for copies (threaded), or on workers for each device "
        "(threaded_per_device).",
    .aliases = "MXNET_ENGINE_TYPE",
};
inline constexpr Setting<int64_t> kCpuWorkers = {
    .key = "engine.cpu_worker_threads",
    .default_value = 1,
    .range = kWorkerRange,
    .unit = "threads",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Number of workers for each CPU device, with the engine threaded_per_device. They run asynchronous runs; "
        "synchronous runs use their caller's thread.",
    .aliases = "MXNET_CPU_WORKER_NTHREADS",
};
inline constexpr Setting<int64_t> kCpuPriorityWorkers = {
    .key = "engine.cpu_priority_threads",
    .default_value = 4,
    .range = kWorkerRange,
    .unit = "threads",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Number of workers for asynchronous runs with a priority on CPUs, with the engine threaded_per_device.",
    .aliases = "MXNET_CPU_PRIORITY_NTHREADS",
};
inline constexpr Setting<int64_t> kGpuWorkers = {
    .key = "engine.gpu_worker_threads",
    .default_value = 2,
    .range = kWorkerRange,
    .unit = "threads",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Number of compute queues that work on each GPU at the same time, over all runs; a run that finds none free "
        "waits. Also the number of workers for asynchronous runs on a device with queues, with the engine "
        "threaded_per_device.",
    .aliases = "MXNET_GPU_WORKER_NTHREADS",
};
inline constexpr Setting<int64_t> kGpuCopyWorkers = {
    .key = "engine.gpu_copy_threads",
    .default_value = 2,
    .range = kWorkerRange,
    .unit = "threads",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Number of copy queues that work on each GPU at the same time, over all runs; a run that finds none free waits.",
    .aliases = "MXNET_GPU_COPY_NTHREADS",
};
inline constexpr Setting<int64_t> kForkWorkers = {
    .key = "engine.fork_worker_threads",
    .default_value = 1,
    .range = kWorkerRange,
    .unit = "threads",
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Replaces engine.cpu_worker_threads in the child process after a fork.",
    .aliases = "MXNET_MP_WORKER_NTHREADS",
};
inline constexpr Setting<bool> kBulkInference = {
    .key = "engine.bulk_inference",
    .default_value = true,
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Runs an inference plan as one engine operation. If false, each step is an operation, and nothing is captured.",
    .aliases = "MXNET_EXEC_BULK_EXEC_INFERENCE",
};
inline constexpr Setting<bool> kBulkTrain = {
    .key = "engine.bulk_train",
    .default_value = true,
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Lets an operation of the engine run several steps of a training, instead of one.",
    .aliases = "MXNET_EXEC_BULK_EXEC_TRAIN",
};
inline constexpr int32_t kAllSteps = 1'000'000'000;  // more than a plan has
inline constexpr Setting<int64_t> kBulkTrainSteps = {
    .key = "engine.bulk_train_steps",
    .default_value = kAllSteps,
    .range = Range<int64_t>{0, 1'000'000},
    .word = {"unlimited", kAllSteps},
    .unit = "steps",
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Maximum number of steps that one operation of the engine runs in a training; 0 and 1 both mean one step.",
    .aliases = "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN",
    .unstable = true,
};

inline constexpr auto kEngineRows = SettingRows(kEngineType, kCpuWorkers, kCpuPriorityWorkers, kGpuWorkers, kGpuCopyWorkers,
                                                kForkWorkers, kBulkInference, kBulkTrain, kBulkTrainSteps);

}  // namespace mge
