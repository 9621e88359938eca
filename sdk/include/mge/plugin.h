/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract between MGE and a device backend, in plain C99. A backend is one shared object that
 *   - carries an ELF note (MGE_PLUGIN_NOTE), which the host checks before it opens the library,
 *   - exports one symbol, mge_plugin_query, and imports nothing from the host.
 * The contract is one file with one hash, so host and backend cannot mix headers of two versions. Each table below covers
 * one concern. The tables are in the order in which a backend grows.
 *
 * Rules that hold everywhere
 *   Structs     begin with struct_size (the writer's sizeof) and only grow at their end. A reader uses a member only if
 *               struct_size covers it. Zero means absent or default. Unknown bits in a flags member fail with
 *               MGE_UNIMPLEMENTED; they are never ignored.
 *   Out structs belong to the caller, who sets struct_size and zeroes the rest. The callee writes them member by member, as
 *               far as struct_size covers them. It never assigns the whole struct: an older caller provides less memory.
 *   Lists       are arrays of pointers, so that the structs can grow.
 *   Tables      have a minor version each. A slot marked [optional] may be NULL. One marked [optional, with x] is NULL if
 *               and only if slot x is. Every other slot is required. The host's checks are derived from these marks.
 *   Errors      A function returns an mge_code and passes the text to host->fail(host, error, code, text), which copies it.
 *               `error` may be NULL. Nothing throws, exits or jumps across the boundary. MGE_DEVICE_LOST is permanent.
 *   Results     Expected outcomes on the hot path have a code each and are not failures: MGE_RESOURCE_EXHAUSTED,
 *               MGE_OVER_BUDGET, MGE_GROWTH_REQUIRED and MGE_NEEDS_WAIT from a pool, MGE_DEADLINE_EXCEEDED from host_wait. A
 *               caller that retries in a loop passes a NULL `error`, so that no text is created.
 *   Ownership   The side that creates an object destroys it. An argument is valid until the call returns unless the slot
 *               says otherwise. Handles are pointers to opaque types.
 *   Queues      The host keeps everything that enqueued work uses until that work has ended: memory of either side, kernels,
 *               records, fences, the peer's device. It enqueues the signal of a fence's value, once, before any wait for
 *               that value. Destroying a queue waits for the work that was enqueued on it. Afterwards the queue's work does
 *               not access memory. Work behind a failed fence may run or not: the host passes the failure on.
 *   Threads     [any]: callable from any thread at any time. [one]: the host calls it for one object from one thread at a
 *               time. A slot without a mark is [any]. The call that ends an object (close, destroy, release) is the last
 *               call for it, from any thread. A sink's functions must be called during the call that received the sink, in
 *               the same thread.
 *   Memory      is a slab and an offset in it. Both sides pass the sum of the slab's address and the offset as one number.
 *               Only the backend may access memory there, unless the slab has a host_address. The number need not be a
 *               pointer: a device whose memory has no addresses gives each slab a range of numbers of its own. Sizes and
 *               offsets are bytes.
 *
 * Version: while MGE_ABI_MAJOR is 0, host and backend must be built from equal headers (mge_abi_hash).
 */
#ifndef MGE_PLUGIN_H_
#define MGE_PLUGIN_H_

#include <stdint.h>

#include "mge/abi_hash.h"
#include "mge/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MGE_ABI_MAJOR 0
#define MGE_ABI_MINOR 7

typedef struct mge_error mge_error;               /* host: storage for one error */
typedef struct mge_device mge_device;             /* backend: an open device */
typedef struct mge_queue mge_queue;               /* backend: an ordered stream of work */
typedef struct mge_fence mge_fence;               /* backend: a counter that only grows */
typedef struct mge_kernel mge_kernel;             /* backend: a prepared candidate */
typedef struct mge_pool mge_pool;                 /* backend: its own memory pool */
typedef struct mge_stamp mge_stamp;               /* backend: a point in time on a queue */
typedef struct mge_communicator mge_communicator; /* backend: one rank of a group of devices */
typedef struct mge_ready_made mge_ready_made;

/* ---------------------------------------------------------------- host services */

enum { MGE_LOG_DEBUG = 0, MGE_LOG_INFO = 1, MGE_LOG_WARNING = 2, MGE_LOG_ERROR = 3 };

/* The services that the host provides to a backend. The backend must not use them after stop(). */
typedef struct mge_host {
  uint32_t struct_size;
  uint32_t abi_minor;
  void* self; /* first argument of every function below */
  /* Copies the text into `error` and returns `code`. [any] */
  mge_code (*fail)(void* self, mge_error* error, mge_code code, const char* text, uint64_t size);
  void (*log)(void* self, int32_t severity, const char* text, uint64_t size); /* [any] */
  /* Calls body(context, i) for every i < chunks, on the process's compute pool and the calling thread. Returns when all
   * calls have returned. A body must not call the host, except fail and log. [any] */
  void (*parallel_for)(void* self, uint64_t chunks, void (*body)(void* context, uint64_t chunk), void* context);
  uint32_t (*thread_count)(void* self); /* number of threads in the compute pool, including the caller; >= 1. [any] */
  uint64_t (*clock_ns)(void* self);     /* monotonic. [any] */
  /* Returns the value of the backend's setting number `index` (order of mge_plugin.settings) as text: booleans as 1 or 0,
   * sizes in bytes, choices as declared. Valid until stop(). [any] */
  mge_code (*setting)(void* self, uint32_t index, mge_text* out);
  /* Returns a host table by reverse-DNS name, or NULL. [any] */
  const void* (*extension)(void* self, const char* name, uint32_t min_version);
  /* Returns host memory aligned to a power of two, or NULL if there is none. What stop() leaves is a leak. [any] */
  void* (*allocate)(void* self, uint64_t bytes, uint64_t alignment);
  void (*release)(void* self, void* memory); /* `memory` may be NULL. [any] */
  const mge_ready_made* ready_made;          /* parts that a backend can use or wrap */
  /* Returns the value of a core setting by key ("cache.dir") as text, like `setting`. MGE_NOT_FOUND: no such key. [any] */
  mge_code (*core_setting)(void* self, const mge_text* key, mge_text* out);
  /* A cache of blobs (compiled kernels, vendor plans) for one user, machine and build of the backend, limited in size.
   * The key contains everything that the blob depends on. blob_load calls `found` once, during the call, or returns
   * MGE_NOT_FOUND; a damaged blob is not found. blob_store replaces the blob atomically. [any] */
  mge_code (*blob_load)(void* self, const void* key, uint64_t key_bytes, void* context,
                        void (*found)(void* context, const void* data, uint64_t bytes));
  mge_code (*blob_store)(void* self, const void* key, uint64_t key_bytes, const void* data, uint64_t bytes);
} mge_host;

/* ---------------------------------------------------------------- settings of a backend */

enum {
  MGE_SETTING_BOOL = 1,
  MGE_SETTING_INT = 2,
  MGE_SETTING_DOUBLE = 3,
  MGE_SETTING_BYTES = 4,
  MGE_SETTING_TEXT = 5,
  MGE_SETTING_CHOICE = 6
};
enum { MGE_LIFECYCLE_FIRST_SET = 1, MGE_LIFECYCLE_DYNAMIC = 2 };

/* The declaration of a setting. The host reads, checks and documents its values. */
typedef struct mge_setting {
  uint32_t struct_size;
  int32_t type;
  mge_text key;           /* "virtual.devices": begins with the backend's name; the variable is MGE_VIRTUAL_DEVICES */
  mge_text default_value; /* default value, as text */
  mge_text choices;       /* MGE_SETTING_CHOICE: the allowed words, separated by '|' */
  mge_text unit;
  mge_text doc;    /* one sentence */
  double min, max; /* range of a number; both 0: no range */
  int32_t lifecycle;
  int32_t reserved;
} mge_setting;

/* ---------------------------------------------------------------- graphs, as a backend sees them */

enum {
  MGE_LAYOUT_PLAIN = 0, /* row-major */
  MGE_LAYOUT_ANY = 1,   /* in a candidate: any layout; all ANY entries of one candidate become the same layout */
  MGE_LAYOUT_PERMUTED = 2,
  MGE_LAYOUT_OPAQUE = 3
};

/* The order of a tensor's elements in memory. PERMUTED: dimensions in the order perm[0], perm[1]... (outermost first).
 * Then the blocked dimensions are split: block_size[i] elements of block_axis[i] are innermost, padded with zeros to a
 * multiple. NHWC of an NCHW tensor is perm {0,2,3,1}. */
typedef struct mge_layout {
  uint32_t struct_size;
  int32_t kind;
  int32_t rank;
  int32_t block_count; /* 0..2 */
  int32_t perm[8];
  int32_t block_axis[2];
  int32_t block_size[2];
  uint64_t opaque_id; /* OPAQUE: a number chosen by the backend, and the bytes of such a tensor */
  uint64_t opaque_bytes;
} mge_layout;

enum { MGE_ROLE_TEMPORARY = 0, MGE_ROLE_INPUT = 1, MGE_ROLE_CONSTANT = 3, MGE_ROLE_STATE = 4 };

/* A tensor in a graph: its type, shape, layout and role. */
typedef struct mge_value {
  uint32_t struct_size;
  int32_t role;
  mge_dtype dtype;
  int32_t rank;        /* -1 if unknown */
  const int64_t* dims; /* outermost first; -1 where unknown */
  const void* data;    /* constants: row-major bytes in host memory; otherwise NULL */
  uint64_t data_bytes;
  const mge_layout* layout; /* NULL: plain */
  mge_text name;
  uint32_t uses;    /* consumers in the whole graph; each use as a graph output counts */
  uint32_t version; /* state: increases with every update, so that stale packed copies are detected */
} mge_value;

enum { MGE_ATTR_INT = 1, MGE_ATTR_FLOAT = 2, MGE_ATTR_TEXT = 3, MGE_ATTR_INTS = 4, MGE_ATTR_FLOATS = 5 };

/* An attribute of a node. `type` names the valid member. */
typedef struct mge_attr {
  uint32_t struct_size;
  int32_t type;
  mge_text name;
  int64_t i;
  double f;
  mge_text text;
  const int64_t* ints;
  const float* floats;
  uint64_t count; /* number of ints or floats */
} mge_attr;

/* A node of a graph: one operator with its inputs, outputs and attributes. */
typedef struct mge_node {
  uint32_t struct_size;
  int32_t version; /* operator set version; nodes have the newest form that the host knows (sdk/OPERATORS) */
  mge_text op;
  mge_text domain; /* "" is ai.onnx; "mge" contains the host's own operators */
  mge_text name;
  const int32_t* inputs; /* indices into values; -1 for an absent optional input */
  uint64_t input_count;
  const int32_t* outputs;
  uint64_t output_count;
  const mge_attr* const* attrs;
  uint64_t attr_count;
} mge_node;

/* A graph whose nodes are sorted so that producers come first. Read-only; valid during the call. */
typedef struct mge_graph {
  uint32_t struct_size;
  uint32_t reserved;
  const mge_node* const* nodes;
  uint64_t node_count;
  const mge_value* const* values;
  uint64_t value_count;
  const int32_t* inputs; /* values from outside the graph, constants included; each once */
  uint64_t input_count;
  const int32_t* outputs; /* values used outside the graph */
  uint64_t output_count;
} mge_graph;

/* ---------------------------------------------------------------- devices */

enum {
  MGE_DEVICE_HOST_ACCESSIBLE = 1, /* the host may read and write its default memory class */
  MGE_DEVICE_SURVIVES_FORK = 2,
  MGE_DEVICE_GPU = 4,          /* also selectable as gpu0, gpu1...; the note then lists "gpu" */
  MGE_DEVICE_ONLY_BY_NAME = 8, /* never selected by xpu: the user must name it */
  MGE_DEVICE_REOPENABLE = 16   /* once lost, it can be closed and opened again */
};
#define MGE_DEVICE_KNOWN_BITS 31u

/* A fact about a device for listings: "uuid", "pci", "capability", "multiprocessors", "memory_gb_s". */
typedef struct mge_property {
  uint32_t struct_size;
  uint32_t reserved;
  mge_text key; /* a-z, 0-9, '_' */
  mge_text value;
} mge_property;

/* The description of a device. The host copies it during the call of the sink. */
typedef struct mge_device_info {
  uint32_t struct_size;
  uint32_t index;        /* argument of open(); the backend chooses the order */
  mge_text class_name;   /* "cpu", "cuda", ... one of the classes of the note, but not "gpu" */
  mge_text name;         /* "Intel Xeon ..." */
  mge_text fingerprint;  /* PCI address or UUID: equal for the same hardware in two backends */
  mge_text device_class; /* key of tuning results: equal for devices where the same choices are best */
  mge_text reason;       /* if score is 0: why the device cannot be used, and what to do */
  uint32_t score;        /* 0: unusable; 1..100: the backend with the highest score is used for one fingerprint */
  uint32_t flags;        /* MGE_DEVICE_... */
  uint64_t memory_total; /* 0: unknown */
  /* version of the software below the backend, such as a driver; measured times are valid for one version; may be "" */
  mge_text driver;
  /* Largest slab of class MGE_MEMORY_DEVICE in bytes; 0: limited only by the memory itself. The host never requests a
   * larger slab: it splits a plan's arenas and constants. If a kernel needs a larger tensor or workspace, the host uses
   * the next device that the user allows. Without one, planning fails. */
  uint64_t max_allocation;
  uint32_t buffer_alignment; /* of every operand and slab of MGE_MEMORY_DEVICE: a power of two up to 4096; 0: 64 */
  uint32_t compute_queues;   /* number of compute queues whose work can overlap; 0: 1 */
  const mge_property* const* properties;
  uint64_t property_count;
} mge_device_info;

/* Receives the devices that enumerate() lists, one call per device. */
typedef struct mge_device_sink {
  uint32_t struct_size;
  uint32_t reserved;
  void* self;
  void (*device)(void* self, const mge_device_info* info);
} mge_device_sink;

/* The connection from one device to another of the same backend. */
enum { MGE_LINK_PEER = 1 }; /* copy_peer copies directly; without it the host copies through pinned memory */
#define MGE_LINK_KNOWN_BITS 1u
typedef struct mge_link {
  uint32_t struct_size;
  uint32_t flags;        /* MGE_LINK_... */
  double bandwidth_gb_s; /* 10^9 bytes per second, one direction; 0: unknown */
  double latency_us;
  mge_text name; /* "NVLink x2", "PCIe" */
} mge_link;

/* Devices: list, open, close, health and links. */
typedef struct mge_device_api {
  uint32_t struct_size;
  uint32_t minor;
  mge_code (*enumerate)(const mge_device_sink* sink, mge_error* error); /* [one] */
  mge_code (*open)(uint32_t index, mge_device** out, mge_error* error); /* [one] */
  /* [one]; all its queues, slabs and kernels have been destroyed */
  void (*close)(mge_device* device);
  /* [optional] Returns MGE_OK, or MGE_DEVICE_LOST once the device is lost. [any] */
  mge_code (*status)(mge_device* device, mge_error* error);
  /* [optional] Describes the connection from `from` to `to`, both open. NULL: no two devices are connected. [any] */
  mge_code (*link)(mge_device* from, mge_device* to, mge_link* out, mge_error* error);
} mge_device_api;

/* ---------------------------------------------------------------- memory: slabs, pools, reserve policy */

enum {
  MGE_MEMORY_DEVICE = 0, /* the default class of a device; plain host memory on a CPU */
  MGE_MEMORY_PINNED = 1, /* host memory that copy queues can access */
  MGE_MEMORY_CLASS_COUNT = 2
};

/* Memory that the backend allocated in one piece. */
typedef struct mge_slab {
  uint32_t struct_size;
  int32_t memory_class;
  void* address;      /* the address passed to steps and copies */
  void* host_address; /* NULL if the host cannot access the memory */
  void* handle;       /* used by the backend only; see memory_handles.h */
  uint64_t bytes;
} mge_slab;

/* A part of a slab, returned by a pool. */
typedef struct mge_reservation {
  uint32_t struct_size;
  uint32_t reserved;
  void* address;
  void* host_address;
  uint64_t bytes; /* after rounding by the pool */
  uint64_t token; /* used by the pool only */
  /* Set with MGE_NEEDS_WAIT, otherwise NULL. The memory may be used once this fence has reached ready_value or has failed.
   * A queue that waits for the fence inherits its failure. To avoid that, wait on the host. */
  mge_fence* ready;
  uint64_t ready_value;
} mge_reservation;

/* A value of a fence: the point when work has ended. */
typedef struct mge_fence_point {
  uint32_t struct_size;
  uint32_t reserved;
  mge_fence* fence; /* NULL: already reached */
  uint64_t value;
} mge_fence_point;

/* Flags of acquire. */
enum {
  MGE_POOL_NO_GROWTH = 1, /* use only memory that the pool holds; otherwise return MGE_GROWTH_REQUIRED */
  MGE_POOL_MAY_WAIT = 2
}; /* may return a block that is still in use, with MGE_NEEDS_WAIT, instead of growing */
#define MGE_POOL_KNOWN_BITS 3u
/* Extent of a trim. Memory in use is never released, also when its last use is behind a fence. */
enum {
  MGE_TRIM_EXCESS = 1, /* release until at most `retain` bytes (set_policy) are committed */
  MGE_TRIM_ALL = 2
};

/* The counters of a pool. */
typedef struct mge_pool_stats {
  uint32_t struct_size;
  uint32_t presence; /* bit i set: member i below is valid; the others are unknown */
  uint64_t in_use;   /* bytes in reservations, after rounding */
  uint64_t peak_in_use;
  uint64_t committed;     /* bytes held from the slab provider */
  uint64_t slab_acquires; /* successful growths */
  uint64_t slab_releases;
  uint64_t hits;         /* acquires served without the provider */
  uint64_t largest_free; /* bytes that one acquire can get without growth or waiting */
  uint64_t over_budget;  /* acquires refused by the budget or by the policy's cap */
} mge_pool_stats;
#define MGE_POOL_STATS_ALL 255u /* presence: every member */

/* The source of a pool's slabs: the host, which charges the device's budget and calls the backend. */
typedef struct mge_slab_provider {
  uint32_t struct_size;
  uint32_t reserved;
  void* self;
  /* MGE_RESOURCE_EXHAUSTED: the device has no more memory. MGE_OVER_BUDGET: the host's budget or the policy forbids it. */
  mge_code (*acquire)(void* self, uint64_t bytes, mge_slab* out, mge_error* error);
  void (*release)(void* self, const mge_slab* slab);
  void (*memory_info)(void* self, uint64_t* free_bytes, uint64_t* total_bytes);
} mge_slab_provider;

/* The reason for a call of `decide`. */
enum {
  MGE_PRESSURE_NONE = 0, /* before a plan runs, or when the pool is created; without a plan its bytes are 0 */
  /* Another user of the memory was refused. The host trims the pool to `retain` and repeats the request. */
  MGE_PRESSURE_MODERATE = 1,
  MGE_PRESSURE_CRITICAL = 2
}; /* MODERATE was not enough: the pool is about to release everything that is not in use */

/* The input of a reserve policy: the pool of one memory class, and the latest plan. The plan's bytes are of class DEVICE. */
typedef struct mge_plan_summary {
  uint32_t struct_size;
  uint32_t concurrency; /* expected number of instances; >= 1 */
  uint64_t arena_bytes;
  uint64_t constant_bytes;
  uint64_t workspace_bytes;
  uint64_t memory_free;  /* free bytes of the class, within the budget */
  uint64_t memory_total; /* 0: unknown */
  uint64_t budget;       /* limit for the class; 0: none */
  uint32_t pressure;     /* MGE_PRESSURE_... */
  int32_t memory_class;
} mge_plan_summary;

/* The result of a reserve policy. */
typedef struct mge_reserve_decision {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t initial;   /* bytes to acquire before the first run; at most cap, and at most memory_total if it is known */
  uint64_t keep_free; /* bytes of the device to leave free: the pool is trimmed before it would use them */
  uint64_t retain;    /* bytes that may stay committed when nothing is in use, or under pressure; 0: all of them, under
                       * pressure none */
  uint64_t step;      /* minimum growth of a pool that cuts blocks from larger slabs; 0: the pool decides */
  uint64_t cap;       /* maximum that the pool may commit: the largest over all plans; 0: only the budget limits it */
} mge_reserve_decision;

/* A pool that the backend implements. Several threads use it at once. trim, stats and set_policy must not allocate, and
 * of the provider they may call only release: the host may hold locks. */
typedef struct mge_pool_api {
  uint32_t struct_size;
  uint32_t minor;
  mge_code (*create)(mge_device* device, int32_t memory_class, const mge_slab_provider* provider, mge_pool** out,
                     mge_error* error);
  void (*destroy)(mge_pool* pool);
  /* Returns more than 0 bytes, aligned to a power of two up to 2^30. The memory is used once `after` is reached (NULL: at
   * once). Here and in release, the mge_fence_point is valid until the call returns, its fence until the pool is
   * destroyed, so a pool may query the fence later.
   * Returns MGE_OK, MGE_NEEDS_WAIT (only with MAY_WAIT), MGE_GROWTH_REQUIRED (only with NO_GROWTH), the provider's
   * refusal, or an error. Before it returns a refusal, it has released its idle memory. It may block until last uses have
   * ended. */
  mge_code (*acquire)(mge_pool* pool, uint64_t bytes, uint64_t alignment, const mge_fence_point* after, uint32_t flags,
                      mge_reservation* out, mge_error* error);
  /* Releases a reservation. `last_use` (NULL: already over) has been enqueued: the fence reaches it without further calls
   * by the caller. If the reservation was never used, `last_use` is `ready` if that had to be waited for, otherwise
   * `after` of acquire. */
  void (*release)(mge_pool* pool, const mge_reservation* reservation, const mge_fence_point* last_use);
  void (*trim)(mge_pool* pool, int32_t how);
  void (*stats)(const mge_pool* pool, mge_pool_stats* out);
  /* [optional] Passes the reserve policy's decision. `retain` is resolved: 0 means nothing, UINT64_MAX everything. The
   * pool applies `retain` and `step`, the host the rest. Until the first call, or if NULL, the pool decides. */
  void (*set_policy)(mge_pool* pool, const mge_reserve_decision* decision);
} mge_pool_api;

/* Decides without side effects, perhaps under locks of the host. The pool acts on it; the host's budget applies. [any] */
typedef struct mge_reserve_api {
  uint32_t struct_size;
  uint32_t minor;
  mge_code (*decide)(mge_device* device, const mge_plan_summary* plan, mge_reserve_decision* out, mge_error* error);
} mge_reserve_api;

/* Memory: the driver's calls, and the pool and reserve policy of the backend. */
typedef struct mge_memory_api {
  uint32_t struct_size;
  uint32_t minor;
  /* The only calls that take memory from the driver. Addresses are aligned to buffer_alignment, pinned ones to 64. [any] */
  mge_code (*slab_acquire)(mge_device* device, int32_t memory_class, uint64_t bytes, mge_slab* out, mge_error* error);
  void (*slab_release)(mge_device* device, const mge_slab* slab);
  void (*memory_info)(mge_device* device, uint64_t* free_bytes, uint64_t* total_bytes);
  mge_text pool;                /* a ready-made pool: "naive", "round", "unpooled", "growing"; ignored if own_pool is set */
  const mge_pool_api* own_pool; /* [optional] */
  mge_text reserve; /* a ready-made policy: "percent:5", "bytes:64MiB", "all", "none"; ignored if own_reserve is set */
  const mge_reserve_api* own_reserve; /* [optional] */
  /* [optional] Like slab_release, but returns at once: the slab and `last_use` (never NULL) are valid until then. [any] */
  void (*slab_release_after)(mge_device* device, const mge_slab* slab, const mge_fence_point* last_use);
  /* [optional] Virtual memory of class MGE_MEMORY_DEVICE: a range of addresses, with memory committed to
   * parts of it. Offsets and sizes are multiples of range_granularity. range_commit takes memory from the driver, like
   * slab_acquire. [any] */
  uint64_t (*range_granularity)(mge_device* device);
  /* [optional, with range_granularity] */
  mge_code (*range_reserve)(mge_device* device, uint64_t bytes, mge_slab* out, mge_error* error);
  /* [optional, with range_granularity] Everything in the range has been decommitted. */
  void (*range_release)(mge_device* device, const mge_slab* range);
  /* [optional, with range_granularity] */
  mge_code (*range_commit)(mge_device* device, const mge_slab* range, uint64_t offset, uint64_t bytes, mge_error* error);
  /* [optional, with range_granularity] */
  void (*range_decommit)(mge_device* device, const mge_slab* range, uint64_t offset, uint64_t bytes);
} mge_memory_api;

/* ---------------------------------------------------------------- queues, fences, copies */

enum { MGE_QUEUE_COMPUTE = 0, MGE_QUEUE_COPY_IN = 1, MGE_QUEUE_COPY_OUT = 2, MGE_QUEUE_COMMUNICATION = 3 };

/* Queues, fences, copies, and the capture and replay of work. */
typedef struct mge_queue_api {
  uint32_t struct_size;
  uint32_t minor;
  /* Creates one more queue of that kind. MGE_UNIMPLEMENTED: the backend has no such kind (COMMUNICATION). [any] */
  mge_code (*create)(mge_device* device, int32_t kind, mge_queue** out, mge_error* error);
  void (*destroy)(mge_queue* queue);
  /* Copies between two addresses of this device, or between the device and host memory, in queue order. [one] */
  mge_code (*copy)(mge_queue* queue, void* destination, const void* source, uint64_t bytes, mge_error* error);
  mge_code (*fence_create)(mge_device* device, mge_fence** out, mge_error* error);
  void (*fence_destroy)(mge_fence* fence);
  /* Sets the fence to `value`, or to a failure, when all work enqueued before is done. [one] */
  mge_code (*signal)(mge_queue* queue, mge_fence* fence, uint64_t value, mge_error* error);
  /* Delays later work until the fence, of any device of this backend, has reached `value`, which was enqueued. [one] */
  mge_code (*wait)(mge_queue* queue, mge_fence* fence, uint64_t value, mge_error* error);
  /* Blocks the calling thread until the fence has reached `value` or failed. Returns the failure's code and text, or
   * MGE_DEADLINE_EXCEEDED after timeout_ns. [any] */
  mge_code (*host_wait)(mge_fence* fence, uint64_t value, uint64_t timeout_ns, mge_error* error);
  /* [optional] Work enqueued between begin and end is recorded instead of run. replay enqueues the record. [one] */
  mge_code (*capture_begin)(mge_queue* queue, mge_error* error);
  /* [optional, with capture_begin] */
  mge_code (*capture_end)(mge_queue* queue, void** out_record, mge_error* error);
  mge_code (*replay)(mge_queue* queue, void* record, mge_error* error); /* [optional, with capture_begin] */
  /* [optional, with capture_begin] */
  void (*record_destroy)(mge_device* device, void* record);
  /* [optional] Copies between the memory of the queue's device and of a peer (link() returned PEER). [one] */
  mge_code (*copy_peer)(mge_queue* queue, mge_device* to, void* destination, mge_device* from, const void* source,
                        uint64_t bytes, mge_error* error);
  /* [optional] Ends a capture like capture_end, and replaces the work of `record`, which is not running, by the captured
   * work. That differs from it only in addresses. MGE_UNIMPLEMENTED: the capture has ended, and the record is unchanged.
   * [one] */
  mge_code (*capture_update)(mge_queue* queue, void* record, mge_error* error);
} mge_queue_api;

/* ---------------------------------------------------------------- profile */

/* Measures time on a queue. The host uses it to time candidates (capture-safe ones during a replay) and for traces. A
 * stamp is kept until the queue has taken it. */
typedef struct mge_profile_api {
  uint32_t struct_size;
  uint32_t minor;
  mge_code (*stamp_create)(mge_device* device, mge_stamp** out, mge_error* error); /* [any] */
  void (*stamp_destroy)(mge_stamp* stamp);
  /* taken when all work enqueued before is done. [one] */
  mge_code (*stamp)(mge_queue* queue, mge_stamp* stamp, mge_error* error);
  /* Returns the time between two stamps of one device. The host has waited for a fence signalled after both. [any] */
  mge_code (*elapsed_us)(mge_stamp* from, mge_stamp* to, double* out, mge_error* error);
} mge_profile_api;

/* ---------------------------------------------------------------- collectives */

enum { MGE_REDUCE_SUM = 0, MGE_REDUCE_PRODUCT = 1, MGE_REDUCE_MIN = 2, MGE_REDUCE_MAX = 3 };
#define MGE_UNIQUE_ID_BYTES 128

/* The transport between devices of one or several processes. Operations run in queue order. `count` is in elements.
 * If a rank fails or does not take part within the communicator's timeout, the queue fails with MGE_UNAVAILABLE. */
typedef struct mge_collective_api {
  uint32_t struct_size;
  uint32_t minor;
  mge_code (*unique_id)(uint8_t* out, mge_error* error); /* for one group of ranks; the user passes it to each. [any] */
  /* Returns when all ranks have called it, or fails after the timeout. [any] */
  mge_code (*create)(mge_device* device, const uint8_t* id, uint32_t rank, uint32_t ranks, uint64_t timeout_ns,
                     mge_communicator** out, mge_error* error);
  void (*abort)(mge_communicator* communicator);   /* ends pending and later operations with MGE_CANCELLED. [any] */
  void (*destroy)(mge_communicator* communicator); /* its operations have ended. [any] */
  /* Operations of this thread between begin and end start together, in any order. [any] */
  mge_code (*group_begin)(mge_error* error);
  mge_code (*group_end)(mge_error* error);
  mge_code (*all_reduce)(mge_communicator* communicator, mge_queue* queue, const void* source, void* destination,
                         uint64_t count, mge_dtype dtype, int32_t reduction, mge_error* error); /* [one] */
  mge_code (*broadcast)(mge_communicator* communicator, mge_queue* queue, const void* source, void* destination,
                        uint64_t count, mge_dtype dtype, uint32_t root, mge_error* error); /* [one] */
} mge_collective_api;

/* ---------------------------------------------------------------- layouts of the backend's own */

/* The description of an opaque layout. */
typedef struct mge_layout_info {
  uint32_t struct_size;
  uint32_t reserved;
  mge_text name;  /* shown by --why; valid as long as the library is loaded */
  uint64_t bytes; /* size of a tensor in this layout */
} mge_layout_info;

/* Required for OPAQUE layouts. A conversion to or from one is a problem with one node mge.Reorder of that layout. */
typedef struct mge_layout_api {
  uint32_t struct_size;
  uint32_t minor;
  /* Describes a layout. Fails if no candidate uses the opaque_id. [any] */
  mge_code (*describe)(mge_device* device, const mge_layout* layout, mge_dtype dtype, int32_t rank, const int64_t* dims,
                       mge_layout_info* out, mge_error* error);
} mge_layout_api;

/* ---------------------------------------------------------------- kernels */

/* Attributes of a candidate. */
#define MGE_KERNEL_DETERMINISTIC (UINT64_C(1) << 0)     /* equal inputs give equal bits on one device class */
#define MGE_KERNEL_BATCH_INVARIANT (UINT64_C(1) << 1)   /* the bits of a row do not depend on the other rows */
#define MGE_KERNEL_REFERENCE (UINT64_C(1) << 2)         /* the host's plain loops, or a kernel of that speed */
#define MGE_KERNEL_REDUCED_PRECISION (UINT64_C(1) << 3) /* computes with less precision than the element type */
#define MGE_KERNEL_CAPTURE_SAFE (UINT64_C(1) << 4)
#define MGE_KERNEL_USES_ATOMICS (UINT64_C(1) << 5)
#define MGE_KERNEL_ALLOCATES (UINT64_C(1) << 6)   /* a library in it allocates heap memory while it runs */
#define MGE_KERNEL_TENSOR_CORE (UINT64_C(1) << 7) /* uses the matrix units of a GPU */
#define MGE_KERNEL_WINOGRAD (UINT64_C(1) << 8)
#define MGE_KERNEL_FFT (UINT64_C(1) << 9)
#define MGE_KERNEL_COMPILES (UINT64_C(1) << 10)         /* prepare compiles code */
#define MGE_KERNEL_READS_ARGS_FIRST (UINT64_C(1) << 11) /* a step has read `args` when it returns (the kit checks it) */
/* computes with less precision than the element type, where the model allows it for this node (accuracy_level) */
#define MGE_KERNEL_MODEL_PRECISION (UINT64_C(1) << 12)
#define MGE_KERNEL_KNOWN_BITS ((UINT64_C(1) << 13) - 1)

/* How a kernel writes an output. ADD: adds to what the output's memory holds. */
enum { MGE_WRITE = 0, MGE_WRITE_ADD = 1 };

/* An output that may, or must, overwrite an input. */
typedef struct mge_in_place {
  uint32_t output;
  uint32_t input;
} mge_in_place;

/* A computation: a group of nodes, often one. Its graph's inputs and outputs are the operands, in the order of all lists. */
typedef struct mge_problem {
  uint32_t struct_size;
  uint32_t threads; /* number of threads that the kernel may expect; >= 1 */
  const mge_graph* graph;
  const int32_t* write_modes; /* per output; NULL: all MGE_WRITE. A kernel that cannot ADD refuses the problem */
  /* Outputs whose memory is that of an input. A kernel that cannot work so refuses the problem. */
  const mge_in_place* aliases;
  uint64_t alias_count;
} mge_problem;

/* The limits that the user and the host set for candidates. */
typedef struct mge_constraints {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t require; /* MGE_KERNEL_ bits that a candidate must have */
  uint64_t forbid;
  uint64_t workspace_limit; /* UINT64_MAX: none */
} mge_constraints;

/* A kernel and variant that can compute a problem. */
typedef struct mge_candidate {
  uint32_t struct_size;
  int32_t rank;             /* order chosen by the backend: lower first. The order among candidates without cost_us */
  mge_text id;              /* stable name of the kernel and variant, in caches and in --why */
  uint64_t attributes;      /* MGE_KERNEL_ */
  uint64_t workspace_bound; /* upper limit of the workspace that prepare returns; at most 2^40 */
  double cost_us;           /* estimated time of one run; finite; negative: unknown */
  uint64_t token;           /* used by the backend only; passed to prepare unchanged */
  const mge_layout* const* input_layouts;  /* per input; NULL list or entry: plain. Constants are always plain */
  const mge_layout* const* output_layouts; /* per output */
  const mge_in_place* in_place;            /* an output may use this input's memory if the input has no later use */
  uint64_t in_place_count;
} mge_candidate;

/* Receives the candidates of a problem, and the kernels that refuse it. */
typedef struct mge_candidate_sink {
  uint32_t struct_size;
  uint32_t reserved;
  void* self;
  void (*offer)(void* self, const mge_candidate* candidate); /* the host copies it */
  void (*refuse)(void* self, const mge_text* kernel, const mge_text* reason);
} mge_candidate_sink;

/* The requirements of a prepared kernel. */
typedef struct mge_prepared {
  uint32_t struct_size;
  uint32_t args_bytes; /* size of the bound arguments, at most 2^24; the memory is 16-byte aligned and never moved */
  mge_kernel* kernel;
  uint64_t workspace_bytes;
  /* per input: 0, or bytes of the packed constant; NULL: all 0. Valid as long as the kernel */
  const uint64_t* prepack_bytes;
  uint32_t has_state; /* 1: state_create is called once per instance of a plan */
  uint32_t reserved;
  /* Per input: the name of its packed form, at most 4096 bytes. Two kernels of one device with equal names must pack
   * equal sources to equal bytes: the host then packs a constant once for both. Empty name or NULL list: every kernel
   * packs for itself. Valid as long as the kernel. */
  const mge_text* prepack_forms;
  /* Number of Philox 4x32-10 blocks (four 32-bit numbers each) that one run draws; 0: none. The host then binds
   * mge_binding.random, and advances the counter by this number with every run, replays included. */
  uint64_t random_blocks;
} mge_prepared;

/* An operand of a step: an offset into one of the run's bases, at a multiple of buffer_alignment, which is at least 64. On
 * a device without queues a plain operand may be memory of the user or of the model's file; it is then aligned only to its
 * element size (at most 8). */
typedef struct mge_slot {
  uint32_t base;
  uint32_t reserved;
  uint64_t offset;
} mge_slot;

/* The operands of a step, as offsets. Valid during bind(). */
typedef struct mge_binding {
  uint32_t struct_size;
  uint32_t state_index;   /* index of this kernel's state in run->states */
  const mge_slot* inputs; /* per input of the problem; for a packed constant, the packed form */
  const mge_slot* outputs;
  mge_slot workspace;
  const mge_layout* const* input_layouts; /* the layouts that the host chose, ANY resolved; NULL entry: plain */
  const mge_layout* const* output_layouts;
  mge_slot random; /* if random_blocks: two uint64, the key and the first counter, in memory that steps access */
} mge_binding;

/* One run of one instance. Does not change during the run. */
typedef struct mge_run {
  uint32_t struct_size;
  uint32_t width; /* number of threads that parallel_for may use; >= 1 */
  void* const* bases;
  void* const* states;
  mge_queue* queue;      /* NULL on devices without queues */
  const int32_t* cancel; /* not 0 once the run should stop; a kernel that takes many ms must check it */
  const mge_host* host;
  mge_error* error;
  void* pool; /* first argument of parallel_for */
  /* Like host->parallel_for, with at most `width` threads. */
  void (*parallel_for)(void* pool, uint64_t chunks, void (*body)(void* context, uint64_t chunk), void* context);
} mge_run;

/* Runs one step, or enqueues it on run->queue. Must not allocate, lock or search. `args` and `run` are valid until the
 * enqueued work has ended, and as long as a record of it exists. [any], with different runs. */
typedef mge_code (*mge_step_fn)(const void* args, const mge_run* run);

/* Kernels: offers for a problem, preparation, packing of constants, binding. */
typedef struct mge_kernel_api {
  uint32_t struct_size;
  uint32_t minor;
  mge_text set_version; /* changes whenever candidates or their meaning change; tuning results then expire */
  /* Offers every candidate for the problem within the constraints, and refuses the others with a reason. [any] */
  mge_code (*enumerate)(mge_device* device, const mge_problem* problem, const mge_constraints* constraints,
                        const mge_candidate_sink* sink, mge_error* error);
  /* Creates a kernel from an offered candidate. The problem is valid only during the call; layouts come later, in
   * mge_binding. MGE_UNIMPLEMENTED means that the candidate cannot be used after all: the host tries the next candidate,
   * then the next device that the user allows, and does not use this one again for the problem. Any other failure ends
   * planning. [any] */
  mge_code (*prepare)(mge_device* device, const mge_problem* problem, const mge_candidate* candidate, mge_prepared* out,
                      mge_error* error);
  /* [optional if no kernel packs] Packs input number `input` from plain host memory into host memory. [any] */
  mge_code (*prepack)(mge_kernel* kernel, uint32_t input, const void* source, void* destination, mge_error* error);
  /* Writes the kernel's arguments for the given slots into `args` and returns the step's function. [one] */
  mge_code (*bind)(mge_kernel* kernel, const mge_binding* binding, void* args, mge_step_fn* out, mge_error* error);
  /* [optional if no kernel has state] [any] */
  mge_code (*state_create)(mge_kernel* kernel, void** out, mge_error* error);
  void (*state_destroy)(mge_kernel* kernel, void* state); /* [optional, with state_create] */
  void (*destroy)(mge_kernel* kernel);                    /* no step of it is running. [any] */
  /* [optional] Packs like prepack, on a queue of the device: both addresses are in its memory. Must give the same bytes.
   * MGE_UNIMPLEMENTED: the host calls prepack; it cannot do so for a state. [one] */
  mge_code (*prepack_on)(mge_kernel* kernel, uint32_t input, mge_queue* queue, const void* source, void* destination,
                         mge_error* error);
  /* [optional] Returns in `out` the needs of this kernel for a problem that differs from its own in shapes only; `kernel`
   * and packed constants stay as they are. MGE_UNIMPLEMENTED: not possible for these shapes. [any] */
  mge_code (*rebind)(mge_kernel* kernel, const mge_problem* problem, mge_prepared* out, mge_error* error);
} mge_kernel_api;

/* ---------------------------------------------------------------- claims */

/* A group of nodes that one kernel computes. */
typedef struct mge_claim {
  uint32_t struct_size;
  uint32_t reserved;
  mge_text name;        /* name of the fusion, shown by --why */
  const int32_t* nodes; /* indices into graph->nodes */
  uint64_t node_count;
  double benefit_us; /* estimated time saved, compared with the nodes one by one; decides between overlapping offers */
  /* Indices into graph->values: inner values that the kernel can also write, if they are used outside of the group. */
  const int32_t* extra_outputs;
  uint64_t extra_output_count;
} mge_claim;

/* Receives the groups that claim() offers. */
typedef struct mge_claim_sink {
  uint32_t struct_size;
  uint32_t reserved;
  void* self;
  void (*offer)(void* self, const mge_claim* claim);
} mge_claim_sink;

/* Claims: the fusions of a backend. */
typedef struct mge_graph_api {
  uint32_t struct_size;
  uint32_t minor;
  /* Offers groups of two or more nodes that one kernel computes. Each accepted group becomes a problem. Per node of the
   * graph, the host accepts up to 64 offers with 1024 nodes in total. [any] */
  mge_code (*claim)(mge_device* device, const mge_graph* graph, const mge_claim_sink* sink, mge_error* error);
  /* [optional] Returns 0 if the host must not apply this rewrite (`mge plan` lists the names) to models for the device. A
   * backend without it gets all rewrites but `attention_projections`. */
  int32_t (*allow_rewrite)(mge_device* device, const mge_text* name); /* [any] */
} mge_graph_api;

/* ---------------------------------------------------------------- selection */

enum { MGE_SELECT_HEURISTIC = 0, MGE_SELECT_PROFILE = 1, MGE_SELECT_REPRODUCIBLE = 2 };

/* The candidates of a problem, to be ordered. */
typedef struct mge_choice {
  uint32_t struct_size;
  int32_t mode;
  const mge_problem* problem;
  const mge_candidate* const* candidates; /* candidates that passed the host's filters */
  uint64_t candidate_count;
  const double* measured_us; /* PROFILE: per candidate; NULL otherwise */
} mge_choice;

enum { MGE_STRATEGY_BY_COST = 1 }; /* the order follows measured or estimated times */
#define MGE_STRATEGY_KNOWN_BITS 1u

/* Orders candidates. The host uses the first one, whatever layout reorders that needs. If the order is BY_COST, or the
 * host's own, the host may use a later candidate that saves more in reorders than it costs. */
typedef struct mge_strategy_api {
  uint32_t struct_size;
  uint32_t minor;
  /* [optional] Writes the indices of all candidates, each once, best first. NULL: the host's order is used. [any] */
  mge_code (*order)(mge_device* device, const mge_choice* choice, uint32_t* out_order, mge_error* error);
  uint32_t flags; /* MGE_STRATEGY_... flags of `order` */
  /* Default mode (MGE_SELECT_...) if the user does not set select.strategy. PROFILE: the host times the candidates.
   * REPRODUCIBLE: the host accepts only DETERMINISTIC candidates. */
  int32_t mode;
} mge_strategy_api;

/* ---------------------------------------------------------------- what the host has ready */

/* The host's own pools, reserve policies and strategy, for a backend that wraps one of them. [any] */
struct mge_ready_made {
  uint32_t struct_size;
  uint32_t minor;
  void* self; /* first argument of every function below */
  /* Returns a pool: "naive", "round", "unpooled" or "growing"; NULL for another name. Valid until stop(). */
  const mge_pool_api* (*pool)(void* self, const mge_text* name);
  /* Applies a policy: "percent:5", "bytes:64MiB", "all", "none". */
  mge_code (*reserve)(void* self, const mge_text* policy, const mge_plan_summary* plan, mge_reserve_decision* out,
                      mge_error* error);
  /* Orders like mge_strategy_api.order, for the mode in `choice`. */
  mge_code (*order)(void* self, const mge_choice* choice, uint32_t* out_order, mge_error* error);
};

/* ---------------------------------------------------------------- the plugin */

/* The main table of a backend. Static: valid as long as the library is loaded. */
typedef struct mge_plugin {
  uint32_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t reserved;
  uint64_t header_hash; /* MGE_ABI_HASH */
  mge_text name;
  mge_text version;
  const mge_setting* const* settings;
  uint64_t setting_count;
  /* Starts the backend. Called first, and again after stop() or in a forked child. `host` is valid until stop() returns. */
  mge_code (*start)(const mge_host* host, mge_error* error);
  /* Joins every thread and releases every handle. Called once per start(), by its process, never at process exit. */
  void (*stop)(void);
  const mge_device_api* device;
  const mge_memory_api* memory;
  const mge_queue_api* queue; /* [optional] NULL: steps run in the calling thread */
  const mge_kernel_api* kernel;
  const mge_graph_api* graph;       /* [optional] */
  const mge_strategy_api* strategy; /* [optional] NULL: the host's strategy is used */
  /* [optional] Returns a table by reverse-DNS name, or NULL. */
  const void* (*extension)(const char* name, uint32_t min_version);
  const mge_layout_api* layout;         /* [optional] */
  const mge_profile_api* profile;       /* [optional] NULL: the host times with its own clock around a fence */
  const mge_collective_api* collective; /* [optional] */
} mge_plugin;

/* The version of the host. */
typedef struct mge_query_in {
  uint32_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t reserved;
  uint64_t header_hash;
} mge_query_in;

/* The result of mge_plugin_query. */
typedef struct mge_query_out {
  uint32_t struct_size;
  uint32_t reserved;
  const mge_plugin* plugin; /* static: valid as long as the library is loaded */
  mge_text reason;          /* the reason, if the result is not MGE_OK */
} mge_query_out;

/* The only exported symbol. Has no side effects and may be called many times. */
typedef mge_code (*mge_plugin_query_fn)(const mge_query_in* in, mge_query_out* out);
#define MGE_PLUGIN_QUERY_SYMBOL "mge_plugin_query"
#define MGE_EXPORT __attribute__((visibility("default")))

/* ---------------------------------------------------------------- identity: the ELF note */

/* Instruction sets that the library requires. The host does not open it on a processor without them. */
#define MGE_ISA_AVX2 (1u << 0)   /* with FMA and F16C */
#define MGE_ISA_AVX512 (1u << 1) /* F, BW, DQ, VL, CD */
#define MGE_ISA_KNOWN_BITS 3u

#define MGE_NOTE_OWNER "MGE"
#define MGE_NOTE_TYPE 1u
#define MGE_NOTE_SECTION ".note.mge.plugin"

/* The identity of a backend. The host reads it from the file before it opens the library. */
typedef struct mge_note {
  uint32_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;     /* version that it was built with */
  uint32_t abi_minor_min; /* oldest host version that it supports */
  uint32_t hash_low;      /* MGE_ABI_HASH */
  uint32_t hash_high;
  uint32_t isa; /* MGE_ISA_ bits */
  uint32_t reserved;
  char name[32]; /* a-z, 0-9, '_'; zero-terminated */
  char version[32];
  /* device classes (a-z, '_'), separated by ','; includes "gpu" if a device can be selected as gpuN */
  char classes[64];
} mge_note;

/* The ELF note that contains a mge_note. */
typedef struct mge_note_section {
  uint32_t owner_size;
  uint32_t note_size;
  uint32_t type;
  char owner[4];
  mge_note note;
} mge_note_section;

#define MGE_PLUGIN_NOTE(plugin_name, plugin_version, plugin_classes, plugin_isa)                            \
  __attribute__((section(MGE_NOTE_SECTION), used, aligned(4))) static const mge_note_section mge_note_ = {  \
      4,                                                                                                    \
      (uint32_t)sizeof(mge_note),                                                                           \
      MGE_NOTE_TYPE,                                                                                        \
      {'M', 'G', 'E', 0},                                                                                   \
      {(uint32_t)sizeof(mge_note), MGE_ABI_MAJOR, MGE_ABI_MINOR, 0, (uint32_t)(MGE_ABI_HASH & 0xffffffffu), \
       (uint32_t)(MGE_ABI_HASH >> 32), (plugin_isa), 0, plugin_name, plugin_version, plugin_classes}}

#ifdef __cplusplus
}
#endif

#endif /* MGE_PLUGIN_H_ */
