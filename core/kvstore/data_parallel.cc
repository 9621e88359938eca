// SPDX-License-Identifier: Apache-2.0
#include "core/kvstore/data_parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "core/base/element_range.h"
#include "core/base/errors.h"
#include "core/base/exception.h"
#include "core/env/settings_train.h"
#include "core/kvstore/batch_division.h"
#include "core/kvstore/bucketed_sum.h"
#include "core/kvstore/crew.h"
#include "core/kvstore/device_links.h"
#include "core/kvstore/local_group.h"
#include "core/kvstore/process_sum.h"
#include "core/kvstore/training_processes.h"
#include "core/kvstore/tree_sum.h"
#include "core/plugin/device_tensor.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge {
namespace {

class DataParallel final : public Replicas {
 public:
  DataParallel(std::shared_ptr<Runtime> runtime, const Session& whole, SessionOptions options, MakeReplica make,
               std::vector<std::string> devices, Launch launch, std::string facts)
      : runtime_(std::move(runtime)),
        options_(std::move(options)),
        make_(std::move(make)),
        devices_(std::move(devices)),
        launch_(std::move(launch)),
        facts_(std::move(facts)),
        first_(launch_.rank * devices_.size()),
        replicas_(launch_.ranks * devices_.size()),
        division_(whole.graph(), whole.output_types(), options_.outputs.empty(), replicas_),
        states_(StatesOf(whole.graph())) {}

  // Creates the sessions. `states` are the elements of the states with these names; the others are as in the model.
  absl::Status Build(const std::map<std::string, Tensor>& states) {
    MGE_ASSIGN_OR_RETURN(const auto settings, runtime_->registry().SnapshotWith(options_.settings));
    if (launch_.ranks > 1) MGE_RETURN_IF_ERROR(JoinProcesses(*settings));
    group_ = nullptr;
    trees_.reset();
    MGE_ASSIGN_OR_RETURN(const std::vector<std::shared_ptr<Communicators>> ranks, Group(settings));
    std::vector<std::shared_ptr<Session>> sessions;
    for (size_t r = 0; r < devices_.size(); ++r) {
      SessionOptions options = options_;
      options.device = devices_[r];
      options.communicators = ranks[r];
      options.outputs_on_device = false;
      MGE_ASSIGN_OR_RETURN(onnx::Model model, make_(ExchangeOf(r, *settings)));
      for (ValueId v = 0; v < model.graph.value_count(); ++v) {
        Value& value = model.graph.value(v);
        const auto state = states.find(value.name);
        if (value.dead || state == states.end()) continue;
        MGE_ASSIGN_OR_RETURN(value.constant, PartOfState(state->second, value.type.dims, first_ + r));
      }
      MGE_ASSIGN_OR_RETURN(std::shared_ptr<Session> session, Session::Create(runtime_, std::move(model), options));
      sessions.push_back(std::move(session));
    }
    MGE_RETURN_IF_ERROR(JoinAll(sessions, ranks));
    std::lock_guard lock(mutex_);
    sessions_ = std::move(sessions);
    return absl::OkStatus();
  }

