// SPDX-License-Identifier: Apache-2.0
// The caller's side of eager mode: handles, calls, waits. execution.cc has the other side.
#include "core/eager/eager_interpreter.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/base/exception.h"
#include "core/eager/eager_tape.h"
#include "core/plan/program.h"
#include "core/plugin/context.h"
#include "core/plugin/device_tensor.h"
#include "fmt/format.h"

namespace mge {
namespace {

std::vector<Operand> OperandsOf(std::span<const EagerTensorPtr> inputs) {
  std::vector<Operand> out(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    const EagerValue& value = *inputs[i]->value();
    out[i].given = true;
    out[i].type = value.type();
    out[i].host = value.host_operand();
  }
  return out;
}

}  // namespace

EagerTensor::~EagerTensor() {
  // The worker brings back values that could not be recomputed any more, or drops this one if it is kept only for recomputation.
  if (interpreter_->RecordsPaths()) interpreter_->Released(std::move(value_));
}

absl::StatusOr<std::shared_ptr<EagerInterpreter>> EagerInterpreter::Create(std::shared_ptr<Runtime> runtime,
                                                                           RunWatch watch) {
  const std::shared_ptr<const Snapshot> settings = runtime->registry().snapshot();
  runtime->WarnOfNeeds(*settings, NeedsOf::kEager);
  std::shared_ptr<EagerInterpreter> out(new EagerInterpreter(std::move(runtime), std::move(watch)));
  EagerOptions& o = out->options_;
  o.async_level = settings->Get<kEagerAsyncLevel>();
  o.queue_size = static_cast<size_t>(settings->Get<kEagerQueueCommands>());
  o.catch_errors = settings->Get<kEagerCatchErrors>();
  o.auto_drop = settings->Get<kEagerDtr>();
  o.drop = o.auto_drop || settings->Get<kEagerDrop>();
  o.record_paths = o.auto_drop || settings->Get<kEagerRecordPath>();
  o.swap = settings->Get<kEagerSwap>();
  out->queue_ = std::make_unique<CommandQueue<Command>>(o.queue_size);
  return out;
}

EagerInterpreter::~EagerInterpreter() {
  if (worker_.joinable() && worker_process_ != getpid()) {
    // A forked child does not have the thread, which may have held the lock of the queue.
    worker_.detach();
    (void)queue_.release();
    return;
  }
  queue_->Close();
  if (worker_.joinable()) worker_.join();
}

absl::StatusOr<std::shared_ptr<EagerPlace>> EagerInterpreter::PlaceOf(std::string_view devices) {
  const std::shared_ptr<const Snapshot> settings = runtime_->registry().snapshot();
  std::string spec(devices);
  if (spec.empty()) {
    MGE_ASSIGN_OR_RETURN(const DeviceSpec requested, runtime_->Requested("", *settings));
    spec = requested.ToString();
  }
  std::lock_guard lock(places_mutex_);
  if (const auto at = places_.find(spec); at != places_.end()) return at->second;
  MGE_ASSIGN_OR_RETURN(const Resolution resolution, runtime_->ResolveDevice(spec, *settings));
  // The names of one device, such as "cpu(0)" and "cpu0", are one place.
  std::string name = spec;
  if (resolution.devices.size() == 1 && resolution.fallbacks.empty()) {
    const DeviceUse& use = resolution.devices[0];
    const bool plain = use.threads == 0 && !use.synchronous && use.stream == kNoStream && use.pinned == kNoPinned;
    if (plain && use.device) name = use.device->name();
  }
  if (const auto at = places_.find(name); at != places_.end()) return places_[spec] = at->second;
  auto place = std::make_shared<EagerPlace>();
  place->spec = name;
  MGE_ASSIGN_OR_RETURN(place->pinned, PinnedDevice(runtime_->devices(), resolution.devices.front().pinned));
  for (const DeviceUse& use : resolution.devices) {
    if (!use.device || !HasQueues(*use.device)) continue;
    place->keep = use.device->shared_from_this();
    place->memory = place->keep.get();
    break;
  }
  places_[name] = place;
  return places_[spec] = std::move(place);
}

absl::StatusOr<EagerTensorPtr> EagerInterpreter::Put(const HostValue& value, std::string_view devices) {
  MGE_RETURN_IF_ERROR(runtime_->registry().FollowEnvironment());
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<EagerPlace> place, PlaceOf(devices));
  HostValue copy;
  if (place->pinned.device && value.kind == ValueKind::kTensor && value.tensor.dtype() != DType::kString) {
    MGE_ASSIGN_OR_RETURN(copy.tensor, DeviceMemory::Create(*place->pinned.device, MGE_MEMORY_PINNED, value.tensor.dtype(),
                                                           value.tensor.shape(), runtime_));
    MGE_RETURN_IF_ERROR(CopyTensor(value.tensor, copy.tensor));
  } else {
    MGE_ASSIGN_OR_RETURN(copy, HostCopyOf(value));
  }
  const bool on_device = place->memory && copy.kind == ValueKind::kTensor && copy.tensor.dtype() != DType::kString;
  auto out = std::make_shared<EagerValue>(store_, std::move(place));
  auto handle = std::make_shared<EagerTensor>(shared_from_this(), out);
  if (on_device || options_.auto_drop) {
    out->SetEarlyType(TypeOfData(copy));
    MGE_RETURN_IF_ERROR(Enqueue({.kind = Command::Kind::kPut, .value = std::move(out), .host = std::move(copy)}));
  } else {
    std::lock_guard lock(store_->mutex);
    out->SetReady(std::move(copy));
  }
  return handle;
}

