// SPDX-License-Identifier: Apache-2.0
#include "tests/plans/make_plan.h"

#include <algorithm>
#include <vector>

#include "core/base/errors.h"
#include "core/env/registry.h"
#include "core/ops/effects.h"
#include "core/plan/bodies.h"
#include "core/plan/memory/state_memory.h"
#include "core/plan/program.h"
#include "core/plugin/devices.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "tests/plans/check_plan.h"
#include "tests/plans/fake/setup.h"
#include "tests/plans/print_plan.h"

namespace mge {
namespace {

absl::Status BadSetup(std::string what) { return Fail(errors::kBadInput, "the set-up cannot be used", {.what = what}); }

std::vector<std::string> ListOf(const std::string& text) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

absl::StatusOr<uint64_t> AttributesOf(const std::string& list) {
  uint64_t bits = 0;
  for (const std::string& name : ListOf(list)) {
    const uint64_t bit = plans::AttributeOf(name);
    if (!bit) return BadSetup(fmt::format("'{}' is not an attribute", name));
    bits |= bit;
  }
  return bits;
}

// The planner of one test: devices, settings and the warnings of planning.
class Planner {
 public:
  absl::Status Create(const std::string& text) {
    if (std::string fault = plans::ReadSetup(text, setup_); !fault.empty()) return BadSetup(fault);
    DevicesOptions options;
    options.directories = {{MGE_BINARY_DIR "/tests/plan_fakes", "test"}};
    options.settings = [&](std::string_view, std::span<const mge_setting* const> settings) {
      return std::vector<std::string>(settings.size(), text);  // each fake backend has one setting
    };
    options.logger = Logger(
        LogLevel::kWarning, [](void* self, LogLevel, std::string_view m) { static_cast<Planner*>(self)->Warn(m); }, this);
    services_->logger = options.logger;
    for (const auto& [key, value] : setup_.settings) {
      if (key != "memory.limit") continue;
      for (const std::string& one : ListOf(value)) {
        const size_t equals = one.find('=');
        options.memory_limits.emplace_back(one.substr(0, equals), std::stoull(one.substr(equals + 1)));
      }
    }
    MGE_ASSIGN_OR_RETURN(devices_, Devices::Create(std::move(options)));
    devices_->StartAll();
    for (const PluginFile& file : devices_->files()) {
      if (file.verdict != Verdict::kLoaded) return BadSetup(file.path + ": " + file.reason);
    }
    MGE_RETURN_IF_ERROR(TakeDevices());
    return ApplySettings();
  }

  absl::StatusOr<std::string> Plan(const std::string& text) {
    MGE_ASSIGN_OR_RETURN(Graph graph, ParseGraphText(text));
    MarkStates(graph);
    MGE_ASSIGN_OR_RETURN(std::shared_ptr<Program> program, Program::Create(std::move(graph), context_));
    std::string out;
    int number = 0;
    if (setup_.plans.empty()) setup_.plans.emplace_back();
    for (const auto& shapes : setup_.plans) {
      MGE_ASSIGN_OR_RETURN(std::vector<InputType> types, TypesOf(program->graph(), shapes));
      if (setup_.plans.size() > 1) out += fmt::format("plan {}:\n", ++number);
      MGE_ASSIGN_OR_RETURN(const std::vector<IoPlace> places, SetPlaces(program->graph(), types));
      absl::StatusOr<std::shared_ptr<const mge::Plan>> plan = program->PlanFor(types, nullptr, places);
      if (!plan.ok()) {
        out += FormatError(plan.status()) + "\n";
        continue;
      }
      out += PrintPlan(**plan, setup_.shown);
      ForEachPlan(**plan, [&](const mge::Plan& each, const std::string&) {
        for (const std::string& fault : FaultsOf(each)) out += fmt::format("FAULT: {}\n", fault);
      });
    }
    if (setup_.shown.empty() || std::count(setup_.shown.begin(), setup_.shown.end(), "warnings")) {
      for (const std::string& warning : warnings_) out += fmt::format("warning: {}\n", warning);
    }
    return out;
  }

 private:
  void Warn(std::string_view message) { warnings_.emplace_back(message); }

