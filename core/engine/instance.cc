// SPDX-License-Identifier: Apache-2.0
#include "core/engine/instance.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/errors.h"
#include "core/base/exception.h"
#include "core/engine/output_binding.h"
#include "core/engine/runtime.h"
#include "core/plan/communicator.h"
#include "core/plan/memory/memory_errors.h"
#include "core/plan/program.h"
#include "core/plugin/ask.h"
#include "core/plugin/device_tensor.h"
#include "core/plugin/host_services.h"
#include "fmt/format.h"

namespace mge {

Instance::Instance(const Plan& plan)
    : plan_(plan), bases_(plan.base_count), dynamic_(plan.dynamic_count), runs_(plan.queues.size() + 1) {}

absl::StatusOr<std::unique_ptr<Instance>> Instance::Create(const Plan& plan, Runtime& runtime,
                                                           std::shared_ptr<const Snapshot> settings, const ArenaUse& use) {
  DependencyEngine& engine = runtime.engine();
  std::unique_ptr<Instance> instance(new Instance(plan));
  if (use.own()) {
    MGE_RETURN_IF_ERROR(instance->TakeArenas());
  } else {
    instance->leases_ = std::make_unique<ArenaLeases>(plan, use);
  }
  for (const ConstantBase& c : plan.constants) instance->bases_[c.base] = const_cast<void*>(c.tensor.data());
  for (const auto& c : plan.device_constants) instance->bases_[c->base()] = c->address();
  if (!plan.random.empty()) {
    MGE_ASSIGN_OR_RETURN(instance->random_, RandomBuffers::Create(plan, instance->bases_));
  }
  if (!plan.queues.empty()) {
    MGE_ASSIGN_OR_RETURN(instance->queues_, InstanceQueues::Create(plan, runtime.queue_limits()));
  }
  instance->states_.reserve(plan.states.size());
  for (size_t i = 0; i < plan.states.size(); ++i) {
    void* state = nullptr;
    mge_error error;
    mge_code code = plan.state_apis[i]->state_create(plan.states[i], &state, &error);
    if (code != MGE_OK) return StatusOfBackend(code, error, "creating the state of a kernel");
    instance->states_.push_back(state);
  }
  instance->ArmRuns();
  instance->settings_ = std::move(settings);
  instance->logger_ = runtime.logger();
  if (use.own()) MGE_RETURN_IF_ERROR(instance->MakeChecks());
  // Ranks of one process may share a device. An operation of one rank that waits for another could block the only worker.
  const bool waits_for_ranks = !plan.communicators.empty() && engine.kind() != EngineKind::kNaive;
  if (!plan.accesses.empty() && !waits_for_ranks) {
    instance->operation_slots_ = std::vector<OperationSlot>(plan.steps.size());
    for (const Segment& segment : plan.segments) {
      for (int32_t i = 0; i < segment.step_count; ++i) instance->operation_slots_[segment.first_step + i].segment = &segment;
    }
    instance->operations_ =
        std::make_unique<StepOperations>(plan, engine, [i = instance.get()](int32_t step) { return i->RunOperation(step); });
  }
  return instance;
}

absl::Status Instance::TakeArenas() {
  arenas_.reserve(plan_.arenas.size());
  for (const Arena& arena : plan_.arenas) {
    if (arena.bytes == 0) continue;
    MGE_ASSIGN_OR_RETURN(Pool * pool, arena.device->PoolOf(arena.memory_class));
    const Budget& budget = arena.device->budget(arena.memory_class);
    absl::StatusOr<mge_reservation> memory = pool->Acquire(static_cast<uint64_t>(arena.bytes), arena.alignment);
    if (!memory.ok()) return NamePlan(memory.status(), plan_, budget, BytesOf(budget));
    arenas_.push_back({pool, &budget, *memory});
    bases_[arena.base] = memory->address;
    if (arena.host_base == arena.base) continue;
    MGE_RETURN_IF_ERROR(CheckHostReaches(*arena.device, *memory));
    bases_[arena.host_base] = memory->host_address;
  }
  return absl::OkStatus();
}

absl::Status Instance::BeginLease() {
  if (!leases_) return absl::OkStatus();
  MGE_ASSIGN_OR_RETURN(const bool moved, leases_->Begin(bases_));
  if (!moved) return absl::OkStatus();
  if (queues_) queues_->DropRecords();
  MGE_RETURN_IF_ERROR(MakeChecks());
  return absl::OkStatus();
}

absl::Status Instance::MakeChecks() {
  MGE_ASSIGN_OR_RETURN(checks_, StepChecks::Create(plan_, *settings_, logger_, bases_, dynamic_));
  return absl::OkStatus();
}

void Instance::EndLease() {
  if (leases_ && state_ != InstanceQueues::State::kStuck) leases_->End();
}

void Instance::ArmRuns() {
  for (size_t i = 0; i < runs_.size(); ++i) {
    mge_run& run = runs_[i].run;
    run.struct_size = sizeof(mge_run);
    run.bases = bases_.data();
    run.states = states_.data();
    run.error = &run_error_;
    run.pool = &pool_share_;
    run.parallel_for = ParallelFor;
    runs_[i].environment = this;
    if (i == 0) continue;
    int32_t queue = static_cast<int32_t>(i) - 1;
    run.queue = queues_->queue(queue);
    run.host = plan_.queues[static_cast<size_t>(queue)].device->host();
    run.cancel = reinterpret_cast<const int32_t*>(&stop_);
  }
}

Instance::~Instance() {
  if (queues_ && queues_->Orphaned()) {
    (void)queues_.release();  // the parent process owns the queues, states and memory
    return;
  }
  queues_.reset();  // first: queues may use states and memory
  leases_.reset();
  for (size_t i = 0; i < states_.size(); ++i) plan_.state_apis[i]->state_destroy(plan_.states[i], states_[i]);
  for (ArenaMemory& a : arenas_) a.pool->Release(a.reservation);
}

bool Instance::Over(std::chrono::nanoseconds patience) noexcept {
  if (queues_->Orphaned()) return true;
  const auto end = std::chrono::steady_clock::now() + patience;
  state_ = queues_->Drain(patience);
  if (checks_ && state_ != InstanceQueues::State::kStuck) {  // their queues may have failed
    const bool over = checks_->Over(end - std::chrono::steady_clock::now());
    state_ = over ? InstanceQueues::State::kBroken : InstanceQueues::State::kStuck;
  }
  EndLease();
  return state_ != InstanceQueues::State::kStuck;
}

int64_t Instance::arena_bytes() const {
  int64_t bytes = 0;
  for (const ArenaMemory& a : arenas_) bytes += static_cast<int64_t>(a.reservation.bytes);
  return leases_ ? leases_->bytes() : bytes;
}

uint64_t Instance::BytesOf(const Budget& budget) const {
  uint64_t bytes = 0;
  for (const ArenaMemory& a : arenas_) bytes += a.budget == &budget ? a.reservation.bytes : 0;
  return bytes;
}

Budget& Instance::HostBudget() const {
  return plan_.device->budget(plan_.device->Is(MGE_DEVICE_HOST_ACCESSIBLE) ? MGE_MEMORY_DEVICE : MGE_MEMORY_PINNED);
}

absl::StatusOr<std::shared_ptr<std::byte>> Instance::StepAllocator::Allocate(int64_t bytes) {
  absl::StatusOr<std::shared_ptr<std::byte>> memory = of_.plan_.device->host_allocator().Allocate(bytes);
  if (memory.ok()) return memory;
  return NameDynamic(memory.status(), of_.plan_, of_.HostBudget(), static_cast<uint64_t>(bytes));
}

uint64_t Instance::NextSeed() {
  return control_->seed * 0x9e3779b97f4a7c15u +
         std::atomic_ref(control_->next_random).fetch_add(1, std::memory_order_relaxed) + 1;
}

absl::Status Instance::Run(std::span<const HostValue> inputs, std::span<HostValue> outputs, RunState& control) noexcept {
  control_ = &control;
  absl::Status status = NoThrow([&] { return BeginLease(); });
  if (status.ok()) status = NoThrow([&] { return Bind(inputs, outputs); });
  if (status.ok()) {
    status = NoThrow([&] { return RunSteps(); });
    if (!status.ok()) Abort();
  }
  if (status.ok()) status = NoThrow([&] { return Collect(inputs, outputs); });
  for (HostValue& v : dynamic_) v = HostValue();
  EndLease();
  control.Leave();
  return status;
}

void Instance::Abort() noexcept {
  for (const auto& communicator : plan_.communicators) communicator->Abort();  // the other ranks would wait for this one
  if (!queues_) return;
  stop_.store(1);
  if (Over(kPatience)) stop_.store(0);
}

absl::Status Instance::Start(std::span<const HostValue> inputs, std::span<HostValue> outputs, RunState& control,
                             std::span<const QueuePoint> after, std::vector<QueuePoint>& ends) noexcept {
  control_ = &control;
  absl::Status status = NoThrow([&] { return BeginLease(); });
  if (status.ok()) status = NoThrow([&] { return Bind(inputs, outputs); });
  if (status.ok()) {
    status = NoThrow([&]() -> absl::Status {
      ++control.operations;
      MGE_RETURN_IF_ERROR(Await(after));
      MGE_RETURN_IF_ERROR(EnqueueSteps());
      return SignalEnds(ends);
    });
    if (!status.ok()) Abort();
  }
  for (HostValue& v : dynamic_) v = HostValue();
  if (!status.ok()) EndLease();
  control.Leave();
  control_ = nullptr;
  return status;
}

absl::Status Instance::Finish() noexcept {
  RunState control;
  absl::Status status = NoThrow([&] { return queues_ ? queues_->FinishRun(control) : absl::OkStatus(); });
  if (!status.ok()) Abort();
  EndLease();
  return status;
}

absl::Status Instance::Await(std::span<const QueuePoint> after) {
  // The calling thread accesses page-locked inputs and outputs, which the earlier runs may write.
  auto pinned = [](const BoundValue& v) { return v.place.pinned; };
  const bool host_reads = std::any_of(plan_.inputs.begin(), plan_.inputs.end(), pinned) ||
                          std::any_of(plan_.outputs.begin(), plan_.outputs.end(), pinned);
  for (const QueuePoint& point : after) {
    bool by_host = host_reads || !queues_;
    for (size_t q = 0; q < plan_.queues.size() && !by_host; ++q) {
      Device& device = *plan_.queues[q].device;
      by_host = &device.backend() != &point.device->backend();  // fences are per backend
      if (by_host) break;
      MGE_RETURN_IF_ERROR(QueryDevice(device, "waiting for an earlier run", [&](mge_error* e) {
        return device.queue_api()->wait(queues_->queue(static_cast<int32_t>(q)), point.fence, point.value, e);
      }));
    }
    if (!by_host) continue;
    MGE_ASSIGN_OR_RETURN(mge_code code, WaitForFence(*point.device->queue_api(), point.fence, point.value, control_));
    if (code == MGE_OK) continue;
    MGE_RETURN_IF_ERROR(QueryDevice(*point.device, "waiting for an earlier run", [&](mge_error* e) {
      return point.device->queue_api()->host_wait(point.fence, point.value, 0, e);
    }));
  }
  return absl::OkStatus();
}

absl::Status Instance::SignalEnds(std::vector<QueuePoint>& ends) {
  ends.reserve(plan_.queues.size());
  for (size_t q = 0; q < plan_.queues.size(); ++q) {
    Device& device = *plan_.queues[q].device;
    const mge_queue_api& api = *device.queue_api();
    mge_fence* fence = nullptr;
    MGE_RETURN_IF_ERROR(
        QueryDevice(device, "creating a fence", [&](mge_error* e) { return api.fence_create(device.handle(), &fence, e); }));
    ends.push_back({&device, fence, 1});
    MGE_RETURN_IF_ERROR(QueryDevice(device, "signalling a fence", [&](mge_error* e) {
      return api.signal(queues_->queue(static_cast<int32_t>(q)), fence, 1, e);
    }));
  }
  return absl::OkStatus();
}

void Instance::SetBase(const BoundValue& bound, const Tensor& tensor) {
  void* const data = const_cast<void*>(tensor.data());
  if (bound.place.device) [[unlikely]] {
    bases_[bound.queue_base] = DeviceMemory::Of(tensor)->QueueAddress(data);
    if (!bound.place.pinned) return;
  }
  bases_[bound.location.slot.base] = data;
}

absl::Status Instance::Bind(std::span<const HostValue> inputs, std::span<HostValue> outputs) {
  uint64_t made = 0;  // bytes of the outputs created here
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Location& at = plan_.inputs[i].location;
    if (at.kind == Location::Kind::kDynamic) {
      dynamic_[at.index] = inputs[i];
    } else {
      SetBase(plan_.inputs[i], inputs[i].tensor);
    }
  }
  for (const StateBase& s : plan_.state_values) bases_[s.base] = s.address;
  for (const DynamicConstant& c : plan_.dynamic_constants) dynamic_[c.index].tensor = c.tensor;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const BoundValue& bound = plan_.outputs[i];
    Tensor& tensor = outputs[i].tensor;
    if (tensor.defined()) MGE_RETURN_IF_ERROR(CheckOwnMemory(plan_, inputs, outputs, i));
    if (bound.location.kind != Location::Kind::kSlot) continue;
    if (!tensor.defined()) {
      absl::StatusOr<Tensor> created = Tensor::Create(bound.type.dtype, bound.type.dims, plan_.device->host_allocator());
      if (!created.ok()) return NamePlan(created.status(), plan_, HostBudget(), BytesOf(HostBudget()) + made);
      tensor = *std::move(created);
      made += static_cast<uint64_t>(tensor.bytes());
    } else {
      MGE_RETURN_IF_ERROR(CheckFits(bound.name, bound.type.dtype, bound.type.dims, tensor));
    }
    SetBase(bound, tensor);
  }
  return absl::OkStatus();
}

