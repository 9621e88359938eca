// SPDX-License-Identifier: Apache-2.0
// Executes the commands of eager mode, one at a time: on the worker, or at level 0 on the calling thread.
//
// A value is changed only here, under the lock of the store. The inputs of a call are pinned, so that they are not evicted
// before it has run. No shared pointer may be the last one of a value or call while the lock is held: their destructors take it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "core/base/errors.h"
#include "core/base/exception.h"
#include "core/eager/eager_interpreter.h"
#include "core/plan/host_compute.h"
#include "core/plugin/device_tensor.h"
#include "fmt/format.h"

namespace mge {
namespace {

bool IsMemoryError(const absl::Status& status) {
  const int id = ErrorId(status);
  return id == errors::kOutOfMemory.id || id == errors::kOverBudget.id || id == errors::kOverCap.id ||
         id == errors::kGrowthRequired.id;
}

// Returns a call for errors: "eager operator Add(float32[2], float32[3])".
std::string PlaceOfCall(const EagerCall& call) {
  std::string text;
  for (const std::shared_ptr<EagerValue>& x : call.inputs) {
    text += text.empty() ? "" : ", ";
    text += !x ? "none" : x->typed() ? TypeText(x->type().kind, x->type().type) : "?";
  }
  return fmt::format("eager operator {}({})", call.op ? call.op->name() : call.request->op, text);
}

bool SharesMemory(const Tensor& a, const Tensor& b) {
  return a.owner() && b.owner() && !a.owner().owner_before(b.owner()) && !b.owner().owner_before(a.owner());
}

std::vector<Operand> OperandsOfCall(const EagerCall& call) {
  std::vector<Operand> operands(call.inputs.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!call.inputs[i]) continue;
    operands[i] = {.given = true, .type = call.inputs[i]->type(), .host = call.inputs[i]->host_operand()};
  }
  return operands;
}

EagerValue& ValueOf(PathValue& v) { return static_cast<EagerValue&>(v); }

}  // namespace

template <typename F>
absl::Status EagerInterpreter::Guarded(F f) {
  return options_.catch_errors ? NoThrow(f) : f();
}

void EagerInterpreter::Work() {
  for (Command command; queue_->Pop(command); command = {}) {
    absl::Status status;
    {
      std::lock_guard lock(execution_);
      status = Guarded([&] { return Execute(command); });
    }
    if (status.ok()) continue;
    if (!options_.catch_errors) {
      std::fprintf(stderr, "%s\nThe process aborts, because eager.catch_worker_errors is off.\n",
                   FormatError(status).c_str());
      std::abort();
    }
  }
}

absl::Status EagerInterpreter::Execute(Command& command) {
  absl::Status cause;
  absl::Status status = Guarded([&]() -> absl::Status {
    switch (command.kind) {
      case Command::Kind::kCall: return ExecuteCall(*command.call, command.call, cause);
      case Command::Kind::kPut: return ExecutePut(*command.value, command.host);
      case Command::Kind::kDrop: return ExecuteDrop(*command.value);
      case Command::Kind::kSwapOut: return ExecuteSwapOut(*command.value);
      case Command::Kind::kFetch: return Fetch(*command.value);
      case Command::Kind::kReleased: break;
    }
    ExecuteReleased(*command.value);
    return absl::OkStatus();
  });
  {
    std::lock_guard lock(store_->mutex);
    if (!status.ok()) {
      if (command.call) {
        for (const std::shared_ptr<EagerValue>& y : command.call->outputs) y->SetFailed(status, cause);
      }
      if (command.kind == Command::Kind::kPut) command.value->SetFailed(status, cause);
      if (first_error_.ok() && cause.ok()) first_error_ = status;
    }
    if (command.fetched) {
      command.fetched->done = true;
      command.fetched->status = status;
      if (status.ok()) command.fetched->value = command.value->data();
    }
    store_->Notify();
  }
  // Values that only the command keeps are released before it counts as executed, and without the lock.
  if (command.call) command.call->outputs.clear();
  command = {};
  std::lock_guard lock(store_->mutex);
  executed_.fetch_add(1, std::memory_order_relaxed);
  store_->Notify();
  return status;
}