  absl::Status Run(std::span<const HostValue> inputs, std::span<HostValue> outputs, RunState& control) override {
    std::vector<HostValue> whole(inputs.begin(), inputs.end());
    std::vector<InputType> types;
    for (HostValue& value : whole) {
      if (!DeviceMemory::OnHost(value.tensor)) {
        MGE_ASSIGN_OR_RETURN(value.tensor, ToHost(value.tensor));
      }
      types.push_back(TypeOfValue(value));
    }
    MGE_ASSIGN_OR_RETURN(std::vector<BatchPart> parts, division_.Divide(types));
    step_ = {static_cast<int64_t>(control.next_random >> 32), 0};
    for (const BatchPart& part : parts) step_.examples += part.counts;
    parts = Own(parts);
    MGE_RETURN_IF_ERROR(control.CheckStop());
    if (broken_) MGE_RETURN_IF_ERROR(Repair());
    std::vector<RunOfReplica> runs(sessions_.size());
    for (size_t r = 0; r < runs.size(); ++r) {
      for (size_t i = 0; i < whole.size(); ++i) runs[r].inputs.push_back(division_.PartOf(i, whole[i], parts[r]));
      runs[r].inputs.emplace_back().tensor = Tensor::Scalar<float>(static_cast<float>(parts[r].counts));
      runs[r].outputs.resize(outputs.size());
      RunState& own = runs[r].control;
      own.deadline = control.deadline;
      own.observer = r == 0 ? control.observer : nullptr;
      // Replicas draw different random numbers, and each step draws others.
      own.seed = (control.seed + (first_ + r) * 0x9e3779b97f4a7c15u + (control.next_random >> 32) * 0xd1342543de82ef95u) | 1;
    }
    MGE_RETURN_IF_ERROR(RunAll(runs, control));
    ++steps_;
    for (size_t i = 0; i < outputs.size(); ++i) {
      std::vector<const HostValue*> values;
      for (const RunOfReplica& run : runs) values.push_back(&run.outputs[i]);
      MGE_ASSIGN_OR_RETURN(outputs[i], division_.Join(i, values, parts, sessions_[0]->device().host_allocator()));
    }
    for (const RunOfReplica& run : runs) {
      control.staged_bytes += run.control.staged_bytes;
      control.operations += run.control.operations;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Tensor> ReadState(const std::string& name) override {
    const std::vector<std::shared_ptr<Session>> sessions = Sessions();
    MGE_ASSIGN_OR_RETURN(Tensor first, sessions[0]->ReadState(name));
    const auto whole = states_.find(name);
    if (whole == states_.end() || first.shape() == whole->second) return first;
    std::vector<Tensor> parts = {std::move(first)};
    for (size_t r = 1; r < sessions.size(); ++r) {
      MGE_ASSIGN_OR_RETURN(parts.emplace_back(), sessions[r]->ReadState(name));
    }
    return JoinState(name, whole->second, parts);
  }
  absl::Status WriteState(const std::string& name, const Tensor& elements) override {
    if (broken_) MGE_RETURN_IF_ERROR(Repair());
    for (size_t r = 0; r < sessions_.size(); ++r) {
      const Shape dims = StatesOf(sessions_[r]->graph()).at(name);
      MGE_ASSIGN_OR_RETURN(const Tensor part, PartOfState(elements, dims, first_ + r));
      if (absl::Status written = sessions_[r]->WriteState(name, part); !written.ok()) {
        broken_ = true;
        return written;
      }
    }
    return absl::OkStatus();
  }
  std::optional<CommunicationFacts> Communication() const override {
    if (!group_ || launch_.ranks == 1) return std::nullopt;
    const LocalGroup::Sums sums = group_->Facts();
    return CommunicationFacts{steps_, sums.buckets, sums.bytes, sums.busy_us, sums.waited_us};
  }
  std::shared_ptr<const Plan> last_plan() const override { return First()->last_plan(); }
  std::pair<int64_t, int64_t> PartOf(int64_t examples) const override {
    const std::vector<BatchPart> parts = Own(BatchDivision::Parts(examples, static_cast<int64_t>(replicas_)));
    int64_t count = 0;
    for (const BatchPart& part : parts) count += part.counts;
    if (count == 0) return {0, 1};  // the example that does not count
    return {parts[0].begin, count};
  }
  std::shared_ptr<Session> First() const override {
    std::lock_guard lock(mutex_);
    return sessions_[0];
  }
  absl::StatusOr<std::shared_ptr<const Plan>> PlanFor(std::span<const InputType> inputs, const StopControl* stop) override {
    MGE_ASSIGN_OR_RETURN(const std::vector<BatchPart> parts, division_.Divide(inputs));
    std::vector<InputType> types;
    for (size_t i = 0; i < inputs.size(); ++i) {
      types.push_back(division_.PartOf(i, inputs[i], parts[first_]));
      types.back().place = {};
    }
    types.emplace_back().dtype = DType::kF32;
    return First()->PlanFor(types, stop);
  }

 private:
  static std::map<std::string, Shape> StatesOf(const Graph& graph) {
    std::map<std::string, Shape> out;
    for (ValueId v = 0; v < graph.value_count(); ++v) {
      const Value& value = graph.value(v);
      if (!value.dead && value.role == Role::kState) out[value.name] = value.type.dims;
    }
    return out;
  }

  struct RunOfReplica {
    std::vector<HostValue> inputs, outputs;
    RunState control;
  };

  // Returns how replica `r` of this process works with the others.
  ReplicaExchange ExchangeOf(size_t r, const Snapshot& settings) const {
    ReplicaExchange out;
    out.replica = static_cast<uint32_t>(first_ + r);
    out.replicas = static_cast<uint32_t>(replicas_);
    // Within a process, the replicas compute their gradients at the same time, so that nothing would go on meanwhile.
    const bool in_buckets = group_ && launch_.ranks > 1;
    const int64_t bucket = settings.Get<kKvstoreBigArray>();
    out.sum = [this, r, in_buckets, bucket, replica = out.replica, replicas = out.replicas](
                  Graph& graph, std::span<const ValueId> values,
                  const std::vector<bool>& parts) -> absl::StatusOr<std::vector<ValueId>> {
      if (trees_) return trees_->Add(graph, values, static_cast<int>(r));
      if (in_buckets) return AddBucketedSum(graph, values, bucket, {parts, replica, replicas});
      return AddSum(graph, values);
    };
    if (!settings.Get<kTrainShardOptimizer>()) return out;
    out.sums_parts = in_buckets;
    out.gather_elements = bucket;
    out.gather = AddGather;
    return out;
  }

  // Returns the elements that a state with these sizes has in a replica.
  absl::StatusOr<Tensor> PartOfState(const Tensor& whole, const Shape& dims, size_t replica) const {
    if (whole.shape() == dims) return whole;
    const ElementRange part =
        PartOfElements(whole.elements(), static_cast<uint32_t>(replica), static_cast<uint32_t>(replicas_));
    MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(whole.dtype(), {part.count}));
    const int64_t size = ElementBytes(whole.dtype());
    std::memcpy(out.mutable_data(), static_cast<const char*>(whole.data()) + part.begin * size,
                static_cast<size_t>(part.count * size));
    return out;
  }
  // Joins the parts of a state that the replicas of this process and those of the others have.
  absl::StatusOr<Tensor> JoinState(const std::string& name, const Shape& dims, std::span<const Tensor> parts) {
    const DType dtype = parts[0].dtype();
    const int64_t size = ElementBytes(dtype);
    MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(dtype, dims));
    auto begin = [&](size_t replica) {
      const auto r = static_cast<uint32_t>(replica), all = static_cast<uint32_t>(replicas_);
      return r == all ? out.elements() : PartOfElements(out.elements(), r, all).begin;
    };
    for (size_t r = 0; r < parts.size(); ++r) {
      std::memcpy(static_cast<char*>(out.mutable_data()) + begin(first_ + r) * size, parts[r].data(),
                  static_cast<size_t>(parts[r].bytes()));
    }
    if (launch_.ranks == 1) return out;
    std::vector<int64_t> ends;
    for (uint32_t process = 1; process <= launch_.ranks; ++process) ends.push_back(begin(process * parts.size()) * size);
    MGE_ASSIGN_OR_RETURN(const auto settings, runtime_->registry().SnapshotWith(options_.settings));
    MGE_RETURN_IF_ERROR(process_sum_->AllGather(
        out, ends, {fmt::format("the reading of state '{}'", name), PatienceOf(*settings, steps_ == 0), nullptr}));
    return out;
  }
  std::vector<std::shared_ptr<Session>> Sessions() const {
    std::lock_guard lock(mutex_);
    return sessions_;
  }

