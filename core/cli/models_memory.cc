// SPDX-License-Identifier: Apache-2.0
#include "core/cli/models_memory.h"

#include <algorithm>
#include <map>

#include "fmt/format.h"

namespace mge::cli {
namespace {

// Returns the report on all models from those on each (mge.memory/1).
Json Summary(const std::vector<std::string>& models, const std::vector<Json>& reports) {
  Json rows = Json::array();
  std::map<std::string, uint64_t> shared;  // bytes of each device's shared arena
  uint64_t planned = 0, own = 0, in_shared = 0, held_shared = 0, in_turn = 0, largest_in_turn = 0;
  for (size_t i = 0; i < models.size(); ++i) {
    const Json& r = reports[i];
    const uint64_t arena = r["arena_bytes"], kept = r["own_arena_bytes"];
    const std::string use = r["arena_use"];
    planned += arena;
    own += kept;
    if (use == "shared") {
      for (const Json& a : r["shared_arenas"]) shared[a["device"]] = a["bytes"];
      in_shared += arena;
    } else if (use != "own") {
      in_turn += arena;
      largest_in_turn = std::max(largest_in_turn, arena);
    }
    rows.push_back(
        {{"model", models[i]},
         {"device", r["device"]},
         {"arena_bytes", arena},
         {"arena_use", use},
         {"own_arena_bytes", kept},
         {"constant_bytes", r["packed_constant_bytes"].get<uint64_t>() + r["uploaded_constant_bytes"].get<uint64_t>()},
         {"planned_peak_bytes", r["planned_peak_bytes"]}});
  }
  for (const auto& [device, bytes] : shared) held_shared += bytes;
  return {{"schema", "mge.models_memory/1"},
          {"models", std::move(rows)},
          {"arena_bytes", planned},
          {"shared_arenas", shared},
          {"held_arena_bytes", own + held_shared},  // between runs
          {"saved_bytes", in_shared - std::min(held_shared, in_shared) + in_turn - largest_in_turn},
          {"device_charged_bytes", reports.back()["device_charged_bytes"]},
          {"device_peak_charged_bytes", reports.back()["device_peak_charged_bytes"]}};
}

std::string RenderTotals(const Json& r) {
  auto bytes = [](const Json& value) { return HumanBytes(value.get<uint64_t>()); };
  std::vector<std::vector<std::string>> rows = {{"MODEL", "DEVICE", "ARENA", "WHERE", "CONSTANTS", "PLANNED PEAK"}};
  for (const Json& m : r["models"]) {
    rows.push_back({Escape(m["model"].get<std::string>()), Escape(m["device"].get<std::string>()), bytes(m["arena_bytes"]),
                    m["arena_use"].get<std::string>(), bytes(m["constant_bytes"]), bytes(m["planned_peak_bytes"])});
  }
  std::string out = Table(rows) + "\n";
  for (const auto& [device, held] : r["shared_arenas"].items()) {
    out += fmt::format("shared arena of {}: {}\n", device, bytes(held));
  }
  out += fmt::format("the arenas of all models have {}; {} are held between runs, {} saved by sharing\n",
                     bytes(r["arena_bytes"]), bytes(r["held_arena_bytes"]), bytes(r["saved_bytes"]));
  out += fmt::format("memory of the device in use: {}, at most {}\n", bytes(r["device_charged_bytes"]),
                     bytes(r["device_peak_charged_bytes"]));
  const Json& models = r["models"];
  if (std::all_of(models.begin(), models.end(), [](const Json& m) { return m["arena_use"] == "own"; })) {
    out +=
        "no model shares memory: memory.static_policy (GE_USE_STATIC_MEMORY) 2 shares it among models with fixed shapes, 3 "
        "among models whose shapes vary, 4 among all\n";
  }
  return out;
}

}  // namespace

int ShowModelsMemory(const Globals& globals, const std::vector<std::string>& models, const InputOptions& inputs) {
  Runtime runtime;
  std::vector<Session> sessions(models.size());
  for (size_t i = 0; i < models.size(); ++i) {
    if (Status s = OpenModel(globals, models[i], &runtime, &sessions[i]); !s.ok()) return Report(globals, s);
    std::vector<Tensor> made, outputs;
    int usage = 0;
    if (Status s = MakeInputsAndRun(globals, sessions[i], inputs, &outputs, &made, &usage); !s.ok())
      return Report(globals, s);
    if (usage) return usage;
  }
  std::vector<Json> reports;
  for (const Session& session : sessions) {
    std::string text;
    if (Status s = session.Report("mge.memory/1").MoveTo(text); !s.ok()) return Report(globals, s);
    reports.push_back(Json::parse(text));
  }
  const Json summary = Summary(models, reports);
  if (globals.json) {
    PrintJson(summary);
  } else {
    Print(RenderTotals(summary));
  }
  return kExitOk;
}

}  // namespace mge::cli
