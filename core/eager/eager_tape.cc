// SPDX-License-Identifier: Apache-2.0
#include "core/eager/eager_tape.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "core/base/dtype.h"
#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns a tensor of ones.
absl::StatusOr<Tensor> Ones(DType dtype, const Shape& shape) {
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(dtype, shape));
  DispatchFloating(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::ranges::fill(out.MutableData<T>(), static_cast<T>(1.0f));
  });
  return out;
}

}  // namespace

void EagerTape::Start() { interpreter_->Attach(shared_from_this()); }
void EagerTape::Stop() { interpreter_->Detach(this); }

absl::Status EagerTape::Watch(const EagerTensorPtr& tensor) {
  if (&tensor->interpreter() != interpreter_.get()) {
    return Fail(errors::kApiMisuse, "a tape cannot watch a tensor of another interpreter");
  }
  std::lock_guard lock(mutex_);
  if (tracked_.insert(tensor->value().get()).second) watched_.push_back(tensor);
  return absl::OkStatus();
}

size_t EagerTape::size() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

void EagerTape::Record(const std::shared_ptr<EagerCall>& call, std::span<const EagerTensorPtr> inputs,
                       std::span<const EagerTensorPtr> outputs) {
  std::lock_guard lock(mutex_);
  const bool depends =
      std::ranges::any_of(inputs, [&](const EagerTensorPtr& x) { return x && tracked_.contains(x->value().get()); });
  if (!depends) return;
  entries_.push_back({call, {inputs.begin(), inputs.end()}, {outputs.begin(), outputs.end()}});
  for (const EagerTensorPtr& y : outputs) tracked_.insert(y->value().get());
}

absl::StatusOr<std::vector<EagerTensorPtr>> EagerTape::Gradient(const EagerTensorPtr& target,
                                                                std::span<const EagerTensorPtr> sources,
                                                                const EagerTensorPtr& weights) {
  for (const EagerTensorPtr& tensor : sources) {
    if (!tensor) return Fail(errors::kApiMisuse, "a source of a gradient is missing");
  }
  MGE_ASSIGN_OR_RETURN(const ValueType type, interpreter_->TypeOf(*target));
  if (type.kind != ValueKind::kTensor || !kFloating.Contains(type.type.dtype)) {
    return Fail(errors::kBadInput, "the target of a gradient is not floating",
                {.what = fmt::format("its type is {}", TypeText(type.kind, type.type))});
  }
  EagerTensorPtr seed = weights;
  if (seed) {
    MGE_ASSIGN_OR_RETURN(const ValueType given, interpreter_->TypeOf(*seed));
    if (given.kind != type.kind || given.type.dtype != type.type.dtype || given.type.dims != type.type.dims) {
      return Fail(errors::kBadInput, "the weights of a gradient's target do not fit the target",
                  {.what = fmt::format("the target is {}, the weights are {}", TypeText(type.kind, type.type),
                                       TypeText(given.kind, given.type))});
    }
  } else {
    HostValue ones;
    MGE_ASSIGN_OR_RETURN(ones.tensor, Ones(type.type.dtype, type.type.dims));
    seed = interpreter_->HostOperand(std::move(ones));
  }

  // This tape does not record the operators of its own gradients.
  const bool recording = interpreter_->IsAttached(this);
  if (recording) Stop();
  absl::Cleanup resume = [&] {
    if (recording) Start();
  };
  std::vector<Entry> entries;
  std::unordered_set<const EagerValue*> tracked;
  {
    std::lock_guard lock(mutex_);
    entries = entries_;
    tracked = tracked_;
  }
  std::unordered_set<const EagerValue*> depends;
  for (const EagerTensorPtr& source : sources) {
    if (tracked.contains(source->value().get())) depends.insert(source->value().get());
  }
  std::vector<bool> visit;
  for (const Entry& entry : entries) {
    visit.push_back(
        std::ranges::any_of(entry.inputs, [&](const EagerTensorPtr& x) { return x && depends.contains(x->value().get()); }));
    if (!visit.back()) continue;
    for (const EagerTensorPtr& y : entry.outputs) depends.insert(y->value().get());
  }
  Gradients gradients = {{target->value().get(), seed}};
  for (size_t i = entries.size(); i-- > 0;) {
    if (visit[i]) MGE_RETURN_IF_ERROR(GoBack(entries[i], depends, gradients));
  }
  std::vector<EagerTensorPtr> out;
  for (const EagerTensorPtr& source : sources) {
    const bool is_tracked = tracked.contains(source->value().get());
    const auto at = gradients.find(source->value().get());
    out.push_back(!is_tracked || at == gradients.end() ? nullptr : at->second);
  }
  return out;
}

absl::Status EagerTape::GoBack(const Entry& entry, const std::unordered_set<const EagerValue*>& depends,
                               Gradients& gradients) {
  std::vector<bool> has_gradient;
  for (const EagerTensorPtr& y : entry.outputs) has_gradient.push_back(gradients.contains(y->value().get()));
  if (std::ranges::find(has_gradient, true) == has_gradient.end()) return absl::OkStatus();
  for (const EagerTensorPtr& y : entry.outputs) MGE_RETURN_IF_ERROR(interpreter_->WaitForType(*y));
  const EagerCall& call = *entry.call;
  std::vector<bool> wanted;
  std::vector<const Tensor*> host;
  bool any = false;
  for (size_t i = 0; i < entry.inputs.size(); ++i) {
    const EagerTensorPtr& x = entry.inputs[i];
    wanted.push_back(x && depends.contains(x->value().get()) && call.op->CarriesGradient(i));
    host.push_back(x ? x->value()->host_operand() : nullptr);
    any = any || wanted.back();
  }
  if (!any) return absl::OkStatus();
  MGE_ASSIGN_OR_RETURN(const std::shared_ptr<const OperatorGradient> gradient,
                       call.op->GradientOf(has_gradient, wanted, host));

  std::vector<EagerTensorPtr> list(entry.inputs);
  list.insert(list.end(), entry.outputs.begin(), entry.outputs.end());
  for (const EagerTensorPtr& y : entry.outputs) {
    const auto at = gradients.find(y->value().get());
    list.push_back(at == gradients.end() ? nullptr : at->second);
  }
  std::vector<EagerTensorPtr> results;
  if (gradient->op) {
    std::vector<EagerTensorPtr> operands;
    for (const size_t i : gradient->operands) operands.push_back(list[i]);
    MGE_ASSIGN_OR_RETURN(results, interpreter_->ApplyCreated(gradient->op, call.place, operands));
  }
  for (size_t i = 0, k = 0; i < entry.inputs.size(); ++i) {
    if (!wanted[i]) continue;
    const OperatorGradient::Source& source = gradient->gradients[k++];
    if (source.kind == OperatorGradient::Source::Kind::kNone) continue;
    const EagerTensorPtr& part =
        source.kind == OperatorGradient::Source::Kind::kOperand ? list[source.index] : results[source.index];
    EagerTensorPtr& sum = gradients[entry.inputs[i]->value().get()];
    if (!sum) {
      sum = part;
      continue;
    }
    const EagerTensorPtr both[] = {sum, part};
    MGE_ASSIGN_OR_RETURN(const std::vector<EagerTensorPtr> added,
                         interpreter_->Apply({.op = "Add"}, both, call.place->spec));
    sum = added[0];
  }
  return absl::OkStatus();
}

}  // namespace mge
