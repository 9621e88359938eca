// SPDX-License-Identifier: Apache-2.0
#include "kernels/wrong.h"

#include "plugins/gpu/launch.h"

namespace mge::virtual_gpu {
namespace {

constexpr uint64_t kAttributes = MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_BATCH_INVARIANT | MGE_KERNEL_CAPTURE_SAFE;

struct Output {
  Slot slot;
  uint64_t bytes;
};
struct Args {
  uint64_t count;
  Output outputs[1];  // `count` entries
};

mge_code FillWithZeros(const Args& args, const mge_run* run) {
  for (uint64_t i = 0; i < args.count; ++i) {
    const Output& o = args.outputs[i];
    if (mge_code code = gpu::EnqueueFill(run, At<void>(run, o.slot), 0, o.bytes); code != MGE_OK) return code;
  }
  return MGE_OK;
}

class Wrong : public Kernel {
 public:
  explicit Wrong(const Problem& p) {
    inputs = p.input_count();
    outputs = p.output_count();
    for (int i = 0; i < p.output_count(); ++i) bytes_.push_back(p.output(i).bytes());
  }
  uint32_t args_bytes() const override { return static_cast<uint32_t>(sizeof(Args) + bytes_.size() * sizeof(Output)); }
  Result Bind(const Binding& binding, void* memory, StepFn* step) override {
    auto* args = static_cast<Args*>(memory);
    args->count = bytes_.size();
    for (size_t i = 0; i < bytes_.size(); ++i) args->outputs[i] = {binding.output(static_cast<int>(i)), bytes_[i]};
    *step = StepFn::Of<FillWithZeros>();
    return {};
  }

 private:
  std::vector<uint64_t> bytes_;
};

}  // namespace

void OfferWrong(const mge_problem* problem, const mge_constraints* constraints, const mge_candidate_sink* sink) {
  Offers offers(sink, constraints, "virtual.wrong", 0);
  for (int i = 0; i < Problem(problem).output_count(); ++i) {
    if (!Problem(problem).output(i).is_static()) return offers.Refuse("the shapes of the outputs are not known");
  }
  std::string why = constraints ? WhyNotAllowed(kAttributes, constraints->require, constraints->forbid) : "";
  if (!why.empty()) return offers.Refuse(why);
  mge_candidate c = {};
  c.struct_size = sizeof(c);
  c.rank = -1;
  c.id = Text("virtual.wrong");
  c.attributes = kAttributes;
  c.cost_us = 0.001;
  c.token = kWrongToken;
  sink->offer(sink->self, &c);
}

KernelPtr MakeWrong(const mge_problem* problem) { return std::make_unique<Wrong>(Problem(problem)); }

}  // namespace mge::virtual_gpu