void EagerInterpreter::Pin(std::span<const std::shared_ptr<EagerValue>> values, int by) {
  if (!RecordsPaths()) return;
  std::lock_guard lock(store_->mutex);
  for (const std::shared_ptr<EagerValue>& v : values) {
    if (v) v->pins += by;
  }
}

absl::Status EagerInterpreter::ExecuteCall(EagerCall& call, const std::shared_ptr<EagerCall>& shared, absl::Status& cause) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.inputs[i] || call.inputs[i]->state() != EagerState::kFailed) continue;
    {
      std::lock_guard lock(store_->mutex);
      cause = call.inputs[i]->cause();
    }
    return AddWhere(cause, fmt::format("input {} of {}, which an earlier operator failed to compute", i, PlaceOfCall(call)));
  }
  if (!call.op) MGE_RETURN_IF_ERROR(Resolve(call));
  Pin(call.inputs, 1);
  absl::Status status = Guarded([&]() -> absl::Status {
    if (IsForHost(call)) return RunOnHost(call);
    for (const std::shared_ptr<EagerValue>& x : call.inputs) {
      if (x && x->state() != EagerState::kReady) MGE_RETURN_IF_ERROR(Fetch(*x));
    }
    MGE_ASSIGN_OR_RETURN(std::vector<HostValue> results, RunCall(call));
    Finish(call, shared, std::move(results));
    return absl::OkStatus();
  });
  Pin(call.inputs, -1);
  return status.ok() ? status : AddWhere(std::move(status), PlaceOfCall(call));
}

bool EagerInterpreter::IsForHost(EagerCall& call) {
  if (!call.place->memory || !call.settings->Get<kPlanHostCompute>()) return false;
  {
    std::lock_guard lock(store_->mutex);
    if (!std::ranges::all_of(call.inputs, [](const auto& x) { return !x || x->on_host(); })) return false;
  }
  return call.op->IsHostComputable(OperandsOfCall(call));
}

absl::Status EagerInterpreter::RunOnHost(EagerCall& call) {
  MGE_ASSIGN_OR_RETURN(const std::shared_ptr<Session> session, call.op->SessionOnHost(runtime_, call.settings));
  std::vector<HostValue> inputs, outputs(call.op->all_outputs());
  {
    std::lock_guard lock(store_->mutex);
    for (const size_t i : call.op->slots()) inputs.push_back(*call.inputs[i]->on_host());
  }
  runs_.fetch_add(1, std::memory_order_relaxed);
  RunState control;
  MGE_RETURN_IF_ERROR(Run(*session, inputs, outputs, control));
  std::lock_guard lock(store_->mutex);
  for (size_t i = 0; i < outputs.size(); ++i) call.outputs[i]->SetOnHost(std::move(outputs[i]));
  return absl::OkStatus();
}

absl::Status EagerInterpreter::Resolve(EagerCall& call) {
  const std::vector<Operand> operands = OperandsOfCall(call);
  absl::StatusOr<std::shared_ptr<EagerOperator>> op = cache_.Find(*call.request, call.place->spec, operands, *call.settings);
  if (!op.ok()) return RefusedCall(op.status(), call.request->op, operands);
  call.op = *std::move(op);
  return call.op->Infer(operands).status();
}

absl::Status EagerInterpreter::Run(Session& session, std::span<HostValue> inputs, std::span<HostValue> outputs,
                                   RunState& control) {
  const auto run = [&](RunObserver* observer) {
    control.observer = observer;
    return session.Run(inputs, outputs, control);
  };
  return watch_ ? watch_(session, run) : run(nullptr);
}

