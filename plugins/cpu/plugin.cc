// SPDX-License-Identifier: Apache-2.0
// The CPU backend: its note, table and entry point.
#include "device.h"
#include "kernel_table.h"
#include "memory.h"
#include "settings.h"

MGE_PLUGIN_NOTE("cpu", MGE_CPU_VERSION, "cpu", 0);

namespace mge::cpu {
namespace {

mge_code Start(const mge_host* host, mge_error*) noexcept {
  Host() = host;
  return MGE_OK;
}

void Stop() noexcept { Host() = nullptr; }

constexpr mge_kernel_api kKernelApi = mge::KernelTable<KernelRows>::Api("1");

constexpr mge_graph_api kGraphApi = {sizeof(mge_graph_api), MGE_ABI_MINOR, OfferClaims};

constexpr mge_plugin kPlugin = Table<mge_plugin>([](auto& t) {
  t.name = Text("cpu");
  t.version = Text(MGE_CPU_VERSION);
  t.settings = kSettingRows;
  t.setting_count = kSettingCount;
  t.start = Start;
  t.stop = Stop;
  t.device = &kDeviceApi;
  t.memory = &kMemoryApi;
  t.queue = nullptr;
  t.kernel = &kKernelApi;
  t.graph = &kGraphApi;
  t.extension = nullptr;
});

}  // namespace
}  // namespace mge::cpu

MGE_PLUGIN_ENTRY(mge::cpu::kPlugin)
