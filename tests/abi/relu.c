/* SPDX-License-Identifier: Apache-2.0
 * A backend in plain C that runs Relu on host memory, with the tables that every backend has. */
#include <stdlib.h>
#include <string.h>

#include "mge/plugin.h"
#include "synthetic.h"

MGE_PLUGIN_NOTE(BACKEND_NAME, "1.0", "relu", 0);

struct mge_device {
  int open;
};
struct mge_kernel {
  uint64_t elements;
};

static const mge_host* host;

static mge_code Start(const mge_host* given, mge_error* error) {
  /* A newer backend asks for an optional service of the host. */
#ifdef MGE_TEST_NEWER
  if (given->struct_size >= sizeof(mge_host))
    return given->fail(given->self, error, MGE_INTERNAL, "a host from the future", 22);
#endif
  (void)error;
  host = given;
  host->log(host->self, MGE_LOG_DEBUG, "started", 7);
  return MGE_OK;
}
static void Stop(void) { host = NULL; }

static mge_code Enumerate(const mge_device_sink* sink, mge_error* error) {
  mge_device_info info = {NEWER.struct_size = sizeof(info),    .class_name = STRING("relu"),   .name = STRING("plain C"),
                          .fingerprint = STRING(BACKEND_NAME), .device_class = STRING("relu"), .score = 1,
                          .flags = MGE_DEVICE_HOST_ACCESSIBLE};
  (void)error;
  sink->device(sink->self, &info);
  return MGE_OK;
}
static mge_code Open(uint32_t index, mge_device** out, mge_error* error) {
  (void)index, (void)error;
  *out = calloc(1, sizeof(mge_device));
  return *out ? MGE_OK : MGE_RESOURCE_EXHAUSTED;
}
static void Close(mge_device* device) { free(device); }

static mge_code SlabAcquire(mge_device* device, int32_t memory_class, uint64_t bytes, mge_slab* out, mge_error* error) {
  void* address = aligned_alloc(64, (bytes + 63) / 64 * 64);
  (void)device, (void)error;
  if (!address) return MGE_RESOURCE_EXHAUSTED;
  out->memory_class = memory_class;
  out->address = address;
  out->host_address = address;
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

typedef struct Args {
  mge_slot x, y;
  uint64_t elements;
} Args;

static mge_code Launch(const void* given, const mge_run* run) {
  const Args* a = given;
  const float* x = (const float*)((const char*)run->bases[a->x.base] + a->x.offset);
  float* y = (float*)((char*)run->bases[a->y.base] + a->y.offset);
  for (uint64_t i = 0; i < a->elements; ++i) y[i] = x[i] > 0 ? x[i] : 0;
  return MGE_OK;
}

static int IsRelu(const mge_problem* problem) {
  const mge_graph* g = problem->graph;
  return g->node_count == 1 && g->nodes[0]->op.size == 4 && !memcmp(g->nodes[0]->op.data, "Relu", 4) &&
         g->values[g->inputs[0]]->dtype == MGE_DTYPE_F32;
}
static mge_code EnumerateKernels(mge_device* device, const mge_problem* problem, const mge_constraints* constraints,
                                 const mge_candidate_sink* sink, mge_error* error) {
  mge_candidate c = {NEWER.struct_size = sizeof(c), .id = STRING("relu.c"), .attributes = MGE_KERNEL_DETERMINISTIC,
                     .cost_us = 1};
  (void)device, (void)constraints, (void)error;
  if (IsRelu(problem)) sink->offer(sink->self, &c);
  return MGE_OK;
}
static mge_code Prepare(mge_device* device, const mge_problem* problem, const mge_candidate* candidate, mge_prepared* out,
                        mge_error* error) {
  const mge_value* x = problem->graph->values[problem->graph->inputs[0]];
  mge_kernel* kernel = calloc(1, sizeof(mge_kernel));
  (void)device, (void)candidate, (void)error;
  if (!kernel) return MGE_RESOURCE_EXHAUSTED;
  kernel->elements = 1;
  for (int32_t i = 0; i < x->rank; ++i) kernel->elements *= (uint64_t)x->dims[i];
  out->args_bytes = sizeof(Args);
  out->kernel = kernel;
  return MGE_OK;
}
static mge_code Bind(mge_kernel* kernel, const mge_binding* binding, void* args, mge_step_fn* out, mge_error* error) {
  Args* a = args;
  (void)error;
  a->x = binding->inputs[0];
  a->y = binding->outputs[0];
  a->elements = kernel->elements;
  *out = Launch;
  return MGE_OK;
}
static void Destroy(mge_kernel* kernel) { free(kernel); }

static const mge_setting kLevel = {NEWER.struct_size = sizeof(kLevel),   .type = MGE_SETTING_INT,
                                   .key = STRING(BACKEND_NAME ".level"), .default_value = STRING("3"),
                                   .doc = STRING("A number."),           .max = 9,
                                   .lifecycle = MGE_LIFECYCLE_FIRST_SET};
static const mge_setting* const kSettings[] = {&kLevel};
static const mge_device_api kDevice = {NEWER.struct_size = sizeof(kDevice), .minor = MGE_ABI_MINOR, .enumerate = Enumerate,
                                       .open = Open, .close = Close};
static const mge_memory_api kMemory = {
    NEWER.struct_size = sizeof(kMemory), .minor = MGE_ABI_MINOR,  .slab_acquire = SlabAcquire, .slab_release = SlabRelease,
    .memory_info = MemoryInfo,           .pool = STRING("naive"), .reserve = STRING("none")};
static const mge_kernel_api kKernel = {NEWER.struct_size = sizeof(kKernel),
                                       .minor = MGE_ABI_MINOR,
                                       .set_version = STRING("1"),
                                       .enumerate = EnumerateKernels,
                                       .prepare = Prepare,
                                       .bind = Bind,
                                       .destroy = Destroy};
static const mge_plugin kPlugin = {NEWER.struct_size = sizeof(kPlugin),
                                   .abi_major = MGE_ABI_MAJOR,
                                   .abi_minor = MGE_ABI_MINOR,
                                   .header_hash = MGE_ABI_HASH,
                                   .name = STRING(BACKEND_NAME),
                                   .version = STRING("1.0"),
                                   .settings = kSettings,
                                   .setting_count = 1,
                                   .start = Start,
                                   .stop = Stop,
                                   .device = &kDevice,
                                   .memory = &kMemory,
                                   .kernel = &kKernel};

MGE_EXPORT mge_code mge_plugin_query(const mge_query_in* in, mge_query_out* out) {
  if (in->abi_major != MGE_ABI_MAJOR) return MGE_FAILED_PRECONDITION;
  out->plugin = &kPlugin;
  return MGE_OK;
}
