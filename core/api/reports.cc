// SPDX-License-Identifier: Apache-2.0
// Facts as JSON documents. The first field of each names its schema; the command prints them as they are.
#include "core/api/objects.h"
#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/ops/op.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace mge::api {
namespace {

using Json = nlohmann::ordered_json;

// Names come from files: what is no UTF-8 is replaced, not refused.
std::string Dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace); }

Json Devices(Runtime& runtime) {
  Json rows = Json::array();
  for (const auto& device : runtime.devices().all()) {
    Json row = {{"name", device->name()}, {"class", device->class_name()}};
    std::string state = device->usable() ? "loadable" : "found", reason = device->reason();
    uint64_t total = device->description().memory_total, free = 0;
    if (device->usable()) {
      if (auto info = device->QueryMemory(); info.ok()) {
        total = info->total_bytes;
        free = info->free_bytes;
      } else {
        state = "found";
        const std::string why = PartsOf(info.status()).what;
        reason = ErrorTitle(info.status());
        if (!why.empty()) reason += ": " + why;
      }
    }
    row["state"] = state;
    row["reason"] = reason;
    row["usable"] = device->usable();
    row["memory_total"] = total;
    row["memory_free"] = free;
    row["plugin"] = device->backend().name();
    row["description"] = device->description().name;
    row["alias"] = device->gpu_name();
    row["memory_limit"] = device->budget().limit();
    rows.push_back(std::move(row));
  }
  return {{"schema", "mge.devices/1"}, {"devices", std::move(rows)}};
}

Json Env(Runtime& runtime) {
  Json rows = Json::array();
  for (const SettingInfo& s : runtime.registry().List()) {
    rows.push_back({{"key", s.key}, {"variable", s.variable}, {"aliases", s.aliases}, {"type", s.type},
                    {"default", s.fallback}, {"value", s.value}, {"origin", s.origin}, {"lifecycle", s.lifecycle},
                    {"doc", s.doc}, {"allowed", s.allowed}, {"unit", s.unit}, {"owner", s.owner}, {"status", s.status}});
  }
  return {{"schema", "mge.env/1"}, {"settings", std::move(rows)}};
}

Json Operators() {
  Json rows = Json::array();
  for (const OpDef* op : AllOps()) {
    rows.push_back({{"name", op->name}, {"domain", op->domain}, {"since", op->since}, {"doc", op->doc}});
  }
  return {{"schema", "mge.operators/1"}, {"operators", std::move(rows)}};
}

Json TypeJson(const ValueType& type) {
  Json dims = Json::array();
  for (size_t i = 0; i < type.type.dims.size(); ++i) {
    bool named = type.type.dims[i] < 0 && i < type.type.symbols.size() && !type.type.symbols[i].empty();
    if (named) {
      dims.push_back(type.type.symbols[i]);
    } else {
      dims.push_back(type.type.dims[i]);
    }
  }
  const char* kinds[] = {"tensor", "sequence", "optional", "optional sequence"};
  return {{"kind", kinds[static_cast<int>(type.kind)]}, {"dtype", DTypeName(type.type.dtype)},
          {"shape", type.type.has_rank ? dims : Json()}};
}

Json Inspect(Session& session) {
  const onnx::ModelInfo& info = session.info();
  Json opsets = Json::array(), inputs = Json::array(), outputs = Json::array(), ops = Json::object();
  for (const onnx::OpsetImport& o : info.opsets) opsets.push_back({{"domain", o.domain}, {"version", o.version}});
  for (const onnx::NamedType& t : info.inputs) {
    Json row = {{"name", t.name}};
    row.update(TypeJson(t.type));
    inputs.push_back(std::move(row));
  }
  for (const onnx::NamedType& t : info.outputs) {
    Json row = {{"name", t.name}};
    row.update(TypeJson(t.type));
    outputs.push_back(std::move(row));
  }
  const Graph& graph = session.graph();
  int64_t constants = 0, constant_bytes = 0;
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    if (graph.value(v).role != Role::kConstant) continue;
    ++constants;
    constant_bytes += graph.value(v).constant.bytes();
  }
  bool random = false;
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    ops[graph.node(n).op] = ops.value(graph.node(n).op, 0) + 1;
    random |= graph.node(n).def->Is(kRandom);
  }
  return {{"schema", "mge.inspect/1"}, {"graph", graph.name}, {"ir_version", info.ir_version},
          {"producer", info.producer_name}, {"producer_version", info.producer_version}, {"opsets", std::move(opsets)},
          {"inputs", std::move(inputs)}, {"outputs", std::move(outputs)}, {"nodes", graph.node_count()},
          {"operators", std::move(ops)}, {"random", random}, {"constants", constants}, {"constant_bytes", constant_bytes}};
}

Json BuffersJson(const Plan& plan) {
  Json rows = Json::array();
  for (const PlacedBuffer& b : plan.buffers) {
    rows.push_back({{"name", b.name}, {"bytes", b.bytes}, {"offset", b.offset}, {"first_step", b.first},
                    {"last_step", b.last}, {"category", b.workspace ? "workspace" : "activation"}, {"arena", b.arena}});
  }
  return rows;
}

