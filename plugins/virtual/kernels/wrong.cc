// SPDX-License-Identifier: Apache-2.0
// A kernel with a low estimate that is wrong: it fills the outputs of any problem with zeros. Offered only if the setting
// virtual.wrong_kernel is on, to test the host's checks of selected kernels.
#include <memory>
#include <vector>

#include "backend.h"
#include "plugins/gpu/launch.h"

namespace mge::virtual_gpu {
namespace {

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

class ZeroKernel : public Kernel {
 public:
  explicit ZeroKernel(const Problem& p) {
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

struct Wrong {
  static constexpr const char* kOp = kAnyOp;

  // Offers nothing to a problem that no other row supports.
  static void Offer(const Problem& p, Offers& offers) {
    if (!CurrentOptions().wrong_kernel || offers.count() == 0) return;
    for (int i = 0; i < p.output_count(); ++i) {
      if (!p.output(i).is_static()) return offers.Refuse("virtual.wrong: the shapes of the outputs are not known");
      if (p.adds(i)) return offers.Refuse("virtual.wrong: cannot add to its output");
    }
    offers.Add({.id = "virtual.wrong",
                .rank = -1,
                .attributes = MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_BATCH_INVARIANT | MGE_KERNEL_CAPTURE_SAFE,
                .cost_us = 0.001});
  }
  static KernelPtr Make(const Problem& p, const Candidate&) { return std::make_unique<ZeroKernel>(p); }
};
constexpr KernelRow kWrong = Row<Wrong>();

}  // namespace

const KernelRow* const* Kernels::Rows(uint64_t* count) {
  return JoinedKernels<gpu::KernelRows, mge::Kernels<kWrong>>::Rows(count);
}

}  // namespace mge::virtual_gpu
