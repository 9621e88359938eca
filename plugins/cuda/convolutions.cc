// SPDX-License-Identifier: Apache-2.0
// cuDNN has engines for convolution, residual, bias and Relu in this order. It has none that leaves out the bias only: then
// the kernel adds a bias of zeros from its workspace. For ConvTranspose it has engines without a bias only. The gradient of a
// Conv by its input is a ConvTranspose, that by its filter has engines of its own.
#include "convolutions.h"

#include <algorithm>
#include <array>

#include "device.h"
#include "plugins/gpu/runtime/queue.h"
#include "plugins/gpu/support/convolution.h"
#include "plugins/gpu/support/layout.h"
#include "plugins/gpu/support/library_epilogue.h"
#include "plugins/gpu/support/row.h"

namespace mge::cuda {
namespace {

using gpu::Convolution;
using gpu::Refusal;

// Ranks of the first plans, before the kernels of plugins/gpu. Tensor cores are fastest with the channels last, other engines
// with plain tensors. The plans of plain tensors keep the library's order.
constexpr int32_t kTensorCoresLast = -100, kPlainTensors = -70, kOthersLast = -40;
constexpr uint64_t kAlignment = 256;

// A problem as a convolution of the library, and what is left to do.
struct Task {
  Convolution conv;
  ConvolutionShape shape;
  gpu::Packing packing;                                     // of the filter, with the channels last
  bool zero_bias = false;                                   // from the workspace
  gpu::Activation activation = {gpu::kNoActivation, 0, 0};  // computed by a kernel of its own behind the convolution
  uint64_t bias_bytes() const { return static_cast<uint64_t>(shape.outputs) * ElementBytes(conv.type); }
  // Returns the offset of the zeros.
  uint64_t bias_offset(uint64_t workspace) const { return (workspace + kAlignment - 1) / kAlignment * kAlignment; }
  uint64_t workspace(uint64_t plan) const { return zero_bias ? bias_offset(plan) + bias_bytes() : plan; }
};

// Copies sizes from task->conv. Refuses windows that the library does not compute.
Result DescribeWindow(Task* task) {
  const gpu::ConvArgs& args = task->conv.args;
  ConvolutionShape& shape = task->shape;
  if (!FindType(task->conv.type, &shape.type)) return Refusal("cuDNN: the type");
  shape.images = args.images;
  shape.channels = args.channels;
  shape.outputs = args.outputs;
  shape.groups = args.groups;
  for (size_t d = 0; d < std::size(args.axis); ++d) {
    gpu::WindowAxis& a = shape.axis[d] = args.axis[d];
    const int64_t wide = shape.transposed() ? a.out : a.in, narrow = shape.transposed() ? a.in : a.out;
    auto fits = [&](int64_t pad_end) {
      const int64_t room = wide + a.pad_begin + pad_end - (a.kernel - 1) * a.dilation - 1;
      return pad_end >= 0 && room >= 0 && room / a.stride + 1 == narrow;
    };
    // The output's size of a ConvTranspose leaves its last pad open. Equal pads have more engines.
    if (shape.transposed()) {
      const int64_t least = (narrow - 1) * a.stride + (a.kernel - 1) * a.dilation + 1 - wide - a.pad_begin;
      a.pad_end = fits(a.pad_begin) ? a.pad_begin : std::max<int64_t>(0, least);
    }
    if (a.in < 1 || a.pad_begin < 0 || !fits(a.pad_end)) return Refusal("cuDNN: the pads or the output's size");
    // Engines of gradients that take unequal pads ignore the second one (9.14 and 9.19 on a GPU of capability 9.0).
    if (shape.kind != ConvolutionShape::kForward && a.pad_begin != a.pad_end) return Refusal("cuDNN: unequal pads");
  }
  return {};
}

// Refuses a filter that would have to be packed for the layout, but is no constant.
Result DescribeLayout(const Problem& p, gpu::Layout layout, Task* task) {
  task->shape.channels_last = layout == gpu::Layout::kChannelsLast;
  if (!task->shape.channels_last) return {};
  const Convolution& conv = task->conv;
  task->packing = conv.FilterPacking(task->shape.transposed());
  const bool one_use = conv.w != conv.x && conv.w != conv.residual && conv.w != conv.bias;
  if (!task->packing.Moves() || (one_use && p.input(conv.w).is_constant())) return {};
  return Refusal("cuDNN: with the channels last, a filter that is no constant");
}

// Describe the problem. Refuse what the library does not compute.
Result Describe(const Problem& p, gpu::Layout layout, Task* task) {
  if (Result r = gpu::FindConvolution(p, &task->conv); !r.ok()) return r;
  const gpu::ConvArgs& args = task->conv.args;
  ConvolutionShape& shape = task->shape;
  if (Result r = DescribeWindow(task); !r.ok()) return r;
  shape.relu = args.activation.kind == gpu::kRelu;
  if (!shape.relu) task->activation = args.activation;
  shape.residual = task->conv.residual >= 0;
  task->zero_bias = task->conv.bias < 0 && (shape.residual || shape.relu);
  shape.bias = task->conv.bias >= 0 || task->zero_bias;
  return DescribeLayout(p, layout, task);
}

Result DescribeTransposed(const Problem& p, gpu::Layout layout, Task* task) {
  if (p.node_count() != 1) return Refusal("cuDNN: a group of nodes");
  if (Result r = gpu::FindTransposed(p, &task->conv); !r.ok()) return r;
  task->shape.kind = ConvolutionShape::kTransposed;
  if (Result r = DescribeWindow(task); !r.ok()) return r;
  return DescribeLayout(p, layout, task);
}

// The gradient is read by operators that need a plain filter, so it is offered so only.
Result DescribeFilterGradient(const Problem& p, gpu::Layout layout, Task* task) {
  if (layout != gpu::Layout::kPlain) return Refusal("cuDNN: with the channels last, a gradient by the filter");
  if (p.node_count() != 1) return Refusal("cuDNN: a group of nodes");
  if (Result r = gpu::FindWeightGradient(p, &task->conv); !r.ok()) return r;
  task->shape.kind = ConvolutionShape::kFilterGradient;
  return DescribeWindow(task);
}

class ConvolutionKernel : public Kernel {
 public:
  ConvolutionKernel(CudnnDevice& library, const Task& task, CudnnDevice::Plans plans, size_t number)
      : library_(library), task_(task), plans_(std::move(plans)), plan_((*plans_)[number]) {}
  // Finds the kernels behind the library's. Returns false if the backend's image lacks one.
  bool Init() { return activation_.Init(task_.conv.type) && bias_.Init(task_.conv.type); }
  uint32_t args_bytes() const override { return sizeof(Bound); }
  uint64_t workspace_bytes() const override { return task_.workspace(plan_.workspace); }
  uint64_t prepack_bytes(int input) const override {
    return input == task_.conv.w && task_.packing.Moves() ? task_.packing.bytes() : 0;
  }
  std::string prepack_form(int) const override { return task_.packing.Form(); }
  Result Prepack(int, const void* from, void* to) override { return task_.packing.OnHost(from, to); }
  Result PrepackOn(int, mge_queue* queue, const void* from, void* to) override {
    return task_.packing.OnQueue(queue, from, to);
  }
  Result Bind(const Binding& binding, void* args, StepFn* step) override {
    const Convolution& conv = task_.conv;
    auto in = [&](int operand) { return operand >= 0 ? binding.input(operand) : binding.output(0); };
    new (args) Bound{this, binding.workspace(), in(conv.x), in(conv.w), in(conv.residual), in(conv.bias), in(conv.y)};
    *step = StepFn::Of<Run>();
    return {};
  }