absl::StatusOr<std::vector<HostValue>> EagerInterpreter::RunCall(EagerCall& call) {
  MGE_ASSIGN_OR_RETURN(const std::shared_ptr<Session> session,
                       call.op->SessionOn(runtime_, call.place->spec, call.settings));
  if (options_.auto_drop) EvictToThreshold();
  absl::InlinedVector<HostValue, 4> inputs;
  {
    std::lock_guard lock(store_->mutex);
    for (const size_t i : call.op->slots()) inputs.push_back(call.inputs[i]->data());
  }
  while (true) {
    std::vector<HostValue> outputs(call.op->all_outputs());
    RunState control;
    const int64_t run = runs_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (!call.op->pure()) control.seed = SeedOfRun(run);
    absl::Status status = Run(*session, inputs, outputs, control);
    if (status.ok()) return outputs;
    if (!options_.auto_drop || !IsMemoryError(status) || !EvictOne()) return status;
  }
}

uint64_t EagerInterpreter::SeedOfRun(int64_t run) const {
  const auto seed = static_cast<uint64_t>(runtime_->registry().snapshot()->Get<kSeed>());
  const uint64_t mixed = (seed + static_cast<uint64_t>(run)) * 0x9e3779b97f4a7c15u ^ seed << 32;
  return mixed ? mixed : 1;  // 0 would stand for the seed of the session
}

double EagerInterpreter::CountWork(EagerCall& call, std::span<EagerValue* const> outputs) {
  EvictionPolicy& policy = store_->policy;
  int64_t bytes = 0;
  for (const std::shared_ptr<EagerValue>& x : call.inputs) bytes += x ? x->bytes : 0;
  for (const EagerValue* y : outputs) bytes += y ? y->bytes : 0;
  const double cost = policy.Advance(bytes);
  for (const std::shared_ptr<EagerValue>& x : call.inputs) {
    if (x) policy.Use(*x);
  }
  for (EagerValue* y : outputs) {
    if (y) policy.Use(*y);
  }
  return cost;
}

void EagerInterpreter::Finish(EagerCall& call, const std::shared_ptr<EagerCall>& shared, std::vector<HostValue> results) {
  std::vector<EagerValue*> outputs;
  std::lock_guard lock(store_->mutex);
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    call.outputs[i]->SetReady(std::move(results[i]));
    outputs.push_back(call.outputs[i].get());
  }
  if (!RecordsPaths()) return;
  const double cost = CountWork(call, outputs);
  for (EagerValue* y : outputs) y->cost = cost;
  Record(call, shared);
}

void EagerInterpreter::Record(EagerCall& call, const std::shared_ptr<EagerCall>& shared) {
  if (!call.op->pure() || (evicting_on_ && call.place.get() != evicting_on_)) return;
  const int64_t minimum = runtime_->registry().snapshot()->Get<kEagerDtrMinimum>().count;
  bool any = false;
  for (const std::shared_ptr<EagerValue>& y : call.outputs) {
    if (y->data().kind != ValueKind::kTensor) return;
    any = any || y->bytes > minimum;
    for (const std::shared_ptr<EagerValue>& x : call.inputs) {
      if (x && SharesMemory(x->data().tensor, y->data().tensor)) return;
    }
  }
  if (!any) return;
  for (const std::shared_ptr<EagerValue>& x : call.inputs) {
    call.path.inputs.push_back(x.get());
    if (!x || options_.auto_drop) continue;
    if (x->users.size() == x->users.capacity()) std::erase_if(x->users, [](const auto& user) { return user.expired(); });
    x->users.push_back(shared);
  }
  evicting_on_ = call.place.get();
  for (const std::shared_ptr<EagerValue>& y : call.outputs) {
    if (y->bytes <= minimum) {
      call.path.outputs.push_back(nullptr);
      continue;
    }
    call.path.outputs.push_back(y.get());
    y->path = &call.path;
    y->producer = shared;
    store_->policy.Add(*y);
  }
}

