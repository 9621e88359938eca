// SPDX-License-Identifier: Apache-2.0
// A backend whose kernels differ in speed, correctness and repeatability (tuner.h).
// TUNER_OWN gives it its own pool, reserve policy and strategy. TUNER_WRAPS lets these wrap those of the host. TUNER_GPU makes
// its device a GPU. TUNER_STUCK adds a kernel that never returns and one that crashes.
#include "tuner.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>

#include "mge/plugin.h"

#ifndef TUNER_NAME
#define TUNER_NAME "tuner"
#endif

#ifdef TUNER_GPU
MGE_PLUGIN_NOTE(TUNER_NAME, "1.0", TUNER_NAME ",gpu", 0);
constexpr uint32_t kGpu = MGE_DEVICE_GPU;
#else
MGE_PLUGIN_NOTE(TUNER_NAME, "1.0", TUNER_NAME, 0);
constexpr uint32_t kGpu = 0;
#endif

namespace {

TunerRecord g_record = {};
const mge_host* g_host = nullptr;
char g_device;

constexpr mge_text Text(const char* s) { return {s, std::string_view(s).size()}; }
mge_code Fail(mge_error* error, mge_code code, const char* text) {
  return g_host->fail(g_host->self, error, code, text, std::strlen(text));
}
template <typename T, typename F>
constexpr T Table(F fill) {
  T t = {};
  t.struct_size = sizeof(T);
  fill(t);
  return t;
}

// ---- device and memory

mge_code Start(const mge_host* host, mge_error*) {
  g_host = host;
  return MGE_OK;
}
void Stop() {}
mge_code EnumerateDevices(const mge_device_sink* sink, mge_error*) {
  mge_device_info info = {};
  info.struct_size = sizeof(info);
  info.class_name = Text(TUNER_NAME);
  info.name = Text("a device for tests");
  info.fingerprint = Text(TUNER_NAME);
  info.device_class = Text("tuner-1");
  info.score = 1;
  info.flags = MGE_DEVICE_HOST_ACCESSIBLE | MGE_DEVICE_ONLY_BY_NAME | kGpu;
  sink->device(sink->self, &info);
  return MGE_OK;
}
mge_code Open(uint32_t, mge_device** out, mge_error*) {
  *out = reinterpret_cast<mge_device*>(&g_device);
  return MGE_OK;
}
void Close(mge_device*) {}

mge_code SlabAcquire(mge_device*, int32_t memory_class, uint64_t bytes, mge_slab* out, mge_error* error) {
  if (g_record.fail_slab == kFailAlways || (g_record.fail_slab > 0 && --g_record.fail_slab == 0)) {
    return Fail(error, MGE_RESOURCE_EXHAUSTED, "told to fail");
  }
  void* address = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!address) return Fail(error, MGE_RESOURCE_EXHAUSTED, "the system gives no more memory");
  *out = {sizeof(mge_slab), memory_class, address, address, nullptr, bytes};
  g_record.held += bytes;
  return MGE_OK;
}
void SlabRelease(mge_device*, const mge_slab* slab) {
  g_record.held -= slab->bytes;
  std::free(slab->address);
}
void MemoryInfo(mge_device*, uint64_t* free_bytes, uint64_t* total_bytes) {
  *free_bytes = (uint64_t{1} << 30) - g_record.held;
  *total_bytes = uint64_t{1} << 30;
}

