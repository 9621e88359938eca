// SPDX-License-Identifier: Apache-2.0
// The CPU backend: its note, its table, its entry.
#include "device.h"
#include "kernel_table.h"
#include "memory.h"
#include "settings.h"
#include "strategy.h"

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

constexpr mge_plugin kPlugin = {
    .struct_size = sizeof(mge_plugin),
    .abi_major = MGE_ABI_MAJOR,
    .abi_minor = MGE_ABI_MINOR,
    .reserved = 0,
    .header_hash = MGE_ABI_HASH,
    .name = Text("cpu"),
    .version = Text(MGE_CPU_VERSION),
    .settings = kSettingRows,
    .setting_count = kSettingCount,
    .start = Start,
    .stop = Stop,
    .device = &kDeviceApi,
    .memory = &kMemoryApi,
    .queue = nullptr,
    .kernel = &kKernelApi,
    .graph = &kGraphApi,
    .strategy = &kStrategyApi,
    .extension = nullptr,
};

}  // namespace
}  // namespace mge::cpu

MGE_PLUGIN_ENTRY(mge::cpu::kPlugin)