EagerTensorPtr EagerInterpreter::HostOperand(HostValue value) {
  auto out = std::make_shared<EagerValue>(store_, nullptr);
  {
    std::lock_guard lock(store_->mutex);
    out->SetReady(std::move(value));
  }
  return std::make_shared<EagerTensor>(shared_from_this(), std::move(out));
}

absl::StatusOr<std::vector<EagerTensorPtr>> EagerInterpreter::Apply(const OperatorRequest& request,
                                                                    std::span<const EagerTensorPtr> inputs,
                                                                    std::string_view devices) {
  MGE_RETURN_IF_ERROR(runtime_->registry().FollowEnvironment());
  auto call = std::make_shared<EagerCall>();
  call->settings = runtime_->registry().snapshot();
  bool typed = true;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    const EagerValue& value = *inputs[i]->value();
    if (&inputs[i]->interpreter() != this) {
      return Fail(errors::kApiMisuse, fmt::format("input {} of {} belongs to another interpreter", i, request.op));
    }
    typed = typed && value.typed();
    if (!value.place() || value.place() == call->place) continue;
    if (call->place) {
      return Fail(errors::kBadInput, fmt::format("the inputs of {} are on different devices", request.op),
                  {.what = fmt::format("one is on {}, input {} on {}", call->place->spec, i, value.place()->spec),
                   .fix = "copy one of them to the other device"});
    }
    call->place = value.place();
  }
  if (!call->place) {
    MGE_ASSIGN_OR_RETURN(call->place, PlaceOf(devices));
  }
  if (!typed) {
    call->request = std::make_unique<OperatorRequest>(request);
    return Submit(std::move(call), RequestedOutputs(request), {}, inputs);
  }
  const std::vector<Operand> operands = OperandsOf(inputs);
  absl::StatusOr<std::shared_ptr<EagerOperator>> op = cache_.Find(request, call->place->spec, operands, *call->settings);
  if (!op.ok()) return RefusedCall(op.status(), request.op, operands);
  call->op = *std::move(op);
  MGE_ASSIGN_OR_RETURN(const std::vector<ValueType> types, call->op->Infer(operands));
  const size_t outputs = call->op->outputs();
  return Submit(std::move(call), outputs, types, inputs);
}

absl::StatusOr<std::vector<EagerTensorPtr>> EagerInterpreter::ApplyCreated(std::shared_ptr<EagerOperator> op,
                                                                           std::shared_ptr<EagerPlace> place,
                                                                           std::span<const EagerTensorPtr> inputs) {
  auto call = std::make_shared<EagerCall>();
  call->settings = runtime_->registry().snapshot();
  call->op = std::move(op);
  call->place = std::move(place);
  bool typed = true;
  for (const EagerTensorPtr& x : inputs) typed = typed && x->value()->typed();
  std::vector<ValueType> types;
  if (typed) {
    MGE_ASSIGN_OR_RETURN(types, call->op->Infer(OperandsOf(inputs)));
  }
  const size_t outputs = call->op->outputs();
  return Submit(std::move(call), outputs, types, inputs);
}