  // Returns the parts of this process's replicas.
  std::vector<BatchPart> Own(const std::vector<BatchPart>& parts) const {
    const auto begin = parts.begin() + static_cast<std::ptrdiff_t>(first_);
    return {begin, begin + static_cast<std::ptrdiff_t>(devices_.size())};
  }

  // Joins the other processes of the launch, and compares the training with theirs. Without MPI, SharedId() does that.
  absl::Status JoinProcesses(const Snapshot& settings) {
    if (joined_) {
      return Fail(errors::kRankFailed, "the training on several processes has failed before",
                  {.fix = "start all processes again, with --resume if there are checkpoints"});
    }
    joined_ = true;
    runtime_->logger().Info("rank {} of {} by {} on host {} ({})", launch_.rank, launch_.ranks, launch_.launcher,
                            launch_.host, launch_.source);
    ReplicaExchange none;
    none.sum = [](Graph&, std::span<const ValueId> values, const std::vector<bool>&) {
      return std::vector<ValueId>(values.begin(), values.end());
    };
    MGE_ASSIGN_OR_RETURN(const onnx::Model model, make_(none));
    MGE_ASSIGN_OR_RETURN(const std::string model_facts, ModelFacts(model));
    facts_ += fmt::format("devices of each process: {}\nseed of the random numbers: {}\n{}: {}\n{}: {}\n{}", devices_.size(),
                          settings.Get<kSeed>(), kKvstoreBigArray.key, settings.Get<kKvstoreBigArray>(),
                          kTrainShardOptimizer.key, settings.Get<kTrainShardOptimizer>(), model_facts);
    if (!launch_.mpi) {
      if (!settings.Get<kTrainShardOptimizer>()) return absl::OkStatus();
      return Fail(errors::kUnsupportedFeature, "train.shard_optimizer needs MPI between the processes",
                  {.what = "checkpoints gather the states of the optimizer in host memory",
                   .where = settings.OriginOf<kTrainShardOptimizer>().Describe(),
                   .fix = fmt::format("start the processes with mpirun -n {}, or leave it unset", launch_.ranks)});
    }
    MGE_ASSIGN_OR_RETURN(processes_, runtime_->JoinProcesses(launch_, PatienceOf(settings, true)));
    process_sum_ = std::make_unique<ProcessSum>(processes_, HostSum());
    return CompareFacts(*processes_, facts_, PatienceOf(settings, true));
  }