  absl::Status TakeDevices() {
    std::vector<std::string> names = setup_.uses;
    for (const plans::DeviceLine& d : setup_.devices) {
      if (setup_.uses.empty()) names.push_back(d.name);
    }
    MGE_ASSIGN_OR_RETURN(Resolution found, devices_->Resolve(fmt::format("{}", fmt::join(names, ",")), "test"));
    for (const auto* list : {&found.devices, &found.fallbacks}) {
      for (const DeviceUse& use : *list) context_->devices.push_back(use.device);
    }
    context_->split = found.devices.size();
    services_->host = &devices_->host();
    services_->shared_constants = std::make_shared<SharedConstants>();
    context_->services = services_;
    context_->states = std::make_shared<StateMemory>();
    return absl::OkStatus();
  }

  // Sets the context's settings, its rules for kernels, and the names to skip.
  absl::Status ApplySettings() {
    PlanContext& c = *context_;
    std::vector<Assignment> settings;
    for (const auto& [key, value] : setup_.settings) {
      if (key == "require") {
        MGE_ASSIGN_OR_RETURN(c.kernels.require, AttributesOf(value));
        c.kernels.texts.push_back("required: " + value);
      } else if (key == "forbid") {
        MGE_ASSIGN_OR_RETURN(c.kernels.forbid, AttributesOf(value));
        c.kernels.texts.push_back("not allowed: " + value);
      } else if (key == "select.strategy" && value == "reproducible") {
        c.kernels.mode = MGE_SELECT_REPRODUCIBLE;
      } else if (key != "memory.limit" && key != "io") {
        settings.push_back({key, value});
      }
    }
    MGE_ASSIGN_OR_RETURN(const std::unique_ptr<Registry> registry, Registry::Create({.call = std::move(settings)}));
    c.settings = registry->snapshot();
    c.skip.names = c.settings->Get<kPlanSkip>();
    c.engine_workers = 16;
    return absl::OkStatus();
  }

  // Returns the types of the graph's inputs. `shapes` replaces shapes that are not fixed.
  static absl::StatusOr<std::vector<InputType>> TypesOf(
      const Graph& graph, const std::vector<std::pair<std::string, std::vector<int64_t>>>& shapes) {
    std::vector<InputType> types;
    for (ValueId v : graph.inputs()) {
      const Value& value = graph.value(v);
      InputType type = {value.kind, value.type.dtype, value.type.dims};
      auto given = std::find_if(shapes.begin(), shapes.end(), [&](const auto& s) { return s.first == value.name; });
      if (given != shapes.end()) type.shape.assign(given->second.begin(), given->second.end());
      if (value.kind == ValueKind::kTensor && given == shapes.end() && !value.type.IsStatic()) {
        return BadSetup(fmt::format("a line 'plan {}=SHAPE' is missing", value.name));
      }
      types.push_back(std::move(type));
    }
    return types;
  }

  // Sets the places of the inputs that the lines "set io" name, and returns those of the outputs.
  absl::StatusOr<std::vector<IoPlace>> SetPlaces(const Graph& graph, std::vector<InputType>& types) const {
    std::vector<IoPlace> outputs(graph.outputs().size());
    for (const auto& [key, value] : setup_.settings) {
      if (key != "io") continue;
      for (const std::string& one : ListOf(value)) {
        const size_t equals = one.find('='), slash = one.find('/');
        const std::string name = one.substr(0, equals), device = one.substr(equals + 1, slash - equals - 1);
        auto at = std::find_if(context_->devices.begin(), context_->devices.end(),
                               [&](const Device* d) { return d->name() == device; });
        if (at == context_->devices.end()) return BadSetup(fmt::format("io {}: no device '{}'", one, device));
        const IoPlace place = {*at, slash != std::string::npos};
        for (size_t i = 0; i < types.size(); ++i) {
          if (graph.value(graph.inputs()[i]).name == name) types[i].place = place;
        }
        for (size_t i = 0; i < outputs.size(); ++i) {
          if (graph.value(graph.outputs()[i]).name == name) outputs[i] = place;
        }
      }
    }
    return outputs;
  }

  plans::Setup setup_;
  std::vector<std::string> warnings_;
  std::unique_ptr<Devices> devices_;  // destroyed after the context, which refers to them
  std::shared_ptr<PlanServices> services_ = std::make_shared<PlanServices>();
  std::shared_ptr<PlanContext> context_ = std::make_shared<PlanContext>();
};

}  // namespace

std::string MakePlanText(const std::string& setup, const std::string& graph) {
  Planner planner;
  absl::Status created = planner.Create(setup);
  if (!created.ok()) return FormatError(created) + "\n";
  absl::StatusOr<std::string> text = planner.Plan(graph);
  return text.ok() ? *text : FormatError(text.status()) + "\n";
}

}  // namespace mge