absl::StatusOr<std::vector<EagerTensorPtr>> EagerInterpreter::Submit(std::shared_ptr<EagerCall> call, size_t outputs,
                                                                     const std::vector<ValueType>& types,
                                                                     std::span<const EagerTensorPtr> inputs) {
  const std::shared_ptr<EagerInterpreter> self = shared_from_this();
  call->inputs.reserve(inputs.size());
  for (const EagerTensorPtr& x : inputs) call->inputs.push_back(x ? x->value() : nullptr);
  const size_t all = call->op ? call->op->all_outputs() : AllOutputs(*call->request);
  std::vector<EagerTensorPtr> out;
  out.reserve(all);
  call->outputs.reserve(all);
  for (size_t i = 0; i < all; ++i) {
    auto value = std::make_shared<EagerValue>(store_, call->place);
    if (i < types.size()) value->SetEarlyType(types[i]);
    out.push_back(std::make_shared<EagerTensor>(self, value));
    call->outputs.push_back(std::move(value));
  }
  const bool unknown = types.empty() || !std::ranges::all_of(types, [](const ValueType& t) { return t.type.IsStatic(); });
  MGE_RETURN_IF_ERROR(Enqueue({.kind = Command::Kind::kCall, .call = call}));
  if (unknown && options_.async_level == AsyncLevel::kShapes && !out.empty()) MGE_RETURN_IF_ERROR(Wait(*out[0]));
  if (tape_count_.load(std::memory_order_acquire) > 0) {
    for (const std::shared_ptr<EagerTape>& tape : Tapes()) tape->Record(call, inputs, out);
  }
  out.resize(outputs);
  return out;
}

absl::Status EagerInterpreter::StartWorker() {
  std::lock_guard lock(worker_mutex_);
  if (!started_) {
    worker_process_ = getpid();
    worker_ = Thread([this] { Work(); });
    started_ = true;
  }
  return absl::OkStatus();
}

absl::Status EagerInterpreter::Enqueue(Command command, bool beyond_limit) {
  if (options_.async_level == AsyncLevel::kSync) {
    std::lock_guard lock(execution_);
    return NoThrow([&] { return Execute(command); });
  }
  if (!started_.load(std::memory_order_acquire)) MGE_RETURN_IF_ERROR(StartWorker());
  if (worker_process_ != getpid()) {
    return Fail(errors::kForked, "eager mode does not survive fork()", {.fix = "create the runtime in the child process"});
  }
  given_.fetch_add(1, std::memory_order_relaxed);
  queue_->Push(std::move(command), beyond_limit);
  return absl::OkStatus();
}

void EagerInterpreter::WaitUntil(const std::function<bool()>& done) {
  std::unique_lock lock(store_->mutex);
  ++store_->waiters;
  store_->changed.wait(lock, done);
  --store_->waiters;
}

absl::Status EagerInterpreter::WaitForValue(EagerValue& value) {
  // Most results arrive soon, and blocking costs more than a small operator.
  for (int i = 0; i < 50 && value.state() == EagerState::kPending; ++i) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  if (value.state() == EagerState::kPending) WaitUntil([&] { return value.state() != EagerState::kPending; });
  if (value.state() != EagerState::kFailed) return absl::OkStatus();
  std::lock_guard lock(store_->mutex);
  if (first_error_ == value.cause()) first_error_ = absl::OkStatus();  // the caller gets it now
  return value.error();
}

absl::StatusOr<HostValue> EagerInterpreter::Get(const EagerTensor& tensor) {
  EagerValue& value = *tensor.value();
  MGE_RETURN_IF_ERROR(WaitForValue(value));
  {
    std::lock_guard lock(store_->mutex);
    if (value.state() == EagerState::kReady) return value.data();
  }
  auto fetched = std::make_shared<Fetched>();
  MGE_RETURN_IF_ERROR(Enqueue({.kind = Command::Kind::kFetch, .value = tensor.value(), .fetched = fetched}));
  WaitUntil([&] { return fetched->done; });
  std::lock_guard lock(store_->mutex);
  MGE_RETURN_IF_ERROR(fetched->status);
  return fetched->value;
}

absl::Status EagerInterpreter::Wait(const EagerTensor& tensor) { return WaitForValue(*tensor.value()); }

