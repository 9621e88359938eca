// SPDX-License-Identifier: Apache-2.0
// A backend whose behaviour is chosen by macros: a correct one, and others that break the contract in one way each.
#include "fake.h"

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "mge/plugin.hpp"

#ifndef FAKE_CLASSES
#define FAKE_CLASSES "fake"
#endif
#ifndef FAKE_CLASS
#define FAKE_CLASS "fake"
#endif
#ifndef FAKE_FLAGS
#define FAKE_FLAGS 0
#endif
#ifndef FAKE_SCORE
#define FAKE_SCORE 10
#endif
#ifndef FAKE_FINGERPRINT
#define FAKE_FINGERPRINT FAKE_NAME
#endif
#ifndef FAKE_TABLE_NAME
#define FAKE_TABLE_NAME FAKE_NAME
#endif
#ifndef FAKE_START
#define FAKE_START return MGE_OK
#endif
#ifndef FAKE_STOP
#define FAKE_STOP
#endif

MGE_PLUGIN_NOTE(FAKE_NAME, "1.0", FAKE_CLASSES, 0);

struct mge_device {
  uint32_t index;
};

#ifdef FAKE_MISSING_SYMBOL
extern "C" int mge_test_symbol_that_nobody_has();
#endif
#ifdef FAKE_MISSING_LIBRARY
extern "C" int FAKE_MISSING_LIBRARY();
#endif

