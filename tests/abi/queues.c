/* SPDX-License-Identifier: Apache-2.0
 * A backend in plain C with the optional tables: queues that work in the calling thread, stamps, a claim, a strategy, a
 * layout, a pool and a reserve policy. It computes Relu(Neg(x)), plain or in reverse order, and counts its calls. */
#include "queues.h"

#include <stdlib.h>
#include <string.h>

#include "mge/plugin.h"
#include "synthetic.h"

MGE_PLUGIN_NOTE(BACKEND_NAME, "1.0", "queues", 0);

enum { kCopy, kSignal, kWait, kHostWait, kStamp, kElapsed, kDescribe, kClaim, kOrder, kDecide, kCreate, kAcquire, kRelease };
static Asked asked[] = {[kCopy] = {"queue.copy", 0},          [kSignal] = {"queue.signal", 0},
                        [kWait] = {"queue.wait", 0},          [kHostWait] = {"queue.host_wait", 0},
                        [kStamp] = {"profile.stamp", 0},      [kElapsed] = {"profile.elapsed_us", 0},
                        [kDescribe] = {"layout.describe", 0}, [kClaim] = {"graph.claim", 0},
                        [kOrder] = {"strategy.order", 0},     [kDecide] = {"own_reserve.decide", 0},
                        [kCreate] = {"own_pool.create", 0},   [kAcquire] = {"own_pool.acquire", 0},
                        [kRelease] = {"own_pool.release", 0}, {NULL, 0}};
static void Count(int slot) { __atomic_fetch_add(&asked[slot].times, 1, __ATOMIC_RELAXED); }

static const mge_host* host;

static mge_code Start(const mge_host* given, mge_error* error) {
  (void)error;
  host = given;
  return MGE_OK;
}
static void Stop(void) { host = NULL; }
static const void* Extension(const char* name, uint32_t min_version) {
  (void)min_version;
  return strcmp(name, MGE_TEST_ASKED) ? NULL : asked;
}

/* ---- device and memory: the host reaches pinned memory only */

static mge_code Enumerate(const mge_device_sink* sink, mge_error* error) {
  mge_device_info info = {NEWER.struct_size = sizeof(info),    .class_name = STRING("queues"),   .name = STRING("plain C"),
                          .fingerprint = STRING(BACKEND_NAME), .device_class = STRING("queues"), .score = 1};
  (void)error;
  sink->device(sink->self, &info);
  return MGE_OK;
}
static mge_code Open(uint32_t index, mge_device** out, mge_error* error) {
  (void)index, (void)error;
  *out = malloc(1);
  return *out ? MGE_OK : MGE_RESOURCE_EXHAUSTED;
}
static void Close(mge_device* device) { free(device); }

static mge_code SlabAcquire(mge_device* device, int32_t memory_class, uint64_t bytes, mge_slab* out, mge_error* error) {
  void* address = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096); /* more than this host asks of a pool */
  (void)device, (void)error;
  if (!address) return MGE_RESOURCE_EXHAUSTED;
  out->memory_class = memory_class;
  out->address = address;
  out->host_address = memory_class == MGE_MEMORY_PINNED ? address : NULL;
  out->bytes = bytes;
  return MGE_OK;
}
static void SlabRelease(mge_device* device, const mge_slab* slab) {
  (void)device;
  free(slab->address);
}
static void MemoryInfo(mge_device* device, uint64_t* free_bytes, uint64_t* total_bytes) {
  (void)device;
  *free_bytes = *total_bytes = UINT64_C(1) << 30;
}

/* ---- a pool that caches nothing: each block is a slab; work is finished once it is enqueued, so release frees at once */

