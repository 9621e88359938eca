// SPDX-License-Identifier: Apache-2.0
#include "core/plan/passes/veto.h"

#include "core/ops/rewrite.h"
#include "core/plugin/abi_call.h"
#include "fmt/format.h"

namespace mge {

absl::StatusOr<SkippedNames> WithVetoes(std::vector<std::string> names, std::span<Device* const> devices,
                                        const Snapshot& settings) {
  SkippedNames out = {.names = std::move(names)};
  const mge_graph_api* first = devices.empty() ? nullptr : devices.front()->graph_api();
  for (const Rewrite* rewrite : AllRewrites()) {
    const bool asked = !rewrite->on_request || (first && first->allow_rewrite);
    if (!asked || (rewrite->wanted && !rewrite->wanted(settings))) out.names.emplace_back(rewrite->name);
  }
  for (Device* device : devices) {
    const mge_graph_api* api = device->graph_api();
    if (!api || !api->allow_rewrite) continue;
    if (absl::Status opened = device->Open(); !opened.ok()) {
      if (device == devices.front()) return opened;
      continue;  // the planner reports it if the device is needed
    }
    for (const Rewrite* rewrite : AllRewrites()) {
      const mge_text name = {rewrite->name.data(), rewrite->name.size()};
      bool allowed = true;
      mge_error error;
      CallBackend(error, [&](mge_error*) {
        allowed = api->allow_rewrite(device->handle(), &name) != 0;
        return MGE_OK;
      });
      if (allowed || out.Has(rewrite->name)) continue;
      out.names.emplace_back(rewrite->name);
      out.vetoes.push_back(fmt::format("{}: not applied, because backend '{}' forbids it for models on {}", rewrite->name,
                                       device->backend().name(), device->name()));
    }
  }
  return out;
}

}  // namespace mge
