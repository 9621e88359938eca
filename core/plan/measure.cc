// SPDX-License-Identifier: Apache-2.0
#include "core/plan/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "core/base/dtype.h"
#include "core/base/shape.h"
#include "core/plugin/host_services.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int kWarmRuns = 2;
constexpr int kTimedRuns = 8;
constexpr double kSecondsPerCandidate = 0.05;

// Small values that are neither zero nor all alike, the same on every machine.
void FillSeeded(Tensor& tensor, uint64_t seed) {
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  auto next = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<int>(state >> 40 & 0xff);
  };
  DispatchFixedSize(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (T& x : tensor.MutableData<T>()) {
      if constexpr (kIsFloating<T>) {
        x = static_cast<T>(static_cast<float>(next() - 128) / 256.0f + 0.001f);
      } else {
        x = static_cast<T>(next() & 1);
      }
    }
  });
}

// One candidate with memory of its own.
class Trial {
 public:
  Trial(Device& device, const mge_problem& problem, const OwnedCandidate& candidate, const PlanContext& context)
      : device_(device), problem_(problem), candidate_(candidate), context_(context) {}
  ~Trial() {
    const mge_kernel_api& api = device_.kernel_api();
    if (state_) api.state_destroy(prepared_.kernel, state_);
    if (prepared_.kernel) api.destroy(prepared_.kernel);
  }