struct mge_pool {
  const mge_slab_provider* slabs;
  int32_t memory_class;
  uint64_t in_use;
};
static mge_code PoolCreate(mge_device* device, int32_t memory_class, const mge_slab_provider* provider, mge_pool** out,
                           mge_error* error) {
  mge_pool* pool = calloc(1, sizeof(mge_pool));
  (void)device, (void)error;
  Count(kCreate);
  if (!pool) return MGE_RESOURCE_EXHAUSTED;
  pool->slabs = provider;
  pool->memory_class = memory_class;
  *out = pool;
  return MGE_OK;
}
static void PoolDestroy(mge_pool* pool) { free(pool); }
static mge_code PoolAcquire(mge_pool* pool, uint64_t bytes, uint64_t alignment, const mge_fence_point* after, uint32_t flags,
                            mge_reservation* out, mge_error* error) {
  mge_slab slab = {NEWER.struct_size = sizeof(slab)};
  (void)alignment, (void)after;
  Count(kAcquire);
  if (flags & MGE_POOL_NO_GROWTH) return MGE_GROWTH_REQUIRED;
  mge_code code = pool->slabs->acquire(pool->slabs->self, bytes, &slab, error);
  if (code != MGE_OK) return code;
  out->address = slab.address;
  out->host_address = slab.host_address;
  out->bytes = slab.bytes;
  __atomic_fetch_add(&pool->in_use, slab.bytes, __ATOMIC_RELAXED);
  return MGE_OK;
}
static void PoolRelease(mge_pool* pool, const mge_reservation* block, const mge_fence_point* last_use) {
  mge_slab slab = {NEWER.struct_size = sizeof(slab), .memory_class = pool->memory_class, .address = block->address,
                   .host_address = block->host_address, .bytes = block->bytes};
  (void)last_use;
  Count(kRelease);
  __atomic_fetch_sub(&pool->in_use, block->bytes, __ATOMIC_RELAXED);
  pool->slabs->release(pool->slabs->self, &slab);
}
static void PoolTrim(mge_pool* pool, int32_t how) { (void)pool, (void)how; }
static void PoolStats(const mge_pool* pool, mge_pool_stats* out) {
  out->presence = 1 | 4; /* these two */
  out->in_use = out->committed = __atomic_load_n(&pool->in_use, __ATOMIC_RELAXED);
}
static mge_code Decide(mge_device* device, const mge_plan_summary* plan, mge_reserve_decision* out, mge_error* error) {
  (void)device, (void)error;
  Count(kDecide);
  out->initial = plan->arena_bytes;
  return MGE_OK;
}

/* ---- queues, fences, stamps: the calling thread does the work */

static mge_code QueueCreate(mge_device* device, int32_t kind, mge_queue** out, mge_error* error) {
  (void)device, (void)kind, (void)error;
  *out = malloc(1);
  return *out ? MGE_OK : MGE_RESOURCE_EXHAUSTED;
}
static void QueueDestroy(mge_queue* queue) { free(queue); }
static mge_code Copy(mge_queue* queue, void* destination, const void* source, uint64_t bytes, mge_error* error) {
  (void)queue, (void)error;
  Count(kCopy);
  memmove(destination, source, bytes);
  return MGE_OK;
}

struct mge_fence {
  uint64_t value;
};
static mge_code FenceCreate(mge_device* device, mge_fence** out, mge_error* error) {
  (void)device, (void)error;
  *out = calloc(1, sizeof(mge_fence));
  return *out ? MGE_OK : MGE_RESOURCE_EXHAUSTED;
}
static void FenceDestroy(mge_fence* fence) { free(fence); }
static mge_code Signal(mge_queue* queue, mge_fence* fence, uint64_t value, mge_error* error) {
  (void)queue, (void)error;
  Count(kSignal);
  __atomic_store_n(&fence->value, value, __ATOMIC_RELEASE);
  return MGE_OK;
}
static mge_code Reached(const mge_fence* fence, uint64_t value, mge_error* error) { /* signals come before waits */
  if (__atomic_load_n(&fence->value, __ATOMIC_ACQUIRE) >= value) return MGE_OK;
  return host->fail(host->self, error, MGE_FAILED_PRECONDITION, "never signalled", 15);
}
static mge_code Wait(mge_queue* queue, mge_fence* fence, uint64_t value, mge_error* error) {
  (void)queue;
  Count(kWait);
  return Reached(fence, value, error);
}
static mge_code HostWait(mge_fence* fence, uint64_t value, uint64_t timeout_ns, mge_error* error) {
  (void)timeout_ns;
  Count(kHostWait);
  return Reached(fence, value, error);
}

struct mge_stamp {
  uint64_t ns;
};
static mge_code StampCreate(mge_device* device, mge_stamp** out, mge_error* error) {
  (void)device, (void)error;
  *out = calloc(1, sizeof(mge_stamp));
  return *out ? MGE_OK : MGE_RESOURCE_EXHAUSTED;
}
static void StampDestroy(mge_stamp* stamp) { free(stamp); }
static mge_code Stamp(mge_queue* queue, mge_stamp* stamp, mge_error* error) {
  (void)queue, (void)error;
  Count(kStamp);
  stamp->ns = host->clock_ns(host->self);
  return MGE_OK;
}
static mge_code ElapsedUs(mge_stamp* from, mge_stamp* to, double* out, mge_error* error) {
  (void)error;
  Count(kElapsed);
  *out = (double)(to->ns - from->ns) / 1000;
  return MGE_OK;
}

/* ---- kernels: Relu(Neg(x)), and reorders to and from the layout with the elements in reverse order */

enum { kBackwards = 1 }; /* number of the layout, and token of the candidate that has it */