#if defined(TUNER_OWN)
// Slabs of the backend's own pool: one slab per reservation.
const mge_slab_provider* g_provider = nullptr;
mge_code PoolCreate(mge_device*, int32_t, const mge_slab_provider* provider, mge_pool** out, mge_error*) {
  g_provider = provider;
  *out = reinterpret_cast<mge_pool*>(&g_provider);
  return MGE_OK;
}
void PoolDestroy(mge_pool*) {}
mge_code PoolAcquire(mge_pool*, uint64_t bytes, uint64_t, const mge_fence_point*, uint32_t, mge_reservation* out,
                     mge_error* error) {
  mge_slab slab = {};
  slab.struct_size = sizeof(slab);
  if (mge_code code = g_provider->acquire(g_provider->self, bytes, &slab, error)) return code;
  *out = {sizeof(mge_reservation), 0, slab.address, slab.host_address, slab.bytes, 0, nullptr, 0};
  g_record.arena = slab.address;
  ++g_record.pool_acquires;
  return MGE_OK;
}
void PoolRelease(mge_pool*, const mge_reservation* r, const mge_fence_point*) {
  mge_slab slab = {sizeof(mge_slab), 0, r->address, r->host_address, nullptr, r->bytes};
  g_provider->release(g_provider->self, &slab);
}
void PoolTrim(mge_pool*, int32_t) {}
void PoolStats(const mge_pool*, mge_pool_stats* out) { out->presence = 0; }
mge_code Decide(mge_device*, const mge_plan_summary* plan, mge_reserve_decision*, mge_error*) {
  ++g_record.reserves;
  if (plan->arena_bytes) g_record.arena_bytes = plan->arena_bytes;
  return MGE_OK;
}
// Orders the candidates by estimated cost, largest first.
mge_code Order(mge_device*, const mge_choice* choice, uint32_t* out_order, mge_error*) {
  ++g_record.orders;
  for (uint64_t i = 0; i < choice->candidate_count; ++i) {
    uint64_t place = 0;
    for (uint64_t k = 0; k < choice->candidate_count; ++k) {
      place += choice->candidates[k]->cost_us > choice->candidates[i]->cost_us;
    }
    out_order[place] = static_cast<uint32_t>(i);
  }
  return MGE_OK;
}
#elif defined(TUNER_WRAPS)
// Returns the host's pool, which the functions below wrap and count.
const mge_pool_api* Inner() {
  mge_text name = Text("growing");
  return g_host->ready_made->pool(g_host->ready_made->self, &name);
}
mge_code PoolCreate(mge_device* d, int32_t memory_class, const mge_slab_provider* provider, mge_pool** out, mge_error* e) {
  return Inner()->create(d, memory_class, provider, out, e);
}
void PoolDestroy(mge_pool* pool) { Inner()->destroy(pool); }
mge_code PoolAcquire(mge_pool* pool, uint64_t bytes, uint64_t alignment, const mge_fence_point* after, uint32_t flags,
                     mge_reservation* out, mge_error* e) {
  ++std::atomic_ref(g_record.pool_acquires);
  return Inner()->acquire(pool, bytes, alignment, after, flags, out, e);
}
void PoolRelease(mge_pool* pool, const mge_reservation* r, const mge_fence_point* last_use) {
  Inner()->release(pool, r, last_use);
}
void PoolTrim(mge_pool* pool, int32_t how) { Inner()->trim(pool, how); }
void PoolStats(const mge_pool* pool, mge_pool_stats* out) { Inner()->stats(pool, out); }
void PoolSetPolicy(mge_pool* pool, const mge_reserve_decision* decision) { Inner()->set_policy(pool, decision); }
mge_code Decide(mge_device*, const mge_plan_summary* plan, mge_reserve_decision* out, mge_error* e) {
  ++g_record.reserves;
  if (plan->arena_bytes) g_record.arena_bytes = plan->arena_bytes;
  mge_text policy = Text("bytes:64KiB");
  return g_host->ready_made->reserve(g_host->ready_made->self, &policy, plan, out, e);
}
mge_code Order(mge_device*, const mge_choice* choice, uint32_t* out_order, mge_error* e) {
  ++g_record.orders;
  return g_host->ready_made->order(g_host->ready_made->self, choice, out_order, e);
}
#endif

// ---- kernels

