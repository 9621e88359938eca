// SPDX-License-Identifier: Apache-2.0
// Convolutions by MIOpen in its immediate mode: the library lists solutions, and a solution is compiled when its kernel is
// made. A solution computes the convolution only: kernels of plugins/gpu add bias and residual behind it, and compute the
// activation.
#include "convolutions.h"

#include <algorithm>
#include <climits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device.h"
#include "plugins/gpu/runtime/queue.h"
#include "plugins/gpu/support/convolution.h"
#include "plugins/gpu/support/layout.h"
#include "plugins/gpu/support/library_epilogue.h"
#include "plugins/gpu/support/row.h"

namespace mge::rocm {
namespace {

using gpu::Convolution;
using gpu::Refusal;

constexpr int32_t kBestRank = -100;  // before the kernels of plugins/gpu
constexpr uint64_t kOrdinary =
    MGE_KERNEL_CAPTURE_SAFE | MGE_KERNEL_READS_ARGS_FIRST | MGE_KERNEL_COMPILES | MGE_KERNEL_ALLOCATES;

bool FindType(mge_dtype type, int* out) {
  switch (type) {
    case MGE_DTYPE_F32: return *out = kMiopenFloat, true;
    case MGE_DTYPE_F16: return *out = kMiopenHalf, true;
    case MGE_DTYPE_BF16: return *out = kMiopenBfloat16, true;
    default: return false;
  }
}

// A problem as a convolution of the library.
struct Task {
  Convolution conv;
  MiopenShape shape;
  gpu::Packing packing;  // of the filter, with the channels last
};

// Copies sizes from the convolution. Refuses what the library does not compute.
Result DescribeSizes(const Convolution& conv, MiopenShape* shape) {
  const bool transposed = shape->mode == kMiopenTransposed;
  const gpu::ConvArgs& args = conv.args;
  if (!FindType(conv.type, &shape->type)) return Refusal("MIOpen: the type");
  for (const int64_t elements : {args.images * args.channels * args.axis[0].in * args.axis[1].in * args.axis[2].in,
                                 args.outputs * conv.depth(), args.images * args.outputs * conv.pixels()}) {
    if (elements < 1 || elements > INT_MAX) return Refusal("MIOpen: a tensor without elements or with more than 2^31 - 1");
  }
  const auto number = [](int64_t n) { return static_cast<int>(n); };
  shape->groups = number(args.groups);
  shape->x = {number(args.images), number(args.channels)};
  shape->w = {number(transposed ? args.channels : args.outputs),
              number((transposed ? args.outputs : args.channels) / args.groups)};
  shape->y = {number(args.images), number(args.outputs)};
  const gpu::WindowAxis& depth = args.axis[0];
  const bool flat = depth.in == 1 && depth.kernel == 1 && depth.out == 1 && depth.pad_begin == 0;
  for (size_t d = flat ? 1 : 0; d < std::size(args.axis); ++d) {
    const gpu::WindowAxis& a = args.axis[d];
    const int64_t wide = transposed ? a.out : a.in, narrow = transposed ? a.in : a.out;
    const int64_t room = wide + 2 * a.pad_begin - (a.kernel - 1) * a.dilation - 1;
    if (a.pad_begin < 0 || room < 0 || room / a.stride + 1 != narrow) {
      return Refusal("MIOpen: the pads of both ends of an axis differ");
    }
    shape->x.push_back(number(a.in));
    shape->w.push_back(number(a.kernel));
    shape->y.push_back(number(a.out));
    shape->pads.push_back(number(a.pad_begin));
    shape->strides.push_back(number(a.stride));
    shape->dilations.push_back(number(a.dilation));
  }
  return {};
}

// Describe the problem. Refuse what the library does not compute.
Result DescribeConv(const Problem& p, gpu::Layout layout, Task* task) {
  Convolution* const conv = &task->conv;
  if (Result r = gpu::FindConvolution(p, conv); !r.ok()) return r;
  task->shape.channels_last = layout == gpu::Layout::kChannelsLast;
  if (Result r = DescribeSizes(*conv, &task->shape); !r.ok() || !task->shape.channels_last) return r;
  task->packing = conv->FilterPacking();
  const bool one_use = conv->w != conv->x && conv->w != conv->residual && conv->w != conv->bias;
  if (!task->packing.Moves() || (one_use && p.input(conv->w).is_constant())) return {};
  return Refusal("MIOpen: with the channels last, a filter that is no constant");
}

Result DescribeTransposed(const Problem& p, gpu::Layout layout, Task* task) {
  if (layout != gpu::Layout::kPlain) return Refusal("MIOpen: a transposed convolution with the channels last");
  if (p.node_count() != 1) return Refusal("MIOpen: a group of nodes");
  if (Result r = gpu::FindTransposed(p, &task->conv); !r.ok()) return r;
  task->shape.mode = kMiopenTransposed;
  return DescribeSizes(task->conv, &task->shape);
}

uint64_t AttributesOf(const MiopenDevice::Offer& offer, mge_dtype type) {
  uint64_t out = kOrdinary;
  if (offer.deterministic) out |= MGE_KERNEL_DETERMINISTIC;
  if (offer.solution.algorithm == kMiopenWinograd) out |= MGE_KERNEL_WINOGRAD;
  if (offer.solution.algorithm == kMiopenFft) out |= MGE_KERNEL_FFT;
  if (type != MGE_DTYPE_F32) out |= MGE_KERNEL_TENSOR_CORE;
  return out;
}

class ConvolutionKernel : public Kernel {
 public:
  ConvolutionKernel(Device& device, const Task& task, const MiopenSolution& solution)
      : device_(device), task_(task), solution_(solution), convolution_(device.miopen.library()) {}
  // Compiles the solution, and finds the kernels behind it. Returns false if that fails.
  bool Init(bool deterministic) {
    if (!convolution_.Describe(task_.shape, deterministic).ok() || !activation_.Init(conv_.type) || !add_.Init(conv_.type))
      return false;
    const Result compiled = device_.With([&] {
      return device_.miopen.Use(nullptr, [&](const Miopen& library, void* handle) {
        return library.ResultOf(convolution_.Call(library.compile, handle, solution_.id),
                                "miopenConvolutionForwardCompileSolution");
      });
    });
    return compiled.ok();
  }
  uint32_t args_bytes() const override { return sizeof(Bound); }
  uint64_t workspace_bytes() const override { return solution_.workspace_bytes; }
  uint64_t prepack_bytes(int input) const override {
    return input == conv_.w && task_.packing.Moves() ? task_.packing.bytes() : 0;
  }
  std::string prepack_form(int) const override { return task_.packing.Form(); }
  Result Prepack(int, const void* from, void* to) override { return task_.packing.OnHost(from, to); }
  Result PrepackOn(int, mge_queue* queue, const void* from, void* to) override {
    return task_.packing.OnQueue(queue, from, to);
  }
  Result Bind(const Binding& binding, void* args, StepFn* step) override {
    const Slot y = binding.output(0);
    auto in = [&](int operand) { return operand >= 0 ? binding.input(operand) : y; };
    new (args) Bound{this, binding.workspace(), in(conv_.x), in(conv_.w), in(conv_.residual), in(conv_.bias), y};
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
    if (Result r = k.Convolve(bound, run); !r.ok()) return Report(run->error, r.code(), r.text());
    void* const y = At<void>(run, bound.y);
    const gpu::ConvArgs& args = k.conv_.args;
    const int64_t elements = args.images * args.outputs * k.conv_.pixels();
    if (k.conv_.bias >= 0) {
      const int64_t pixels = k.conv_.pixels();
      const void* const bias = At<void>(run, bound.bias);
      const mge_code code = k.task_.shape.channels_last ? k.add_.Run(run, y, bias, args.images * pixels, args.outputs, 1)
                                                        : k.add_.Run(run, y, bias, args.images, args.outputs, pixels);
      if (code != MGE_OK) return code;
    }
    if (k.conv_.residual >= 0) {
      const mge_code code = k.add_.Run(run, y, At<void>(run, bound.residual), 1, elements, 1);
      if (code != MGE_OK) return code;
    }
    return k.activation_.Run(run, y, y, elements, args.activation);
  }

