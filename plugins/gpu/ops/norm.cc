// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax, and the normalisations.
#include "plugins/gpu/kernels/norm.h"

#include <algorithm>

#include "mge/plugin/problems/normalization.hpp"
#include "plugins/gpu/support/moves.h"

namespace mge::gpu {
namespace {

// Adds the kernel for `rows` dense rows of n elements: one whose rows fit into the registers of a warp or of a block, or if they
// do not, or are not dense, the kernel `longer`.
template <typename Args>
void AddRows(Recipe& recipe, const std::string& name, const std::string& longer, bool dense, mge_dtype type,
             const Args& args, std::initializer_list<Operand> operands) {
  const int64_t bytes = dense ? args.n * static_cast<int64_t>(ElementBytes(type)) : INT64_MAX;
  constexpr int64_t kRowsOfABlock = kRowThreads / 32;
  if (bytes <= kWarpRowBytes) {
    recipe.Add(KernelFor(name + "_warp", type), Rows((args.rows + kRowsOfABlock - 1) / kRowsOfABlock), args, operands);
  } else {
    recipe.Add(KernelFor(bytes <= kBlockRowBytes ? name + "_row" : longer, type), Rows(args.rows), args, operands);
  }
}

// ---------------------------------------------------------------- softmax

Result Softmax(const Problem& p, Layout layout, Recipe& recipe) {
  Node n = p.node();
  Value x = n.input(0);
  if (!IsFloating(x.dtype())) return Refusal("only floating types");
  int64_t axis = n.Int("axis");
  if (x.elements() == 0) return {};
  Extent e = ExtentOf(x, axis, layout);
  SoftmaxArgs args = {nullptr, nullptr, e.outer * e.inner, e.n, e.inner, n.op() == "LogSoftmax", 0};
  const Operand in = Operand::In(InputOf(p, 0)), out = Operand::Out();
  const bool dense = e.inner == 1;
  if (e.n < (dense ? 32 : 64)) {  // most threads of a warp or of a block would be idle
    recipe.Add(KernelFor("softmax_thread", x.dtype()), Spread(args.rows), args, {in, out});
  } else {
    AddRows(recipe, "softmax", "softmax_block", dense, x.dtype(), args, {in, out});
  }
  return {};
}

// ---------------------------------------------------------------- rows

Operand Optional(const Problem& p, int k) { return p.node().has_input(k) ? Operand::In(InputOf(p, k)) : Operand::Null(); }

Result RowNorm(const Problem& p, Layout layout, Recipe& recipe) {
  Node n = p.node();
  Value x = n.input(0);
  if (!IsFloating(x.dtype())) return Refusal("only floating types");
  Normalization norm;
  if (Result r = ReadNormalization(n, &norm); !r.ok()) return Refusal(r.text());
  NormArgs args = {};
  args.epsilon = norm.epsilon;
  args.centred = norm.centred;
  args.rows = norm.rows;
  args.n = norm.n;
  args.groups = norm.groups;
  args.channel_elements = norm.channel_elements;
  const bool of_channels = n.op() == "InstanceNormalization" || n.op() == "GroupNormalization";
  if (of_channels) args.group_channels = norm.group_channels();
  if (layout != Layout::kPlain) {
    if (!of_channels) return Refusal("rows of plain memory only");
    if (args.n > INT32_MAX) return Refusal("more than 2^31 - 1 elements of a group");
    args.channels = norm.channels;
  }
  if (args.rows == 0 || args.n == 0) return {};
  auto output = [&](int k) { return n.has_output(k) ? Operand::Out(OutputOf(p, k)) : Operand::Null(); };
  const bool dense = args.channels == 0 && args.groups.value == 1 && args.channel_elements.value == 1;
  AddRows(recipe, "norm", "norm", dense, x.dtype(), args,
          {Operand::In(InputOf(p, 0)), Optional(p, 1), Optional(p, 2), output(0), output(1), output(2)});
  return {};
}

// ---------------------------------------------------------------- channels

Result BatchNorm(const Problem& p, Layout layout, Recipe& recipe) {
  Node n = p.node();
  Value x = n.input(0);
  if (n.Int("training_mode")) return Refusal("not for training");
  if (!IsFloating(x.dtype()) || x.rank() < 2) return Refusal("only floating types with a channel dimension");
  if (Result r = CheckParameters(n, 1, 4, x.dim(1)); !r.ok()) return Refusal(r.text());
  auto elements = static_cast<int64_t>(x.elements());
  if (elements == 0) return {};
  recipe.Add(KernelFor("batch_norm", x.dtype()), Spread(elements),
             BatchNormArgs{nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, elements, x.dim(1),
                           ExtentOf(x, 1, layout).inner, n.Float("epsilon")},
             {Operand::In(InputOf(p, 0)), Optional(p, 1), Optional(p, 2), Optional(p, 3), Optional(p, 4), Operand::Out()});
  return {};
}

Result Lrn(const Problem& p, Layout layout, Recipe& recipe) {
  Node n = p.node();
  Value x = n.input(0);
  if (!IsFloating(x.dtype()) || x.rank() < 2) return Refusal("only floating types with a channel dimension");
  if (n.Int("size") < 1) return Refusal("the size is not positive");
  auto elements = static_cast<int64_t>(x.elements());
  if (elements == 0) return {};
  recipe.Add(KernelFor("lrn", x.dtype()), Spread(elements),
             LrnArgs{nullptr, nullptr, elements, x.dim(1), ExtentOf(x, 1, layout).inner, n.Int("size"), n.Float("alpha"),
                     n.Float("beta"), n.Float("bias")},
             {Operand::In(InputOf(p, 0)), Operand::Out()});
  return {};
}

enum Place { kApart, kInPlace };

// Returns how many times as many bytes a kernel moves as it needs: with the channels last, a row has a few neighbouring
// channels of each pixel, and memory is read by sectors.
double SectorsOf(const Node& n, Layout layout) {
  constexpr double kSector = 32;
  if (layout == Layout::kPlain || (n.op() != "InstanceNormalization" && n.op() != "GroupNormalization")) return 1;
  const double groups = n.op() == "GroupNormalization" ? static_cast<double>(n.Int("num_groups")) : 1e9;
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