struct Variant {
  const char* id;
  double cost_us;
  int64_t spin_us;
  uint64_t attributes;
  int64_t TunerRecord::*count;
  bool for_relu, for_neg;
  bool for_conv = false;
  uint64_t workspace = 0;
};
constexpr Variant kVariants[] = {
#ifdef TUNER_STUCK
    {"stuck", 0.1, 0, MGE_KERNEL_DETERMINISTIC, &TunerRecord::stuck, true, false, true},
    {"breaks", 0.2, 0, MGE_KERNEL_DETERMINISTIC, &TunerRecord::breaks, false, false, true},
#endif
    {"slow", 1, 300, MGE_KERNEL_DETERMINISTIC, &TunerRecord::slow, true, false},
    {"steady", 10, 100, MGE_KERNEL_DETERMINISTIC, &TunerRecord::steady, true, false},
    {"loose", 20, 10, 0, &TunerRecord::loose, true, true},
    {"wrong", 5, 0, 0, &TunerRecord::wrong, true, true},
    {"rough", 0.5, 0, MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_REDUCED_PRECISION, &TunerRecord::rough, true, true},
    {"matrix", 0.7, 0, MGE_KERNEL_TENSOR_CORE, &TunerRecord::matrix, false, true},
    {"plain", 50, 30'000, MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_REFERENCE, nullptr, true, false},
    {"tight", 10, 200, MGE_KERNEL_DETERMINISTIC, &TunerRecord::tight, false, false, true},
    {"roomy", 20, 10, MGE_KERNEL_DETERMINISTIC, &TunerRecord::roomy, false, false, true, 1 << 20},
};

struct Kernel {
  const Variant* variant;
  std::string_view op;  // of the kernel's group, a literal
  uint64_t elements;
};
struct Args {
  Kernel kernel;
  mge_slot x, w, y;  // w: of Conv only
};

int64_t NowNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

std::mutex g_launch_mutex;  // guards what launches count, as kernels may run on several threads

// Counts kernels that run at the same time.
class Running {
 public:
  Running() {
    std::lock_guard lock(g_launch_mutex);
    g_record.most_at_once = std::max(g_record.most_at_once, ++running_);
  }
  ~Running() {
    std::lock_guard lock(g_launch_mutex);
    --running_;
  }

 private:
  static inline int64_t running_ = 0;
};

mge_code Run(const void* raw, const mge_run* run) {
  const Args& a = *static_cast<const Args*>(raw);
  int64_t begin = NowNs();
  const Running running;
  {
    std::lock_guard lock(g_launch_mutex);
    ++g_record.launches;
    if (a.kernel.variant->count) ++(g_record.*a.kernel.variant->count);
  }
  if (!a.kernel.variant->count && g_record.plain_fails) return Fail(run->error, MGE_INTERNAL, "told to fail");
  auto at = [&](const mge_slot& s) { return reinterpret_cast<float*>(static_cast<char*>(run->bases[s.base]) + s.offset); };
#ifdef TUNER_STUCK
  while (a.kernel.variant->count == &TunerRecord::stuck) pause();
  if (a.kernel.variant->count == &TunerRecord::breaks || a.kernel.op == "Neg") std::abort();
#endif
  const float* x = at(a.x);
  float* y = at(a.y);
  bool wrong = a.kernel.variant->count == &TunerRecord::wrong;
  float scale = a.kernel.variant->count == &TunerRecord::rough ? 1.001f : 1.0f;
  for (uint64_t i = 0; i < a.kernel.elements; ++i) {
    const float relu = x[i] > 0 ? x[i] : 0;
    const float right = a.kernel.op == "Conv" ? at(a.w)[0] * x[i] : a.kernel.op == "Neg" ? -x[i] : relu;
    y[i] = wrong ? x[i] : scale * right;
  }
  while (NowNs() - begin < a.kernel.variant->spin_us * 1000) {
  }
  return MGE_OK;
}

mge_code Enumerate(mge_device*, const mge_problem* problem, const mge_constraints* constraints,
                   const mge_candidate_sink* sink, mge_error*) {
  const mge_graph& g = *problem->graph;
  std::string_view op(g.nodes[0]->op.data, g.nodes[0]->op.size);
  // A MatMul with a result of the size of its first operand is computed as if it were a Relu of it. The weight of a Conv has one
  // element.
  if (g.node_count != 1 || (op != "Relu" && op != "Neg" && op != "MatMul" && op != "Conv") ||
      g.values[g.inputs[0]]->dtype != MGE_DTYPE_F32) {
    return MGE_OK;
  }
  for (const Variant& v : kVariants) {
    if (!(op == "Conv" ? v.for_conv : op == "Neg" ? v.for_neg : v.for_relu) || (!v.count && !g_record.with_plain)) continue;
    mge_text id = Text(v.id);
    if ((v.attributes & constraints->require) != constraints->require) {
      mge_text reason = Text("its attributes are outside of the constraints");
      sink->refuse(sink->self, &id, &reason);
      continue;
    }
    if (v.workspace > constraints->workspace_limit) {
      mge_text reason = Text("its workspace is beyond the limit");
      sink->refuse(sink->self, &id, &reason);
      continue;
    }
    mge_candidate c = {};
    c.struct_size = sizeof(c);
    c.id = id;
    c.rank = static_cast<int32_t>(&v - kVariants);
    c.attributes = v.attributes;
    c.cost_us = v.cost_us;
    c.workspace_bound = v.workspace + g_record.workspace + g_record.more_workspace;
    c.token = static_cast<uint64_t>(&v - kVariants);
    sink->offer(sink->self, &c);
  }
  return MGE_OK;
}
mge_code Prepare(mge_device*, const mge_problem* problem, const mge_candidate* candidate, mge_prepared* out,
                 mge_error* error) {
  if (g_record.unable && std::strstr(g_record.unable, kVariants[candidate->token].id)) {
    ++g_record.unable_asked;
    return Fail(error, MGE_UNIMPLEMENTED, "the compiler said:\n  no such instruction\n");
  }
  const mge_graph& g = *problem->graph;
  const mge_value& x = *g.values[g.inputs[0]];
  uint64_t elements = 1;
  for (int i = 0; i < x.rank; ++i) elements *= static_cast<uint64_t>(x.dims[i]);
  std::string_view op(g.nodes[0]->op.data, g.nodes[0]->op.size);
  out->kernel = reinterpret_cast<mge_kernel*>(new Kernel{&kVariants[candidate->token],
                                                         op == "Conv"  ? "Conv"
                                                         : op == "Neg" ? "Neg"
                                                                       : "Relu",
                                                         elements});
  out->args_bytes = sizeof(Args);
  out->workspace_bytes = kVariants[candidate->token].workspace + g_record.workspace;
  return MGE_OK;
}
mge_code Bind(mge_kernel* kernel, const mge_binding* binding, void* args, mge_step_fn* out, mge_error*) {
  const Kernel& k = *reinterpret_cast<Kernel*>(kernel);
  *static_cast<Args*>(args) = {k, binding->inputs[0], k.op == "Conv" ? binding->inputs[1] : mge_slot{}, binding->outputs[0]};
  *out = Run;
  return MGE_OK;
}
void Destroy(mge_kernel* kernel) { delete reinterpret_cast<Kernel*>(kernel); }

// ---- tables

constexpr auto kDevice = Table<mge_device_api>([](auto& t) {
  t.enumerate = EnumerateDevices;
  t.open = Open;
  t.close = Close;
});
#if defined(TUNER_OWN) || defined(TUNER_WRAPS)
constexpr auto kPool = Table<mge_pool_api>([](auto& t) {
  t.create = PoolCreate;
  t.destroy = PoolDestroy;
  t.acquire = PoolAcquire;
  t.release = PoolRelease;
  t.trim = PoolTrim;
  t.stats = PoolStats;
#ifdef TUNER_WRAPS
  t.set_policy = PoolSetPolicy;
#endif
});
constexpr auto kReserve = Table<mge_reserve_api>([](auto& t) { t.decide = Decide; });
constexpr auto kStrategy = Table<mge_strategy_api>([](auto& t) { t.order = Order; });
#elif defined(TUNER_MODE)
constexpr auto kStrategy = Table<mge_strategy_api>([](auto& t) { t.mode = TUNER_MODE; });
#endif
constexpr auto kMemory = Table<mge_memory_api>([](auto& t) {
  t.slab_acquire = SlabAcquire;
  t.slab_release = SlabRelease;
  t.memory_info = MemoryInfo;
#if defined(TUNER_OWN) || defined(TUNER_WRAPS)
  t.own_pool = &kPool;
  t.own_reserve = &kReserve;
#else
  t.pool = Text("unpooled");
  t.reserve = Text("none");
#endif
});
constexpr auto kKernel = Table<mge_kernel_api>([](auto& t) {
  t.set_version = Text("1");
  t.enumerate = Enumerate;
  t.prepare = Prepare;
  t.bind = Bind;
  t.destroy = Destroy;
});

const void* Extension(const char* name, uint32_t) {
  return std::string_view(name) == MGE_TUNER_RECORD ? &g_record : nullptr;
}

constexpr auto kPlugin = Table<mge_plugin>([](auto& t) {
  t.abi_major = MGE_ABI_MAJOR;
  t.abi_minor = MGE_ABI_MINOR;
  t.header_hash = MGE_ABI_HASH;
  t.name = Text(TUNER_NAME);
  t.version = Text("1.0");
  t.start = Start;
  t.stop = Stop;
  t.device = &kDevice;
  t.memory = &kMemory;
  t.kernel = &kKernel;
#if defined(TUNER_OWN) || defined(TUNER_WRAPS) || defined(TUNER_MODE)
  t.strategy = &kStrategy;
#endif
  t.extension = Extension;
});

}  // namespace

extern "C" MGE_EXPORT mge_code mge_plugin_query(const mge_query_in*, mge_query_out* out) {
  out->plugin = &kPlugin;
  return MGE_OK;
}