absl::Status Instance::Collect(std::span<const HostValue> inputs, std::span<HostValue> outputs) {
  std::vector<HostValue> rest;
  if (plan_.continuation) {
    MGE_ASSIGN_OR_RETURN(rest, RunContinuation());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Location& at = plan_.outputs[i].location;
    if (at.kind == Location::Kind::kSlot) continue;
    HostValue& value = at.kind == Location::Kind::kDynamic ? dynamic_[at.index] : rest[at.index];
    MGE_RETURN_IF_ERROR(HandOver(plan_, value, inputs, outputs, i, allocator()));
  }
  return absl::OkStatus();
}

void Instance::ParallelFor(void* pool, uint64_t chunks, void (*body)(void*, uint64_t), void* context) {
  auto& p = *static_cast<PoolShare*>(pool);
  p.pool->ParallelFor(chunks, p.width, body, context);
}

void Instance::ObservedParallelFor(void* pool, uint64_t chunks, void (*body)(void*, uint64_t), void* context) {
  auto& p = *static_cast<PoolShare*>(pool);
  struct Observed {
    void (*body)(void*, uint64_t);
    void* context;
    RunObserver& observer;
  } observed = {body, context, *p.observer};
  auto chunk = [](void* self, uint64_t i) {
    auto& o = *static_cast<Observed*>(self);
    const uint32_t thread = ComputePool::ThisThread();
    o.observer.BeginChunk(thread);
    o.body(o.context, i);
    o.observer.EndChunk(thread);
  };
  p.observer->BeginShare();
  p.pool->ParallelFor(chunks, p.width, chunk, &observed);
  p.observer->EndShare();
}

