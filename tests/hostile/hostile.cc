// SPDX-License-Identifier: Apache-2.0
// A backend with one fault, which the name in its identity note selects: "start_abort" calls abort() in start().
// A test writes the name, POINT_ACT, into a copy of the file, so one build serves every case. Other names have no fault.
//
//   point   load query start enumerate open claim enqueue prepare kernel stop unload
//   act     throw exit leave abort segfault illegal slow loop error lost, and acts that only one point has
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "mge/plugin.hpp"

MGE_PLUGIN_NOTE("hostile", "1.0", "hostile", 0);

struct mge_device {
  std::atomic<bool> lost{false};
};

// A variable that every copy exports. The host must keep the copies separate.
extern "C" MGE_EXPORT int mge_test_own_address;
int mge_test_own_address = 0;

namespace {

// Returns the name in the note. It is read at run time, because a test changes it in the file.
std::string_view Name() {
  const volatile char* name = mge_note_.note.name;
  asm volatile("" : "+r"(name));
  return const_cast<const char*>(name);
}
bool Is(std::string_view name) { return Name() == name; }

mge_code Misbehave(std::string_view point, mge_error* error = nullptr) {
  std::string_view name = Name();
  if (!name.starts_with(point) || name.size() <= point.size() || name[point.size()] != '_') return MGE_OK;
  std::string_view act = name.substr(point.size() + 1);
  if (act == "throw") throw std::runtime_error("thrown by the hostile backend");
  if (act == "exit") std::exit(3);
  if (act == "leave") std::exit(0);
  if (act == "abort") std::abort();
  if (act == "segfault") *reinterpret_cast<volatile int*>(Name().size()) = 1;
  if (act == "illegal") __builtin_trap();
  if (act == "slow") std::this_thread::sleep_for(std::chrono::seconds(2));
  while (act == "loop") std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (act == "error") return mge::Report(error, MGE_INTERNAL, "the hostile backend gives up");
  if (act == "lost") return mge::Report(error, MGE_DEVICE_LOST, "the hostile card fell off the bus");
  return MGE_OK;
}

// Static objects are alive before start() and after stop().
const mge_host* g_host = nullptr;
struct AtUnload {
  AtUnload() { Misbehave("load"); }
  ~AtUnload() {
    if (Is("unload_host") && g_host) {
      g_host->log(g_host->self, MGE_LOG_WARNING, "too late", 8);
      void* memory = g_host->allocate(g_host->self, 64, 64);
      g_host->release(g_host->self, memory);
      int sum = 0;
      g_host->parallel_for(
          g_host->self, 4, [](void* at, uint64_t) { ++*static_cast<int*>(at); }, &sum);
      if (sum != 4) std::abort();
    }
    Misbehave("unload");
  }
} g_at_unload;

mge_code Start(const mge_host* host, mge_error* error) {
  mge::Host() = host;
  g_host = host;
  return Misbehave("start", error);
}
void Stop() {
  Misbehave("stop");
  mge::Host() = nullptr;
}

mge_code Enumerate(const mge_device_sink* sink, mge_error* error) {
  uint32_t count = Is("enumerate_wild") ? 5000 : 1;
  for (uint32_t i = 0; i < count; ++i) {
    mge_device_info info = {};
    info.struct_size = Is("enumerate_short") ? 8 : sizeof(info);
    info.index = i;
    info.class_name = mge::Text("hostile");
    info.name = Is("enumerate_text") ? mge_text{"x", UINT64_C(1) << 60} : mge::Text("a hostile device");
    info.fingerprint = mge::Text(Name());
    info.score = 1;
    info.flags = MGE_DEVICE_HOST_ACCESSIBLE;
    if (!Is("enumerate_text")) sink->device(sink->self, &info);
  }
  return Misbehave("enumerate", error);
}
mge_code Open(uint32_t, mge_device** out, mge_error* error) {
  if (mge_code code = Misbehave("open", error)) return code;
  *out = Is("open_null") ? nullptr : new mge_device;
  return MGE_OK;
}
void Close(mge_device* device) { delete device; }
mge_code Status(mge_device* device, mge_error* error) {
  return device->lost ? mge::Report(error, MGE_DEVICE_LOST, "the hostile card fell off the bus") : MGE_OK;
}

mge_code SlabAcquire(mge_device*, int32_t memory_class, uint64_t bytes, mge_slab* out, mge_error*) {
  void* address = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  *out = {sizeof(mge_slab), memory_class, address, address, nullptr, bytes};
  return MGE_OK;
}
void SlabRelease(mge_device*, const mge_slab* slab) { std::free(slab->address); }
void MemoryInfo(mge_device*, uint64_t* free_bytes, uint64_t* total_bytes) { *free_bytes = *total_bytes = 1 << 30; }

// ---- one kernel: Relu of float32, or PRelu with slopes of 0, or the fault that the name selects

struct Args {
  mge_slot x, y;
  uint64_t n;
};
std::atomic<bool> g_lost{false};  // never reset, as for a card that left the bus

mge_code Launch(const Args& a, const mge_run* run) {
  if (g_lost) return mge::Report(run->error, MGE_DEVICE_LOST, "the hostile card fell off the bus");
  mge_code code = Misbehave("kernel", run->error);
  if (code == MGE_DEVICE_LOST) g_lost = true;
  if (code != MGE_OK) return code;
  while (Is("kernel_waits")) {  // until the user cancels the run
    if (mge::StopAsked(run)) return MGE_CANCELLED;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  while (Is("kernel_endless")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  auto* x = mge::At<const float>(run, a.x);
  auto* y = mge::At<float>(run, a.y);
  for (uint64_t i = 0; i < a.n; ++i) y[i] = Is("kernel_wrong") ? 7.0f : Is("kernel_neg") ? -x[i] : x[i] > 0 ? x[i] : 0;
  if (Is("kernel_underrun")) reinterpret_cast<char*>(y)[-1] ^= 64;
  if (Is("kernel_allocates")) g_host->release(g_host->self, g_host->allocate(g_host->self, 96, 128));
  if (Is("kernel_writes_input")) reinterpret_cast<char*>(const_cast<float*>(x))[5] ^= 64;
  if (Is("kernel_overrun")) reinterpret_cast<char*>(y)[a.n * sizeof(float)] ^= 64;
  return MGE_OK;
}

void Offer(const mge::Problem& p, mge::Offers& offers) {
  if (p.input(0).dtype() != MGE_DTYPE_F32 || !p.is_static()) return offers.Refuse("only float32 of a known shape");
  offers.Add({.id = "hostile.relu",
              .attributes = MGE_KERNEL_DETERMINISTIC | (Is("enqueue_flags") ? UINT64_C(1) << 60 : 0),
              .workspace = Is("prepare_workspace_wild") ? UINT64_MAX : 0});
  if (Name().starts_with("prepare_")) offers.Add({.id = "hostile.second", .rank = 1});  // a second candidate without a fault
}
mge::KernelPtr Make(const mge::Problem& p, const mge::Candidate&) {
  return mge::MakeSimple<Args, Launch>([n = p.input(0).elements()](const mge::Binding& b) {
    return Args{b.input(0), b.output(0), n};
  });
}
const mge::KernelRow kRelu = {"Relu", Offer, Make}, kNeg = {"Neg", Offer, Make}, kErf = {"Erf", Offer, Make};
const mge::KernelRow kPRelu = {"PRelu", Offer, Make};
const mge::KernelRow* const* Rows(uint64_t* count) {
  static const mge::KernelRow* const rows[] = {Is("kernel_neg") ? &kNeg : Is("kernel_erf") ? &kErf : &kRelu, &kPRelu};
  *count = std::size(rows);
  return rows;
}
using Kernels = mge::KernelTable<Rows>;

mge_code EnumerateKernels(mge_device* device, const mge_problem* problem, const mge_constraints* constraints,
                          const mge_candidate_sink* sink, mge_error* error) {
  if (mge_code code = Misbehave("enqueue", error)) return code;
  if (Is("enqueue_counts") || Is("enqueue_short") || Is("enqueue_null") || Is("enqueue_layout")) {
    mge_candidate wild = {};
    wild.struct_size = Is("enqueue_short") ? 4 : sizeof(wild);
    wild.id = Is("enqueue_null") ? mge_text{nullptr, 5} : mge::Text("hostile.wild");
    wild.in_place_count = Is("enqueue_counts") ? UINT64_C(1) << 60 : 0;
    mge_layout layout = {};
    layout.struct_size = sizeof(layout);
    layout.kind = MGE_LAYOUT_PERMUTED;
    layout.rank = 1;
    layout.block_count = 2;
    layout.block_size[0] = layout.block_size[1] = INT32_MAX;
    const mge_layout* list[] = {&layout, &layout};
    if (Is("enqueue_layout")) wild.input_layouts = wild.output_layouts = list;
    sink->offer(sink->self, &wild);
    if (Is("enqueue_null")) sink->offer(sink->self, nullptr);
  }
  const mge_text kernel = mge::Text("hostile.other"), reason = mge::Text("not today");
  for (int i = 0; Is("enqueue_refusals") && i < 1000; ++i) sink->refuse(sink->self, &kernel, &reason);
  return Kernels::Enumerate(device, problem, constraints, sink, error);
}

struct Unbound : mge::Kernel {
  uint32_t args_bytes() const override { return 0; }
  mge::Result Bind(const mge::Binding&, void*, mge::StepFn*) override { return {}; }
};

mge_code Prepare(mge_device* device, const mge_problem* problem, const mge_candidate* candidate, mge_prepared* out,
                 mge_error* error) {
  if (mge_code code = Kernels::Prepare(device, problem, candidate, out, error)) return code;
  if (mge::View(candidate->id) != "hostile.relu") return MGE_OK;
  static constexpr uint64_t kPacked[] = {0, 64}, kWild[] = {0, UINT64_MAX};
  if (Is("prepare_packed")) out->prepack_bytes = kPacked;
  if (Is("prepare_pack_wild")) out->prepack_bytes = kWild;
  if (Is("prepare_state")) out->has_state = 1;
  if (Is("prepare_args")) out->args_bytes = UINT32_MAX;
  if (Is("prepare_workspace")) out->workspace_bytes = 1;
  if (Is("prepare_workspace_wild")) out->workspace_bytes = UINT64_C(1) << 63;
  if (Is("prepare_nothing") || Is("prepare_unbound")) Kernels::Destroy(out->kernel);
  if (Is("prepare_nothing")) out->kernel = nullptr;
  if (Is("prepare_unbound")) out->kernel = reinterpret_cast<mge_kernel*>(new Unbound);
  return MGE_OK;
}

mge_code Claim(mge_device*, const mge_graph* graph, const mge_claim_sink* sink, mge_error*) {
  static constexpr int32_t kFirst = 0;
  mge_claim claim = {};
  claim.struct_size = Is("claim_short") ? 8 : sizeof(claim);
  claim.name = mge::Text("group");
  claim.nodes = &kFirst;
  claim.node_count = Is("claim_wild") ? UINT64_MAX : 1;
  if (Is("claim_empty")) claim.nodes = nullptr;
  if (Is("claim_null")) sink->offer(sink->self, nullptr);
  if (Is("claim_loss")) claim.benefit_us = -5;
  if (Is("claim_endless")) claim.benefit_us = std::numeric_limits<double>::infinity();
  const bool one = Is("claim_short") || Is("claim_wild") || Is("claim_empty") || Is("claim_loss") || Is("claim_endless");
  if (one) sink->offer(sink->self, &claim);
  for (uint64_t i = 0; Is("claim_many") && i < 1000 * graph->node_count; ++i) sink->offer(sink->self, &claim);
  return MGE_OK;
}

constexpr auto kDevice = mge::Table<mge_device_api>([](auto& t) {
  t.enumerate = Enumerate;
  t.open = Open;
  t.close = Close;
  t.status = Status;
});
constexpr auto kMemory = mge::Table<mge_memory_api>([](auto& t) {
  t.slab_acquire = SlabAcquire;
  t.slab_release = SlabRelease;
  t.memory_info = MemoryInfo;
  t.pool = mge::Text("naive");
  t.reserve = mge::Text("none");
});
constexpr auto kKernel = [] {  // optional slots are empty
  mge_kernel_api api = Kernels::Api("1");
  api.enumerate = EnumerateKernels;
  api.prepare = Prepare;
  api.prepack = nullptr;
  api.state_create = nullptr;
  api.state_destroy = nullptr;
  return api;
}();
constexpr auto kGraph = mge::Table<mge_graph_api>([](auto& t) { t.claim = Claim; });

mge_plugin g_plugin = mge::Table<mge_plugin>([](auto& t) {
  t.version = mge::Text("1.0");
  t.start = Start;
  t.stop = Stop;
  t.device = &kDevice;
  t.memory = &kMemory;
  t.kernel = &kKernel;
  t.graph = &kGraph;
});

}  // namespace

extern "C" MGE_EXPORT mge_code mge_plugin_query(const mge_query_in*, mge_query_out* out) {
  if (mge_code code = Misbehave("query")) return code;
  ++mge_test_own_address;
  g_plugin.name = mge::Text(Name());
  if (Is("query_settings")) g_plugin.setting_count = UINT64_MAX;
  if (Is("query_text")) g_plugin.version = {"1.0", UINT64_C(1) << 60};
  if (Is("query_twice") && mge_test_own_address != 1) return MGE_INTERNAL;  // another copy changed the variable
  if (!Is("query_null")) out->plugin = &g_plugin;
  return MGE_OK;
}
