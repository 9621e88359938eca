// SPDX-License-Identifier: Apache-2.0
// A backend that is built outside of MGE's tree: one device, "outside0", which computes Relu of float32 in host memory.
#include <cstdlib>
#include <new>

#include "mge/plugin.hpp"

MGE_PLUGIN_NOTE("outside", "1.0", "outside", 0);

// The device, opaque to the host. It has no state.
struct mge_device {};

namespace {

mge_device g_device;

struct Args {
  mge::Slot x, y;
  uint64_t n;
};

mge_code Launch(const Args& a, const mge_run* run) {
  const float* x = mge::At<const float>(run, a.x);
  float* y = mge::At<float>(run, a.y);
  for (uint64_t i = 0; i < a.n; ++i) y[i] = x[i] > 0 ? x[i] : 0;
  return MGE_OK;
}

void OfferRelu(const mge::Problem& p, mge::Offers& offers) {
  if (p.node_count() != 1 || !p.is_static()) return offers.Refuse("only single nodes of known size");
  if (p.input(0).dtype() != MGE_DTYPE_F32) return offers.Refuse("only float32");
  offers.Add({.id = "outside.relu"});
}

mge::KernelPtr MakeRelu(const mge::Problem& p, const mge::Candidate&) {
  return mge::MakeSimple<Args, Launch>([n = p.input(0).elements()](const mge::Binding& b) {
    return Args{b.input(0), b.output(0), n};
  });
}

const mge::KernelRow kRelu = {"Relu", OfferRelu, MakeRelu};
const mge::KernelRow* const kRows[] = {&kRelu};
const mge::KernelRow* const* Rows(uint64_t* count) {
  *count = std::size(kRows);
  return kRows;
}

mge_code Enumerate(const mge_device_sink* sink, mge_error*) {
  mge_device_info info = {};
  info.struct_size = sizeof(info);
  info.class_name = mge::Text("outside");
  info.name = mge::Text("a device from outside of the tree");
  info.fingerprint = mge::Text("outside-0");
  info.device_class = mge::Text("outside");
  info.score = 1;
  info.flags = MGE_DEVICE_HOST_ACCESSIBLE | MGE_DEVICE_SURVIVES_FORK;
  sink->device(sink->self, &info);
  return MGE_OK;
}

mge_code Open(uint32_t, mge_device** out, mge_error*) {
  *out = &g_device;
  return MGE_OK;
}
void Close(mge_device*) {}

mge_code Acquire(mge_device*, int32_t memory_class, uint64_t bytes, mge_slab* out, mge_error* error) {
  void* address = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (address == nullptr) return mge::Report(error, MGE_RESOURCE_EXHAUSTED, "no memory");
  *out = {sizeof(mge_slab), memory_class, address, address, nullptr, bytes};
  return MGE_OK;
}
void Release(mge_device*, const mge_slab* slab) { std::free(slab->address); }
void MemoryInfo(mge_device*, uint64_t* free_bytes, uint64_t* total_bytes) { *free_bytes = *total_bytes = 0; }

mge_code Start(const mge_host* host, mge_error*) {
  mge::Host() = host;
  return MGE_OK;
}
void Stop() { mge::Host() = nullptr; }

constexpr auto kDevice = mge::Table<mge_device_api>([](auto& t) {
  t.enumerate = Enumerate;
  t.open = Open;
  t.close = Close;
});
constexpr auto kMemory = mge::Table<mge_memory_api>([](auto& t) {
  t.slab_acquire = Acquire;
  t.slab_release = Release;
  t.memory_info = MemoryInfo;
  t.pool = mge::Text("naive");
  t.reserve = mge::Text("none");
});
constexpr mge_kernel_api kKernels = mge::KernelTable<Rows>::Api("1");

constexpr auto kPlugin = mge::Table<mge_plugin>([](auto& t) {
  t.name = mge::Text("outside");
  t.version = mge::Text("1.0");
  t.start = Start;
  t.stop = Stop;
  t.device = &kDevice;
  t.memory = &kMemory;
  t.kernel = &kKernels;
});

}  // namespace

MGE_PLUGIN_ENTRY(kPlugin)