  // Lets the sums of this process's replicas be summed over all processes.
  void SumOverProcesses(const HostSum& sum, std::shared_ptr<const Snapshot> settings) {
    process_sum_ = std::make_unique<ProcessSum>(processes_, sum);
    LocalGroup::Outer outer = {.first = static_cast<uint32_t>(first_), .ranks = static_cast<uint32_t>(replicas_)};
    auto wait = [this, settings = std::move(settings)](std::string_view what) {
      return GroupWait{fmt::format("{} of step {}", what, step_.number + 1), PatienceOf(*settings, steps_ == 0),
                       &group_->stop()};
    };
    outer.sum = [this, wait](Tensor& array, uint32_t bucket) {
      // The sizes of the other buckets follow from the facts that all processes share.
      return process_sum_->AllReduce(array, bucket == 0 ? &step_ : nullptr, wait("the sum of the gradients"));
    };
    outer.sum_parts = [this, wait](Tensor& array, std::span<const int64_t> ends, uint32_t bucket) {
      return process_sum_->ReduceScatter(array, ends, bucket == 0 ? &step_ : nullptr, wait("the sum of the gradients"));
    };
    outer.gather = [this, wait](Tensor& bytes, std::span<const int64_t> ends) {
      return process_sum_->AllGather(bytes, ends, wait("the gathering of the parameters"));
    };
    group_->SetOuter(std::move(outer));
  }

