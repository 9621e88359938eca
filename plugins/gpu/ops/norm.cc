// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax, and the normalisations.
#include "plugins/gpu/kernels/norm.h"

#include <algorithm>

#include "plugins/gpu/support/moves.h"

namespace mge::gpu {
namespace {

// ---------------------------------------------------------------- softmax

Result Softmax(const Problem& p, Layout layout, Recipe& recipe) {
  Node n = p.node();
  Value x = n.input(0);
  if (!IsFloating(x.dtype())) return Refusal("only floating types");
  int64_t axis = x.rank() ? AxisOf(n.Int("axis", -1), x.rank()) : 0;
  if (axis < 0) return Refusal("the axis is outside of the rank");
  if (x.elements() == 0) return {};
  Extent e = ExtentOf(x, axis, layout);
  SoftmaxArgs args = {nullptr, nullptr, e.outer * e.inner, e.n, e.inner, n.op() == "LogSoftmax", 0};
  bool alone = e.n < 64;  // most threads of a block would be idle
  recipe.Add(KernelFor(alone ? "softmax_thread" : "softmax_block", x.dtype()), alone ? Spread(args.rows) : Rows(args.rows),
             args, {Operand::In(InputOf(p, 0)), Operand::Out()});
  return {};
}

// ---------------------------------------------------------------- rows

// Checks that inputs first..last have the input's type and `elements` elements.
Result CheckParameters(const Node& n, int first, int last, int64_t elements) {
  for (int k = first; k <= last; ++k) {
    if (!n.has_input(k)) continue;
    if (n.input(k).dtype() != n.input(0).dtype()) return Refusal("parameters of another type");
    if (static_cast<int64_t>(n.input(k).elements()) != elements) return Refusal("parameters of another size");
  }
  return {};
}
Operand Optional(const Problem& p, int k) { return p.node().has_input(k) ? Operand::In(InputOf(p, k)) : Operand::Null(); }

Result RowNorm(const Problem& p, Layout layout, Recipe& recipe) {
  Node n = p.node();
  Value x = n.input(0);
  if (!IsFloating(x.dtype())) return Refusal("only floating types");
  NormArgs args = {};
  args.epsilon = n.Float("epsilon", 1e-5f);
  args.groups = args.channel_elements = 1;
  args.centred = n.op() != "RMSNormalization";
  if (n.op() == "LayerNormalization" || n.op() == "RMSNormalization") {
    if (layout != Layout::kPlain) return Refusal("rows of plain memory only");
    int64_t axis = AxisOf(n.Int("axis", -1), x.rank());
    if (axis < 0) return Refusal("the axis is outside of the rank");
    Extent e = ExtentOf(x, axis);
    args.rows = e.outer;
    args.n = e.n * e.inner;
    if (Result r = CheckParameters(n, 1, 2, args.n); !r.ok()) return r;
  } else {
    if (x.rank() < 2) return Refusal("needs a channel dimension");
    int64_t channels = x.dim(1), groups = n.op() == "GroupNormalization" ? n.Int("num_groups", 0) : channels;
    if (groups <= 0 || channels % groups) return Refusal("the groups do not divide the channels");
    args.groups = groups;
    args.group_channels = channels / groups;
    args.channel_elements = ExtentOf(x, 1).inner;
    args.rows = x.dim(0) * groups;
    args.n = args.group_channels * args.channel_elements;
    if (layout != Layout::kPlain) {
      if (args.n > INT32_MAX) return Refusal("more than 2^31 - 1 elements of a group");
      args.channels = channels;
    }
    if (Result r = CheckParameters(n, 1, 2, channels); !r.ok()) return r;
  }
  mge_dtype statistics = x.dtype() == MGE_DTYPE_F64 ? MGE_DTYPE_F64 : MGE_DTYPE_F32;
  for (int o = 1; o < n.output_count(); ++o) {
    if (n.has_output(o) && n.output(o).dtype() != statistics) return Refusal("statistics in another type");
  }
  if (args.rows == 0 || args.n == 0) return {};
  auto output = [&](int k) { return n.has_output(k) ? Operand::Out(OutputOf(p, k)) : Operand::Null(); };
  recipe.Add(KernelFor("norm", x.dtype()), Rows(args.rows), args,
             {Operand::In(InputOf(p, 0)), Optional(p, 1), Optional(p, 2), output(0), output(1), output(2)});
  return {};
}

// ---------------------------------------------------------------- channels

Result BatchNorm(const Problem& p, Layout layout, Recipe& recipe) {
  Node n = p.node();
  Value x = n.input(0);
  if (n.Int("training_mode", 0)) return Refusal("not for training");
  if (!IsFloating(x.dtype()) || x.rank() < 2) return Refusal("only floating types with a channel dimension");
  if (Result r = CheckParameters(n, 1, 4, x.dim(1)); !r.ok()) return r;
  auto elements = static_cast<int64_t>(x.elements());
  if (elements == 0) return {};
  recipe.Add(KernelFor("batch_norm", x.dtype()), Spread(elements),
             BatchNormArgs{nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, elements, x.dim(1),
                           ExtentOf(x, 1, layout).inner, n.Float("epsilon", 1e-5f)},
             {Operand::In(InputOf(p, 0)), Optional(p, 1), Optional(p, 2), Optional(p, 3), Optional(p, 4), Operand::Out()});
  return {};
}

Result Lrn(const Problem& p, Layout layout, Recipe& recipe) {
  Node n = p.node();
  Value x = n.input(0);
  if (!IsFloating(x.dtype()) || x.rank() < 2) return Refusal("only floating types with a channel dimension");
  if (n.Int("size", 0) < 1) return Refusal("the size is not positive");
  auto elements = static_cast<int64_t>(x.elements());
  if (elements == 0) return {};
  recipe.Add(KernelFor("lrn", x.dtype()), Spread(elements),
             LrnArgs{nullptr, nullptr, elements, x.dim(1), ExtentOf(x, 1, layout).inner, n.Int("size", 1),
                     n.Float("alpha", 1e-4f), n.Float("beta", 0.75f), n.Float("bias", 1.0f)},
             {Operand::In(InputOf(p, 0)), Operand::Out()});
  return {};
}

enum Place { kApart, kInPlace };

// Returns how many times as many bytes a kernel moves as it needs: with the channels last, a row has a few neighbouring
// channels of each pixel, and memory is read by sectors.
double SectorsOf(const Node& n, Layout layout) {
  constexpr double kSector = 32;
  if (layout == Layout::kPlain || (n.op() != "InstanceNormalization" && n.op() != "GroupNormalization")) return 1;
  const double groups = n.op() == "GroupNormalization" ? static_cast<double>(n.Int("num_groups", 1)) : 1e9;
  const double channels = std::max(1.0, static_cast<double>(n.input(0).dim(1)) / groups);
  return std::max(1.0, kSector / (channels * static_cast<double>(ElementBytes(n.input(0).dtype()))));
}

template <auto Build, Place place>
struct NormRow : MoveRow<Build> {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    MoveRow<Build>::OfferEach(p, offers, [&](Layout layout, int) {
      Candidate c = {.id = "gpu.norm",
                     .attributes = kExact,
                     .cost_us = GpuUs(p, 2 * BytesOf(p) * SectorsOf(p.node(), layout),
                                      40.0 * static_cast<double>(p.node().input(0).elements()))};
      if (place == kInPlace && p.output_count() == 1) c.in_place = {{0, static_cast<uint32_t>(InputOf(p, 0))}};
      return c;
    });
  }
};
constexpr KernelRow kRows[] = {Row<NormRow<Softmax, kInPlace>>("Softmax"),
                               Row<NormRow<Softmax, kInPlace>>("LogSoftmax"),
                               Row<NormRow<RowNorm, kInPlace>>("LayerNormalization"),
                               Row<NormRow<RowNorm, kInPlace>>("RMSNormalization"),
                               Row<NormRow<RowNorm, kInPlace>>("InstanceNormalization"),
                               Row<NormRow<RowNorm, kInPlace>>("GroupNormalization"),
                               Row<NormRow<BatchNorm, kInPlace>>("BatchNormalization"),
                               Row<NormRow<Lrn, kApart>>("LRN")};

}  // namespace

MGE_KERNELS(norm) = kRows;

}  // namespace mge::gpu