absl::Status Instance::RunSteps() {
  // Observers and red zones follow one step at a time. A body runs within the operation of its step.
  const bool alone = control_->observer || checks_ || DependencyEngine::InOperation();
  if (operations_ && !alone) {
    MGE_RETURN_IF_ERROR(BeginSteps());
    control_->operations += static_cast<uint64_t>(operations_->count());
    return operations_->Run(*control_);
  }
  if (!DependencyEngine::InOperation()) ++control_->operations;
  MGE_RETURN_IF_ERROR(EnqueueSteps());
  return queues_ ? queues_->FinishRun(*control_) : absl::OkStatus();
}

absl::Status Instance::BeginSteps() {
  pool_share_ = {control_->pool, control_->width, control_->observer};
  if (run_error_.code != MGE_OK) run_error_ = mge_error();
  for (HostRun& r : runs_) r.run.width = control_->width;
  runs_[0].run.cancel = reinterpret_cast<const int32_t*>(&control_->cancel);
  runs_[0].run.parallel_for = control_->observer ? ObservedParallelFor : ParallelFor;
  if (checks_) checks_->BeginRun(*control_);
  return random_ ? random_->BeginRun(*control_, queues_.get()) : absl::OkStatus();
}

absl::Status Instance::RunOperation(int32_t step) {
  MGE_RETURN_IF_ERROR(control_->CheckStop());
  const Step& s = plan_.steps[static_cast<size_t>(step)];
  OperationSlot& mine = operation_slots_[static_cast<size_t>(step)];
  const int32_t queue = mine.segment->queue;
  mine.run = runs_[static_cast<size_t>(queue + 1)];  // that of the calling thread, or of the queue
  mine.run.run.error = &mine.error;
  if (mine.error.code != MGE_OK) mine.error = mge_error();
  if (control_->deadline) control_->Enter(plan_.units[s.unit]);
  if (queue != kCallingThread) return queues_->RunAndWait(queue, s, mine.run.run, *control_);
  mine.run.run.host = mine.segment->device->host();
  const mge_code code = CallStep(s, mine.run.run);
  return code == MGE_OK ? absl::OkStatus() : StepFailed(s, code, mine.error);
}

