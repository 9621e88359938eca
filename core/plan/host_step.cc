// SPDX-License-Identifier: Apache-2.0
#include "core/plan/host_step.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "core/base/errors.h"
#include "core/ops/eval_context.h"
#include "core/ops/op.h"
#include "core/plan/program.h"
#include "fmt/format.h"

namespace mge {
namespace {

class StepContext : public EvalContext {
 public:
  StepContext(const HostStepArgs& args, const mge_run* run, HostStepEnvironment& env)
      : args_(args),
        run_(run),
        env_(env),
        inputs_(args.inputs.size()),
        outputs_(args.outputs.size()),
        written_(args.outputs.size(), 0) {
    for (size_t i = 0; i < inputs_.size(); ++i) inputs_[i] = Load(args.inputs[i]);
  }

  const Node& node() const override { return args_.node; }
  const HostValue& value(int i) const override { return inputs_[i]; }
  TensorType output_type(int i) const override { return args_.outputs[i].type; }

  absl::StatusOr<Tensor*> Output(int i, DType dtype, Shape shape) override {
    if (!has_output(i)) {  // evaluators may compute outputs that the node does not have
      MGE_ASSIGN_OR_RETURN(Tensor unused, Tensor::Create(dtype, std::move(shape), env_.allocator()));
      unused_.push_back(std::move(unused));
      return &unused_.back();
    }
    const HostOperand& o = args_.outputs[i];
    Tensor& tensor = outputs_[i].tensor;
    if (o.location.kind == Location::Kind::kSlot) {
      if (dtype != o.type.dtype || shape != o.type.dims) {
        return Fail(errors::kInternal, fmt::format("output {} of {} is {}{}, planned as {}", i, NodePlace(args_.node),
                                                   DTypeName(dtype), ShapeText(shape), o.type.ToString()));
      }
      tensor = Tensor::View(dtype, std::move(shape), Address(run_, o.location.slot), nullptr);
    } else {
      MGE_ASSIGN_OR_RETURN(tensor, Tensor::Create(dtype, std::move(shape), env_.allocator()));
    }
    written_[i] = 1;
    return &tensor;
  }

  absl::Status SetOutput(int i, HostValue value) override {
    if (!has_output(i)) return absl::OkStatus();
    const HostOperand& o = args_.outputs[i];
    if (o.location.kind == Location::Kind::kSlot) {
      MGE_ASSIGN_OR_RETURN(Tensor * tensor, Output(i, value.tensor.dtype(), value.tensor.shape()));
      if (tensor->bytes()) std::memmove(tensor->mutable_data(), value.tensor.data(), static_cast<size_t>(tensor->bytes()));
      return absl::OkStatus();
    }
    // Later steps may overwrite the run's own memory while this value is alive, so copy it.
    MGE_RETURN_IF_ERROR(Own(value.tensor));
    for (Tensor& t : value.sequence) MGE_RETURN_IF_ERROR(Own(t));
    outputs_[i] = std::move(value);
    written_[i] = 1;
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<HostValue>> RunBody(const Graph& body, std::vector<HostValue> inputs) override {
    for (const BodyProgram& b : args_.bodies) {
      if (b.body != &body) continue;
      for (int k : b.captures) inputs.push_back(Load(args_.captures[k]));
      return env_.RunBody(b, std::move(inputs));
    }
    return Fail(errors::kInternal, fmt::format("{} runs a body that it does not have", NodePlace(args_.node)));
  }

  absl::Status CheckStop() override { return env_.CheckStop(); }
  uint64_t seed() override { return env_.NextSeed(); }
  HostAllocator& allocator() override { return env_.allocator(); }
  PreparedData* prepared() override { return args_.prepared.get(); }

  absl::Status CheckDynamicInputs() const {
    std::vector<const HostValue*> present;
    for (size_t i = 0; i < inputs_.size(); ++i) present.push_back(args_.inputs[i].present ? &inputs_[i] : nullptr);
    return CheckInputs(args_.node, *args_.node.def, present);
  }

  // Moves dynamic outputs to the run. Fails if the evaluator left an output unset.
  absl::Status Finish() {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const HostOperand& o = args_.outputs[i];
      if (!o.present) continue;
      if (!written_[i]) {
        return Fail(errors::kInternal, fmt::format("{} left its output {} unset", NodePlace(args_.node), i));
      }
      if (o.location.kind != Location::Kind::kDynamic) continue;
      env_.dynamic(o.location.index) = std::move(outputs_[i]);
    }
    return absl::OkStatus();
  }