  // Creates the group of the replicas, and returns their ranks. The gradients are summed along trees if the settings say so.
  // Otherwise by the devices' backend if it has collectives for all of them and may copy between GPUs, else by the host.
  absl::StatusOr<std::vector<std::shared_ptr<Communicators>>> Group(std::shared_ptr<const Snapshot> snapshot) {
    const Snapshot& settings = *snapshot;
    std::vector<Device*> devices;
    for (const std::string& name : devices_) {
      MGE_ASSIGN_OR_RETURN(const Resolution resolution, runtime_->ResolveDevice(name, settings));
      Device* const device = resolution.devices.front().device;
      // A GPU runs a limited number of runs at a time, so that one replica could wait for another one for ever.
      if (device->queue_api() && std::ranges::count(devices, device)) {
        return Fail(errors::kBadSetting, fmt::format("device {} is named twice for data-parallel training", device->name()),
                    {.fix = "name each device once"});
      }
      devices.push_back(device);
    }
    std::vector<std::shared_ptr<Communicators>> out;
    std::string why;
    const bool by_trees = settings.Get<kKvstoreTree>();
    if (by_trees && launch_.ranks > 1) {
      return Fail(errors::kBadSetting, "kvstore.tree is for the devices of one process",
                  {.where = settings.OriginOf<kKvstoreTree>().Describe(), .fix = "leave kvstore.tree unset"});
    }
    const bool forbidden = !settings.Get<kKvstoreP2p>() &&
                           std::ranges::all_of(devices, [](const Device* device) { return device->Is(MGE_DEVICE_GPU); });
    if (forbidden) why = ", as kvstore.gpu_p2p forbids direct copies between GPUs";
    if (!by_trees && !forbidden && settings.Get<kKvstoreType>() != KvstoreType::kLocal && HaveCollectives(devices)) {
      absl::StatusOr<CollectiveId> id = SharedId(*devices[0], settings);
      if (id.ok()) {
        CollectiveGroup group;
        group.id = *id;
        group.ranks = static_cast<uint32_t>(replicas_);
        group.timeout = PatienceOf(settings, launch_.ranks > 1);
        for (size_t r = 0; r < devices.size(); ++r) {
          group.rank = static_cast<uint32_t>(first_ + r);
          out.push_back(std::make_shared<BackendCommunicators>(group));
        }
        runtime_->logger().Info("replicas on {}: the collectives of backend {} sum the gradients", fmt::join(devices_, ", "),
                                devices[0]->backend().name());
        return out;
      }
      if (launch_.ranks > 1) return id.status();
      why = fmt::format(", as {}: {}", ErrorTitle(id.status()), PartsOf(id.status()).what);
    }
    if (launch_.ranks > 1 && !processes_) return NoTransport(launch_, devices_[0]);
    group_ = std::make_shared<LocalGroup>(static_cast<uint32_t>(devices.size()));
    if (by_trees) {
      MGE_RETURN_IF_ERROR(PlantTrees(devices, settings));
    } else {
      const HostSum sum = SumOnHost(settings, why);
      if (processes_) SumOverProcesses(sum, std::move(snapshot));
    }
    for (uint32_t r = 0; r < group_->ranks(); ++r) out.push_back(group_->RankOf(r));
    return out;
  }

  // Returns the id of the group of all replicas: the first process creates it.
  absl::StatusOr<CollectiveId> SharedId(Device& device, const Snapshot& settings) {
    if (launch_.ranks == 1) return NewCollectiveId(device);
    auto create = [&] { return NewCollectiveId(device); };
    if (!processes_) return IdWithoutMpi(launch_, settings, runtime_->environment(), facts_, create);
    CollectiveId id = {};
    if (launch_.rank == 0) {
      MGE_ASSIGN_OR_RETURN(id, create());
    }
    MGE_RETURN_IF_ERROR(processes_->Broadcast(processes_->NewChannel(), 0, std::as_writable_bytes(std::span(id)),
                                              {"the exchange of the group's id", PatienceOf(settings, true)}));
    return id;
  }

  // Returns whether one backend has collectives for all devices.
  static bool HaveCollectives(const std::vector<Device*>& devices) {
    const Backend& backend = devices[0]->backend();
    return backend.plugin().collective && std::ranges::all_of(devices, [&](const Device* device) {
             return &device->backend() == &backend && std::ranges::count(devices, device) == 1;
           });
  }

  // Lets the host sum the gradients of this process. `why` ends the message.
  HostSum SumOnHost(const Snapshot& settings, const std::string& why) {
    HostSum sum;
    sum.big_array = settings.Get<kKvstoreBigArray>();
    sum.threads = static_cast<uint32_t>(settings.Get<kKvstoreThreads>());
    sum.parallel_for = [runtime = runtime_.get()](uint64_t chunks, uint32_t threads,
                                                  const std::function<void(uint64_t)>& body) {
      auto call = [](void* self, uint64_t i) { (*static_cast<const std::function<void(uint64_t)>*>(self))(i); };
      runtime->pool().Reserve(threads);
      runtime->pool().ParallelFor(chunks, threads, call, const_cast<std::function<void(uint64_t)>*>(&body));
    };
    const std::string over =
        processes_ ? fmt::format(", over {} processes by {}", launch_.ranks, processes_->library()) : std::string();
    runtime_->logger().Info("replicas on {}: the host sums the gradients, those of at least {} elements with {} threads{}{}",
                            fmt::join(devices_, ", "), sum.big_array, sum.threads, over, why);
    group_->SetSum(sum);
    return sum;
  }