absl::Status Instance::EnqueueSteps() {
  MGE_RETURN_IF_ERROR(BeginSteps());
  const bool watched = Watched();
  for (size_t i = 0; i < plan_.segments.size(); ++i) {
    const Segment& segment = plan_.segments[i];
    for (const FencePoint& point : segment.host_waits) MGE_RETURN_IF_ERROR(queues_->HostWait(point, *control_));
    if (segment.queue == kCallingThread) {
      runs_[0].run.host = segment.device->host();
      MGE_RETURN_IF_ERROR(watched ? RunWatched(segment) : RunInThisThread(segment));
    } else {
      MGE_RETURN_IF_ERROR(control_->CheckStop());
      if (control_->deadline) control_->Enter(plan_.units[plan_.steps[segment.first_step].unit]);
      MGE_RETURN_IF_ERROR(queues_->Enqueue(i, runs_[static_cast<size_t>(segment.queue) + 1].run, *control_, checks_.get()));
    }
  }
  return absl::OkStatus();
}

absl::Status Instance::RunInThisThread(const Segment& segment) {
  const mge_run& run = runs_[0].run;
  const Step* step = plan_.steps.data() + segment.first_step;
  for (const Step* end = step + segment.step_count; step != end; ++step) {
    if (control_->cancel.load(std::memory_order_relaxed)) return control_->CheckStop();
    if (mge_code code = CallStep(*step, run); code != MGE_OK) return StepFailed(*step, code, run_error_);
  }
  return absl::OkStatus();
}