  absl::Status SetUp() {
    const mge_graph& g = *problem_.graph;
    const mge_kernel_api& api = device_.kernel_api();
    OwnedCandidate::Abi abi = candidate_.ToAbi();
    prepared_.struct_size = sizeof(prepared_);
    mge_error error;
    mge_code code = api.prepare(device_.handle(), &problem_, &abi.candidate, &prepared_, &error);
    if (code != MGE_OK) return StatusOfBackend(code, error, "preparing " + candidate_.id);
    std::vector<mge_slot> inputs, outputs;
    for (uint64_t i = 0; i < g.input_count; ++i) {
      MGE_ASSIGN_OR_RETURN(mge_slot slot, AddOperand(*g.values[g.inputs[i]], candidate_.inputs[i], i, true));
      inputs.push_back(slot);
      in_layouts_.push_back(&candidate_.inputs[i]);
    }
    for (uint64_t i = 0; i < g.output_count; ++i) {
      MGE_ASSIGN_OR_RETURN(mge_slot slot, AddOperand(*g.values[g.outputs[i]], candidate_.outputs[i], i, false));
      outputs.push_back(slot);
      out_layouts_.push_back(&candidate_.outputs[i]);
    }
    MGE_ASSIGN_OR_RETURN(mge_slot workspace, AddBytes(static_cast<int64_t>(prepared_.workspace_bytes)));
    mge_binding binding = {sizeof(binding), 0, inputs.data(), outputs.data(), workspace,
                           in_layouts_.data(), out_layouts_.data()};
    args_ = std::make_unique<std::byte[]>(std::max<uint32_t>(prepared_.args_bytes, 1));
    code = api.bind(prepared_.kernel, &binding, args_.get(), &fn_, &error);
    if (code != MGE_OK) return StatusOfBackend(code, error, "binding " + candidate_.id);
    if (prepared_.has_state) {
      code = api.state_create(prepared_.kernel, &state_, &error);
      if (code != MGE_OK) return StatusOfBackend(code, error, "state of " + candidate_.id);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<double> Time() {
    using Clock = std::chrono::steady_clock;
    double best = -1, spent = 0;
    for (int i = 0; i < kWarmRuns + kTimedRuns && (best < 0 || spent < kSecondsPerCandidate * 1e6); ++i) {
      auto begin = Clock::now();
      MGE_RETURN_IF_ERROR(RunOnce());
      double us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
      spent += us;
      if (i >= kWarmRuns || best < 0) best = best < 0 ? us : std::min(best, us);
    }
    return best;
  }

 private:
  absl::StatusOr<mge_slot> AddBytes(int64_t bytes) {
    MGE_ASSIGN_OR_RETURN(Tensor t, Tensor::Create(DType::kU8, {bytes}, device_.host_allocator()));
    return AddTensor(std::move(t));
  }
  mge_slot AddTensor(Tensor t) {
    memory_.push_back(std::move(t));
    bases_.push_back(memory_.back().mutable_data());
    return {static_cast<uint32_t>(bases_.size() - 1), 0, 0};
  }

  absl::StatusOr<mge_slot> AddOperand(const mge_value& v, const mge_layout& layout, uint64_t index, bool input) {
    std::span<const int64_t> dims(v.dims, static_cast<size_t>(v.rank));
    DType dtype = static_cast<DType>(v.dtype);
    if (input && v.data) {
      uint64_t packed = prepared_.prepack_bytes ? prepared_.prepack_bytes[index] : 0;
      if (packed == 0) return AddTensor(Tensor::View(dtype, Shape(dims.begin(), dims.end()), v.data, nullptr));
      MGE_ASSIGN_OR_RETURN(mge_slot slot, AddBytes(static_cast<int64_t>(packed)));
      mge_error error;
      mge_code code = device_.kernel_api().prepack(prepared_.kernel, static_cast<uint32_t>(index), v.data,
                                                   bases_.back(), &error);
      if (code != MGE_OK) return StatusOfBackend(code, error, "packing for " + candidate_.id);
      return slot;
    }
    MGE_ASSIGN_OR_RETURN(int64_t bytes, LayoutBytes(layout, ElementBytes(dtype), dims));
    int64_t elements = bytes / ElementBytes(dtype);
    MGE_ASSIGN_OR_RETURN(Tensor t, Tensor::Create(dtype, {elements}, device_.host_allocator()));
    if (input) {
      FillSeeded(t, index + 1);
    } else if (bytes) {
      std::memset(t.mutable_data(), 0, static_cast<size_t>(bytes));
    }
    return AddTensor(std::move(t));
  }

  absl::Status RunOnce() {
    mge_error error;
    int32_t cancel = 0;
    void* states[1] = {state_};
    mge_run run = {};
    run.struct_size = sizeof(run);
    run.bases = bases_.data();
    run.states = states;
    run.cancel = &cancel;
    run.host = device_.host();
    run.error = &error;
    run.width = context_.threads;
    run.pool = run.host->self;
    run.parallel_for = run.host->parallel_for;
    mge_code code = fn_(args_.get(), &run);
    return code == MGE_OK ? absl::OkStatus() : StatusOfBackend(code, error, "running " + candidate_.id);
  }

  Device& device_;
  const mge_problem& problem_;
  const OwnedCandidate& candidate_;
  const PlanContext& context_;
  mge_prepared prepared_ = {};
  void* state_ = nullptr;
  mge_step_fn fn_ = nullptr;
  std::unique_ptr<std::byte[]> args_;
  std::vector<Tensor> memory_;
  std::vector<void*> bases_;
  std::vector<const mge_layout*> in_layouts_, out_layouts_;
};

}  // namespace

absl::StatusOr<std::vector<double>> MeasureCandidates(Device& device, const mge_problem& problem,
                                                      const std::vector<OwnedCandidate>& candidates,
                                                      const PlanContext& context) {
  std::vector<double> out;
  for (const OwnedCandidate& original : candidates) {
    OwnedCandidate candidate = original;
    for (std::vector<mge_layout>* list : {&candidate.inputs, &candidate.outputs}) {
      for (mge_layout& l : *list) {
        if (l.kind == MGE_LAYOUT_ANY) l = PlainLayout();
      }
    }
    Trial trial(device, problem, candidate, context);
    absl::Status ready = trial.SetUp();
    absl::StatusOr<double> us = ready.ok() ? trial.Time() : absl::StatusOr<double>(ready);
    // One that does not fit the budget or fails is measured as "not to be chosen"; the reason stands in its estimate.
    out.push_back(us.ok() ? *us : -1);
  }
  return out;
}

}  // namespace mge