static uint64_t ElementsOf(int32_t rank, const int64_t* dims) {
  uint64_t elements = 1;
  for (int32_t i = 0; i < rank; ++i) elements *= (uint64_t)dims[i];
  return elements;
}
static mge_layout LayoutOf(uint64_t elements) {
  return (mge_layout){NEWER.struct_size = sizeof(mge_layout), .kind = MGE_LAYOUT_OPAQUE, .opaque_id = kBackwards,
                      .opaque_bytes = elements * sizeof(float)};
}
static mge_code Describe(mge_device* device, const mge_layout* layout, mge_dtype dtype, int32_t rank, const int64_t* dims,
                         mge_layout_info* out, mge_error* error) {
  (void)device, (void)dtype;
  Count(kDescribe);
  if (layout->opaque_id != kBackwards) return host->fail(host->self, error, MGE_INVALID_ARGUMENT, "an unknown layout", 17);
  out->name = (mge_text)STRING("backwards");
  out->bytes = LayoutOf(ElementsOf(rank, dims)).opaque_bytes;
  return MGE_OK;
}

static int Is(const mge_node* node, const char* op) {
  return node->op.size == strlen(op) && !memcmp(node->op.data, op, node->op.size);
}
static int IsGroup(const mge_graph* g, const mge_node* first, const mge_node* second) {
  return Is(first, "Neg") && Is(second, "Relu") && second->inputs[0] == first->outputs[0] &&
         g->values[first->inputs[0]]->dtype == MGE_DTYPE_F32 && g->values[first->outputs[0]]->uses == 1;
}
static mge_code Claim(mge_device* device, const mge_graph* g, const mge_claim_sink* sink, mge_error* error) {
  (void)device, (void)error;
  Count(kClaim);
  for (int32_t i = 0; i + 1 < (int32_t)g->node_count; ++i) {
    const int32_t nodes[] = {i, i + 1};
    mge_claim claim = {NEWER.struct_size = sizeof(claim), .name = STRING("neg_relu"), .nodes = nodes, .node_count = 2,
                       .benefit_us = 1};
    if (IsGroup(g, g->nodes[i], g->nodes[i + 1])) sink->offer(sink->self, &claim);
  }
  return MGE_OK;
}

struct mge_kernel {
  uint64_t elements;
  int from_backwards, to_backwards, computes;
};
typedef struct Args {
  mge_slot x, y;
  mge_kernel kernel;
} Args;

static float* At(const mge_run* run, mge_slot slot) { return (float*)((char*)run->bases[slot.base] + slot.offset); }
static mge_code Launch(const void* given, const mge_run* run) {
  const Args* a = given;
  const float* x = At(run, a->x);
  float* y = At(run, a->y);
  for (uint64_t i = 0, last = a->kernel.elements - 1; i <= last; ++i) {
    float v = x[a->kernel.from_backwards ? last - i : i];
    y[a->kernel.to_backwards ? last - i : i] = !a->kernel.computes ? v : v < 0 ? -v : 0;
  }
  return MGE_OK;
}

static mge_code EnumerateKernels(mge_device* device, const mge_problem* problem, const mge_constraints* constraints,
                                 const mge_candidate_sink* sink, mge_error* error) {
  const mge_graph* g = problem->graph;
  const mge_value* x = g->values[g->inputs[0]];
  const mge_layout backwards = LayoutOf(ElementsOf(x->rank, x->dims)), *const layouts[] = {&backwards};
  mge_candidate turn = {NEWER.struct_size = sizeof(turn), .id = STRING("turn"), .attributes = MGE_KERNEL_DETERMINISTIC,
                        .cost_us = 1};
  mge_candidate plain = turn, turned = turn;
  (void)device, (void)constraints, (void)error;
  if (g->node_count == 1 && Is(g->nodes[0], "Reorder")) sink->offer(sink->self, &turn);
  if (g->node_count != 2 || !IsGroup(g, g->nodes[0], g->nodes[1])) return MGE_OK;
  plain.id = (mge_text)STRING("neg_relu.plain");
  sink->offer(sink->self, &plain);
  turned.id = (mge_text)STRING("neg_relu.backwards");
  turned.token = kBackwards;
  turned.input_layouts = turned.output_layouts = layouts;
  sink->offer(sink->self, &turned);
  return MGE_OK;
}
static mge_code Order(mge_device* device, const mge_choice* choice, uint32_t* out_order, mge_error* error) {
  (void)device, (void)error;
  Count(kOrder);
  for (uint64_t i = 0; i < choice->candidate_count; ++i) out_order[i] = (uint32_t)(choice->candidate_count - 1 - i);
  return MGE_OK;
}