  // Lets the devices sum the gradients along trees that match their links. The settings of MXNet's search choose its trees, one
  // for each device. Without them, the trees use the links as fully as possible.
  absl::Status PlantTrees(const std::vector<Device*>& devices, const Snapshot& settings) {
    MGE_ASSIGN_OR_RETURN(const DeviceLinks links, LinksOf(devices, settings.Get<kKvstoreP2p>()));
    for (uint32_t from = 0; from < group_->ranks(); ++from) {
      for (uint32_t to = 0; to < group_->ranks(); ++to) {
        if (links.direct[from * group_->ranks() + to]) group_->SetDirect(from, to);
      }
    }
    const bool searches = settings.IsSet<kKvstoreBacktrack>() || settings.IsSet<kKvstorePenalty>();
    const int64_t slice_above = settings.Get<kKvstoreTreeArray>();
    TreePacking packing;
    if (searches) {
      MGE_ASSIGN_OR_RETURN(packing, SearchedTrees(links.classes, settings));
    } else {
      packing = PackTrees(LinkCapacities(links.classes));
      runtime_->logger().Info("replicas on {}: trees of links sum the gradients; {} trees share the links",
                              fmt::join(devices_, ", "), packing.trees.size());
      if (settings.Get<kKvstoreLogTree>()) {
        LogTrees(packing.trees, LinkCapacities(links.classes), LinkLoads(packing, links.classes.devices));
      }
    }
    trees_.emplace(std::move(packing), !searches, slice_above);
    return absl::OkStatus();
  }

  // Returns the trees of MXNet's search.
  absl::StatusOr<TreePacking> SearchedTrees(const LinkMatrix& classes, const Snapshot& settings) const {
    const LinkMatrix weights = TreeWeights(classes);
    TreeOptions options;
    options.backtrack = settings.Get<kKvstoreBacktrack>();
    options.penalty = static_cast<float>(settings.Get<kKvstorePenalty>());
    MGE_ASSIGN_OR_RETURN(const ReductionTrees built, BuildTrees(weights, options));
    const Logger& logger = runtime_->logger();
    logger.Info("replicas on {}: trees of links sum the gradients; {}", fmt::join(devices_, ", "),
                options.backtrack ? "using backtracking to generate trees" : "using Kernighan-Lin to generate trees");
    for (int root : built.searched) {
      logger.Info("no binary tree found from root {} by bisection, so backtracking searched one", root);
    }
    if (settings.Get<kKvstoreLogTree>()) LogTrees(built.trees, weights, LinkUses(built.trees, weights.devices));
    TreePacking out;
    for (const ReductionTree& tree : built.trees) out.trees.push_back({EdgesOf(tree)});
    return out;
  }

  // Writes the messages at level info. The setting asks for them, so a level above info does not hide them.
  template <typename Tree>
  void LogTrees(const std::vector<Tree>& trees, const LinkMatrix& weights, const LinkMatrix& uses) const {
    Logger logger = runtime_->logger();
    if (logger.level() != LogLevel::kSilent) logger.set_level(std::min(logger.level(), LogLevel::kInfo));
    for (size_t i = 0; i < trees.size(); ++i) logger.Info("Tree {}: {}", i, TreeText(trees[i]));
    logger.Info("W: {}", MatrixText(weights));
    logger.Info("Links: {}", MatrixText(uses));
  }

  // Lets all ranks join their group, before a plan of one of them waits for the others.
  absl::Status JoinAll(const std::vector<std::shared_ptr<Session>>& sessions,
                       const std::vector<std::shared_ptr<Communicators>>& ranks) const {
    Crew crew(sessions.size());
    for (size_t r = 0; r < sessions.size(); ++r) {
      crew.Start([rank = ranks[r], device = &sessions[r]->device()]() -> absl::Status {
        MGE_RETURN_IF_ERROR(device->Open());
        return rank->On(*device).status();
      });
    }
    crew.Join();
    return crew.Failure(devices_);
  }