absl::Status Instance::RunWatched(const Segment& segment) {
  const mge_run& run = runs_[0].run;
  for (int32_t i = segment.first_step; i < segment.first_step + segment.step_count; ++i) {
    const Step& step = plan_.steps[static_cast<size_t>(i)];
    MGE_RETURN_IF_ERROR(control_->CheckStop());
    control_->Enter(plan_.units[step.unit]);
    if (checks_) MGE_RETURN_IF_ERROR(checks_->BeforeStep(step));
    if (control_->observer) control_->observer->BeginStep(i);
    mge_code code = CallStep(step, run);
    if (control_->observer && code == MGE_OK) control_->observer->EndStep();
    if (checks_) MGE_RETURN_IF_ERROR(checks_->AfterStep(step));
    if (code != MGE_OK) return StepFailed(step, code, run_error_);
  }
  return absl::OkStatus();
}

absl::Status Instance::StepFailed(const Step& step, mge_code code, const mge_error& error) {
  absl::Status status;
  if (step.fn == RunHostStep) status = std::exchange(error_, absl::OkStatus());
  if (code == MGE_CANCELLED) status = control_->CheckStop();
  if (status.ok()) status = StatusOfKernel(code, error);
  const Unit& unit = plan_.units[step.unit];
  return PartsOf(status).where.empty() ? AddWhere(std::move(status), StepPlace(unit)) : status;
}