 private:
  struct Bound {
    const ConvolutionKernel* kernel;
    Slot workspace, x, w, residual, bias, y;
  };
  static mge_code Run(const Bound& bound, const mge_run* run) {
    const ConvolutionKernel& k = *bound.kernel;
    void* bias = At<void>(run, bound.bias);
    if (k.task_.zero_bias) {
      bias = At<char>(run, bound.workspace) + k.task_.bias_offset(k.plan_.workspace);
      if (const mge_code code = gpu::EnqueueFill(run, bias, 0, k.task_.bias_bytes()); code != MGE_OK) return code;
    }
    if (Result r = k.Convolve(bound, bias, run); !r.ok()) return Report(run->error, r.code(), r.text());
    const gpu::ConvArgs& args = k.task_.conv.args;
    const int64_t pixels = k.task_.conv.pixels();
    void* const y = At<void>(run, bound.y);
    if (k.task_.shape.transposed() && k.task_.conv.bias >= 0) {
      return k.task_.shape.channels_last ? k.bias_.Run(run, y, bias, args.images * pixels, args.outputs, 1)
                                         : k.bias_.Run(run, y, bias, args.images, args.outputs, pixels);
    }
    return k.activation_.Run(run, y, y, args.images * args.outputs * pixels, k.task_.activation);
  }

