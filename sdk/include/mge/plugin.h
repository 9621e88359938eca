/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract between MGE and a device backend. Plain C99; a backend is one shared object that
 *   - carries an ELF note (MGE_PLUGIN_NOTE) by which the host judges it before it is opened,
 *   - exports one symbol, mge_plugin_query, and imports nothing from the host.
 * The file is long because the contract is one: one header, one hash of it, and nothing that two sides could mix of two
 * versions. The tables below are small, one for each concern, in the order in which a backend grows.
 *
 * Rules that hold everywhere
 *   Structs     begin with struct_size (the writer's sizeof) and only ever grow at their end. A reader looks at a member only
 *               if struct_size covers it. Zero means absent or default. Unknown bits of a flags member are refused with
 *               MGE_UNIMPLEMENTED, never ignored.
 *   Out structs are the caller's, zero but for struct_size. They are written member by member, as far as struct_size covers
 *               them, and never assigned whole: behind the pointer of an older caller is less room.
 *   Lists       are arrays of pointers, so that the structs behind them may grow.
 *   Tables      carry a minor of their own. A slot marked [optional] may be NULL; every other slot is required.
 *   Errors      A function answers an mge_code; text goes to host->fail(host, error, code, text), which copies it. `error` may be
 *               NULL. Nothing throws, exits or jumps across the boundary. MGE_DEVICE_LOST is sticky.
 *   Results     What is to be expected on the hot path is a code of its own and no failure: MGE_RESOURCE_EXHAUSTED,
 *               MGE_OVER_BUDGET, MGE_GROWTH_REQUIRED and MGE_NEEDS_WAIT of a pool, MGE_DEADLINE_EXCEEDED of a host_wait.
 *               Who asks in a loop passes no `error`, so that no text need be made.
 *   Ownership   Who creates destroys. What is passed in lives until the call returns unless the slot says otherwise. Handles are
 *               pointers to types that stay opaque.
 *   Queues      The host keeps what enqueued work touches until that work has ended: memory of either side, kernels, records,
 *               fences, the peer's device. Destroying a queue waits until what was enqueued on it has ended, and cancels what
 *               never would (a wait for a fence that nobody signals). Afterwards nothing of it touches memory.
 *   Threads     [any]: from any thread, at any time. [one]: the host calls it for one object from one thread at a time. A slot
 *               without a mark is [any]; what ends an object (close, destroy, release) is the last call for it, from any thread.
 *               Functions of a sink are called in the thread, and during the call, that the sink was given to.
 *   Memory      is a slab and an offset in it. Both sides write that as one number, the slab's address plus the offset: only the
 *               backend may read there unless the slab has a host_address. It need be no pointer. A device whose memory has
 *               no addresses gives each slab a range of numbers that no other has. Sizes and offsets are bytes.
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
#define MGE_ABI_MINOR 6

typedef struct mge_error mge_error;   /* host: a slot for one error */
typedef struct mge_device mge_device; /* backend: an open device */
typedef struct mge_queue mge_queue;   /* backend: an ordered stream of work */
typedef struct mge_fence mge_fence;   /* backend: a counter that only grows */
typedef struct mge_kernel mge_kernel; /* backend: a prepared candidate */
typedef struct mge_pool mge_pool;     /* backend: a memory pool of its own */
typedef struct mge_stamp mge_stamp;   /* backend: a point of time on a queue */
typedef struct mge_ready_made mge_ready_made;

/* ---------------------------------------------------------------- host services */

enum { MGE_LOG_DEBUG = 0, MGE_LOG_INFO = 1, MGE_LOG_WARNING = 2, MGE_LOG_ERROR = 3 };

typedef struct mge_host {
  uint32_t struct_size;
  uint32_t abi_minor;
  void* self; /* first argument of every function below */
  /* Copies the text into `error` and returns `code`. [any] */
  mge_code (*fail)(void* self, mge_error* error, mge_code code, const char* text, uint64_t size);
  void (*log)(void* self, int32_t severity, const char* text, uint64_t size); /* [any] */
  /* Calls body(context, i) for every i < chunks, on the process's compute pool and the caller; returns when all are
   * done. Bodies must not call back into the host but for fail and log. [any] */
  void (*parallel_for)(void* self, uint64_t chunks, void (*body)(void* context, uint64_t chunk), void* context);
  uint32_t (*thread_count)(void* self); /* threads of the compute pool, the caller included; >= 1. [any] */
  uint64_t (*clock_ns)(void* self);     /* monotonic. [any] */
  /* Value of the backend's setting number `index` (order of mge_plugin.settings), as text: truth as 1 or 0, sizes in
   * bytes, choices as declared; valid until stop(). [any] */
  mge_code (*setting)(void* self, uint32_t index, mge_text* out);
  /* A host table by reverse-DNS name, or NULL. [any] */
  const void* (*extension)(void* self, const char* name, uint32_t min_version);
  /* Host memory, aligned to a power of two; NULL if there is none. What is not released by stop() is reported as a leak. [any] */
  void* (*allocate)(void* self, uint64_t bytes, uint64_t alignment);
  void (*release)(void* self, void* memory); /* NULL is allowed. [any] */
  const mge_ready_made* ready_made; /* parts that a backend can use or wrap */
} mge_host;

/* ---------------------------------------------------------------- settings of a backend */

enum { MGE_SETTING_BOOL = 1, MGE_SETTING_INT = 2, MGE_SETTING_DOUBLE = 3, MGE_SETTING_BYTES = 4, MGE_SETTING_TEXT = 5,
       MGE_SETTING_CHOICE = 6 };
enum { MGE_LIFECYCLE_FIRST_SET = 1, MGE_LIFECYCLE_DYNAMIC = 2 };

typedef struct mge_setting {
  uint32_t struct_size;
  int32_t type;
  mge_text key;      /* "virtual.devices", under the backend's name; the variable is MGE_VIRTUAL_DEVICES */
  mge_text fallback; /* default, as text */
  mge_text choices;  /* MGE_SETTING_CHOICE: the allowed words, separated by '|' */
  mge_text unit;
  mge_text doc;      /* one sentence */
  double min, max;   /* numbers; both 0 for no range */
  int32_t lifecycle;
  int32_t reserved;
} mge_setting;

/* ---------------------------------------------------------------- graphs, as a backend sees them */

enum { MGE_LAYOUT_PLAIN = 0, /* row-major */
       MGE_LAYOUT_ANY = 1,   /* in a candidate: whatever comes; all ANY entries of a candidate are then equal */
       MGE_LAYOUT_PERMUTED = 2,
       MGE_LAYOUT_OPAQUE = 3 };

/* How a tensor's elements lie in memory. PERMUTED: dimensions in the order perm[0], perm[1]... (outermost first); then the
 * blocked dimensions are split, block_size[i] elements of block_axis[i] lying innermost, padded with zeros to a multiple.
 * NHWC of an NCHW tensor is perm {0,2,3,1}. */
typedef struct mge_layout {
  uint32_t struct_size;
  int32_t kind;
  int32_t rank;
  int32_t block_count; /* 0..2 */
  int32_t perm[8];
  int32_t block_axis[2];
  int32_t block_size[2];
  uint64_t opaque_id;    /* OPAQUE: the backend's own number, and the bytes that such a tensor takes */
  uint64_t opaque_bytes;
} mge_layout;

enum { MGE_ROLE_TEMPORARY = 0, MGE_ROLE_INPUT = 1, MGE_ROLE_CONSTANT = 3, MGE_ROLE_STATE = 4 };

typedef struct mge_value {
  uint32_t struct_size;
  int32_t role;
  mge_dtype dtype;
  int32_t rank;            /* -1 if unknown */
  const int64_t* dims;     /* outermost first; -1 where unknown */
  const void* data;        /* constants: plain bytes in host memory, else NULL */
  uint64_t data_bytes;
  const mge_layout* layout; /* NULL: plain */
  mge_text name;
  uint32_t uses;           /* consumers in the whole graph, uses as a graph output included */
  uint32_t version;        /* state: grows with every update, so that packed copies can be told to be stale */
} mge_value;

enum { MGE_ATTR_INT = 1, MGE_ATTR_FLOAT = 2, MGE_ATTR_TEXT = 3, MGE_ATTR_INTS = 4, MGE_ATTR_FLOATS = 5 };

typedef struct mge_attr {
  uint32_t struct_size;
  int32_t type;
  mge_text name;
  int64_t i;
  double f;
  mge_text text;
  const int64_t* ints;
  const float* floats;
  uint64_t count; /* of ints or floats */
} mge_attr;

typedef struct mge_node {
  uint32_t struct_size;
  int32_t version; /* operator set; nodes are in the newest form that the host knows (sdk/OPERATORS) */
  mge_text op;
  mge_text domain; /* "" is ai.onnx; "mge" holds the host's own operators */
  mge_text name;
  const int32_t* inputs; /* indices into values; -1 for an absent optional one */
  uint64_t input_count;
  const int32_t* outputs;
  uint64_t output_count;
  const mge_attr* const* attrs;
  uint64_t attr_count;
} mge_node;

/* Nodes in an order in which producers come first. Read-only, valid during the call. */
typedef struct mge_graph {
  uint32_t struct_size;
  uint32_t reserved;
  const mge_node* const* nodes;
  uint64_t node_count;
  const mge_value* const* values;
  uint64_t value_count;
  const int32_t* inputs; /* what comes from outside, constants included; each once */
  uint64_t input_count;
  const int32_t* outputs; /* what is needed outside */
  uint64_t output_count;
} mge_graph;

/* ---------------------------------------------------------------- devices */

enum { MGE_DEVICE_HOST_ACCESSIBLE = 1, /* the host may read and write its default memory class */
       MGE_DEVICE_SURVIVES_FORK = 2,
       MGE_DEVICE_GPU = 4,           /* answers to gpu0, gpu1... beside its own class; the note lists "gpu" then */
       MGE_DEVICE_ONLY_BY_NAME = 8 };/* never taken by xpu: the user must name it */
#define MGE_DEVICE_KNOWN_BITS 15u

typedef struct mge_device_info {
  uint32_t struct_size;
  uint32_t index;          /* the backend's number for open(); its order is the backend's */
  mge_text class_name;     /* "cpu", "cuda", ... one of the classes of the note, but not "gpu" */
  mge_text name;           /* "Intel Xeon ..." */
  mge_text fingerprint;    /* PCI address, UUID: equal for the same hardware in two backends */
  mge_text device_class;   /* key of tuning results: equal for devices on which equal choices are right */
  mge_text reason;         /* if score is 0: why it cannot be used, and what to do */
  uint32_t score;          /* 0: unusable; else 1..100, the higher wins among backends for one fingerprint */
  uint32_t flags;          /* MGE_DEVICE_... */
  uint64_t memory_total;   /* 0: unknown */
  mge_text driver;         /* version of what lies below the backend, such as a driver: measured times hold for one; may be "" */
  /* Largest slab of class MGE_MEMORY_DEVICE in bytes; 0: no limit but the memory itself. The host asks slab_acquire for no more:
   * it splits a plan's arenas and constants. A kernel with a larger tensor or workspace goes to the next device that the user
   * allows; without one, planning fails. */
  uint64_t max_allocation;
} mge_device_info;

typedef struct mge_device_sink {
  uint32_t struct_size;
  uint32_t reserved;
  void* self;
  void (*device)(void* self, const mge_device_info* info);
} mge_device_sink;

/* The way from one device to another of the same backend. */
enum { MGE_LINK_PEER = 1 }; /* copy_peer goes directly; otherwise the host stages through pinned memory */
#define MGE_LINK_KNOWN_BITS 1u
typedef struct mge_link {
  uint32_t struct_size;
  uint32_t flags;          /* MGE_LINK_... */
  double bandwidth_gb_s;   /* 10^9 bytes a second, one direction; 0: unknown */
  double latency_us;
  mge_text name;           /* "NVLink x2", "PCIe" */
} mge_link;

typedef struct mge_device_api {
  uint32_t struct_size;
  uint32_t minor;
  mge_code (*enumerate)(const mge_device_sink* sink, mge_error* error); /* [one] */
  mge_code (*open)(uint32_t index, mge_device** out, mge_error* error); /* [one] */
  void (*close)(mge_device* device);                                    /* [one]; no queue, slab, kernel is left */
  /* [optional] MGE_OK, or MGE_DEVICE_LOST once the device is lost. [any] */
  mge_code (*status)(mge_device* device, mge_error* error);
  /* [optional] How `to` is reached from `from`, both open. Without it no two devices are linked. [any] */
  mge_code (*link)(mge_device* from, mge_device* to, mge_link* out, mge_error* error);
} mge_device_api;

/* ---------------------------------------------------------------- memory: slabs, pools, reserve policy */

enum { MGE_MEMORY_DEVICE = 0, /* the default class of a device; on a CPU plain host memory */
       MGE_MEMORY_PINNED = 1, /* host memory that copy queues reach */
       MGE_MEMORY_CLASS_COUNT = 2 };

typedef struct mge_slab {
  uint32_t struct_size;
  int32_t memory_class;
  void* address;   /* what steps and copies are given */
  void* host_address; /* NULL if the host cannot reach it */
  void* handle;    /* the backend's own */
  uint64_t bytes;
} mge_slab;

/* A piece of a slab that a pool handed out. */
typedef struct mge_reservation {
  uint32_t struct_size;
  uint32_t reserved;
  void* address;
  void* host_address;
  uint64_t bytes;  /* as rounded by the pool */
  uint64_t token;  /* the pool's own */
  /* With MGE_NEEDS_WAIT, else NULL: the memory may be used once this fence has reached ready_value, or has failed. A queue
   * that waits for it takes a failure over; who must not do that waits on the host. */
  mge_fence* ready;
  uint64_t ready_value;
} mge_reservation;

typedef struct mge_fence_point {
  uint32_t struct_size;
  uint32_t reserved;
  mge_fence* fence; /* NULL: already reached */
  uint64_t value;
} mge_fence_point;

/* Flags of acquire. */
enum { MGE_POOL_NO_GROWTH = 1, /* only what the pool holds already; else MGE_GROWTH_REQUIRED */
       MGE_POOL_MAY_WAIT = 2 }; /* rather than grow, give a block whose last use is not over, and say MGE_NEEDS_WAIT */
#define MGE_POOL_KNOWN_BITS 3u
/* How to trim. What is in use, also behind a fence, stays in any case. */
enum { MGE_TRIM_EXCESS = 1, /* until at most `retain` bytes (set_policy) are committed; where that is so, nothing goes */
       MGE_TRIM_ALL = 2 };

typedef struct mge_pool_stats {
  uint32_t struct_size;
  uint32_t presence;        /* bit i set: member i below is filled; the others are unknown */
  uint64_t in_use;          /* handed out now, as rounded */
  uint64_t peak_in_use;
  uint64_t committed;       /* held from the slab provider */
  uint64_t slab_acquires;   /* growths so far; refusals do not count */
  uint64_t slab_releases;
  uint64_t hits;            /* acquires served without the provider */
  uint64_t largest_free;    /* bytes that one acquire gets without growth or waiting */
  uint64_t over_budget;     /* acquires that the budget or the policy's cap refused */
} mge_pool_stats;
#define MGE_POOL_STATS_ALL 255u /* presence: every member */

/* What a pool gets its slabs from: the host, which charges the device's budget and calls the backend. */
typedef struct mge_slab_provider {
  uint32_t struct_size;
  uint32_t reserved;
  void* self;
  /* MGE_RESOURCE_EXHAUSTED: the device has no more. MGE_OVER_BUDGET: the host's budget or the policy's cap forbids it. */
  mge_code (*acquire)(void* self, uint64_t bytes, mge_slab* out, mge_error* error);
  void (*release)(void* self, const mge_slab* slab);
  void (*memory_info)(void* self, uint64_t* free_bytes, uint64_t* total_bytes);
} mge_slab_provider;

/* Why a policy is asked. */
enum { MGE_PRESSURE_NONE = 0,      /* a plan is to run, or the pool was made and there is no plan yet: its bytes are 0 */
       /* A request of somebody who shares the memory was refused. The pool is trimmed to `retain`, the request tried again. */
       MGE_PRESSURE_MODERATE = 1,
       MGE_PRESSURE_CRITICAL = 2 };/* that was not enough: the pool is about to give back all that is not in use */

/* What a policy decides on: the pool of one memory class, and the plan that was made last, whose bytes are of class DEVICE. */
typedef struct mge_plan_summary {
  uint32_t struct_size;
  uint32_t concurrency; /* instances that are reckoned with; >= 1 */
  uint64_t arena_bytes;
  uint64_t constant_bytes;
  uint64_t workspace_bytes;
  uint64_t memory_free;  /* of the class, as far as the budget leaves it */
  uint64_t memory_total; /* 0: unknown */
  uint64_t budget;       /* of the class; 0: none */
  uint32_t pressure;     /* MGE_PRESSURE_... */
  int32_t memory_class;
} mge_plan_summary;

typedef struct mge_reserve_decision {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t initial;   /* bytes to acquire before the first run; at most memory_total, where that is known, and cap */
  uint64_t keep_free; /* bytes of the device to leave alone: the pool is trimmed before it would go below */
  uint64_t retain;    /* bytes that may stay committed when nothing is in use any more, or under pressure; 0: all of it, and
                       * under pressure none */
  uint64_t step;      /* least growth of a pool that cuts blocks out of larger slabs; 0: the pool's own */
  uint64_t cap;       /* most that the pool may commit, of all plans so far the largest; 0: as the budget allows, which binds anyway */
} mge_reserve_decision;

/* A pool of the backend's own, used from several threads at once. trim, stats and set_policy take no memory and call nothing of
 * the provider but release: the host may hold locks of its own. */
typedef struct mge_pool_api {
  uint32_t struct_size;
  uint32_t minor;
  mge_code (*create)(mge_device* device, int32_t memory_class, const mge_slab_provider* provider, mge_pool** out,
                     mge_error* error);
  void (*destroy)(mge_pool* pool);
  /* More than 0 bytes, aligned to a power of two up to 2^30. `after`: the memory is used once this is reached (NULL: at once).
   * Here and in release the struct lives until the call returns, its fence until the pool is destroyed: a pool may ask it
   * later. Answers MGE_OK, MGE_NEEDS_WAIT (only with MAY_WAIT), MGE_GROWTH_REQUIRED (only with NO_GROWTH), what the provider
   * refused with, or an error. Before it passes a refusal on, it has given back what it keeps, and may block until last uses
   * are over. */
  mge_code (*acquire)(mge_pool* pool, uint64_t bytes, uint64_t alignment, const mge_fence_point* after, uint32_t flags,
                      mge_reservation* out, mge_error* error);
  /* `last_use` (NULL: over already) has been enqueued: the fence gets there without anything else that the caller does. Of a
   * reservation that was not used after all, it is `ready` where that was to be waited for, else the `after` of acquire. */
  void (*release)(mge_pool* pool, const mge_reservation* reservation, const mge_fence_point* last_use);
  void (*trim)(mge_pool* pool, int32_t how);
  void (*stats)(const mge_pool* pool, mge_pool_stats* out);
  /* [optional] What the reserve policy decided. `retain` is resolved: 0 is none, UINT64_MAX all. It and `step` are for the
   * pool, the rest the host sees to. Until it is called, and without it, the pool itself judges what is excess. */
  void (*set_policy)(mge_pool* pool, const mge_reserve_decision* decision);
} mge_pool_api;

/* Decides, without side effects; the pool acts, and the host's budget always binds. The host may hold locks. [any] */
typedef struct mge_reserve_api {
  uint32_t struct_size;
  uint32_t minor;
  mge_code (*decide)(mge_device* device, const mge_plan_summary* plan, mge_reserve_decision* out, mge_error* error);
} mge_reserve_api;

typedef struct mge_memory_api {
  uint32_t struct_size;
  uint32_t minor;
  /* The only calls that take memory from the driver. Alignment of an address: at least 64. [any] */
  mge_code (*slab_acquire)(mge_device* device, int32_t memory_class, uint64_t bytes, mge_slab* out, mge_error* error);
  void (*slab_release)(mge_device* device, const mge_slab* slab);
  void (*memory_info)(mge_device* device, uint64_t* free_bytes, uint64_t* total_bytes);
  mge_text pool;                  /* a ready-made pool: "naive", "round", "unpooled", "growing"; ignored if own_pool is set */
  const mge_pool_api* own_pool;   /* [optional] */
  mge_text reserve;               /* a ready-made policy: "percent:5", "bytes:64MiB", "all", "none"; ignored if own_reserve is set */
  const mge_reserve_api* own_reserve; /* [optional] */
  /* [optional] Stream-ordered release: as slab_release, but the slab is read until `last_use` (never NULL), whose fence lives
   * until then. Returns at once. [any] */
  void (*slab_release_after)(mge_device* device, const mge_slab* slab, const mge_fence_point* last_use);
  /* [optional, all or none] Virtual memory of class MGE_MEMORY_DEVICE: a range of addresses, memory under parts of it.
   * Offsets and sizes are multiples of range_granularity. range_commit takes memory from the driver, as slab_acquire does. [any] */
  uint64_t (*range_granularity)(mge_device* device);
  mge_code (*range_reserve)(mge_device* device, uint64_t bytes, mge_slab* out, mge_error* error);
  void (*range_release)(mge_device* device, const mge_slab* range); /* nothing is committed any more */
  mge_code (*range_commit)(mge_device* device, const mge_slab* range, uint64_t offset, uint64_t bytes, mge_error* error);
  void (*range_decommit)(mge_device* device, const mge_slab* range, uint64_t offset, uint64_t bytes);
} mge_memory_api;

/* ---------------------------------------------------------------- queues, fences, copies */

enum { MGE_QUEUE_COMPUTE = 0, MGE_QUEUE_COPY_IN = 1, MGE_QUEUE_COPY_OUT = 2 };

typedef struct mge_queue_api {
  uint32_t struct_size;
  uint32_t minor;
  mge_code (*create)(mge_device* device, int32_t kind, mge_queue** out, mge_error* error); /* [any] */
  void (*destroy)(mge_queue* queue);
  /* Copies between two addresses of this device, or of one and host memory; ordered by the queue. [one] */
  mge_code (*copy)(mge_queue* queue, void* destination, const void* source, uint64_t bytes, mge_error* error);
  mge_code (*fence_create)(mge_device* device, mge_fence** out, mge_error* error);
  void (*fence_destroy)(mge_fence* fence);
  /* When all that was enqueued before is done, the fence becomes `value`, or carries the failure. [one] */
  mge_code (*signal)(mge_queue* queue, mge_fence* fence, uint64_t value, mge_error* error);
  /* What is enqueued later begins when the fence, of any device of this backend, has reached `value`; a failure of the fence
   * travels on. [one] */
  mge_code (*wait)(mge_queue* queue, mge_fence* fence, uint64_t value, mge_error* error);
  /* Blocks the calling thread until the fence has reached `value` or failed (then that code and text);
   * MGE_DEADLINE_EXCEEDED after timeout_ns. [any] */
  mge_code (*host_wait)(mge_fence* fence, uint64_t value, uint64_t timeout_ns, mge_error* error);
  /* [optional] What is enqueued between begin and end is recorded instead of run; replay enqueues the record. [one] */
  mge_code (*capture_begin)(mge_queue* queue, mge_error* error);
  mge_code (*capture_end)(mge_queue* queue, void** out_record, mge_error* error);
  mge_code (*replay)(mge_queue* queue, void* record, mge_error* error);
  void (*record_destroy)(mge_device* device, void* record);
  /* [optional] Copies from a peer's memory to that of the queue's device or the other way; only where link() says PEER. [one] */
  mge_code (*copy_peer)(mge_queue* queue, mge_device* to, void* destination, mge_device* from, const void* source,
                        uint64_t bytes, mge_error* error);
} mge_queue_api;

/* ---------------------------------------------------------------- profile */

/* Times on a queue, of stamps that live until the queue has taken them: how candidates are measured (capture-safe ones while
 * they are replayed), and where traces get their times from. */
typedef struct mge_profile_api {
  uint32_t struct_size;
  uint32_t minor;
  mge_code (*stamp_create)(mge_device* device, mge_stamp** out, mge_error* error); /* [any] */
  void (*stamp_destroy)(mge_stamp* stamp);
  mge_code (*stamp)(mge_queue* queue, mge_stamp* stamp, mge_error* error); /* taken when all enqueued before is done. [one] */
  /* Time between two stamps of one device. A fence signalled after both has been waited for. [any] */
  mge_code (*elapsed_us)(mge_stamp* from, mge_stamp* to, double* out, mge_error* error);
} mge_profile_api;

/* ---------------------------------------------------------------- layouts of the backend's own */

typedef struct mge_layout_info {
  uint32_t struct_size;
  uint32_t reserved;
  mge_text name;  /* for --why; lives as long as the library */
  uint64_t bytes; /* of a tensor in this layout */
} mge_layout_info;

/* Needed by a backend whose candidates name OPAQUE layouts. The way to and from such a layout is a problem like any other: one
 * node mge.Reorder, whose value has that layout. */
typedef struct mge_layout_api {
  uint32_t struct_size;
  uint32_t minor;
  /* An opaque_id that no candidate names is refused. [any] */
  mge_code (*describe)(mge_device* device, const mge_layout* layout, mge_dtype dtype, int32_t rank, const int64_t* dims,
                       mge_layout_info* out, mge_error* error);
} mge_layout_api;

/* ---------------------------------------------------------------- kernels */

/* Attributes of a candidate. */
#define MGE_KERNEL_DETERMINISTIC (UINT64_C(1) << 0)     /* equal inputs, equal bits, on one device class */
#define MGE_KERNEL_BATCH_INVARIANT (UINT64_C(1) << 1)   /* a row's bits do not depend on the other rows */
#define MGE_KERNEL_REFERENCE (UINT64_C(1) << 2)         /* the host's plain loops, or as slow */
#define MGE_KERNEL_REDUCED_PRECISION (UINT64_C(1) << 3) /* computes in less than the element type */
#define MGE_KERNEL_CAPTURE_SAFE (UINT64_C(1) << 4)
#define MGE_KERNEL_USES_ATOMICS (UINT64_C(1) << 5)
#define MGE_KERNEL_ALLOCATES (UINT64_C(1) << 6)         /* a library in it takes heap memory while it runs */
#define MGE_KERNEL_TENSOR_CORE (UINT64_C(1) << 7)       /* on the matrix units of a GPU */
#define MGE_KERNEL_KNOWN_BITS ((UINT64_C(1) << 8) - 1)

enum { MGE_WRITE = 0, MGE_WRITE_ADD = 1 };

/* What is to be computed: a group of nodes, often one. Its graph's inputs and outputs are the operands, in that order, of
 * every list below. */
typedef struct mge_problem {
  uint32_t struct_size;
  uint32_t threads;         /* width the kernel may count on; >= 1 */
  const mge_graph* graph;
  const int32_t* write_modes; /* per output; NULL: all MGE_WRITE */
} mge_problem;

typedef struct mge_constraints {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t require;         /* MGE_KERNEL_ bits that a candidate must have */
  uint64_t forbid;
  uint64_t workspace_limit; /* UINT64_MAX: none */
} mge_constraints;

typedef struct mge_in_place {
  uint32_t output;
  uint32_t input; /* the output may be given the address of this input, if nobody needs the input any more */
} mge_in_place;

typedef struct mge_candidate {
  uint32_t struct_size;
  int32_t rank;               /* the backend's order: lower first */
  mge_text id;                /* stable: names the kernel and its variant in caches and in --why */
  uint64_t attributes;        /* MGE_KERNEL_ */
  uint64_t workspace_bound;   /* prepare may ask for less, never for more; at most 2^40 */
  double cost_us;             /* estimate for one run; negative: unknown */
  uint64_t token;             /* the backend's own, comes back in prepare */
  const mge_layout* const* input_layouts;  /* per input; NULL list or entry: plain. Constants are always given plain */
  const mge_layout* const* output_layouts; /* per output */
  const mge_in_place* in_place;
  uint64_t in_place_count;
} mge_candidate;

typedef struct mge_candidate_sink {
  uint32_t struct_size;
  uint32_t reserved;
  void* self;
  void (*offer)(void* self, const mge_candidate* candidate); /* copied */
  void (*refuse)(void* self, const mge_text* kernel, const mge_text* reason);
} mge_candidate_sink;

/* What a prepared kernel needs. */
typedef struct mge_prepared {
  uint32_t struct_size;
  uint32_t args_bytes;       /* memory for its bound arguments, 16-byte aligned, copied with memcpy by nobody; at most 2^24 */
  mge_kernel* kernel;
  uint64_t workspace_bytes;
  const uint64_t* prepack_bytes; /* per input: 0, or the size of the packed form of a constant; NULL: all 0. Lives as the kernel */
  uint32_t has_state;        /* 1: state_create is called once for every instance of a plan */
  uint32_t reserved;
  /* Per input: the name of its packed form, at most 4096 bytes. Two kernels of one device that give equal names pack equal
   * sources to equal bytes, so the host packs a constant once for all of them. Empty, or a NULL list: nothing is promised, and
   * every kernel packs for itself. Lives as the kernel. */
  const mge_text* prepack_forms;
} mge_prepared;

/* An operand of a step: an offset into one of the run's bases. Its address is a multiple of 64; but on a device without queues
 * a plain operand may be memory of the user's or of the model's file, and a multiple of its elements' size (at most 8) only. */
typedef struct mge_slot {
  uint32_t base;
  uint32_t reserved;
  uint64_t offset;
} mge_slot;

typedef struct mge_binding {
  uint32_t struct_size;
  uint32_t state_index;       /* where in run->states this kernel's state is */
  const mge_slot* inputs;     /* per input of the problem; a packed constant's slot names the packed form */
  const mge_slot* outputs;
  mge_slot workspace;
  const mge_layout* const* input_layouts;  /* as settled by the host, ANY resolved; NULL entry: plain */
  const mge_layout* const* output_layouts;
} mge_binding;

/* One run of one instance. Constant during the run. */
typedef struct mge_run {
  uint32_t struct_size;
  uint32_t width;            /* threads that parallel_for may use; >= 1 */
  void* const* bases;
  void* const* states;
  mge_queue* queue;          /* NULL on devices without queues */
  const int32_t* cancel;     /* becomes non-zero when the run should stop; to be looked at by kernels of many ms */
  const mge_host* host;
  mge_error* error;
  void* pool;                /* first argument of parallel_for */
  /* As host->parallel_for, within the width of this run. */
  void (*parallel_for)(void* pool, uint64_t chunks, void (*body)(void* context, uint64_t chunk), void* context);
} mge_run;

/* Runs (or enqueues on run->queue) one step. No allocation, no lock, no look-up. `args` and `run` stay until what is enqueued
 * has ended, and as long as a record of it. [any], with different runs. */
typedef mge_code (*mge_step_fn)(const void* args, const mge_run* run);

typedef struct mge_kernel_api {
  uint32_t struct_size;
  uint32_t minor;
  mge_text set_version; /* changes whenever candidates or their meaning change: invalidates tuning results */
  /* Offers every candidate for the problem within the constraints, and refuses the others with a reason. [any] */
  mge_code (*enumerate)(mge_device* device, const mge_problem* problem, const mge_constraints* constraints,
                        const mge_candidate_sink* sink, mge_error* error);
  /* Makes a kernel of an offered candidate. The problem need not outlive the call; `binding` layouts are settled later.
   * MGE_UNIMPLEMENTED: it cannot after all. The host takes the next candidate, then the next device that the user allows, and
   * does not offer this one again for that problem. Any other failure ends the planning. [any] */
  mge_code (*prepare)(mge_device* device, const mge_problem* problem, const mge_candidate* candidate, mge_prepared* out,
                      mge_error* error);
  /* [optional if no kernel packs] Packs input number `input` from plain host memory into host memory. [any] */
  mge_code (*prepack)(mge_kernel* kernel, uint32_t input, const void* source, void* destination, mge_error* error);
  /* Writes the kernel's arguments for the given slots into `args` and names the function. [one] */
  mge_code (*bind)(mge_kernel* kernel, const mge_binding* binding, void* args, mge_step_fn* out, mge_error* error);
  /* [optional if no kernel has state] [any] */
  mge_code (*state_create)(mge_kernel* kernel, void** out, mge_error* error);
  void (*state_destroy)(mge_kernel* kernel, void* state);
  void (*destroy)(mge_kernel* kernel); /* no step of it runs any more. [any] */
} mge_kernel_api;

/* ---------------------------------------------------------------- claims */

typedef struct mge_claim {
  uint32_t struct_size;
  uint32_t reserved;
  mge_text name;          /* of the fusion, for --why */
  const int32_t* nodes;   /* indices into graph->nodes */
  uint64_t node_count;
  double benefit_us;      /* estimated gain over the nodes one by one; decides between overlapping offers */
} mge_claim;

typedef struct mge_claim_sink {
  uint32_t struct_size;
  uint32_t reserved;
  void* self;
  void (*offer)(void* self, const mge_claim* claim);
} mge_claim_sink;

typedef struct mge_graph_api {
  uint32_t struct_size;
  uint32_t minor;
  /* Offers groups of two and more nodes that one kernel computes; each becomes a problem like any other. For each node of the
   * graph the host takes 64 offers, with 1024 nodes in them. [any] */
  mge_code (*claim)(mge_device* device, const mge_graph* graph, const mge_claim_sink* sink, mge_error* error);
} mge_graph_api;

/* ---------------------------------------------------------------- selection */

enum { MGE_SELECT_HEURISTIC = 0, MGE_SELECT_PROFILE = 1, MGE_SELECT_REPRODUCIBLE = 2 };

typedef struct mge_choice {
  uint32_t struct_size;
  int32_t mode;
  const mge_problem* problem;
  const mge_candidate* const* candidates; /* those that passed the host's filters */
  uint64_t candidate_count;
  const double* measured_us; /* PROFILE: per candidate; NULL otherwise */
} mge_choice;

enum { MGE_STRATEGY_BY_COST = 1 }; /* the order is that of measured or estimated times */
#define MGE_STRATEGY_KNOWN_BITS 1u

/* The first of the order is taken, whatever reorders between layouts that brings. Where the order is BY_COST, or the host's,
 * the host may take a later one that saves more by reorders than it costs. */
typedef struct mge_strategy_api {
  uint32_t struct_size;
  uint32_t minor;
  /* [optional] Writes the indices of all candidates, best first. The host refuses anything that is not a permutation.
   * NULL: the host's order. [any] */
  mge_code (*order)(mge_device* device, const mge_choice* choice, uint32_t* out_order, mge_error* error);
  uint32_t flags; /* MGE_STRATEGY_...; of `order` */
  /* MGE_SELECT_..., which holds where the user names no mode (select.strategy): for PROFILE the host times the candidates, for
   * REPRODUCIBLE it asks for those alone that are DETERMINISTIC. */
  int32_t mode;
} mge_strategy_api;

/* ---------------------------------------------------------------- what the host has ready */

/* The host's own pools, reserve policies and strategy, for a backend that wraps one of them in parts of its own. [any] */
struct mge_ready_made {
  uint32_t struct_size;
  uint32_t minor;
  void* self; /* first argument of every function below */
  /* "naive", "round", "unpooled", "growing"; NULL for another name. Lives until stop(). */
  const mge_pool_api* (*pool)(void* self, const mge_text* name);
  /* "percent:5", "bytes:64MiB", "all", "none". */
  mge_code (*reserve)(void* self, const mge_text* policy, const mge_plan_summary* plan, mge_reserve_decision* out,
                      mge_error* error);
  /* As mge_strategy_api.order, for the mode that `choice` names. */
  mge_code (*order)(void* self, const mge_choice* choice, uint32_t* out_order, mge_error* error);
};

/* ---------------------------------------------------------------- the plugin */

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
  /* Called before anything else, and again only after stop(); `host` lives until stop() has returned. */
  mge_code (*start)(const mge_host* host, mge_error* error);
  /* Joins every thread and releases every handle; called once per start(), explicitly, never at process exit. */
  void (*stop)(void);
  const mge_device_api* device;
  const mge_memory_api* memory;
  const mge_queue_api* queue;       /* [optional] without it steps run in the calling thread */
  const mge_kernel_api* kernel;
  const mge_graph_api* graph;       /* [optional] */
  const mge_strategy_api* strategy; /* [optional] the host's ready-made ones serve otherwise */
  /* [optional] A table by reverse-DNS name, or NULL. */
  const void* (*extension)(const char* name, uint32_t min_version);
  const mge_layout_api* layout;   /* [optional] */
  const mge_profile_api* profile; /* [optional] without it the host times by its own clock around a fence */
} mge_plugin;

