// SPDX-License-Identifier: Apache-2.0
// A minimal backend over plugins/gpu: host memory and no queue. An emulator runs every launch in the calling thread.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "plugins/gpu/emulation/emulator.h"
#include "plugins/gpu/launch.h"

MGE_PLUGIN_NOTE("emulated", "0.1.0", "emulated", 0);

namespace mge::gpu {
namespace {

constexpr mge_setting kWarp = {.struct_size = sizeof(mge_setting),
                               .type = MGE_SETTING_CHOICE,
                               .key = Text("emulated.warp"),
                               .default_value = Text("32"),
                               .choices = Text("32|64"),
                               .unit = {},
                               .doc = Text("Threads of a warp."),
                               .min = 0,
                               .max = 0,
                               .lifecycle = MGE_LIFECYCLE_DYNAMIC,
                               .reserved = 0};
constexpr mge_setting kOrder = {.struct_size = sizeof(mge_setting),
                                .type = MGE_SETTING_CHOICE,
                                .key = Text("emulated.order"),
                                .default_value = Text("forward"),
                                .choices = Text("forward|reverse|shuffled"),
                                .unit = {},
                                .doc = Text("In which the threads of a block begin."),
                                .min = 0,
                                .max = 0,
                                .lifecycle = MGE_LIFECYCLE_DYNAMIC,
                                .reserved = 0};
constexpr mge_setting kShuffles = {.struct_size = sizeof(mge_setting),
                                   .type = MGE_SETTING_BOOL,
                                   .key = Text("emulated.shuffles"),
                                   .default_value = Text("0"),
                                   .choices = {},
                                   .unit = {},
                                   .doc = Text("Reduce by shuffles, as a GPU does."),
                                   .min = 0,
                                   .max = 0,
                                   .lifecycle = MGE_LIFECYCLE_DYNAMIC,
                                   .reserved = 0};
constexpr const mge_setting* kSettings[] = {&kWarp, &kOrder, &kShuffles};

std::string_view Setting(uint32_t index) {
  mge_text text = {};
  return Host()->setting(Host()->self, index, &text) == MGE_OK ? View(text) : "";
}

EmulatorSettings Settings() {
  EmulatorSettings s;
  s.warp = Setting(0) == "64" ? 64 : 32;
  s.order = Setting(1) == "reverse"    ? EmulatorSettings::Order::kReverse
            : Setting(1) == "shuffled" ? EmulatorSettings::Order::kShuffled
                                       : EmulatorSettings::Order::kForward;
  s.whole_reductions = Setting(2) != "1";
  return s;
}

thread_local Fault fault;

// The emulator, reused while the settings stay the same, because creating fibers and guard pages is slow.
struct Kept {
  std::mutex mutex;
  std::string settings;
  std::unique_ptr<Emulator> emulator;

  Emulator& Get() {
    std::string now;
    for (uint32_t i = 0; i < std::size(kSettings); ++i) (now += Setting(i)) += ' ';
    if (!emulator || now != settings) emulator = std::make_unique<Emulator>(Settings());
    settings = now;
    return *emulator;
  }
} kept;

}  // namespace

Fault* FaultOf(const mge_run*) { return &fault; }

mge_code Enqueue(const mge_run* run, const Launch& launch) {
  std::lock_guard lock(kept.mutex);
  Emulator& emulator = kept.Get();
  if (!emulator.Run(launch)) return Report(run->error, MGE_INTERNAL, emulator.error());
  if (!fault.what) return MGE_OK;
  std::string text = std::string(KernelName(launch.kernel)) + ": " + FaultText(fault);
  fault = {};
  return Report(run->error, MGE_OUT_OF_RANGE, text);
}
mge_code EnqueueFill(const mge_run*, void* to, int byte, uint64_t bytes) {
  std::memset(to, byte, bytes);
  return MGE_OK;
}
mge_code EnqueueCopy(const mge_run*, void* to, const void* from, uint64_t bytes) {
  std::memmove(to, from, bytes);
  return MGE_OK;
}

namespace {

mge_code Start(const mge_host* host, mge_error*) noexcept {
  Host() = host;
  return MGE_OK;
}
void Stop() noexcept {
  kept.emulator.reset();
  Host() = nullptr;
}

mge_code Enumerate(const mge_device_sink* sink, mge_error*) noexcept {
  mge_device_info info = {};
  info.struct_size = sizeof(info);
  info.class_name = info.fingerprint = info.device_class = Text("emulated");
  info.name = Text("kernels of plugins/gpu on host memory");
  info.score = 1;
  info.flags = MGE_DEVICE_HOST_ACCESSIBLE | MGE_DEVICE_ONLY_BY_NAME;
  sink->device(sink->self, &info);
  return MGE_OK;
}
int device;
mge_code Open(uint32_t, mge_device** out, mge_error*) noexcept {
  *out = reinterpret_cast<mge_device*>(&device);
  return MGE_OK;
}
void Close(mge_device*) noexcept {}

mge_code SlabAcquire(mge_device*, int32_t memory_class, uint64_t bytes, mge_slab* out, mge_error* error) noexcept {
  void* address = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!address) return Report(error, MGE_RESOURCE_EXHAUSTED, "no memory");
  *out = {sizeof(mge_slab), memory_class, address, address, nullptr, bytes};
  return MGE_OK;
}
void SlabRelease(mge_device*, const mge_slab* slab) noexcept { std::free(slab->address); }
void MemoryInfo(mge_device*, uint64_t* free_bytes, uint64_t* total_bytes) noexcept { *free_bytes = *total_bytes = 0; }

constexpr auto kDevice = Table<mge_device_api>([](auto& t) {
  t.enumerate = Enumerate;
  t.open = Open;
  t.close = Close;
});
constexpr auto kMemory = Table<mge_memory_api>([](auto& t) {
  t.slab_acquire = SlabAcquire;
  t.slab_release = SlabRelease;
  t.memory_info = MemoryInfo;
  t.pool = Text("naive");
  t.reserve = Text("none");
});
constexpr auto kGraph = Claims<FindClaims>::Api();
constexpr mge_kernel_api kKernels = KernelTable<KernelRows::Rows>::Api("1");

constexpr mge_plugin kPlugin = Table<mge_plugin>([](auto& t) {
  t.name = Text("emulated");
  t.version = Text("0.1.0");
  t.settings = kSettings;
  t.setting_count = std::size(kSettings);
  t.start = Start;
  t.stop = Stop;
  t.device = &kDevice;
  t.memory = &kMemory;
  t.kernel = &kKernels;
  t.graph = &kGraph;
});

}  // namespace
}  // namespace mge::gpu

MGE_PLUGIN_ENTRY(mge::gpu::kPlugin)