  Result Convolve(const Bound& bound, const mge_run* run) const {
    const uint64_t bytes = solution_.workspace_bytes;
    return QueueOf<gpu::Queue>(run).Enqueue([&](void* stream) {
      return device_.miopen.Use(stream, [&](const Miopen& library, void* handle) {
        const int status = convolution_.Run(handle, At<void>(run, bound.x), At<void>(run, bound.w), At<void>(run, bound.y),
                                            bytes ? At<void>(run, bound.workspace) : nullptr, bytes, solution_.id);
        return library.ResultOf(status, "miopenConvolutionForwardImmediate");
      });
    });
  }

  Device& device_;
  const Task task_;
  const Convolution& conv_ = task_.conv;
  const MiopenSolution solution_;
  MiopenConvolution convolution_;
  gpu::ActivationEpilogue activation_;
  gpu::BiasEpilogue add_;
};

// The number of a candidate: that of its solution, and its layout.
constexpr uint64_t kLayoutBit = 16;
gpu::Layout LayoutOf(const Candidate& c) { return static_cast<gpu::Layout>(c.variant >> kLayoutBit); }
size_t SolutionOf(const Candidate& c) { return c.variant & ((uint64_t{1} << kLayoutBit) - 1); }

template <Result (*Describe)(const Problem&, gpu::Layout, Task*)>
struct ConvolutionRow {
  // Offers the solutions of all layouts in the order of the library's times.
  static void Offer(const Problem& p, Offers& offers) {
    if (!p.is_static() || p.adds(0) || HasOwnMeaning(p.node())) return;  // the row of plugins/gpu says why
    std::vector<std::pair<float, Candidate>> all;
    for (const gpu::Layout layout : gpu::LayoutsOf(p.node().output(0).rank())) {
      if (Result r = FindIn(p, layout, &all); !r.ok()) offers.Refuse(r.text());
    }
    std::ranges::stable_sort(all, {}, [](const auto& c) { return c.first; });
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].second.rank = kBestRank + static_cast<int32_t>(i);
      offers.Add(all[i].second);
    }
  }
  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Task task;
    MiopenDevice::Offers found;
    auto& device = p.device<Device>();
    if (!Describe(p, LayoutOf(c), &task).ok() || !device.miopen.OffersOf(device, task.shape, &found).ok()) return nullptr;
    if (SolutionOf(c) >= found->size()) return nullptr;
    const MiopenDevice::Offer& offer = (*found)[SolutionOf(c)];
    auto kernel = std::make_unique<ConvolutionKernel>(device, task, offer.solution);
    return kernel->Init(offer.deterministic) ? std::move(kernel) : nullptr;
  }

 private:
  // Appends the solutions for a layout with their times.
  static Result FindIn(const Problem& p, gpu::Layout layout, std::vector<std::pair<float, Candidate>>* out) {
    Task task;
    if (Result r = Describe(p, layout, &task); !r.ok()) return r;
    auto& device = p.device<Device>();
    MiopenDevice::Offers found;
    if (Result r = device.miopen.OffersOf(device, task.shape, &found); !r.ok()) return r;
    for (size_t i = 0; i < found->size(); ++i) {
      const MiopenDevice::Offer& offer = (*found)[i];
      Candidate c = {.id = "rocm.miopen." + std::to_string(offer.solution.id),
                     .attributes = AttributesOf(offer, task.conv.type),
                     .workspace = offer.solution.workspace_bytes,
                     .variant = static_cast<uint64_t>(layout) << kLayoutBit | i};
      if (gpu::SetLayout(p, layout, {task.conv.x, task.conv.residual}, &c)) {
        out->emplace_back(offer.solution.time_ms, std::move(c));
      }
    }
    return {};
  }
};

constexpr KernelRow kRows[] = {Row<ConvolutionRow<DescribeConv>>("Conv"),
                               Row<ConvolutionRow<DescribeTransposed>>("ConvTranspose")};

}  // namespace

MGE_KERNELS(convolutions) = kRows;

}  // namespace mge::rocm