typedef struct mge_query_in {
  uint32_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t reserved;
  uint64_t header_hash;
} mge_query_in;

typedef struct mge_query_out {
  uint32_t struct_size;
  uint32_t reserved;
  const mge_plugin* plugin; /* static: lives as long as the library */
  mge_text reason;          /* why not, if the answer is not MGE_OK */
} mge_query_out;

/* The only exported symbol. Pure: no side effects, may be called many times. */
typedef mge_code (*mge_plugin_query_fn)(const mge_query_in* in, mge_query_out* out);
#define MGE_PLUGIN_QUERY_SYMBOL "mge_plugin_query"
#define MGE_EXPORT __attribute__((visibility("default")))

/* ---------------------------------------------------------------- identity: the ELF note */

/* Instruction sets without which the library must not be opened. */
#define MGE_ISA_AVX2 (1u << 0) /* with FMA and F16C */
#define MGE_ISA_AVX512 (1u << 1) /* F, BW, DQ, VL, CD */
#define MGE_ISA_KNOWN_BITS 3u

#define MGE_NOTE_OWNER "MGE"
#define MGE_NOTE_TYPE 1u
#define MGE_NOTE_SECTION ".note.mge.plugin"

typedef struct mge_note {
  uint32_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;     /* that it was built with */
  uint32_t abi_minor_min; /* oldest host that it works with */
  uint32_t hash_low;      /* MGE_ABI_HASH */
  uint32_t hash_high;
  uint32_t isa;           /* MGE_ISA_ bits */
  uint32_t reserved;
  char name[32];          /* a-z, 0-9, '_' ; zero-terminated */
  char version[32];
  char classes[64];       /* device classes (a-z, '_'), separated by ','; "gpu" among them if a device may answer to it */
} mge_note;

typedef struct mge_note_section {
  uint32_t owner_size;
  uint32_t note_size;
  uint32_t type;
  char owner[4];
  mge_note note;
} mge_note_section;

#define MGE_PLUGIN_NOTE(plugin_name, plugin_version, plugin_classes, plugin_isa)                              \
  __attribute__((section(MGE_NOTE_SECTION), used, aligned(4))) static const mge_note_section mge_note_ = {    \
      4, (uint32_t)sizeof(mge_note), MGE_NOTE_TYPE, {'M', 'G', 'E', 0},                                       \
      {(uint32_t)sizeof(mge_note), MGE_ABI_MAJOR, MGE_ABI_MINOR, 0, (uint32_t)(MGE_ABI_HASH & 0xffffffffu),   \
       (uint32_t)(MGE_ABI_HASH >> 32), (plugin_isa), 0, plugin_name, plugin_version, plugin_classes}}

#ifdef __cplusplus
}
#endif

#endif /* MGE_PLUGIN_H_ */