absl::Status EagerInterpreter::ExecutePut(EagerValue& value, const HostValue& host) {
  const ValueType type = TypeOfData(host);
  if (value.place()->memory && FitsHostCompute(type.kind, type.type) &&
      runtime_->registry().snapshot()->Get<kPlanHostCompute>()) {
    std::lock_guard lock(store_->mutex);
    value.SetOnHost(host);
    return absl::OkStatus();
  }
  return CopyToPlace(value, host);
}

absl::Status EagerInterpreter::CopyToPlace(EagerValue& value, const HostValue& host) {
  if (options_.auto_drop) EvictToThreshold();
  HostValue data = host;
  while (value.place()->memory && host.kind == ValueKind::kTensor && host.tensor.dtype() != DType::kString) {
    absl::StatusOr<Tensor> made =
        DeviceMemory::Create(*value.place()->memory, MGE_MEMORY_DEVICE, host.tensor.dtype(), host.tensor.shape(), runtime_);
    if (made.ok()) {
      MGE_RETURN_IF_ERROR(CopyTensor(host.tensor, *made));
      data.tensor = *std::move(made);
      break;
    }
    if (!options_.auto_drop || !IsMemoryError(made.status()) || !EvictOne()) return made.status();
  }
  std::lock_guard lock(store_->mutex);
  value.SetReady(std::move(data));
  store_->policy.Use(value);
  return absl::OkStatus();
}

// ---- dropping, swapping, and bringing back

bool EagerInterpreter::EvictBest(int64_t minimum) {
  PathValue* best = store_->policy.Best(minimum);
  if (!best) return false;
  ValueOf(*best).Drop();
  ++store_->evictions;
  return true;
}

bool EagerInterpreter::EvictOne() {
  const int64_t minimum = runtime_->registry().snapshot()->Get<kEagerDtrMinimum>().count;
  std::lock_guard lock(store_->mutex);
  return EvictBest(minimum);
}

void EagerInterpreter::EvictToThreshold() {
  const std::shared_ptr<const Snapshot> settings = runtime_->registry().snapshot();
  const int64_t threshold = settings->Get<kEagerDtrThreshold>().count, minimum = settings->Get<kEagerDtrMinimum>().count;
  if (!evicting_on_) return;
  std::lock_guard lock(store_->mutex);
  while (evicting_on_->live_bytes > threshold && EvictBest(minimum)) {
  }
}

absl::Status EagerInterpreter::ExecuteDrop(EagerValue& value) {
  {
    std::lock_guard lock(store_->mutex);
    if (value.state() != EagerState::kReady) return absl::OkStatus();
    if (value.path) {
      value.Drop();
      ++store_->drops;
      return absl::OkStatus();
    }
  }
  runtime_->logger().Warning(
      "drop of an eager tensor {} is ignored: how to compute it is not recorded. Needed are eager.record_computing_path, an "
      "operator that computes it from tensors that still exist and is not random, and a size above "
      "eager.dtr_minimum_bytes",
      TypeText(value.type().kind, value.type().type));
  return absl::OkStatus();
}

absl::Status EagerInterpreter::ExecuteSwapOut(EagerValue& value) {
  HostValue data;
  {
    std::lock_guard lock(store_->mutex);
    if (value.state() != EagerState::kReady || !value.place() || !value.place()->memory) return absl::OkStatus();
    data = value.data();
  }
  if (data.tensor.defined()) {
    MGE_ASSIGN_OR_RETURN(data.tensor, ToHost(data.tensor));
  }
  std::lock_guard lock(store_->mutex);
  value.SwapOut(std::move(data));
  ++store_->swaps_out;
  return absl::OkStatus();
}

absl::Status EagerInterpreter::Upload(EagerValue& value) {
  HostValue host;
  {
    std::lock_guard lock(store_->mutex);
    host = value.data();
  }
  MGE_RETURN_IF_ERROR(CopyToPlace(value, host));
  std::lock_guard lock(store_->mutex);
  if (value.on_host()) return absl::OkStatus();  // it was never swapped out
  ++store_->swaps_in;
  if (value.path) store_->policy.Add(value);
  return absl::OkStatus();
}