  // Plans and runs all replicas at the same time. No replica runs before all have a plan.
  absl::Status RunAll(std::vector<RunOfReplica>& runs, RunState& control) {
    bool started = false;
    Crew crew(runs.size());
    auto stop = [&] {
      for (RunOfReplica& run : runs) run.control.cancel.store(kStopAsked);
      crew.Stop();
      if (group_) group_->Abort();
    };
    std::atomic<bool> running{false};
    absl::Status stopped = NoThrow([&] {
      for (size_t r = 0; r < runs.size(); ++r) {
        crew.Start([this, &crew, &running, &run = runs[r], session = sessions_[r].get()]() -> absl::Status {
          std::vector<InputType> types;
          for (const HostValue& value : run.inputs) types.push_back(TypeOfValue(value));
          MGE_RETURN_IF_ERROR(session->PlanFor(types, &run.control).status());
          if (!crew.AllReady()) return Fail(errors::kCancelled, "another replica has no plan");
          running.store(true);
          return session->Run(run.inputs, run.outputs, run.control);
        });
      }
      started = true;
      return absl::OkStatus();
    });
    if (!started) stop();
    while (stopped.ok() && crew.Wait()) {
      stopped = control.CheckStop();
      const bool failed = crew.HasFailed();
      if (!stopped.ok() || (failed && running.load())) stop();
      if (failed) break;
    }
    crew.Join();
    const absl::Status failure = crew.Failure(devices_);
    if (processes_ && !(stopped.ok() && failure.ok())) processes_->Fail(stopped.ok() ? failure : stopped);
    const bool aborted = group_ && !group_->stop().CheckStop().ok();
    broken_ = aborted || (running.load() && (!stopped.ok() || !failure.ok()));
    return stopped.ok() ? failure : stopped;
  }

  // Creates the sessions again with the states of the first replica, after a run that failed or was stopped.
  absl::Status Repair() {
    if (launch_.ranks > 1) return Build({});  // which says that the processes have failed
    std::map<std::string, Tensor> states;
    for (const auto& [name, dims] : states_) {
      MGE_ASSIGN_OR_RETURN(states[name], ReadState(name));
    }
    MGE_RETURN_IF_ERROR(Build(states));
    broken_ = false;
    return absl::OkStatus();
  }

  const std::shared_ptr<Runtime> runtime_;
  const SessionOptions options_;
  const MakeReplica make_;
  const std::vector<std::string> devices_;  // by replica of this process
  const Launch launch_;
  std::string facts_;              // lines that all processes must share
  const size_t first_, replicas_;  // the number of this process's first replica, and of all replicas
  const BatchDivision division_;
  const std::map<std::string, Shape> states_;  // the sizes of the states with which one device trains
  std::shared_ptr<ProcessGroup> processes_;    // nullptr: there is one process, or the devices' backend connects them
  bool joined_ = false;                        // the processes have come together once, which is all that they can
  std::unique_ptr<ProcessSum> process_sum_;
  ProcessStep step_;                   // of the present run
  uint64_t steps_ = 0;                 // that have ended
  std::shared_ptr<LocalGroup> group_;  // nullptr: the transport is the backend's
  std::optional<TreeSum> trees_;       // nullopt: mge.AllReduce sums
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Session>> sessions_;  // by replica; written by Build() under mutex_
  bool broken_ = false;                             // the latest run or write failed: the replicas may differ
};

// Returns the devices, one for each replica.
absl::StatusOr<std::vector<std::string>> DevicesOf(const DeviceSpec& spec) {
  std::vector<std::string> out;
  for (const std::vector<DeviceName>& alternative : spec.alternatives) {
    if (alternative.size() > 1) {
      return Fail(errors::kBadSetting, fmt::format("'{}' names no devices of replicas", spec.ToString()),
                  {.what = "a model that is split over devices cannot be trained data-parallel",
                   .fix = "list the devices with commas, such as gpu0,gpu1"});
    }
    out.push_back(alternative.front().ToString());
  }
  return out;
}

}  // namespace

absl::Status TrainOnReplicas(Session& session, const SessionOptions& options, MakeReplica make, std::string facts) {
  Runtime& runtime = session.runtime();
  MGE_ASSIGN_OR_RETURN(const auto settings, runtime.registry().SnapshotWith(options.settings));
  MGE_ASSIGN_OR_RETURN(const DeviceSpec spec, runtime.Requested(options.device, *settings));
  MGE_ASSIGN_OR_RETURN(std::vector<std::string> devices, DevicesOf(spec));
  MGE_ASSIGN_OR_RETURN(Launch launch, LaunchOfTraining(runtime, *settings));
  if (devices.size() == 1 && launch.ranks == 1) return absl::OkStatus();
  auto replicas = std::make_shared<DataParallel>(session.shared_runtime(), session, options, std::move(make),
                                                 std::move(devices), std::move(launch), std::move(facts));
  MGE_RETURN_IF_ERROR(replicas->Build({}));
  session.RunOn(std::move(replicas));
  return absl::OkStatus();
}

}  // namespace mge