absl::Status EagerInterpreter::WaitForType(const EagerTensor& tensor) {
  return tensor.value()->typed() ? absl::OkStatus() : Wait(tensor);
}

absl::StatusOr<ValueType> EagerInterpreter::TypeOf(const EagerTensor& tensor) {
  const EagerValue& value = *tensor.value();
  if (!value.typed() || !(value.type().kind == ValueKind::kTensor && value.type().type.IsStatic())) {
    MGE_RETURN_IF_ERROR(Wait(tensor));
  }
  return value.type();
}

absl::Status EagerInterpreter::Synchronize() {
  const int64_t given = given_.load();
  if (options_.async_level != AsyncLevel::kSync)
    WaitUntil([&] { return executed_.load(std::memory_order_relaxed) >= given; });
  std::lock_guard lock(store_->mutex);
  return std::exchange(first_error_, absl::OkStatus());
}

namespace {

absl::Status Off(std::string_view call, std::string_view setting, std::string_view variable) {
  return Fail(errors::kApiMisuse, fmt::format("{} needs the setting {}, which is off", call, setting),
              {.fix = fmt::format("set {}=1 before the runtime is created", variable)});
}

}  // namespace

absl::Status EagerInterpreter::Drop(const EagerTensor& tensor) {
  if (!options_.drop) return Off("drop", kEagerDrop.key, "MGE_EAGER_DROP");
  return Enqueue({.kind = Command::Kind::kDrop, .value = tensor.value()});
}

absl::Status EagerInterpreter::SwapOut(const EagerTensor& tensor) {
  if (!options_.swap) return Off("swap_out", kEagerSwap.key, "MGE_EAGER_SWAP");
  return Enqueue({.kind = Command::Kind::kSwapOut, .value = tensor.value()});
}

absl::Status EagerInterpreter::SwapIn(const EagerTensor& tensor) {
  if (!options_.swap) return Off("swap_in", kEagerSwap.key, "MGE_EAGER_SWAP");
  return Enqueue({.kind = Command::Kind::kFetch, .value = tensor.value()});
}

void EagerInterpreter::Released(std::shared_ptr<EagerValue> value) {
  // Fails only in a forked child, which has no use for the command.
  (void)NoThrow(
      [&] { return Enqueue({.kind = Command::Kind::kReleased, .value = std::move(value)}, /*beyond_limit=*/true); });
}

void EagerInterpreter::Attach(std::shared_ptr<EagerTape> tape) {
  std::lock_guard lock(tapes_mutex_);
  if (std::ranges::find(tapes_, tape) == tapes_.end()) tapes_.push_back(std::move(tape));
  tape_count_.store(static_cast<int>(tapes_.size()), std::memory_order_release);
}

void EagerInterpreter::Detach(const EagerTape* tape) {
  std::shared_ptr<EagerTape> last;  // destroyed without the lock
  std::lock_guard lock(tapes_mutex_);
  const auto at = std::ranges::find_if(tapes_, [&](const auto& t) { return t.get() == tape; });
  if (at == tapes_.end()) return;
  last = std::move(*at);
  tapes_.erase(at);
  tape_count_.store(static_cast<int>(tapes_.size()), std::memory_order_release);
}

bool EagerInterpreter::IsAttached(const EagerTape* tape) {
  std::lock_guard lock(tapes_mutex_);
  return std::ranges::any_of(tapes_, [&](const auto& t) { return t.get() == tape; });
}

std::vector<std::shared_ptr<EagerTape>> EagerInterpreter::Tapes() {
  std::lock_guard lock(tapes_mutex_);
  return tapes_;
}

EagerCounters EagerInterpreter::counters() const {
  EagerCounters out;
  out.commands = executed_.load();
  out.runs = runs_.load();
  out.operators = static_cast<int64_t>(cache_.size());
  out.operators_created = cache_.misses();
  out.queue_peak = static_cast<int64_t>(queue_->most());
  std::lock_guard lock(store_->mutex);
  out.live_bytes = store_->live_bytes;
  out.peak_bytes = store_->peak_bytes;
  out.evictions = store_->evictions;
  out.drops = store_->drops;
  out.recomputations = store_->recomputations;
  out.swaps_out = store_->swaps_out;
  out.swaps_in = store_->swaps_in;
  return out;
}

}  // namespace mge