 private:
  HostValue Load(const HostOperand& o) {
    if (!o.present) return {};
    if (o.location.kind == Location::Kind::kDynamic) return env_.dynamic(o.location.index);
    HostValue v;
    v.tensor = Tensor::View(o.type.dtype, o.type.dims, Address(run_, o.location.slot), nullptr);
    return v;
  }

  absl::Status Own(Tensor& t) {
    if (!t.defined() || t.owner() || t.dtype() == DType::kString) return absl::OkStatus();
    MGE_ASSIGN_OR_RETURN(Tensor copy, Tensor::Create(t.dtype(), t.shape(), env_.allocator()));
    if (t.bytes()) std::memcpy(copy.mutable_data(), t.data(), static_cast<size_t>(t.bytes()));
    t = std::move(copy);
    return absl::OkStatus();
  }

  const HostStepArgs& args_;
  const mge_run* run_;
  HostStepEnvironment& env_;
  std::vector<HostValue> inputs_;
  std::vector<HostValue> outputs_;
  std::vector<char> written_;
  std::deque<Tensor> unused_;
};

mge_code CodeOf(const absl::Status& status) { return static_cast<mge_code>(status.code()); }

}  // namespace

mge_code RunHostStep(const void* args, const mge_run* run) {
  const auto& step = *static_cast<const HostStepArgs*>(args);
  HostStepEnvironment& env = *reinterpret_cast<const HostRun*>(run)->environment;
  StepContext context(step, run, env);
  absl::Status status = step.check_inputs ? context.CheckDynamicInputs() : absl::OkStatus();
  if (status.ok()) status = step.node.def->eval(context);
  if (status.ok()) status = context.Finish();
  if (status.ok()) return MGE_OK;
  mge_code code = CodeOf(status);
  env.SetError(PartsOf(status).where.empty() ? AddWhere(std::move(status), NodePlace(step.node)) : std::move(status));
  return code;
}

mge_code RunCopyStep(const void* args, const mge_run* run) {
  // Pieces of copies that are shared by default, and the number and alignment of those that a setting shares.
  static constexpr uint64_t kMaxPiece = kSharedCopyBytes / 2, kPieces = 16, kLine = 64;
  const auto& step = *static_cast<const CopyStepArgs*>(args);
  if (step.staged) reinterpret_cast<const HostRun*>(run)->environment->CountStaged(step.bytes);
  struct Copy {
    char *from, *to;
    uint64_t bytes, piece;
  } copy = {static_cast<char*>(Address(run, step.from)), static_cast<char*>(Address(run, step.to)), step.bytes,
            step.bytes >= kSharedCopyBytes ? kMaxPiece : (step.bytes / kPieces + kLine) / kLine * kLine};
  auto piece = [](void* self, uint64_t i) {
    const auto& c = *static_cast<const Copy*>(self);
    std::memcpy(c.to + i * c.piece, c.from + i * c.piece, std::min(c.piece, c.bytes - i * c.piece));
  };
  if (step.bytes < step.shared_from || run->width < 2) {
    if (step.bytes) std::memcpy(copy.to, copy.from, step.bytes);
  } else {
    run->parallel_for(run->pool, (step.bytes + copy.piece - 1) / copy.piece, piece, &copy);
  }
  return MGE_OK;
}

mge_code RunPackStep(const void* args, const mge_run* run) {
  const auto& step = *static_cast<const PackStepArgs*>(args);
  void *from = Address(run, step.from), *to = Address(run, step.to);
  if (!run->queue) return step.api->prepack(step.kernel, step.input, from, to, run->error);
  return step.api->prepack_on(step.kernel, step.input, run->queue, from, to, run->error);
}

mge_code RunQueueCopyStep(const void* args, const mge_run* run) {
  const auto& step = *static_cast<const QueueCopyArgs*>(args);
  if (!step.bytes) return MGE_OK;
  void *from = Address(run, step.from), *to = Address(run, step.to);
  if (!step.from_device) return step.api->copy(run->queue, to, from, step.bytes, run->error);
  return step.api->copy_peer(run->queue, step.to_device, to, step.from_device, from, step.bytes, run->error);
}

}  // namespace mge