HostValue Instance::ValueAt(const BoundValue& bound) {
  if (bound.location.kind == Location::Kind::kDynamic) return dynamic_[bound.location.index];
  HostValue v;
  const mge_slot& slot = bound.location.slot;
  v.tensor = Tensor::View(bound.type.dtype, bound.type.dims, static_cast<char*>(bases_[slot.base]) + slot.offset, nullptr);
  return v;
}

absl::StatusOr<std::vector<HostValue>> Instance::RunContinuation() {
  std::vector<HostValue> inputs;
  for (const BoundValue& bound : plan_.continuation->inputs) inputs.push_back(ValueAt(bound));
  return RunProgram(*plan_.continuation->program, "continuation", std::move(inputs));
}

absl::StatusOr<std::vector<HostValue>> Instance::RunProgram(Program& program, std::string_view name,
                                                            std::vector<HostValue> inputs) {
  std::vector<InputType> types;
  for (const HostValue& v : inputs) types.push_back(TypeOfValue(v));
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, PlanForRun(program, types, *control_));
  std::vector<HostValue> outputs(plan->outputs.size());
  MGE_RETURN_IF_ERROR(RunPlan(plan, name, inputs, outputs, *control_));
  return outputs;
}

InstanceStore::Share::Share(InstanceStore& store, Budget& of) : budget(of) {
  budget.Join(this,
              {[this, &store](uint32_t pressure) { return store.GiveBack(budget, pressure); },
               [this, &store] { return static_cast<uint64_t>(store.KeptCount()) * bytes.load(std::memory_order_relaxed); }});
}

InstanceStore::InstanceStore(const Plan& plan, Runtime& runtime, std::shared_ptr<const Snapshot> settings, ArenaUse arenas)
    : plan_(plan), runtime_(runtime), arenas_(std::move(arenas)), settings_(std::move(settings)) {
  for (const Arena& arena : plan.arenas) {
    Budget& budget = arena.device->budget(arena.memory_class);
    auto known = std::find_if(shares_.begin(), shares_.end(), [&](const Share& s) { return &s.budget == &budget; });
    if (arena.bytes && known == shares_.end()) shares_.emplace_back(*this, budget);
  }
}

InstanceStore::~InstanceStore() {
  shares_.clear();
  while (TakeKept()) continue;
}

int64_t InstanceStore::IdleBytes() const {
  uint64_t bytes = 0;
  for (const Share& share : shares_) bytes += share.bytes.load(std::memory_order_relaxed);
  return static_cast<int64_t>(bytes) * KeptCount();
}