static int IsBackwards(const mge_value* value) { return value->layout && value->layout->kind == MGE_LAYOUT_OPAQUE; }
static mge_code Prepare(mge_device* device, const mge_problem* problem, const mge_candidate* candidate, mge_prepared* out,
                        mge_error* error) {
  const mge_graph* g = problem->graph;
  const mge_value *x = g->values[g->inputs[0]], *y = g->values[g->outputs[0]];
  mge_kernel* kernel = calloc(1, sizeof(mge_kernel));
  (void)device, (void)error;
  if (!kernel) return MGE_RESOURCE_EXHAUSTED;
  kernel->elements = ElementsOf(x->rank, x->dims);
  kernel->computes = g->node_count == 2;
  kernel->from_backwards = candidate->token == kBackwards || IsBackwards(x);
  kernel->to_backwards = candidate->token == kBackwards || IsBackwards(y);
  out->args_bytes = sizeof(Args);
  out->kernel = kernel;
  return MGE_OK;
}
static mge_code Bind(mge_kernel* kernel, const mge_binding* binding, void* args, mge_step_fn* out, mge_error* error) {
  Args* a = args;
  (void)error;
  a->x = binding->inputs[0];
  a->y = binding->outputs[0];
  a->kernel = *kernel;
  *out = Launch;
  return MGE_OK;
}
static void Destroy(mge_kernel* kernel) { free(kernel); }

/* ---- tables */

static const mge_device_api kDevice = {NEWER.struct_size = sizeof(kDevice), .minor = MGE_ABI_MINOR, .enumerate = Enumerate,
                                       .open = Open, .close = Close};
static const mge_pool_api kPool = {NEWER.struct_size = sizeof(kPool),
                                   .minor = MGE_ABI_MINOR,
                                   .create = PoolCreate,
                                   .destroy = PoolDestroy,
                                   .acquire = PoolAcquire,
                                   .release = PoolRelease,
                                   .trim = PoolTrim,
                                   .stats = PoolStats};
static const mge_reserve_api kReserve = {NEWER.struct_size = sizeof(kReserve), .minor = MGE_ABI_MINOR, .decide = Decide};
static const mge_memory_api kMemory = {
    NEWER.struct_size = sizeof(kMemory), .minor = MGE_ABI_MINOR, .slab_acquire = SlabAcquire, .slab_release = SlabRelease,
    .memory_info = MemoryInfo,           .own_pool = &kPool,     .own_reserve = &kReserve};
static const mge_queue_api kQueue = {NEWER.struct_size = sizeof(kQueue),
                                     .minor = MGE_ABI_MINOR,
                                     .create = QueueCreate,
                                     .destroy = QueueDestroy,
                                     .copy = Copy,
                                     .fence_create = FenceCreate,
                                     .fence_destroy = FenceDestroy,
                                     .signal = Signal,
                                     .wait = Wait,
                                     .host_wait = HostWait};
static const mge_profile_api kProfile = {
    NEWER.struct_size = sizeof(kProfile), .minor = MGE_ABI_MINOR, .stamp_create = StampCreate,
    .stamp_destroy = StampDestroy,        .stamp = Stamp,         .elapsed_us = ElapsedUs};
static const mge_layout_api kLayout = {NEWER.struct_size = sizeof(kLayout), .minor = MGE_ABI_MINOR, .describe = Describe};
static const mge_kernel_api kKernel = {NEWER.struct_size = sizeof(kKernel),
                                       .minor = MGE_ABI_MINOR,
                                       .set_version = STRING("1"),
                                       .enumerate = EnumerateKernels,
                                       .prepare = Prepare,
                                       .bind = Bind,
                                       .destroy = Destroy};
static const mge_graph_api kGraph = {NEWER.struct_size = sizeof(kGraph), .minor = MGE_ABI_MINOR, .claim = Claim};
static const mge_strategy_api kStrategy = {NEWER.struct_size = sizeof(kStrategy), .minor = MGE_ABI_MINOR, .order = Order};
static const mge_plugin kPlugin = {NEWER.struct_size = sizeof(kPlugin),
                                   .abi_major = MGE_ABI_MAJOR,
                                   .abi_minor = MGE_ABI_MINOR,
                                   .header_hash = MGE_ABI_HASH,
                                   .name = STRING(BACKEND_NAME),
                                   .version = STRING("1.0"),
                                   .start = Start,
                                   .stop = Stop,
                                   .device = &kDevice,
                                   .memory = &kMemory,
                                   .queue = &kQueue,
                                   .kernel = &kKernel,
                                   .graph = &kGraph,
                                   .strategy = &kStrategy,
                                   .extension = Extension,
                                   .layout = &kLayout,
                                   .profile = &kProfile};

MGE_EXPORT mge_code mge_plugin_query(const mge_query_in* in, mge_query_out* out) {
  if (in->abi_major != MGE_ABI_MAJOR) return MGE_FAILED_PRECONDITION;
  out->plugin = &kPlugin;
  return MGE_OK;
}
