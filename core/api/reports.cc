// SPDX-License-Identifier: Apache-2.0
// Reports on a runtime or session as JSON. The first field of each names its schema. The command prints them unchanged.
#include <algorithm>

#include "core/api/json.h"
#include "core/api/objects.h"
#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/base/resident_memory.h"
#include "core/env/removed_names.h"
#include "core/html/memory_page.h"
#include "core/kvstore/collective_check.h"
#include "core/kvstore/training_processes.h"
#include "core/ops/op.h"
#include "core/plan/bodies.h"
#include "core/plan/program.h"
#include "fmt/format.h"

namespace mge::api {
namespace {

// Returns true if one of the alternatives is present. Opens no device.
bool IsPresent(mge::Devices& devices, const absl::StatusOr<DeviceSpec>& spec) {
  auto located = [&](const DeviceName& name) { return devices.Locate(name).ok(); };
  return spec.ok() && std::any_of(spec->alternatives.begin(), spec->alternatives.end(), [&](const auto& alternative) {
           return std::all_of(alternative.begin(), alternative.end(), located);
         });
}

// Returns the setting that names the default device, with the error of a run on it. `misspelt`: MGE and all backends that
// were found do not know the name.
Json DefaultDevice(Runtime& runtime) {
  const std::shared_ptr<const Snapshot> settings = runtime.registry().snapshot();
  const std::string value = settings->Get<kDefaultDevice>();
  const absl::StatusOr<DeviceSpec> spec = ParseDeviceSpec(value);
  Json error = nullptr;
  if (settings->IsSet<kDefaultDevice>() && !IsPresent(runtime.devices(), spec)) {
    const absl::Status status = runtime.ResolveDevice("", *settings).status();
    if (!status.ok()) {
      error = {{"id", ErrorId(status)},
               {"exit_code", static_cast<int>(KindOf(status))},
               {"text", FormatError(status)},
               {"misspelt", !spec.ok() || !runtime.devices().KnowsClasses(*spec)}};
    }
  }
  return {{"value", value}, {"error", std::move(error)}};
}

// Returns the setting that names the default device, not checked: a check would wait for a backend that does not start.
Json UncheckedDefaultDevice(Runtime& runtime) {
  return {{"value", runtime.registry().snapshot()->Get<kDefaultDevice>()}, {"error", nullptr}};
}

Json Devices(Runtime& runtime) {
  const std::vector<std::string> late = runtime.StartBackends();
  Json rows = Json::array();
  for (const auto& device : runtime.devices().all()) {
    Json row = {{"name", device->name()}, {"class", device->class_name()}};
    const DeviceState state = StateOf(*device);
    row["state"] = state.works ? "loadable" : "found";
    row["reason"] = state.reason;
    row["usable"] = device->usable();
    row["memory_total"] = state.total_bytes;
    row["memory_free"] = state.free_bytes;
    row["plugin"] = device->backend().name();
    row["description"] = device->description().name;
    row["alias"] = device->gpu_name();
    row["memory_limit"] = device->budget().limit();
    row["buffer_alignment"] = device->BufferAlignment();
    row["compute_queues"] = device->description().compute_queues;
    const DeviceParts parts = device->Parts();
    row["pool"] = parts.pool;
    row["reserve"] = parts.reserve;
    row["strategy"] = parts.strategy;
    Json properties = Json::object();
    for (const auto& [key, value] : device->description().properties) properties[key] = value;
    row["properties"] = std::move(properties);
    rows.push_back(std::move(row));
  }
  Json unavailable = Json::array();
  for (const PluginFile& file : runtime.devices().files()) {
    if (file.code != VerdictCode::kUnavailable) continue;
    unavailable.push_back({{"plugin", file.name}, {"reason", file.reason}, {"fix", file.fix}});
  }
  return {{"schema", "mge.devices/1"},
          {"devices", std::move(rows)},
          {"unavailable", std::move(unavailable)},
          {"not_started", late},
          {"default_device", late.empty() ? DefaultDevice(runtime) : UncheckedDefaultDevice(runtime)}};
}

// Returns the keys and variables of an earlier version with their successors.
Json RemovedNames() {
  Json rows = Json::array();
  auto add = [&](std::string_view name, std::string_view successor) {
    rows.push_back({{"name", name}, {"successor", successor}});
  };
  for (const RemovedKey& row : kRemovedKeys) {
    add(row.key, row.successor);
    add(VariableOf(row.key), VariableOf(row.successor));
  }
  for (const RemovedKey& row : kRemovedVariables) add(row.key, row.successor);
  return rows;
}

Json Env(Runtime& runtime) {
  const std::vector<std::string> late = runtime.StartBackends();  // their settings are listed, too
  Json rows = Json::array();
  for (const SettingInfo& s : runtime.registry().List()) {
    Json foreign = Json::array();
    for (const ForeignUse& f : s.foreign) {
      foreign.push_back({{"name", f.name.name},
                         {"system", f.name.system},
                         {"allowed", f.allowed},
                         {"default", f.default_value},
                         {"page_default", f.page_default},
                         {"meanings", f.meanings}});
    }
    rows.push_back({{"key", s.key},
                    {"variable", s.variable},
                    {"aliases", s.aliases},
                    {"foreign", std::move(foreign)},
                    {"type", s.type},
                    {"default", s.default_value},
                    {"value", s.value},
                    {"origin", s.origin},
                    {"lifecycle", s.lifecycle},
                    {"unstable", s.unstable},
                    {"doc", s.doc},
                    {"allowed", s.allowed},
                    {"unit", s.unit},
                    {"owner", s.owner}});
  }
  return {{"schema", "mge.env/1"},
          {"settings", std::move(rows)},
          {"removed", RemovedNames()},
          {"not_started", late},
          {"default_device", late.empty() ? DefaultDevice(runtime) : UncheckedDefaultDevice(runtime)}};
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
  return {{"kind", kinds[static_cast<int>(type.kind)]},
          {"dtype", DTypeName(type.type.dtype)},
          {"shape", type.type.has_rank ? dims : Json()}};
}

Json Inspect(Session& session) {
  const onnx::ModelInfo& info = session.info();
  Json ops = Json::object();
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
  return {{"schema", "mge.inspect/1"},
          {"graph", graph.name},
          {"ir_version", info.ir_version},
          {"producer", info.producer_name},
          {"producer_version", info.producer_version},
          {"opsets", OpsetsJson(info)},
          {"inputs", TypesJson(info.inputs)},
          {"outputs", TypesJson(info.outputs)},
          {"nodes", graph.node_count()},
          {"operators", std::move(ops)},
          {"random", random},
          {"constants", constants},
          {"constant_bytes", constant_bytes}};
}

Json BuffersJson(const Plan& plan) {
  Json rows = Json::array();
  for (const PlacedBuffer& b : plan.buffers) {
    rows.push_back({{"name", b.name},
                    {"bytes", b.bytes},
                    {"offset", b.offset},
                    {"first_step", b.first},
                    {"last_step", b.last},
                    {"category", b.workspace ? "workspace" : "activation"},
                    {"arena", b.arena}});
  }
  return rows;
}

Json ArenasJson(const Plan& plan) {
  Json rows = Json::array();
  for (const Arena& a : plan.arenas) {
    rows.push_back({{"device", a.device->name()},
                    {"bytes", a.bytes},
                    {"lower_bound_bytes", a.lower_bound_bytes},
                    {"match_range", a.match_range ? Json(*a.match_range) : Json()},
                    {"memory", a.memory_class == MGE_MEMORY_PINNED ? "page-locked host" : "device"}});
  }
  return rows;
}

// Returns one row for each plan of a body.
Json BodiesMemory(const Plan& plan) {
  Json rows = Json::array();
  ForEachPlan(plan, [&](const Plan& p, const std::string& path) {
    if (&p == &plan) return;
    rows.push_back({{"body", path},
                    {"steps", p.steps.size()},
                    {"arena_bytes", p.report.arena_bytes},
                    {"packed_constant_bytes", p.report.packed_bytes},
                    {"uploaded_constant_bytes", p.report.uploaded_bytes},
                    {"uploaded_packed_constant_bytes", p.report.uploaded_packed_bytes},
                    {"buffers", BuffersJson(p)}});
  });
  return rows;
}

Json SharedArenasJson(const InstanceStore& store) {
  Json rows = Json::array();
  for (const auto& arena : store.arenas().shared) {
    rows.push_back({{"device", arena->device().name()}, {"bytes", arena->bytes()}});
  }
  return rows;
}

absl::StatusOr<Json> Memory(Session& session, const Plan* plan) {
  if (!plan) return Fail(errors::kApiMisuse, "mge.memory/1: nothing has run yet");
  MGE_ASSIGN_OR_RETURN(const PlanTotals totals, TotalsOf(*plan));
  int64_t workspace = 0, activations = 0;
  ForEachPlan(*plan, [&](const Plan& p, const std::string&) {
    for (const PlacedBuffer& b : p.buffers) (b.workspace ? workspace : activations) += b.bytes;
  });
  MemoryStats stats = session.device().Stats();
  const ResidentMemory resident = ReadResidentMemory();
  return Json{{"schema", "mge.memory/1"},
              {"device", DeviceText(*plan)},
              {"planned_peak_bytes", totals.planned_peak_bytes},
              {"measured_peak_bytes", totals.measured_peak_bytes},
              {"arena_bytes", totals.arena_bytes},
              {"arena_lower_bound_bytes", plan->report.lower_bound_bytes},
              {"arenas", ArenasJson(*plan)},
              {"shared_arenas", SharedArenasJson(InstanceStore::Of(*plan))},
              {"arena_use", InstanceStore::Of(*plan).arenas().name()},
              {"own_arena_bytes", IdleBytes(*plan)},
              {"packed_constant_bytes", totals.packed_bytes},
              {"uploaded_constant_bytes", totals.uploaded_bytes},
              {"uploaded_packed_constant_bytes", totals.uploaded_packed_bytes},
              {"constant_bytes", totals.constant_bytes},
              {"activation_bytes_without_sharing", activations},
              {"workspace_bytes_without_sharing", workspace},
              {"device_charged_bytes", stats.charged},
              {"device_peak_charged_bytes", stats.peak_charged},
              {"device_limit_bytes", stats.limit},
              {"device_in_host_memory", !HasQueues(session.device())},
              {"resident_bytes", resident.total},
              {"resident_anonymous_bytes", resident.anonymous},
              {"resident_mapped_bytes", resident.mapped},
              {"steps", plan->units.size()},
              {"buffers", BuffersJson(*plan)},
              {"bodies", BodiesMemory(*plan)}};
}

Json PlanObject(const Plan& plan, const StepTimes& times);

Json BodiesObject(const BodyPlans& body, const StepTimes& times) {
  Json plans = Json::array();
  for (const auto& nested : body.plans) plans.push_back(PlanObject(*nested, times));
  return {{"name", body.body->name},
          {"path", body.path},
          {"nodes", body.body->program->graph().node_count()},
          {"plans", std::move(plans)},
          {"reason", body.reason}};
}

// Returns the measured times of a unit, or null if it was not measured.
Json TimeObject(const Plan& plan, size_t unit, const StepTimes& times) {
  std::optional<StepTime> time = times ? times(plan, static_cast<int32_t>(unit)) : std::nullopt;
  if (!time) return nullptr;
  return {{"median_us", time->median_us}, {"share", time->share}, {"calls", time->calls}, {"estimate_off", time->off}};
}

Json PlanObject(const Plan& plan, const StepTimes& times) {
  const std::vector<BodyPlans> bodies = PlansOfBodies(plan, /*make=*/true);
  Json units = Json::array(), rest = Json::array();
  for (size_t i = 0; i < plan.units.size(); ++i) {
    const Unit& u = plan.units[i];
    Json alternatives = Json::array(), within = Json::array();
    for (const Alternative& a : u.alternatives) {
      alternatives.push_back({{"id", a.id}, {"reason", a.reason}, {"cost_us", a.cost_us}, {"measured_us", a.measured_us}});
    }
    for (const BodyPlans& b : bodies) {
      if (b.body->unit == static_cast<int32_t>(i)) within.push_back(BodiesObject(b, times));
    }
    units.push_back({{"kind", UnitKindName(u.kind)},
                     {"device", u.device},
                     {"kernel", u.kernel},
                     {"fusion", u.fusion},
                     {"nodes", u.nodes},
                     {"operators", u.ops},
                     {"inputs", u.inputs},
                     {"outputs", u.outputs},
                     {"input_ids", u.input_ids},
                     {"output_ids", u.output_ids},
                     {"reason", u.reason},
                     {"cost_us", u.cost_us},
                     {"measured_us", u.measured_us},
                     {"workspace_bytes", u.workspace_bytes},
                     {"attributes", u.attributes},
                     {"in_place", u.in_place},
                     {"queue", u.queue},
                     {"placement", u.placement},
                     {"alternatives", std::move(alternatives)},
                     {"in_the_run", TimeObject(plan, i, times)},
                     {"bodies", std::move(within)}});
  }
  for (const BodyPlans& b : bodies) {
    if (b.body->unit < 0) rest.push_back(BodiesObject(b, times));
  }
  Json dropped = Json::array();
  for (const Alternative& a : plan.report.dropped_claims) dropped.push_back({{"id", a.id}, {"reason", a.reason}});
  return {{"device", DeviceText(plan)},
          {"ranges", plan.report.ranges},
          {"why_own_plan", plan.report.why_own},
          {"steps", plan.steps.size()},
          {"reference_steps", plan.report.reference_steps},
          {"arena_bytes", plan.report.arena_bytes},
          {"arena_lower_bound_bytes", plan.report.lower_bound_bytes},
          {"packed_constant_bytes", plan.report.packed_bytes},
          {"uploaded_constant_bytes", plan.report.uploaded_bytes},
          {"uploaded_packed_constant_bytes", plan.report.uploaded_packed_bytes},
          {"arenas", ArenasJson(plan)},
          {"constant_bytes", plan.report.constant_bytes},
          {"units", std::move(units)},
          {"dropped_claims", std::move(dropped)},
          {"kernel_restrictions", plan.report.kernel_rules},
          {"passes", plan.report.pass_log},
          {"buffers", BuffersJson(plan)},
          {"planned_in_the_run", plan.continuation != nullptr},
          {"continuation", std::move(rest)}};
}

}  // namespace

Json TypesJson(const std::vector<onnx::NamedType>& types) {
  Json rows = Json::array();
  for (const onnx::NamedType& t : types) {
    Json row = {{"name", t.name}};
    row.update(TypeJson(t.type));
    rows.push_back(std::move(row));
  }
  return rows;
}

Json OpsetsJson(const onnx::ModelInfo& info) {
  Json rows = Json::array();
  for (const onnx::OpsetImport& o : info.opsets) rows.push_back({{"domain", o.domain}, {"version", o.version}});
  return rows;
}

Json Communication(const Session& session) {
  const CommunicationFacts facts = session.Communication().value_or(CommunicationFacts());
  const double steps = static_cast<double>(std::max<uint64_t>(facts.steps, 1));
  return {{"schema", "mge.communication/1"}, {"steps", facts.steps},
          {"buckets", facts.buckets},        {"bytes", facts.bytes},
          {"sum_us", facts.busy_us / steps}, {"waited_us", facts.waited_us / steps},
          {"hidden", facts.Hidden()}};
}

std::string PlanJson(const Plan& plan, const StepTimes& times, const Summary* summary) {
  Json report = {{"schema", "mge.plan/1"}};
  report.update(PlanObject(plan, times));
  if (summary) {
    report["measured"] = {{"runs", summary->runs},
                          {"wall_us", summary->wall_us},
                          {"estimated_us", summary->estimated_us},
                          {"estimated_steps_us", summary->estimated_steps_us},
                          {"estimate_off", summary->off}};
  }
  return Dump(report);
}

absl::StatusOr<std::string> RuntimeReport(Runtime& runtime, std::string_view schema) {
  if (schema == "mge.devices/1") return Dump(Devices(runtime));
  if (schema == "mge.plugins/1") {
    const mge::Devices& devices = runtime.devices();
    return PluginsJson(devices.files(), devices.directories(), devices.quarantine());
  }
  if (schema == "mge.env/1") return Dump(Env(runtime));
  if (schema == "mge.operators/1") return Dump(Operators());
  if (schema == "mge.collective/1") {
    MGE_ASSIGN_OR_RETURN(const CollectiveFacts facts, CheckCollectives(runtime));
    Json sums = Json::array();
    for (const MeasuredSum& s : facts.sums) {
      sums.push_back(
          {{"bytes", s.bytes}, {"seconds", s.seconds}, {"bytes_per_second", static_cast<double>(s.bytes) / s.seconds}});
    }
    return Dump({{"schema", "mge.collective/1"},
                 {"rank", facts.launch.rank},
                 {"ranks", facts.launch.ranks},
                 {"launcher", facts.launch.launcher},
                 {"library", facts.library},
                 {"processes", facts.processes},
                 {"sums", std::move(sums)}});
  }
  if (schema == "mge.launch/1") {
    MGE_ASSIGN_OR_RETURN(const Launch launch, LaunchOfTraining(runtime, *runtime.registry().snapshot()));
    return Dump({{"schema", "mge.launch/1"},
                 {"rank", launch.rank},
                 {"ranks", launch.ranks},
                 {"local_rank", launch.local_rank},
                 {"launcher", launch.launcher},
                 {"host", launch.host}});
  }
  return Fail(errors::kApiMisuse, fmt::format("mge_runtime_report: unknown schema '{}'", schema));
}

absl::StatusOr<std::string> SessionReport(Session& session, const Plan* plan, std::string_view schema) {
  if (schema == "mge.inspect/1") return Dump(Inspect(session));
  if (schema == "mge.memory/1" || schema == "memory.html") {
    MGE_ASSIGN_OR_RETURN(Json json, Memory(session, plan));
    std::string text = Dump(json);
    if (schema == "mge.memory/1") return text;
    return html::Page("Memory", html::MemoryBody(html::Json::parse(text)));
  }
  if (schema == "mge.communication/1") return Dump(Communication(session));
  return Fail(errors::kApiMisuse, fmt::format("mge_session_report: unknown schema '{}'", schema));
}

}  // namespace mge::api
