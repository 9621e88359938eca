// SPDX-License-Identifier: Apache-2.0
// The gradients of a Conv by oneDNN. Each thread computes whole images.
#include <algorithm>
#include <array>
#include <string>

#include "onednn.h"
#include "support/gemm.h"
#include "support/kernel.h"
#include "support/onednn_kernel.h"

namespace mge::cpu {
namespace {

using onednn::ConvGradient;

// The operands of a gradient, by their places in the convolution.
struct Operands {
  Value x, weights, y;
  int reads[2];  // numbers of the inputs that are read: x or the weights, and y
};

Operands OperandsOf(const Problem& p, ConvGradient gradient) {
  const Node n = p.node();
  if (gradient == ConvGradient::kInput) return {n.output(0), n.input(1), n.input(0), {p.operand(0, 1), p.operand(0, 0)}};
  return {n.input(0), n.output(0), n.input(1), {p.operand(0, 0), p.operand(0, 1)}};
}

Result Find(const Problem& p, ConvGradient gradient, Convolution* out) {
  const Node n = p.node();
  for (int i = 0; i < 3; ++i) {
    if (n.input(i).dtype() != MGE_DTYPE_F32) return {MGE_UNIMPLEMENTED, "only float32"};
  }
  const Operands on = OperandsOf(p, gradient);
  if (Result r = ReadConvolution(n, on.x, on.weights, on.y, out); !r.ok()) return r;
  if (out->volume()) return {MGE_UNIMPLEMENTED, "only images"};
  if (out->images < static_cast<int64_t>(p.threads())) return {MGE_UNIMPLEMENTED, "fewer images than threads"};
  if (on.y.is_constant() || (gradient == ConvGradient::kWeights && on.x.is_constant())) {
    return {MGE_UNIMPLEMENTED, "a constant image, which is always plain"};
  }
  return {};
}

OnednnCut CutOf(const Convolution& c, ConvGradient gradient) {
  return [&c, gradient](int64_t ways, std::vector<OnednnSlice>* slices) -> Result {
    const int64_t parts = std::min(ways, c.images);
    const auto x_image = static_cast<uint64_t>(c.in_pixels() * c.channels) * sizeof(float);
    const auto y_image = static_cast<uint64_t>(c.out_pixels() * c.outputs) * sizeof(float);
    onednn::PrimitivePtr made[2];  // for two numbers of images
    for (int64_t i = 0; i < parts; ++i) {
      const int64_t first = c.images * i / parts, count = c.images * (i + 1) / parts - first;
      onednn::PrimitivePtr& primitive = made[count - c.images / parts];
      if (!primitive) {
        if (Result r = onednn::DescribeGradient(c, count, gradient, &primitive); !r.ok()) return r;
      }
      const auto at = static_cast<uint64_t>(first);
      slices->push_back({.primitive = primitive, .x = at * x_image, .y = at * y_image, .work = count});
      // The slices of one gradient are added, or read the same filter.
      if (!primitive->PacksAs(*slices->front().primitive)) return {MGE_UNIMPLEMENTED, "oneDNN: different forms of a filter"};
    }
    return {};
  };
}

OnednnChoice ChoiceOf(const Problem& p, const Convolution& c, ConvGradient gradient) {
  const ConvWindows& w = c.windows;
  OnednnWays ways = WaysOf(p, OnednnConvUs(c));
  if (gradient == ConvGradient::kWeights) ways.most = ways.threads;  // each slice writes a whole gradient
  return ChooseOnednn({'G', static_cast<int64_t>(gradient), c.images, c.channels, c.outputs, c.groups, w.h, w.w, w.kh, w.kw,
                       w.sh, w.sw, w.ph, w.pw, w.dh, w.dw, w.oh, w.ow},
                      ways, CutOf(c, gradient));
}

uint64_t Aligned(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

struct Args {
  const std::vector<OnednnSlice>* slices;
  Slot x, weights, y, workspace;
  uint64_t packed_bytes;  // of one slice's gradient in the workspace
  uint32_t state;
};

mge_code LaunchInput(const Args& a, const mge_run* run) {
  char* x = At<char>(run, a.x);
  char* y = At<char>(run, a.y);
  char* workspace = At<char>(run, a.workspace);
  const char* weights = At<char>(run, a.weights);
  return static_cast<OnednnState*>(run->states[a.state])->Run(run, [&](const OnednnSlice& s, uint64_t) {
    return onednn::Operands{x + s.x, weights, nullptr, y + s.y, workspace + s.scratch};
  });
}

// Each slice writes a packed gradient to the workspace. Their sum is unpacked.
mge_code LaunchWeights(const Args& a, const mge_run* run) {
  const std::vector<OnednnSlice>& slices = *a.slices;
  char* x = At<char>(run, a.x);
  char* y = At<char>(run, a.y);
  char* workspace = At<char>(run, a.workspace);
  const mge_code code = static_cast<OnednnState*>(run->states[a.state])->Run(run, [&](const OnednnSlice& s, uint64_t) {
    return onednn::Operands{x + s.x, workspace + s.weights, nullptr, y + s.y, workspace + s.scratch};
  });
  if (code != MGE_OK) return code;
  const uint64_t floats = a.packed_bytes / sizeof(float), part = (floats / slices.size() + 16) / 16 * 16;
  if (slices.size() > 1) {
    auto* sum = reinterpret_cast<float*>(workspace + slices[0].weights);
    ParallelFor(run, slices.size(), [&](uint64_t i) {
      const uint64_t begin = std::min(floats, i * part), end = std::min(floats, begin + part);
      for (size_t k = 1; k < slices.size(); ++k) {
        auto* more = reinterpret_cast<const float*>(workspace + slices[k].weights);
        for (uint64_t at = begin; at < end; ++at) sum[at] += more[at];
      }
    });
  }
  const Result r = slices[0].primitive->Unpack(workspace + slices[0].weights, At<char>(run, a.weights));
  return r.ok() ? MGE_OK : Report(run->error, r.code(), r.text());
}

class GradientKernel : public Kernel {
 public:
  GradientKernel(const Problem& p, ConvGradient gradient, std::vector<OnednnSlice> slices)
      : gradient_(gradient), slices_(std::move(slices)), packed_(slices_[0].primitive->packed_bytes()) {
    const Operands on = OperandsOf(p, gradient);
    other_ = on.reads[0];
    y_ = on.reads[1];
    for (OnednnSlice& s : slices_) {
      s.scratch = workspace_;
      workspace_ += Aligned(s.primitive->scratch_bytes());
      if (gradient == ConvGradient::kInput) continue;
      s.weights = workspace_;
      workspace_ += Aligned(packed_);
    }
  }
  uint32_t args_bytes() const override { return sizeof(Args); }
  uint64_t workspace_bytes() const override { return workspace_; }
  uint64_t prepack_bytes(int input) const override {
    return gradient_ == ConvGradient::kInput && input == other_ ? Aligned(packed_) : 0;
  }
  Result Prepack(int, const void* source, void* destination) override {
    return slices_[0].primitive->Pack(source, destination);
  }
  std::string prepack_form(int) const override { return slices_[0].primitive->packed_form(); }
  bool has_state() const override { return true; }
  Result CreateState(void** out) override {
    auto state = std::make_unique<OnednnState>(slices_);
    if (Result r = state->Init(); !r.ok()) return r;
    *out = state.release();
    return {};
  }
  void DestroyState(void* p) override { delete static_cast<OnednnState*>(p); }
  Result Bind(const Binding& b, void* args, StepFn* step) override {
    const bool input = gradient_ == ConvGradient::kInput;
    new (args) Args{&slices_,
                    input ? b.output(0) : b.input(other_),
                    input ? b.input(other_) : b.output(0),
                    b.input(y_),
                    b.workspace(),
                    packed_,
                    b.state_index()};
    *step = input ? StepFn::Of<LaunchInput>() : StepFn::Of<LaunchWeights>();
    return {};
  }

 private:
  const ConvGradient gradient_;
  std::vector<OnednnSlice> slices_;
  const uint64_t packed_;
  uint64_t workspace_ = 0;
  int other_ = -1, y_ = -1;
};

template <ConvGradient kGradient>
struct GradientRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    constexpr bool input = kGradient == ConvGradient::kInput;
    Convolution c;
    if (Result r = Find(p, kGradient, &c); !r.ok()) return offers.Refuse("oneDNN: " + r.text());
    const Value filter = p.node().input(input ? 1 : 2);
    if (input && !filter.is_constant() && !filter.is_state()) {
      return offers.Refuse("oneDNN: only filters that are constants or states");
    }
    const double us = OnednnConvUs(c);
    if (!OnednnUsable(offers, us)) return;
    const OnednnChoice choice = ChoiceOf(p, c, kGradient);
    if (choice.ways == 0) return offers.Refuse(choice.reason);
    // Scratch memory, and each slice's gradient, which may be larger than the filter: channels are filled up.
    uint64_t workspace = choice.workspace;
    std::vector<OnednnSlice> slices;
    if (!input && CutOf(c, kGradient)(choice.ways, &slices).ok()) {
      for (const OnednnSlice& s : slices) workspace += Aligned(s.primitive->packed_bytes());
    }
    Candidate candidate = {.id = (input ? "onednn.conv_input_gradient." : "onednn.conv_weight_gradient.") + choice.code,
                           .rank = kOnednnRank,
                           .attributes = kOnednnAttributes,
                           .workspace = workspace,
                           .cost_us = OnednnCostUs(us, choice) + (filter.is_constant() ? 0 : OnednnPackUs(filter))};
    const mge_layout last = ChannelsLast(c.rank);
    candidate.inputs.assign(static_cast<size_t>(p.input_count()), PlainLayout());
    for (int i : input ? std::array{0, 2} : std::array{0, 1}) {  // X of an input's gradient is not read: no reorder of it
      const int at = p.operand(0, i);
      if (!p.input(at).is_constant()) candidate.inputs[static_cast<size_t>(at)] = last;
    }
    candidate.outputs = {input ? last : PlainLayout()};
    Add(offers, AllowedIsa(), std::move(candidate));
  }

  static KernelPtr Make(const Problem& p, const Candidate& candidate) {
    Convolution c;
    if (!Find(p, kGradient, &c).ok()) return nullptr;
    const OnednnChoice choice = ChoiceOf(p, c, kGradient);
    std::vector<OnednnSlice> slices;
    if (choice.ways == 0 || !CutOf(c, kGradient)(choice.ways, &slices).ok()) return nullptr;
    for (const OnednnSlice& s : slices) {
      if (!s.primitive->Compile().ok()) return nullptr;
    }
    auto kernel = std::make_unique<GradientKernel>(p, kGradient, std::move(slices));
    if (kernel->workspace_bytes() > candidate.workspace) return nullptr;
    return kernel;
  }
};

constexpr KernelRow kRows[] = {Row<GradientRow<ConvGradient::kInput>>("ConvInputGradient", "mge"),
                               Row<GradientRow<ConvGradient::kWeights>>("ConvWeightGradient", "mge")};

}  // namespace

MGE_KERNELS(onednn_gradient) = kRows;

}  // namespace mge::cpu