namespace {

mge_test_record g_record = {};

[[maybe_unused]] void Wait() { std::this_thread::sleep_for(std::chrono::milliseconds(200)); }

mge_code Start(const mge_host* host, mge_error* error) {
  (void)error;
  mge::Host() = host;
  g_record.host = host;
  g_record.starts += 1;
#ifdef FAKE_MISSING_SYMBOL
  g_record.starts += mge_test_symbol_that_nobody_has();
#endif
#ifdef FAKE_MISSING_LIBRARY
  g_record.starts += FAKE_MISSING_LIBRARY();
#endif
  FAKE_START;
}

void Stop() {
  g_record.stops += 1;
  mge::Host() = nullptr;
  FAKE_STOP;
}

mge_code Enumerate(const mge_device_sink* sink, mge_error*) {
  mge_device_info info = {};
  info.struct_size = sizeof(info);
  info.class_name = mge::Text(FAKE_CLASS);
  info.flags = FAKE_FLAGS;
  for (uint32_t i = 0; i < 2; ++i) {
    std::string name = "fake device " + std::to_string(i);
    std::string fingerprint = std::string(FAKE_FINGERPRINT) + std::to_string(i);
    info.index = i;
    info.name = mge::Text(name);
#ifdef FAKE_NAME_BYTES
    info.name.size = FAKE_NAME_BYTES;
#endif
    info.fingerprint = mge::Text(fingerprint);
    info.device_class = mge::Text("fake");
    info.score = FAKE_SCORE;
    if (info.score == 0) info.reason = mge::Text("the fake driver is too old");
    sink->device(sink->self, &info);
  }
  return MGE_OK;
}

#ifndef FAKE_NULL_SLOT
mge_code Open(uint32_t index, mge_device** out, mge_error* error) {
#ifdef FAKE_OPEN_FAILS
  (void)index, (void)out;
  return mge::Report(error, MGE_UNAVAILABLE, "the card is in use by another program");
#endif
  (void)error;
  g_record.opens += 1;
  *out = new mge_device{index};
  return MGE_OK;
}
#endif
void Close(mge_device* device) {
  g_record.closes += 1;
  delete device;
}

mge_code SlabAcquire(mge_device*, int32_t memory_class, uint64_t bytes, mge_slab* out, mge_error* error) {
  if (g_record.held + bytes > 1000000) return mge::Report(error, MGE_RESOURCE_EXHAUSTED, "the fake card is full");
  void* address = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  g_record.held += bytes;
  g_record.slabs += 1;
  *out = {sizeof(mge_slab), memory_class, address, address, nullptr, bytes};
  return MGE_OK;
}
void SlabRelease(mge_device*, const mge_slab* slab) {
  g_record.held -= slab->bytes;
  g_record.slabs -= 1;
  std::free(slab->address);
}
void MemoryInfo(mge_device*, uint64_t* free_bytes, uint64_t* total_bytes) {
  *free_bytes = 1000000 - g_record.held;
  *total_bytes = 1000000;
}

#ifdef FAKE_OWN_POOL
// The slabs of the smallest possible pool: one slab per reservation.
const mge_slab_provider* g_provider = nullptr;

mge_code PoolCreate(mge_device*, int32_t, const mge_slab_provider* provider, mge_pool** out, mge_error*) {
  g_provider = provider;
  *out = reinterpret_cast<mge_pool*>(&g_provider);
  return MGE_OK;
}
void PoolDestroy(mge_pool*) {}
// Takes a slab for each reservation.
mge_code PoolAcquire(mge_pool*, uint64_t bytes, uint64_t, const mge_fence_point*, uint32_t flags, mge_reservation* out,
                     mge_error* error) {
  if (flags & MGE_POOL_NO_GROWTH) return MGE_GROWTH_REQUIRED;
  mge_slab slab = {};
  slab.struct_size = sizeof(slab);
  if (mge_code code = g_provider->acquire(g_provider->self, bytes, &slab, error)) return code;
  *out = {sizeof(mge_reservation), 0, slab.address, slab.host_address, slab.bytes, 0, nullptr, 0};
  g_record.pool_acquires += 1;
  return MGE_OK;
}
void PoolRelease(mge_pool*, const mge_reservation* r, const mge_fence_point*) {
  mge_slab slab = {sizeof(mge_slab), 0, r->address, r->host_address, nullptr, r->bytes};
  g_provider->release(g_provider->self, &slab);
}
void PoolTrim(mge_pool*, int32_t) { g_record.trims += 1; }
void PoolStats(const mge_pool*, mge_pool_stats* out) { out->presence = 0; }
mge_code Decide(mge_device*, const mge_plan_summary* plan, mge_reserve_decision* out, mge_error*) {
  g_record.pressures |= 1 << plan->pressure & ~1;
  out->keep_free = plan->memory_total / 2;
  return MGE_OK;
}
constexpr mge_pool_api kPool = {sizeof(mge_pool_api), 0,        PoolCreate, PoolDestroy, PoolAcquire,
                                PoolRelease,          PoolTrim, PoolStats,  nullptr};
constexpr mge_reserve_api kReserve = {sizeof(mge_reserve_api), 0, Decide};
#endif

const mge::KernelRow* const* NoRows(uint64_t* count) {
  *count = 0;
  return nullptr;
}

constexpr auto kDevice = mge::Table<mge_device_api>([](auto& t) {
  t.enumerate = Enumerate;
#ifndef FAKE_NULL_SLOT
  t.open = Open;
#endif
  t.close = Close;
});
constexpr auto kMemory = mge::Table<mge_memory_api>([](auto& t) {
#ifdef FAKE_SHORT_TABLE
  t.struct_size = 8;
#endif
  t.slab_acquire = SlabAcquire;
  t.slab_release = SlabRelease;
  t.memory_info = MemoryInfo;
#ifdef FAKE_OWN_POOL
  t.own_pool = &kPool;
  t.own_reserve = &kReserve;
#else
  t.pool = mge::Text("naive");
  t.reserve = mge::Text("none");
#endif
});
constexpr mge_kernel_api kKernel = mge::KernelTable<NoRows>::Api("1");

constexpr mge_setting kLevel = {sizeof(mge_setting),
                                MGE_SETTING_INT,
                                mge::Text(FAKE_NAME ".level"),
                                mge::Text("3"),
                                {},
                                {},
                                mge::Text("A number for the tests."),
                                0,
                                9,
                                MGE_LIFECYCLE_FIRST_SET,
                                0};
constexpr const mge_setting* kSettings[] = {&kLevel};

const void* Extension(const char* name, uint32_t) { return std::string_view(name) == MGE_TEST_RECORD ? &g_record : nullptr; }

constexpr auto kPlugin = mge::Table<mge_plugin>([](auto& t) {
#ifdef FAKE_SHORT_PLUGIN
  t.struct_size = 16;
#endif
  t.name = mge::Text(FAKE_TABLE_NAME);
  t.version = mge::Text("1.0");
  t.settings = kSettings;
  t.setting_count = 1;
  t.start = Start;
  t.stop = Stop;
  t.device = &kDevice;
  t.memory = &kMemory;
  t.kernel = &kKernel;
  t.extension = Extension;
});

}  // namespace

#if defined(FAKE_NO_ENTRY)
extern "C" MGE_EXPORT const mge_plugin* mge_another_entry() { return &kPlugin; }
#elif defined(FAKE_NULL_PLUGIN)
extern "C" MGE_EXPORT mge_code mge_plugin_query(const mge_query_in*, mge_query_out*) {
  return kPlugin.struct_size ? MGE_OK : MGE_INTERNAL;
}
#elif defined(FAKE_DECLINES)
extern "C" MGE_EXPORT mge_code mge_plugin_query(const mge_query_in*, mge_query_out* out) {
  out->plugin = &kPlugin;
  out->reason = mge::Text("only works on Tuesdays");
  return MGE_FAILED_PRECONDITION;
}
#else
MGE_PLUGIN_ENTRY(kPlugin)
#endif