void InstanceStore::GiveUpIdle() {
  if (Orphaned()) return;
  while (TakeKept()) continue;
  for (const std::shared_ptr<SharedArena>& arena : arenas_.shared) arena->GiveUpIdle();
}

bool InstanceStore::Close() { return stuck_.Reclaim(kPatience); }

std::unique_ptr<Instance> InstanceStore::TakeKept() {
  for (auto& slot : kept_) {
    if (!slot.load(std::memory_order_relaxed)) continue;
    if (Instance* instance = slot.exchange(nullptr, std::memory_order_acq_rel)) return std::unique_ptr<Instance>(instance);
  }
  return nullptr;
}

bool InstanceStore::Orphaned() const {
  return std::any_of(plan_.queues.begin(), plan_.queues.end(), [](const PlanQueue& q) { return q.device->Orphaned(); });
}

int InstanceStore::KeptCount() const {
  if (Orphaned()) return 0;
  return static_cast<int>(std::count_if(std::begin(kept_), std::end(kept_),
                                        [](const auto& slot) { return slot.load(std::memory_order_relaxed) != nullptr; }));
}

// Creating an instance takes longer than refilling a pool, so idle instances are kept until a request would fail without
// them.
uint64_t InstanceStore::GiveBack(const Budget& budget, uint32_t pressure) {
  if (pressure < MGE_PRESSURE_CRITICAL || Orphaned()) return 0;
  uint64_t bytes = 0;
  for (auto& slot : kept_) {
    if (std::unique_ptr<Instance> idle{slot.exchange(nullptr, std::memory_order_acq_rel)}) bytes += idle->BytesOf(budget);
  }
  return bytes;
}

absl::StatusOr<std::unique_ptr<Instance>> InstanceStore::Acquire() {
  for (const PlanQueue& q : plan_.queues) {
    if (q.device->Orphaned()) MGE_RETURN_IF_ERROR(q.device->Open());  // fails with the reason
  }
  if (std::unique_ptr<Instance> kept = TakeKept()) return kept;
  stuck_.Reclaim({});
  return Instance::Create(plan_, runtime_, settings_, arenas_);
}

void InstanceStore::Release(std::unique_ptr<Instance> instance) {
  stuck_.Reclaim({});
  if (instance->state() == InstanceQueues::State::kBroken) return;
  if (instance->state() == InstanceQueues::State::kStuck) {
    stuck_.Add(std::move(instance));
    return;
  }
  for (Share& share : shares_) share.bytes.store(instance->BytesOf(share.budget), std::memory_order_relaxed);
  for (auto& slot : kept_) {
    Instance* empty = nullptr;
    if (slot.compare_exchange_strong(empty, instance.get(), std::memory_order_acq_rel)) {
      instance.release();
      return;
    }
  }
}

absl::StatusOr<std::shared_ptr<const Plan>> PlanForRun(Program& program, std::span<const InputType> inputs,
                                                       RunState& control, std::span<const IoPlace> outputs) {
  if (!control.observer) return program.PlanFor(inputs, &control, outputs);
  control.observer->BeginPlanning();
  absl::StatusOr<std::shared_ptr<const Plan>> plan = program.PlanFor(inputs, &control, outputs);
  control.observer->EndPlanning();
  return plan;
}

absl::Status RunPlan(const std::shared_ptr<const Plan>& plan, std::string_view body, std::span<const HostValue> inputs,
                     std::span<HostValue> outputs, RunState& control) {
  if (control.observer) control.observer->BeginPlan(plan, body);
  InstanceStore& store = InstanceStore::Of(*plan);
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Instance> instance, store.Acquire());
  absl::Status status = instance->Run(inputs, outputs, control);
  store.Release(std::move(instance));
  if (control.observer) control.observer->EndPlan();
  return status;
}

}  // namespace mge