absl::Status EagerInterpreter::Fetch(EagerValue& value) {
  switch (value.state()) {
    case EagerState::kReady:
    case EagerState::kPending: return absl::OkStatus();
    case EagerState::kDropped: return Recompute(value);
    case EagerState::kSwapped: return Upload(value);
    case EagerState::kFailed: break;
  }
  std::lock_guard lock(store_->mutex);
  return value.error();
}

absl::Status EagerInterpreter::Recompute(EagerValue& value) {
  std::vector<std::shared_ptr<EagerCall>> stack;
  auto push = [&](EagerValue& v) {
    stack.push_back(v.producer);
    Pin(v.producer->inputs, 1);
  };
  push(value);
  absl::Status status;
  while (!stack.empty()) {
    EagerCall& call = *stack.back();
    EagerValue* missing = nullptr;
    for (const std::shared_ptr<EagerValue>& x : call.inputs) {
      if (x && x->state() != EagerState::kReady) missing = x.get();
    }
    if (missing && missing->state() == EagerState::kDropped) {
      push(*missing);
      continue;
    }
    status = Guarded([&]() -> absl::Status {
      if (missing) return Fetch(*missing);
      MGE_ASSIGN_OR_RETURN(std::vector<HostValue> results, RunCall(call));
      std::lock_guard lock(store_->mutex);
      std::vector<EagerValue*> outputs;
      for (size_t i = 0; i < call.path.outputs.size(); ++i) {
        outputs.push_back(call.path.outputs[i] ? &ValueOf(*call.path.outputs[i]) : nullptr);
      }
      CountWork(call, outputs);
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (!outputs[i] || outputs[i]->state() != EagerState::kDropped) continue;
        outputs[i]->SetReady(std::move(results[i]));
        store_->policy.Recompute(*outputs[i]);
        store_->policy.Add(*outputs[i]);
      }
      ++store_->recomputations;
      return absl::OkStatus();
    });
    if (!status.ok()) break;
    if (missing) continue;
    Pin(call.inputs, -1);
    stack.pop_back();
  }
  for (const std::shared_ptr<EagerCall>& call : stack) Pin(call->inputs, -1);
  return status.ok() ? status : AddWhere(std::move(status), "recomputation of " + PlaceOfCall(*stack.back()));
}

void EagerInterpreter::ExecuteReleased(EagerValue& value) {
  if (options_.auto_drop) {
    // Others may need it for recomputation. Then it need not be kept, because it can be recomputed itself.
    std::lock_guard lock(store_->mutex);
    if (value.state() == EagerState::kReady && value.path && value.pins == 0) value.Drop();
    return;
  }
  // It is deleted, so what was computed from it can be recomputed no more.
  std::vector<std::shared_ptr<EagerCall>> users, producers;
  {
    std::lock_guard lock(store_->mutex);
    for (const std::weak_ptr<EagerCall>& weak : value.users) {
      if (std::shared_ptr<EagerCall> user = weak.lock()) users.push_back(std::move(user));
    }
  }
  for (const std::shared_ptr<EagerCall>& user : users) {
    for (size_t i = 0; i < user->path.outputs.size(); ++i) {
      std::shared_ptr<EagerValue> dropped;
      {
        std::lock_guard lock(store_->mutex);
        PathValue* y = user->path.outputs[i];
        if (y && y->evicted) dropped = ValueOf(*y).weak_from_this().lock();
      }
      if (dropped) (void)Recompute(*dropped);
    }
    std::lock_guard lock(store_->mutex);
    for (PathValue*& y : user->path.outputs) {
      if (!y) continue;
      EagerValue& output = ValueOf(*y);
      if (output.evicted) continue;  // its recomputation failed; it keeps its inputs
      output.ForgetProducer();
      producers.push_back(std::move(output.producer));
    }
  }
}

}  // namespace mge