  Result Convolve(const Bound& bound, void* bias, const mge_run* run) const {
    std::array<int64_t, 5> ids = {kX, kW, kY};
    std::array<void*, 5> operands = {At<void>(run, bound.x), At<void>(run, bound.w), At<void>(run, bound.y)};
    size_t count = 3;
    auto add = [&](int64_t id, void* operand) {
      ids[count] = id;
      operands[count++] = operand;
    };
    if (task_.shape.residual) add(kResidual, At<void>(run, bound.residual));
    if (task_.shape.bias) add(kBias, bias);
    void* const workspace = plan_.workspace ? At<void>(run, bound.workspace) : nullptr;
    return QueueOf<gpu::Queue>(run).Enqueue([&](void* stream) {
      return library_.Execute(plan_.plan, {ids.data(), count}, {operands.data(), count}, workspace, stream);
    });
  }

  CudnnDevice& library_;
  const Task task_;
  const CudnnDevice::Plans plans_;
  const ReadyPlan& plan_;  // one of them
  gpu::ActivationEpilogue activation_;
  gpu::BiasEpilogue bias_;
};

// Returns the names of the plans: those that compute with less precision than the type have their own.
std::vector<std::string> NamesOf(const std::vector<ReadyPlan>& plans) {
  std::vector<std::string> names;
  int exact = 0, reduced = 0;
  for (const ReadyPlan& plan : plans) {
    const bool is_reduced = plan.attributes & MGE_KERNEL_REDUCED_PRECISION;
    names.push_back((is_reduced ? "cuda.cudnn.reduced." : "cuda.cudnn.") + std::to_string(is_reduced ? reduced++ : exact++));
  }
  return names;
}

// The number of a candidate: that of its plan, and its layout.
constexpr uint64_t kLayoutBit = 16;
gpu::Layout LayoutOf(const Candidate& c) { return static_cast<gpu::Layout>(c.variant >> kLayoutBit); }
size_t PlanOf(const Candidate& c) { return c.variant & ((uint64_t{1} << kLayoutBit) - 1); }

template <Result (*DescribeTask)(const Problem&, gpu::Layout, Task*)>
struct ConvolutionRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!p.is_static() || p.adds(0) || HasOwnMeaning(p.node())) return;  // the row of plugins/gpu says why
    for (const gpu::Layout layout : gpu::LayoutsOf(p.node().output(0).rank())) {
      if (Result r = OfferIn(p, layout, offers); !r.ok()) offers.Refuse(r.text());
    }
  }
  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Task task;
    if (!DescribeTask(p, LayoutOf(c), &task).ok()) return nullptr;
    auto& device = p.device<Device>();
    CudnnDevice::Plans plans;
    if (!device.cudnn.PlansOf(device, task.shape, &plans).ok() || PlanOf(c) >= plans->size()) return nullptr;
    auto kernel = std::make_unique<ConvolutionKernel>(device.cudnn, task, std::move(plans), PlanOf(c));
    return kernel->Init() ? std::move(kernel) : nullptr;
  }

 private:
  static Result OfferIn(const Problem& p, gpu::Layout layout, Offers& offers) {
    Task task;
    if (Result r = DescribeTask(p, layout, &task); !r.ok()) return r;
    auto& device = p.device<Device>();
    CudnnDevice::Plans plans;
    if (Result r = device.cudnn.PlansOf(device, task.shape, &plans); !r.ok()) return r;
    const std::vector<std::string> names = NamesOf(*plans);
    for (size_t i = 0; i < plans->size(); ++i) {
      const ReadyPlan& plan = (*plans)[i];
      const bool tensor_cores = plan.attributes & MGE_KERNEL_TENSOR_CORE;
      const int32_t first = !task.shape.channels_last ? kPlainTensors : tensor_cores ? kTensorCoresLast : kOthersLast;
      Candidate c = {.id = names[i],
                     .rank = first + static_cast<int32_t>(i),
                     .attributes = plan.attributes,
                     .workspace = task.workspace(plan.workspace),
                     .variant = static_cast<uint64_t>(layout) << kLayoutBit | i};
      if (gpu::SetLayout(p, layout, {task.conv.x, task.conv.residual}, &c)) offers.Add(c);
    }
    return {};
  }
};

constexpr KernelRow kRows[] = {Row<ConvolutionRow<Describe>>("Conv"),
                               Row<ConvolutionRow<DescribeTransposed>>("ConvTranspose"),
                               Row<ConvolutionRow<DescribeFilterGradient>>("ConvWeightGradient", "mge")};

}  // namespace

MGE_KERNELS(convolutions) = kRows;

}  // namespace mge::cuda
