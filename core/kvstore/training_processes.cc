// SPDX-License-Identifier: Apache-2.0
#include "core/kvstore/training_processes.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/base/errors.h"
#include "core/base/lines.h"
#include "core/kvstore/id_store.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr std::chrono::minutes kFirstStepPatience{10};

std::vector<std::string_view> FactLines(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string_view NameIn(std::string_view line) { return line.substr(0, std::min(line.find(": "), line.size())); }
std::string_view ValueIn(std::string_view line) {
  const size_t at = line.find(": ");
  return at == std::string_view::npos ? std::string_view() : line.substr(at + 2);
}

class Hash {
 public:
  Hash() { XXH3_64bits_reset(&state_); }
  void Add(const void* data, size_t bytes) { XXH3_64bits_update(&state_, data, bytes); }
  void Add(std::string_view text) {
    const uint64_t size = text.size();
    Add(&size, sizeof(size));
    Add(text.data(), text.size());
  }
  std::string Text() const { return fmt::format("{:016x}", XXH3_64bits_digest(&state_)); }

 private:
  XXH3_state_t state_;
};

}  // namespace

absl::StatusOr<Launch> LaunchOfTraining(const Runtime& runtime, const Snapshot& settings) {
  const KvstoreType type = settings.Get<kKvstoreType>();
  if (type == KvstoreType::kDistAsync) {
    return Fail(
        errors::kBadSetting, "kvstore.type dist_async is not supported",
        {.what = "it needs parameter servers, which MGE does not have, and each step would use parameters of any age",
         .where = settings.OriginOf<kKvstoreType>().Describe(),
         .fix = "use dist_sync: the processes sum the gradients of each step"});
  }
  if (type == KvstoreType::kLocal || type == KvstoreType::kDevice) return Launch();
  MGE_ASSIGN_OR_RETURN(Launch launch, LaunchOf(runtime.environment(), settings));
  if (type == KvstoreType::kDistSync && launch.ranks == 1) {
    return Fail(errors::kBadSetting, "kvstore.type is dist_sync, but there is one process",
                {.what = "no launcher has started several processes of this training",
                 .where = settings.OriginOf<kKvstoreType>().Describe(),
                 .fix = "start the processes with mpirun -n NUMBER, or leave kvstore.type unset"});
  }
  return launch;
}

std::chrono::nanoseconds PatienceOf(const Snapshot& settings, bool first_step) {
  const auto set = std::chrono::duration_cast<std::chrono::nanoseconds>(settings.Get<kCollectiveTimeout>());
  if (!first_step || settings.IsSet<kCollectiveTimeout>()) return set;
  return std::max<std::chrono::nanoseconds>(set, kFirstStepPatience);
}

absl::StatusOr<CollectiveId> IdWithoutMpi(const Launch& launch, const Snapshot& settings, const Environment& environment,
                                          const std::string& facts,
                                          const std::function<absl::StatusOr<CollectiveId>()>& create) {
  if (settings.IsSet<kCollectiveId>()) {
    absl::StatusOr<CollectiveId> id = ParseCollectiveId(settings.Get<kCollectiveId>());
    if (!id.ok()) return AddWhere(id.status(), settings.OriginOf<kCollectiveId>().Describe());
    return id;
  }
  if (launch.master_address.empty()) {
    return Fail(
        errors::kBadSetting, "the host of rank 0 is not known",
        {.what = fmt::format("{} processes by {} exchange the id of their group over TCP, and MASTER_ADDR is not set",
                             launch.ranks, launch.launcher),
         .where = launch.source,
         .fix = "set MASTER_ADDR in all processes; with SLURM: export MASTER_ADDR=$(scontrol show hostnames "
                "\"$SLURM_JOB_NODELIST\" | head -n 1)"});
  }
  IdStoreOptions options;
  options.port = settings.Get<kCollectivePort>();
  if (options.port == 0) options.port = launch.master_port + 1;
  if (options.port == 1 || options.port > 65535) {
    return Fail(errors::kBadSetting, "the port of rank 0 is not known",
                {.what = fmt::format("collective.port is not set, and MASTER_PORT is {}",
                                     launch.master_port ? std::to_string(launch.master_port) : "not set, either"),
                 .where = launch.source,
                 .fix = "set MASTER_PORT below 65535, or MGE_COLLECTIVE_PORT, to a free port of the host of rank 0"});
  }
  options.rank = launch.rank;
  options.ranks = launch.ranks;
  options.address = launch.master_address;
  options.bind = settings.Get<kCollectiveBind>();
  options.token = environment.Find("MGE_COLLECTIVE_TOKEN").value_or("");
  options.host = launch.host;
  options.facts = facts;
  options.timeout = PatienceOf(settings, true);
  return ShareId(options, create);
}

