// SPDX-License-Identifier: Apache-2.0
// Keys and variables that an earlier version had under another name. `mge env`, a warning and each error about an unknown name
// tell the successor. A row stays for one version.
#pragma once

#include <string>
#include <string_view>

namespace mge {

// A key with its successor. The variables MGE_KEY of both follow from it.
struct RemovedKey {
  std::string_view key;
  std::string_view successor;
};
inline constexpr RemovedKey kRemovedKeys[] = {
    {"collective.timeout", "collective.timeout_seconds"},
    {"compute.mkldnn_cache_num", "compute.mkldnn_cache_count"},
    {"compute.nnpack_nthreads", "compute.nnpack_threads"},
    {"compute.operator_tuning_cores", "compute.operator_tuning_threads"},
    {"compute.parallel_copy_size", "compute.parallel_copy_elements"},
    {"cpu.onednn_cache", "cpu.onednn_cache_count"},
    {"cpu.operator_tuning_cores", "cpu.operator_tuning_threads"},
    {"cpu.parallel_copy_size", "cpu.parallel_copy_elements"},
    {"data.decode_nthreads", "data.decode_threads"},
    {"data.shared_memory", "data.shared_memory_bytes"},
    {"device.default", "default_device"},
    {"eager.dtr_evictee_minimum_size", "eager.dtr_minimum_bytes"},
    {"eager.dtr_eviction_threshold", "eager.dtr_threshold_bytes"},
    {"eager.queue_size", "eager.queue_commands"},
    {"engine.bulk_train_max_nodes", "engine.bulk_train_steps"},
    {"engine.cpu_priority_nthreads", "engine.cpu_priority_threads"},
    {"engine.cpu_worker_nthreads", "engine.cpu_worker_threads"},
    {"engine.fork_worker_nthreads", "engine.fork_worker_threads"},
    {"engine.gpu_copy_nthreads", "engine.gpu_copy_threads"},
    {"engine.gpu_worker_nthreads", "engine.gpu_worker_threads"},
    {"kvstore.bigarray_bound", "kvstore.big_array_elements"},
    {"kvstore.reduction_nthreads", "kvstore.reduction_threads"},
    {"kvstore.tree_array_bound", "kvstore.tree_array_elements"},
    {"memory.gpu_large_round", "memory.gpu_large_round_bytes"},
    {"plan.cache_memory", "plan.cache_bytes"},
    {"plan.cache_size", "plan.cache_count"},
    {"plan.num_temp", "plan.workspaces"},
    {"planner.skip", "plan.skip"},
    {"plugin.start_timeout", "plugin.start_timeout_seconds"},
    {"run.timeout", "run.timeout_seconds"},
    {"select.freeze", "select.record"},
    {"select.frozen", "select.replay"},
    {"select.memory", "select.measuring_bytes"},
    {"select.profiling_timeout", "select.profiling_timeout_seconds"},
    {"select.time", "select.measuring_seconds"},
    {"select.workspace_limit", "select.workspace_bytes"},
    {"train.sublinear_workers", "train.sublinear_threads"},
    {"virtual.bandwidth", "virtual.bandwidth_gb_s"},
    {"virtual.compile_time", "virtual.compile_time_ms"},
    {"virtual.latency", "virtual.latency_us"},
    {"virtual.launch_latency", "virtual.launch_latency_us"},
    {"virtual.max_allocation", "virtual.max_allocation_bytes"},
    {"virtual.memory", "virtual.memory_bytes"},
};

// Variables that did not follow their key.
inline constexpr RemovedKey kRemovedVariables[] = {
    {"MGE_STRICT_ENV", "MGE_ENV_STRICT"},
};

// Returns the present name in place of a removed key or variable, or "".
std::string SuccessorOf(std::string_view name);

}  // namespace mge
