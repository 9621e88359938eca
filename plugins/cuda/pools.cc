// SPDX-License-Identifier: Apache-2.0
// cuDNN has one engine for pools that needs no compilation. Its heuristics name it as a fallback only, so it stands behind
// the backend's own kernel, and is chosen if it is measured to be faster.
#include "pools.h"

#include <algorithm>
#include <array>

#include "cudnn_pools.h"
#include "device.h"
#include "mge/plugin/problems/window.hpp"
#include "plugins/gpu/runtime/queue.h"
#include "plugins/gpu/support/row.h"

namespace mge::cuda {
namespace {

using gpu::Refusal;

constexpr int32_t kFallbackRank = 1;  // behind the kernel of plugins/gpu

// Describes the problem. Refuses pools that the library does not compute.
Result Describe(const Problem& p, PoolShape* shape) {
  const Node n = p.node();
  const Value x = n.input(0);
  const bool is_max = n.op() == "MaxPool";
  if (!FindType(x.dtype(), &shape->type)) return Refusal("cuDNN: the type");
  if (n.has_output(1)) return Refusal("cuDNN: the indices of maxima");
  if (Result r = ReadWindow(n, shape->axis); !r.ok()) return r;
  shape->images = x.dims()[0];
  shape->channels = x.dims()[1];
  const bool counts_pads = !is_max && n.Int("count_include_pad") != 0;
  shape->mode = is_max        ? CUDNN_RESAMPLE_MAXPOOL
                : counts_pads ? CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING
                              : CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING;
  for (gpu::WindowAxis& a : shape->axis) {
    if (a.dilation != 1) return Refusal("cuDNN: dilations");
    const int64_t last = (a.out - 1) * a.stride - a.pad_begin;  // where the last window begins
    const int64_t pad_end = std::max<int64_t>(0, last + a.kernel - a.in);
    if (a.pad_begin < 0 || a.pad_begin >= a.kernel || last >= a.in) return Refusal("cuDNN: a window without an element");
    // With ceil_mode the last window may be larger than the padded input. Averages count only what is inside.
    if (counts_pads && pad_end > a.pad_end) return Refusal("cuDNN: a window beyond the pads");
    a.pad_end = pad_end;
  }
  return {};
}

class PoolKernel : public Kernel {
 public:
  PoolKernel(CudnnDevice& library, CudnnDevice::Plans plans, size_t number)
      : library_(library), plans_(std::move(plans)), plan_((*plans_)[number]) {}
  uint32_t args_bytes() const override { return sizeof(Bound); }
  uint64_t workspace_bytes() const override { return plan_.workspace; }
  Result Bind(const Binding& binding, void* args, StepFn* step) override {
    new (args) Bound{this, binding.workspace(), binding.input(0), binding.output(0)};
    *step = StepFn::Of<Run>();
    return {};
  }

 private:
  struct Bound {
    const PoolKernel* kernel;
    Slot workspace, x, y;
  };
  static mge_code Run(const Bound& bound, const mge_run* run) {
    constexpr std::array<int64_t, 2> kIds = {kPoolX, kPoolY};
    const PoolKernel& k = *bound.kernel;
    const std::array<void*, 2> operands = {At<void>(run, bound.x), At<void>(run, bound.y)};
    void* const workspace = k.plan_.workspace ? At<void>(run, bound.workspace) : nullptr;
    const Result r = QueueOf<gpu::Queue>(run).Enqueue(
        [&](void* stream) { return k.library_.Execute(k.plan_.plan, kIds, operands, workspace, stream); });
    return r.ok() ? MGE_OK : Report(run->error, r.code(), r.text());
  }

  CudnnDevice& library_;
  const CudnnDevice::Plans plans_;
  const ReadyPlan& plan_;  // one of them
};

struct PoolRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!p.is_static() || p.node_count() != 1 || p.adds(0) || p.node().output(0).elements() == 0) return;
    PoolShape shape;
    if (Result r = Describe(p, &shape); !r.ok()) return offers.Refuse(r.text());
    auto& device = p.device<Device>();
    CudnnDevice::Plans plans;
    if (Result r = device.cudnn.PlansOf(device, shape, &plans); !r.ok()) return offers.Refuse(r.text());
    for (size_t i = 0; i < plans->size(); ++i) {
      offers.Add({.id = "cuda.cudnn." + std::to_string(i),
                  .rank = kFallbackRank + static_cast<int32_t>(i),
                  .attributes = (*plans)[i].attributes,
                  .workspace = (*plans)[i].workspace,
                  .variant = i});
    }
  }
  static KernelPtr Make(const Problem& p, const Candidate& c) {
    PoolShape shape;
    if (!Describe(p, &shape).ok()) return nullptr;
    auto& device = p.device<Device>();
    CudnnDevice::Plans plans;
    if (!device.cudnn.PlansOf(device, shape, &plans).ok() || c.variant >= plans->size()) return nullptr;
    return std::make_unique<PoolKernel>(device.cudnn, std::move(plans), c.variant);
  }
};

constexpr KernelRow kRows[] = {Row<PoolRow>("MaxPool"), Row<PoolRow>("AveragePool")};

}  // namespace

MGE_KERNELS(pools) = kRows;

}  // namespace mge::cuda
