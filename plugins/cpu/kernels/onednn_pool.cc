// SPDX-License-Identifier: Apache-2.0
// oneDNN's pooling, offered beside our own kernels.
#include <string>

#include "mge/plugin/problems/window.hpp"
#include "support/gemm.h"
#include "support/kernel.h"
#include "support/onednn_kernel.h"

namespace mge::cpu {
namespace {

Result Describe(const Node& n, onednn::Pooling* out) {
  Value x = n.input(0);
  if (x.rank() != 4 || x.dtype() != MGE_DTYPE_F32) return {MGE_UNIMPLEMENTED, "only images of float32"};
  if (x.is_constant()) return {MGE_UNIMPLEMENTED, "the image is a constant, which is always plain"};
  WindowAxis window[3];
  if (Result r = ReadWindow(n, window); !r.ok()) return r;
  const WindowAxis &v = window[1], &h = window[2];
  bool with_pads = n.Int("count_include_pad") != 0;
  for (const WindowAxis& a : window) {
    int64_t over = (a.out - 1) * a.stride - a.pad_begin + (a.kernel - 1) * a.dilation + 1 - a.in;
    if (a.pad_begin >= a.kernel || over >= a.kernel) return {MGE_UNIMPLEMENTED, "a pad as large as the window"};
    if (with_pads && over > a.pad_end) return {MGE_UNIMPLEMENTED, "a window beyond the pads that count"};
  }
  if (n.op() != "MaxPool") out->kind = with_pads ? onednn::PoolKind::kAverageWithPads : onednn::PoolKind::kAverage;
  out->images = x.dim(0);
  out->channels = x.dim(1);
  out->windows = {v.in,     h.in,        x.dim(1),    x.dim(1),   v.kernel,   h.kernel, v.stride,
                  h.stride, v.pad_begin, h.pad_begin, v.dilation, h.dilation, v.out,    h.out};
  return {};
}

double SerialUs(const Problem& p, const onednn::Pooling& pool) {
  double taps = static_cast<double>(p.output(0).elements() * static_cast<uint64_t>(pool.windows.kh * pool.windows.kw));
  return 0.5 * StreamUs(static_cast<double>(p.input(0).bytes() + p.output(0).bytes())) + 7e-5 * taps;
}

OnednnCut CutOf(const onednn::Pooling& pool) {
  return [&pool](int64_t ways, std::vector<OnednnSlice>* slices) {
    auto describe = [&](const onednn::Band& band, onednn::PrimitivePtr* out) {
      return onednn::DescribePooling(pool, band, out);
    };
    return OnednnImages{pool.images, pool.channels, pool.channels, pool.windows}.Cut(ways, describe, slices);
  };
}

OnednnChoice ChoiceOf(const Problem& p, const onednn::Pooling& pool) {
  const ConvWindows& w = pool.windows;
  return ChooseOnednn({'P', static_cast<int64_t>(pool.kind), pool.images, pool.channels, w.h, w.w, w.kh, w.kw, w.sh, w.sw,
                       w.ph, w.pw, w.dh, w.dw, w.oh, w.ow},
                      WaysOf(p, SerialUs(p, pool)), CutOf(pool));
}

struct OnednnPoolRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Node n = p.node();
    if (n.has_output(1)) return offers.Refuse("oneDNN: does not give ONNX's indices");
    onednn::Pooling pool;
    if (Result r = Describe(n, &pool); !r.ok()) return offers.Refuse("oneDNN: " + r.text());
    double us = SerialUs(p, pool);
    if (!OnednnUsable(offers, us)) return;
    OnednnChoice choice = ChoiceOf(p, pool);
    if (choice.ways == 0) return offers.Refuse(choice.reason);
    Add(offers, AllowedIsa(),
        {.id = "onednn.pool." + choice.code,
         .rank = kOnednnRank,
         .attributes = kOnednnAttributes,
         .workspace = choice.workspace,
         .cost_us = OnednnCostUs(us, choice),
         .inputs = {ChannelsLast(4)},
         .outputs = {ChannelsLast(4)}});
  }

  static KernelPtr Make(const Problem& p, const Candidate& candidate) {
    onednn::Pooling pool;
    if (!Describe(p.node(), &pool).ok()) return nullptr;
    return MakeOnednnKernel({.x = 0, .y_bytes = p.output(0).bytes()}, ChoiceOf(p, pool), CutOf(pool), candidate);
  }
};

constexpr KernelRow kRows[] = {Row<OnednnPoolRow>("MaxPool"), Row<OnednnPoolRow>("AveragePool")};

}  // namespace

MGE_KERNELS(onednn_pool) = kRows;

}  // namespace mge::cpu