absl::Status NoTransport(const Launch& launch, const std::string& device) {
  return Fail(
      errors::kUnsupportedFeature, fmt::format("nothing connects {} with the other processes", device),
      {.what = fmt::format("its backend has no transport between processes, and {}, which started {} of them, has no MPI",
                           launch.launcher, launch.ranks),
       .where = launch.source,
       .fix = fmt::format("start the processes with mpirun: mpirun -n {} mge train ... --data-parallel", launch.ranks)});
}

absl::StatusOr<std::string> ModelFacts(const onnx::Model& model) {
  const Graph& graph = model.graph;
  Hash nodes, weights;
  size_t node_count = 0, weight_count = 0;
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    const Node& node = graph.node(n);
    if (node.dead) continue;
    ++node_count;
    nodes.Add(node.domain);
    nodes.Add(node.op);
    for (ValueId v : node.inputs) nodes.Add(v == kNone ? std::string_view() : std::string_view(graph.value(v).name));
    for (ValueId v : node.outputs) nodes.Add(v == kNone ? std::string_view() : std::string_view(graph.value(v).name));
  }
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    const Value& value = graph.value(v);
    if (value.dead || value.role != Role::kConstant || value.kind != ValueKind::kTensor) continue;
    ++weight_count;
    MGE_ASSIGN_OR_RETURN(const Tensor held, value.constant.Held());
    weights.Add(value.name);
    for (const int64_t dim : held.shape()) weights.Add(&dim, sizeof(dim));
    if (held.dtype() != DType::kString) weights.Add(held.data(), static_cast<size_t>(held.bytes()));
  }
  return fmt::format("nodes of the model: {}, {}\nweights of the model: {}, {}\n", node_count, nodes.Text(), weight_count,
                     weights.Text());
}

std::string FirstDifference(const std::string& first, const std::string& first_name, const std::string& other,
                            const std::string& other_name) {
  const std::vector<std::string_view> a = FactLines(first), b = FactLines(other);
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string_view left = i < a.size() ? a[i] : "", right = i < b.size() ? b[i] : "";
    if (left == right) continue;
    return fmt::format("'{}' is '{}' in {}, and '{}' in {}", EscapeControl(NameIn(left.empty() ? right : left)),
                       EscapeControl(ValueIn(left)), first_name, EscapeControl(ValueIn(right)), other_name);
  }
  return {};
}

absl::Status CompareFacts(ProcessGroup& group, const std::string& facts, std::chrono::nanoseconds limit) {
  MGE_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                       group.Gather(group.NewChannel(), facts.substr(0, ProcessGroup::kMaxText),
                                    {"the comparison of the models and options", limit}));
  for (uint32_t r = 1; r < group.ranks(); ++r) {
    const std::string what = FirstDifference(all[0], group.Name(0), all[r], group.Name(r));
    if (what.empty()) continue;
    return Fail(errors::kRankFailed, "the processes do not train the same",
                {.what = what, .fix = "start all processes with the same MGE, model, data and options"});
  }
  return absl::OkStatus();
}

}  // namespace mge
