// SPDX-License-Identifier: Apache-2.0
// A minimal backend over plugins/gpu: host memory and no queue. An emulator runs every launch in the calling thread.
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "plugins/gpu/emulation/emulator.h"
#include "plugins/gpu/launch.h"
#include "plugins/gpu/roofs.h"

namespace mge::gpu {
namespace {

constexpr mge_setting kWarp = Dynamic(ChoiceSetting("emulated.warp", "32", "32|64", "Threads of a warp."));
constexpr mge_setting kOrder = Dynamic(
    ChoiceSetting("emulated.order", "forward", "forward|reverse|shuffled", "Order in which the threads of a block begin."));
constexpr mge_setting kShuffles = Dynamic(BoolSetting("emulated.shuffles", "false", "Reduce by shuffles, as a GPU does."));

EmulatorSettings Settings() {
  EmulatorSettings s;
  s.warp = SettingOf(kWarp) == "64" ? 64 : 32;
  const std::string_view order = SettingOf(kOrder);
  s.order = order == "reverse"    ? EmulatorSettings::Order::kReverse
            : order == "shuffled" ? EmulatorSettings::Order::kShuffled
                                  : EmulatorSettings::Order::kForward;
  s.whole_reductions = !ToBool(SettingOf(kShuffles));
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
    for (const mge_setting* setting : {&kWarp, &kOrder, &kShuffles}) (now += SettingOf(*setting)) += ' ';
    if (!emulator || now != settings) emulator = std::make_unique<Emulator>(Settings());
    settings = now;
    return *emulator;
  }
} kept;

}  // namespace

int MatrixCapability(mge_device*) { return 80; }

bool HasLibraryOfProducts(mge_device*, mge_dtype) { return false; }

Roofs RoofsOf(mge_device*) { return kAverageRoofs; }

Fault* FaultOf(const mge_run*) { return &fault; }

Result EnqueueOn(mge_queue*, const Launch& launch) {
  std::lock_guard lock(kept.mutex);
  Emulator& emulator = kept.Get();
  if (!emulator.Run(launch)) return {MGE_INTERNAL, emulator.error()};
  if (!fault.what) return {};
  const Result error = ErrorOf(fault);
  fault = {};
  return {error.code(), std::string(KernelName(launch.kernel)) + ": " + error.text()};
}
mge_code Enqueue(const mge_run* run, const Launch& launch) { return Report(run->error, EnqueueOn(nullptr, launch)); }
mge_code EnqueueFill(const mge_run*, void* to, int byte, uint64_t bytes) {
  std::memset(to, byte, bytes);
  return MGE_OK;
}
mge_code EnqueueCopy(const mge_run*, void* to, const void* from, uint64_t bytes) {
  std::memmove(to, from, bytes);
  return MGE_OK;
}

namespace {

struct Device {
  static Result List(DeviceList& list) {
    list.Add({.name = "kernels of plugins/gpu on host memory",
              .score = 1,
              .flags = MGE_DEVICE_HOST_ACCESSIBLE | MGE_DEVICE_ONLY_BY_NAME});
    return {};
  }
  explicit Device(uint32_t) {}
};

struct Backend : BackendDefaults {
  static constexpr std::string_view kName = "emulated", kVersion = "0.1.0", kKernelSet = "1";
  static constexpr const mge_setting* kSettings[] = {&kWarp, &kOrder, &kShuffles};
  using Device = gpu::Device;
  using Pool = pool::Naive;
  using Kernels = KernelRows;
  using Claims = mge::Claims<FindClaims>;
  static void Stop() { kept.emulator.reset(); }
};

}  // namespace
}  // namespace mge::gpu

MGE_BACKEND(mge::gpu::Backend);
