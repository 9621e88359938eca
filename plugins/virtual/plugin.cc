// SPDX-License-Identifier: Apache-2.0
// The virtual GPU: connects the software GPU of plugins/gpu to plugin.h.
#include <optional>

#include "handles.h"
#include "plugins/gpu/launch.h"

MGE_PLUGIN_NOTE("virtual", MGE_VIRTUAL_VERSION, "virtual,gpu", 0);

namespace mge::virtual_gpu {
namespace {

std::optional<Options>& TheOptions() {
  static std::optional<Options> options;
  return options;
}

mge_code Start(const mge_host* host, mge_error* error) noexcept {
  Host() = host;
  return Guard(error, [&] {
    const Options& o = TheOptions().emplace(ReadOptions());
    if (o.devices == 0 && !o.problem.ok()) {  // with devices, each of them reports the problem
      std::string_view text = o.problem.text();
      host->log(host->self, MGE_LOG_WARNING, text.data(), text.size());
    }
    return MGE_OK;
  });
}

void Stop() noexcept {
  TheOptions().reset();
  Host() = nullptr;
}

constexpr auto kGraphTable = Table<mge_graph_api>([](auto& t) { t.claim = gpu::OfferClaims; });

constexpr mge_plugin kPlugin = Table<mge_plugin>([](auto& t) {
  t.name = Text("virtual");
  t.version = Text(MGE_VIRTUAL_VERSION);
  t.settings = kSettingRows;
  t.setting_count = kSettingCount;
  t.start = Start;
  t.stop = Stop;
  t.device = &kDeviceTable;
  t.memory = &kMemoryTable;
  t.queue = &kQueueTable;
  t.kernel = &kKernelTable;
  t.graph = &kGraphTable;
  t.strategy = nullptr;  // the host's strategy is used
  t.extension = Extension;
  t.profile = &kProfileTable;
});

}  // namespace

const Options& CurrentOptions() { return *TheOptions(); }

}  // namespace mge::virtual_gpu

MGE_PLUGIN_ENTRY(mge::virtual_gpu::kPlugin)
