// SPDX-License-Identifier: Apache-2.0
// Settings of training, of eager mode, of communication between devices and of data.
#pragma once

#include "core/env/setting.h"
#include "core/env/setting_checks.h"

namespace mge {

enum class AsyncLevel { kSync = 0, kShapes = 1, kAsync = 2 };
enum class LauncherChoice { kAuto, kNone, kMpi, kEnv };
enum class KvstoreType { kAuto, kLocal, kDevice, kDistSync, kDistAsync };

namespace setting_choices {
inline constexpr Choice kAsyncLevels[] = {
    {AsyncLevel::kSync, "sync", "0"},
    {AsyncLevel::kShapes, "shapes", "1"},
    {AsyncLevel::kAsync, "async", "2"},
};
inline constexpr Choice kLaunchers[] = {
    {LauncherChoice::kAuto, "auto"},
    {LauncherChoice::kNone, "none"},
    {LauncherChoice::kMpi, "mpi"},
    {LauncherChoice::kEnv, "env"},
};
inline constexpr Choice kKvstoreTypes[] = {
    {KvstoreType::kAuto, "auto"},
    {KvstoreType::kLocal, "local", "local_update_cpu local_allreduce_cpu"},
    {KvstoreType::kDevice, "device", "local_allreduce_device nccl"},
    {KvstoreType::kDistSync, "dist_sync", "dist dist_sync_device dist_device_sync dist_sync_mpi"},
    {KvstoreType::kDistAsync, "dist_async", "dist_async_device dist_device_async"},
};
}  // namespace setting_choices

inline constexpr Setting<int64_t> kCollectiveRanks = {
    .key = "collective.ranks",
    .default_value = 1,
    .range = Range<int64_t>{1, 1024},
    .unit = "ranks",
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Number of ranks in the session's group; operators such as mge.AllReduce exchange tensors between them.",
};
inline constexpr Setting<int64_t> kCollectiveRank = {
    .key = "collective.rank",
    .default_value = 0,
    .range = Range<int64_t>{0, 1023},
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Rank of the session in its group, counted from 0.",
};
inline constexpr Setting<Text> kCollectiveId = {
    .key = "collective.id",
    .default_value = "",
    .check = IsIdentifierWord,
    .allowed = "the id that mge_collective_id() returned in one of the processes",
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Id of the session's group of ranks, the same for all of them.",
};
inline constexpr Setting<Seconds> kCollectiveTimeout = {
    .key = "collective.timeout_seconds",
    .default_value = Seconds(30),
    .range = Range<Seconds>{Seconds(0.001), Seconds(1e9)},
    .unit = "seconds",
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Time that a rank waits for the others, when it joins the group and in each operation; then the run fails. The "
        "default "
        "of a training on several processes is ten minutes until its first step has ended.",
};
inline constexpr Setting<LauncherChoice> kCollectiveLauncher = {
    .key = "collective.launcher",
    .default_value = LauncherChoice::kAuto,
    .choices = setting_choices::kLaunchers,
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Launcher whose variables tell a data-parallel training which process of how many it is. auto: the first that is "
        "found of the settings collective.*, mpirun (OMPI_COMM_WORLD_*, PMI_*), RANK and WORLD_SIZE (torchrun), and SLURM_* "
        "in a step of several tasks. mpi and env: only the second, only the third. none: each process trains alone.",
};
inline constexpr Setting<int64_t> kCollectivePort = {
    .key = "collective.port",
    .default_value = 0,
    .range = Range<int64_t>{1, 65535},
    .word = {"auto", 0},
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "TCP port at which rank 0 gives the other processes of a training the id of their group, if MPI does not connect "
        "them. auto: MASTER_PORT + 1, because the launcher may use MASTER_PORT itself.",
};
inline constexpr Setting<Text> kCollectiveBind = {
    .key = "collective.bind",
    .default_value = "",
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Numeric address at which rank 0 listens on collective.port, such as 10.0.0.1. Default: all addresses of the host. "
        "Without the same variable MGE_COLLECTIVE_TOKEN in all processes, whoever reaches the port can join: use it on "
        "trusted networks only.",
};
inline constexpr Setting<bool> kTrainMirror = {
    .key = "train.mirror",
    .default_value = false,
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Computes the results of cheap nodes of a model again for its gradients, instead of keeping them: elementwise "
        "nodes, those that only move elements, normalizations, softmax and pools. Results of products and convolutions "
        "are kept.",
    .aliases = "MXNET_BACKWARD_DO_MIRROR",
};
inline constexpr Setting<bool> kTrainInplaceUpdate = {
    .key = "train.inplace_update",
    .default_value = false,
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Adds the change of a parameter to it in its memory, instead of computing the new parameter and writing it there, "
        "and "
        "reads the new states of the optimizer where they were written. With an optimizer that has states, a training step "
        "needs memory for one copy of the parameters less.",
    .aliases = "MEGENGINE_INPLACE_UPDATE",
};
inline constexpr Setting<bool> kTrainShardOptimizer = {
    .key = "train.shard_optimizer",
    .default_value = false,
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Divides the states of the optimizer over the replicas of a data-parallel training. Each replica updates its part "
        "of "
        "every parameter, and all gather the parts, to the same numbers. Checkpoints have the whole states, so that any "
        "number of replicas can continue from them.",
};
inline constexpr Setting<bool> kTrainSublinear = {
    .key = "train.sublinear",
    .default_value = false,
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Computes results of a model again for its gradients, as a plan of sublinear memory says: the nodes are cut into "
        "blocks, and only the results that later blocks read are kept. The settings train.sublinear_* steer the search for "
        "the plan.",
};
inline constexpr Setting<ByteCount> kTrainMemoryBudget = {
    .key = "train.memory_budget_bytes",
    .default_value = ByteCount{INT64_MAX},
    .range = Range<ByteCount>{ByteCount{1}, ByteCount{int64_t{1} << 46}},
    .word = {"unlimited", ByteCount{INT64_MAX}},
    .unit = "bytes",
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Memory that the results and gradients of a training step may need, beside the parameters and the states of the "
        "optimizer. If a plan needs more, it computes results again for the gradients, those first that cost least time for "
        "the "
        "bytes they save. A run fails if no plan fits.",
};
inline constexpr Setting<int64_t> kSublinearTries = {
    .key = "train.sublinear_tries",
    .default_value = 10,
    .range = Range<int64_t>{0, 1'000'000},
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Number of thresholds that the linear search and the local search for a plan of sublinear "
        "memory each try.",
    .aliases = "MGB_SUBLINEAR_MEMORY_THRESH_NR_TRY",
    .unstable = true,
};
inline constexpr Setting<int64_t> kSublinearGenerations = {
    .key = "train.sublinear_generations",
    .default_value = 0,
    .range = Range<int64_t>{0, 1'000'000},
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Number of rounds of the genetic search for a plan of sublinear memory.",
    .aliases = "MGB_SUBLINEAR_MEMORY_GENETIC_NR_ITER",
    .unstable = true,
};
inline constexpr Setting<int64_t> kSublinearPopulation = {
    .key = "train.sublinear_population",
    .default_value = 20,
    .range = Range<int64_t>{1, 1'000'000},
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Number of plans kept after each round of the genetic search for a plan of sublinear memory.",
    .aliases = "MGB_SUBLINEAR_MEMORY_GENETIC_POOL_SIZE",
    .unstable = true,
};
inline constexpr Setting<int64_t> kSublinearLowerBound = {
    .key = "train.sublinear_lower_bound_mib",
    .default_value = 0,
    .range = Range<int64_t>{0, INT64_MAX >> 20},
    .unit = "MiB",
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Peak memory below which the search for a plan of sublinear memory stops trading speed for memory.",
    .aliases = "MGB_SUBLINEAR_MEMORY_LOWER_BOUND_MB",
    .unstable = true,
};
inline constexpr Setting<int64_t> kSublinearWorkers = {
    .key = "train.sublinear_threads",
    .default_value = 0,
    .range = Range<int64_t>{0, 4096},
    .unit = "threads",
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Number of threads of the search for a plan of sublinear memory; 0 means half of the processors.",
    .aliases = "MGB_SUBLINEAR_MEMORY_WORKERS",
    .unstable = true,
};

inline constexpr Setting<AsyncLevel> kEagerAsyncLevel = {
    .key = "eager.async_level",
    .default_value = AsyncLevel::kAsync,
    .choices = setting_choices::kAsyncLevels,
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "When eager mode executes an operator: sync executes it in the call, which fails with its error; shapes leaves it "
        "to "
        "a worker, and waits only if the shape of a result is not known yet; async never waits. Then errors of the "
        "execution arrive when "
        "a "
        "result is read. Errors in names, types and known shapes always arrive in the call.",
    .aliases = "MEGENGINE_INTERP_ASYNC_LEVEL",
};
inline constexpr Setting<int64_t> kEagerQueueCommands = {
    .key = "eager.queue_commands",
    .default_value = 10'000,
    .range = Range<int64_t>{1, 100'000'000},
    .unit = "commands",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Maximum number of commands in the queue of eager mode; the caller then waits until the worker takes one.",
    .aliases = "MEGENGINE_ASYNC_QUEUE_SIZE",
    .unstable = true,
};
inline constexpr Setting<bool> kEagerCatchErrors = {
    .key = "eager.catch_worker_errors",
    .default_value = true,
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Keeps errors of the worker of eager mode, and reports them when a result is read. If false, the process aborts "
        "where "
        "the first error happens, for a debugger or a core file.",
    .aliases = "MEGENGINE_CATCH_WORKER_EXEC",
};
inline constexpr Setting<bool> kEagerRecordPath = {
    .key = "eager.record_computing_path",
    .default_value = false,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Records how tensors of eager mode were computed, so that they can be dropped. Needs eager.drop.",
    .aliases = "MEGENGINE_RECORD_COMPUTING_PATH",
};
inline constexpr Setting<bool> kEagerSwap = {
    .key = "eager.swap",
    .default_value = false,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Allows programs to move eager tensors from a device to host memory. They come back when they are used.",
    .aliases = "MEGENGINE_ENABLE_SWAP",
};
inline constexpr Setting<bool> kEagerDrop = {
    .key = "eager.drop",
    .default_value = false,
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Allows programs to drop eager tensors whose computation is recorded (eager.record_computing_path). They are "
        "computed "
        "again when they are used.",
    .aliases = "MEGENGINE_ENABLE_DROP",
};
inline constexpr Setting<bool> kEagerDtr = {
    .key = "eager.dtr_auto_drop",
    .default_value = false,
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Drops eager tensors automatically if memory is short, and computes them again when they are used. Turns on "
        "eager.drop "
        "and eager.record_computing_path.",
    .aliases = "MEGENGINE_DTR_AUTO_DROP",
};
inline constexpr Setting<ByteCount> kEagerDtrThreshold = {
    .key = "eager.dtr_threshold_bytes",
    .default_value = ByteCount{INT64_MAX},
    .range = Range<ByteCount>{ByteCount{1}, ByteCount{int64_t{1} << 46}},
    .word = {"unlimited", ByteCount{INT64_MAX}},
    .unit = "bytes",
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Bytes of eager tensors on a device above which tensors are dropped automatically (eager.dtr_auto_drop); unlimited: "
        "only if the device has no memory left.",
    .aliases = "MEGENGINE_DTR_EVICTION_THRESHOLD",
    .unstable = true,
};
inline constexpr Setting<ByteCount> kEagerDtrMinimum = {
    .key = "eager.dtr_minimum_bytes",
    .default_value = ByteCount{1 << 20},
    .unit = "bytes",
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Tensors up to this size are not recorded and never dropped.",
    .aliases = "MEGENGINE_DTR_EVICTEE_MINIMUM_SIZE",
    .unstable = true,
};

inline constexpr Setting<int64_t> kKvstoreThreads = {
    .key = "kvstore.reduction_threads",
    .default_value = 4,
    .range = Range<int64_t>{1, 1024},
    .unit = "threads",
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Number of threads that add up a big array of gradients of several devices on the host; see "
        "kvstore.big_array_elements. "
        "Not used if the devices add up themselves.",
    .aliases = "MXNET_KVSTORE_REDUCTION_NTHREADS",
    .unstable = true,
};
inline constexpr Setting<int64_t> kKvstoreBigArray = {
    .key = "kvstore.big_array_elements",
    .default_value = 1'000'000,
    .range = Range<int64_t>{1, INT64_MAX},
    .unit = "elements",
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Minimum number of elements for which the host adds up an array of gradients of several devices with "
        "kvstore.reduction_threads threads. Between processes, gradients are summed in buckets of at least so many "
        "elements, "
        "each while the backward pass computes the next ones.",
    .aliases = "MXNET_KVSTORE_BIGARRAY_BOUND",
    .unstable = true,
};
inline constexpr Setting<bool> kKvstoreTree = {
    .key = "kvstore.tree",
    .default_value = false,
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Adds up the gradients of several devices along trees that match the links between the devices, instead of with the "
        "collectives of their backend or on the host.",
    .aliases = "MXNET_KVSTORE_USETREE",
};
inline constexpr Setting<KvstoreType> kKvstoreType = {
    .key = "kvstore.type",
    .default_value = KvstoreType::kAuto,
    .choices = setting_choices::kKvstoreTypes,
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Devices over which a data-parallel training sums its gradients. local: those of this process, on the host. device: "
        "those of this process, with the collectives of their backend if it has them. dist_sync: those of all processes "
        "that "
        "a launcher started, which must be there. auto: dist_sync if a launcher started several, else device. dist_async is "
        "an error: it needs parameter servers, which MGE does not have, and its steps use old parameters of any age.",
};
inline constexpr Setting<bool> kKvstoreLogTree = {
    .key = "kvstore.log_tree",
    .default_value = false,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Logs the reduction trees (see kvstore.tree), the weights of the links, and how many trees use each link.",
    .aliases = "MXNET_KVSTORE_LOGTREE",
};
inline constexpr Setting<int64_t> kKvstoreTreeArray = {
    .key = "kvstore.tree_array_elements",
    .default_value = 10'000'000,
    .range = Range<int64_t>{0, INT64_MAX},
    .unit = "elements",
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Number of elements above which an array is cut into a slice for each reduction tree, if its first dimension is at "
        "least twice the number of trees. The others are divided among the trees whole. With kvstore.tree_backtrack or "
        "kvstore.tree_link_usage_penalty, there are as many trees as devices, and the others use the first one.",
    .aliases = "MXNET_KVSTORE_TREE_ARRAY_BOUND",
    .unstable = true,
};
inline constexpr Setting<bool> kKvstoreBacktrack = {
    .key = "kvstore.tree_backtrack",
    .default_value = false,
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "If this or kvstore.tree_link_usage_penalty is set, the reduction trees are balanced ones, as in MXNet, which are "
        "searched by backtracking (1) or the Kernighan-Lin algorithm (0). If neither is set, the trees share the links so "
        "that all together are as fast as possible.",
    .aliases = "MXNET_KVSTORE_TREE_BACKTRACK",
    .unstable = true,
};
inline constexpr Setting<double> kKvstorePenalty = {
    .key = "kvstore.tree_link_usage_penalty",
    .default_value = 0.7,
    .range = Range<double>{0.001, 1.0},
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Factor by which the weight of a link is multiplied for each tree that already uses it, in the search of balanced "
        "trees: see kvstore.tree_backtrack.",
    .aliases = "MXNET_KVSTORE_TREE_LINK_USAGE_PENALTY",
    .unstable = true,
};
inline constexpr Setting<bool> kKvstoreP2p = {
    .key = "kvstore.gpu_p2p",
    .default_value = true,
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Allows plans to copy directly between GPUs. If false, they copy through host memory, and the host sums the "
        "gradients of data-parallel GPUs in place of the backend's collectives, such as NCCL.",
    .aliases = "MXNET_ENABLE_GPU_P2P",
};

inline constexpr Setting<Path> kDataHome = {
    .key = "data.home",
    .default_value = "~/.mxnet",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Directory in which mge.data.fetch() of the Python package keeps files of the repository.",
    .aliases = "MXNET_HOME",
};
inline constexpr Setting<Text> kDataRepository = {
    .key = "data.repository",
    .check = IsUrl,
    .allowed = "an address that begins with https://, http:// or file:///",
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Base address from which mge.data.fetch() of the Python package downloads files; if empty, a download is an error.",
    .aliases = "MXNET_GLUON_REPO",
};
inline constexpr Setting<ByteCount> kDataSharedMemory = {
    .key = "data.shared_memory_bytes",
    .default_value = ByteCount{4'000'000'000},
    .unit = "bytes",
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Shared memory for the batches of each data loader of the Python package. A batch that finds no room there passes "
        "through a pipe, which copies it; 0: all do.",
    .aliases = "MGE_PLASMA_MEMORY",
};
inline constexpr Setting<bool> kDataSharedMemoryDebug = {
    .key = "data.shared_memory_debug",
    .default_value = false,
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Prints each use of a data loader's shared memory to stderr, with the bytes in use.",
    .aliases = "MGE_DATALOADER_PLASMA_DEBUG",
};
inline constexpr Setting<int64_t> kDataDecodeThreads = {
    .key = "data.decode_threads",
    .default_value = 0,
    .range = Range<int64_t>{0, 1024},
    .unit = "threads",
    .lifecycle = Lifecycle::kDynamic,
    .doc =
        "Number of threads that load (and so decode) the items of a batch in each worker process of a data loader of the "
        "Python "
        "package, and that OpenCV uses there; 0: the process's main thread.",
    .aliases = "MXNET_MP_OPENCV_NUM_THREADS",
};

inline constexpr auto kTrainRows =
    SettingRows(kCollectiveRanks, kCollectiveRank, kCollectiveId, kCollectiveTimeout, kCollectiveLauncher, kCollectivePort,
                kCollectiveBind, kTrainMirror, kTrainInplaceUpdate, kTrainShardOptimizer, kTrainSublinear,
                kTrainMemoryBudget, kSublinearTries, kSublinearGenerations, kSublinearPopulation, kSublinearLowerBound,
                kSublinearWorkers, kEagerAsyncLevel, kEagerQueueCommands, kEagerCatchErrors, kEagerRecordPath, kEagerSwap,
                kEagerDrop, kEagerDtr, kEagerDtrThreshold, kEagerDtrMinimum, kKvstoreThreads, kKvstoreBigArray, kKvstoreType,
                kKvstoreTree, kKvstoreLogTree, kKvstoreTreeArray, kKvstoreBacktrack, kKvstorePenalty, kKvstoreP2p, kDataHome,
                kDataRepository, kDataSharedMemory, kDataSharedMemoryDebug, kDataDecodeThreads);

}  // namespace mge