Json ArenasJson(const Plan& plan) {
  Json rows = Json::array();
  for (const Arena& a : plan.arenas) {
    rows.push_back({{"device", a.device->name()}, {"bytes", a.bytes}, {"lower_bound_bytes", a.lower_bound_bytes},
                    {"memory", a.memory_class == MGE_MEMORY_PINNED ? "page-locked host" : "device"}});
  }
  return rows;
}

absl::StatusOr<Json> Memory(Session& session, const Plan* plan) {
  if (!plan) return Fail(errors::kApiMisuse, "mge.memory/1: nothing has run yet");
  MGE_ASSIGN_OR_RETURN(uint64_t measured, MeasuredPeakBytes(*plan));
  int64_t workspace = 0, activations = 0;
  for (const PlacedBuffer& b : plan->buffers) (b.workspace ? workspace : activations) += b.bytes;
  MemoryStats stats = session.device().Stats();
  return Json{{"schema", "mge.memory/1"},
              {"device", DeviceText(*plan)},
              {"planned_peak_bytes", PlannedPeakBytes(*plan)},
              {"measured_peak_bytes", measured},
              {"arena_bytes", plan->arena_bytes},
              {"arena_lower_bound_bytes", plan->lower_bound_bytes},
              {"arenas", ArenasJson(*plan)},
              {"packed_constant_bytes", plan->packed_bytes},
              {"uploaded_constant_bytes", plan->uploaded_bytes},
              {"constant_bytes", plan->constant_bytes},
              {"activation_bytes_without_sharing", activations},
              {"workspace_bytes_without_sharing", workspace},
              {"device_charged_bytes", stats.charged},
              {"device_peak_charged_bytes", stats.peak_charged},
              {"device_limit_bytes", stats.limit},
              {"steps", plan->units.size()},
              {"buffers", BuffersJson(*plan)}};
}

}  // namespace

std::string PlanJson(const Plan& plan) {
  Json units = Json::array();
  for (const Unit& u : plan.units) {
    Json alternatives = Json::array();
    for (const Alternative& a : u.alternatives) alternatives.push_back({{"id", a.id}, {"reason", a.reason}});
    units.push_back({{"kind", UnitKindName(u.kind)}, {"device", u.device}, {"kernel", u.kernel}, {"fusion", u.fusion},
                     {"nodes", u.nodes}, {"operators", u.ops}, {"inputs", u.inputs}, {"outputs", u.outputs},
                     {"reason", u.reason}, {"cost_us", u.cost_us}, {"measured_us", u.measured_us}, {"workspace_bytes", u.workspace_bytes},
                     {"attributes", u.attributes}, {"in_place", u.in_place}, {"queue", u.queue},
                     {"placement", u.placement}, {"alternatives", std::move(alternatives)}});
  }
  Json dropped = Json::array();
  for (const Alternative& a : plan.dropped_claims) dropped.push_back({{"id", a.id}, {"reason", a.reason}});
  return Dump({{"schema", "mge.plan/1"}, {"device", DeviceText(plan)}, {"steps", plan.steps.size()},
               {"reference_steps", plan.reference_steps}, {"arena_bytes", plan.arena_bytes},
               {"arena_lower_bound_bytes", plan.lower_bound_bytes}, {"packed_constant_bytes", plan.packed_bytes},
               {"uploaded_constant_bytes", plan.uploaded_bytes}, {"arenas", ArenasJson(plan)},
               {"constant_bytes", plan.constant_bytes}, {"units", std::move(units)}, {"dropped_claims", std::move(dropped)},
               {"guard", plan.guard}, {"passes", plan.pass_log}, {"buffers", BuffersJson(plan)},
               {"planned_in_the_run", plan.continuation != nullptr}});
}

absl::StatusOr<std::string> RuntimeReport(Runtime& runtime, std::string_view schema) {
  if (schema == "mge.devices/1") return Dump(Devices(runtime));
  if (schema == "mge.plugins/1") {
    const mge::Devices& devices = runtime.devices();
    return PluginsJson(devices.files(), devices.directories(), devices.quarantine());
  }
  if (schema == "mge.env/1") return Dump(Env(runtime));
  if (schema == "mge.operators/1") return Dump(Operators());
  return Fail(errors::kApiMisuse, fmt::format("mge_runtime_report: no schema '{}'", schema));
}

absl::StatusOr<std::string> SessionReport(Session& session, const Plan* plan, std::string_view schema) {
  if (schema == "mge.inspect/1") return Dump(Inspect(session));
  if (schema == "mge.memory/1") {
    MGE_ASSIGN_OR_RETURN(Json json, Memory(session, plan));
    return Dump(json);
  }
  return Fail(errors::kApiMisuse, fmt::format("mge_session_report: no schema '{}'", schema));
}

}  // namespace mge::api
