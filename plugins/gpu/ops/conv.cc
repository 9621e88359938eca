// SPDX-License-Identifier: Apache-2.0
// Conv over one to three spatial axes, alone or with an epilogue, of plain tensors and with the channels last.
#include "plugins/gpu/support/convolution.h"
#include "plugins/gpu/support/layout.h"
#include "plugins/gpu/support/matrix_units.h"
#include "plugins/gpu/support/moves.h"
#include "plugins/gpu/support/tiles.h"

namespace mge::gpu {
namespace {

enum Kind : uint32_t {
  kProduct,
  kDirect,
  kDepthwise,
  kMatrixUnits,
  kNhwcProduct,
  kNhwcProductSplit,
  kNhwcDirect,
  kNhwcDepthwise,
  kNhwcMatrixUnits
};

// Before the plans of cuDNN, whose engines for depthwise convolutions of plain tensors reach a tenth of the memory's rate
// (9.14 on an H200).
constexpr int32_t kDepthwiseRank = -80;
constexpr int64_t kDepthwiseOutputs = 4;  // of a thread

// The operations, in the units of GpuUs(), that it takes to find and load an element of a window, or several neighbouring
// channels at once.
constexpr double kLoadOperations = 20;

// The work of a product by tiles.
struct TiledWork {
  double products;  // operations; tiles are padded with zeros if a group has few outputs or a short sum
  double loads;     // operations to load the windows
};
// `each`: elements of a window that are loaded at once.
TiledWork WorkOf(const Convolution& conv, int64_t tiles, int64_t each) {
  constexpr double kTile = 64;
  const double lines = static_cast<double>(tiles) * kTile, depth = static_cast<double>((conv.depth() + 15) / 16 * 16);
  return {2 * lines * kTile * depth, lines * depth * kLoadOperations / static_cast<double>(each)};
}

// Returns the number of neighbouring channels that a kernel loads at once, of at most `most`.
int64_t ChannelsAtOnce(const Convolution& conv, int64_t most) {
  const int64_t channels = conv.depthwise() ? conv.args.channels : conv.args.channels / conv.args.groups;
  return channels % most == 0 ? most : 1;
}
int64_t WidestAccess(const Convolution& conv) { return 16 / static_cast<int64_t>(ElementBytes(conv.type)); }

// Returns the number of results.
int64_t ResultsOf(const Convolution& conv) { return conv.args.images * conv.pixels() * conv.args.outputs; }

class ConvOffers {
 public:
  ConvOffers(const Problem& p, const Convolution& conv, Offers& offers) : p_(p), conv_(conv), offers_(offers) {
    const ConvArgs& a = conv.args;
    flops_ = 2.0 * static_cast<double>(a.images * a.outputs * conv.pixels()) * static_cast<double>(conv.depth());
    if (conv.residual >= 0 && conv.residual != conv.x && conv.residual != conv.w && conv.residual != conv.bias) {
      in_place_.push_back({0, static_cast<uint32_t>(conv.residual)});
    }
  }

  void Plain() {
    constexpr Layout kLayout = Layout::kPlain;
    Add({.id = "gpu.conv.direct", .rank = 1, .attributes = kExact, .cost_us = DirectUs(), .variant = kDirect}, kLayout);
    const WindowAxis& depth = conv_.args.axis[0];
    if (depth.in != 1 || depth.kernel != 1 || depth.out != 1 || depth.pad_begin != 0) return;
    if (conv_.depthwise() && FitsNhwc(p_, conv_)) {
      Add({.id = "gpu.conv.depthwise",
           .rank = kDepthwiseRank,
           .attributes = kExact,
           .cost_us = Us(4 * flops_),
           .variant = kDepthwise},
          kLayout);
    }
    const TiledWork work = WorkOf(conv_, conv_.tiles(), 1);
    Add({.id = "gpu.conv.product",
         .attributes = kExact,
         .cost_us = Us(work.products + work.loads) + TilesUs(p_, conv_.tiles(), conv_.depth()),
         .variant = kProduct},
        kLayout);
    AddMatrixUnits(work, kMatrixUnits, kLayout);
  }

  void ChannelsLast() {
    constexpr Layout kLayout = Layout::kChannelsLast;
    if (!FitsNhwc(p_, conv_)) return;
    if (conv_.depthwise()) {
      const auto each = static_cast<double>(ChannelsAtOnce(conv_, WidestAccess(conv_)));
      Add({.id = "gpu.conv.depthwise",
           .attributes = kExact,
           .cost_us = Us(flops_ * (1 + kLoadOperations / each)),
           .variant = kNhwcDepthwise},
          kLayout);
      return;
    }
    Add({.id = "gpu.conv.direct", .rank = 1, .attributes = kExact, .cost_us = DirectUs(), .variant = kNhwcDirect}, kLayout);
    const TiledWork work = WorkOf(conv_, conv_.nhwc_tiles(), ChannelsAtOnce(conv_, 4));
    const int64_t tiles = conv_.nhwc_tiles(), splits = SplitsFor(p_, tiles, conv_.depth());
    Add({.id = "gpu.conv.product",
         .attributes = kExact,
         .cost_us = Us(work.products + work.loads) + TilesUs(p_, tiles, conv_.depth()),
         .variant = kNhwcProduct},
        kLayout);
    if (splits > 1) {
      const uint64_t part_bytes = PartBytes(conv_.type, splits, ResultsOf(conv_));
      Add({.id = "gpu.conv.split_k",
           .attributes = kLaunched | MGE_KERNEL_DETERMINISTIC,
           .workspace = part_bytes,
           .cost_us = GpuUs(p_, BytesOf(p_) + 2.0 * static_cast<double>(part_bytes), work.products + work.loads, 2) +
                      TilesUs(p_, splits * tiles, conv_.depth() / splits),
           .variant = kNhwcProductSplit},
          kLayout);
    }
    AddMatrixUnits(WorkOf(conv_, conv_.nhwc_tiles(), ChannelsAtOnce(conv_, WidestAccess(conv_))), kNhwcMatrixUnits, kLayout);
  }

 private:
  double Us(double operations) const { return GpuUs(p_, BytesOf(p_), operations); }
  // A thread computes an output by itself, and waits for one load after the other.
  double DirectUs() const { return Us(12 * flops_) + 0.1 * static_cast<double>(conv_.depth()); }

  void AddMatrixUnits(const TiledWork& work, Kind kind, Layout layout) {
    if (!HasMatrixUnits(p_, conv_.type)) return;
    Add({.id = conv_.type == MGE_DTYPE_F32 ? "gpu.conv.tf32" : "gpu.conv.mma",
         .rank = -1,
         .attributes = MatrixUnitsAttributes(conv_.type),
         .cost_us = Us(work.products / MatrixUnitsGain(p_, conv_.type) + work.loads),
         .variant = kind},
        layout);
  }

  void Add(Candidate candidate, Layout layout) {
    candidate.in_place = in_place_;
    if (SetLayout(p_, layout, {conv_.x, conv_.residual}, &candidate)) offers_.Add(candidate);
  }

  const Problem& p_;
  const Convolution& conv_;
  Offers& offers_;
  double flops_ = 0;
  std::vector<mge_in_place> in_place_;
};

std::string_view KernelOf(Kind kind) {
  switch (kind) {
    case kProduct: return "conv_product";
    case kDirect: return "conv_direct";
    case kDepthwise: return "conv_depthwise";
    case kMatrixUnits: return "conv_mma";
    case kNhwcProduct: return "conv_nhwc_product";
    case kNhwcProductSplit: return "conv_nhwc_product_part";
    case kNhwcDirect: return "conv_nhwc_direct";
    case kNhwcDepthwise: return "conv_nhwc_depthwise";
    case kNhwcMatrixUnits: return "conv_nhwc_mma";
  }
  return "";
}

// Returns whether the filter is in the order in which the kernel reads it. Packs it for that if it is a constant.
bool PackFilter(const Problem& p, const Convolution& conv, Kind kind, Recipe& recipe) {
  if (kind == kDirect || kind == kDepthwise || kind == kMatrixUnits) return false;
  const ConvArgs& a = conv.args;
  Packing packing = conv.FilterPacking();
  if (kind == kProduct) packing = {a.groups, a.outputs / a.groups, conv.depth(), packing.element_bytes};
  if (kind == kNhwcDepthwise || kind == kNhwcDirect) packing = {1, a.outputs, conv.depth(), packing.element_bytes};
  const bool one_use = conv.w != conv.x && conv.w != conv.bias && conv.w != conv.residual;
  return !packing.Moves() || (one_use && p.input(conv.w).is_constant() && recipe.Pack(conv.w, packing));
}

struct ConvRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers, /*groups=*/true)) return;
    Convolution conv;
    if (Result r = FindConvolution(p, &conv); !r.ok()) return offers.Refuse(r.text());
    ConvOffers own(p, conv, offers);
    own.Plain();
    own.ChannelsLast();
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Convolution conv;
    if (!FindConvolution(p, &conv).ok()) return nullptr;
    const Kind kind = static_cast<Kind>(c.variant);
    Recipe recipe;
    conv.args.packed = PackFilter(p, conv, kind, recipe);
    const ConvArgs& a = conv.args;
    std::string kernel = KernelFor(KernelOf(kind), conv.type);
    const int64_t outputs = ResultsOf(conv);
    Shape3 shape = Spread(outputs);
    if (kind == kProduct) shape = Rows(conv.tiles());
    if (kind == kDepthwise) shape = Spread((outputs + kDepthwiseOutputs - 1) / kDepthwiseOutputs);
    if (kind == kNhwcProduct) shape = Rows(conv.nhwc_tiles());
    if (kind == kNhwcDepthwise) shape = Spread(outputs / ChannelsAtOnce(conv, WidestAccess(conv)));
    if (kind == kMatrixUnits || kind == kNhwcMatrixUnits) {
      // With the channels last, large tiles need whole accesses to channels.
      const bool small = kind == kNhwcMatrixUnits && ChannelsAtOnce(conv, WidestAccess(conv)) == 1;
      const auto tiles = [&](int64_t tile) {
        if (kind == kMatrixUnits) return conv.tiles(tile);
        return small && tile > 64 ? 0 : conv.nhwc_tiles(tile);
      };
      kernel = MatrixUnitsKernel(std::string(KernelOf(kind)), conv.type, tiles, &shape);
    }
    if (kind == kNhwcProductSplit) return MakeSplit(p, conv, std::move(recipe));
    recipe.Add(kernel, shape, a,
               {Operand::In(conv.x), Operand::In(conv.w), Operand::MaybeIn(conv.bias), Operand::MaybeIn(conv.residual),
                Operand::Out()});
    return std::move(recipe).Make();
  }

 private:
  // The result is a matrix with a row for each pixel and a column for each output.
  static KernelPtr MakeSplit(const Problem& p, Convolution conv, Recipe recipe) {
    conv.args.splits = static_cast<int32_t>(SplitsFor(p, conv.nhwc_tiles(), conv.depth()));
    recipe.SetWorkspace(PartBytes(conv.type, conv.args.splits, ResultsOf(conv)));
    const Operand none = Operand::Null();
    recipe.Add(KernelFor(KernelOf(kNhwcProductSplit), conv.type), Rows(conv.nhwc_tiles() * conv.args.splits), conv.args,
               {Operand::In(conv.x), Operand::In(conv.w), none, none, Operand::Work()});
    MatMulArgs join = JoinOf(conv.args.images * conv.pixels(), conv.args.outputs, conv.args.splits);
    join.residual_row = join.n;
    join.bias_column = join.residual_column = 1;
    join.activation = conv.args.activation;
    recipe.Add(
        KernelFor("matmul_join", conv.type), Spread(join.m * join.n), join,
        {Operand::Work(), none, none, Operand::MaybeIn(conv.bias), Operand::MaybeIn(conv.residual), Operand::Out(), none});
    return std::move(recipe).Make();
  }
};

constexpr KernelRow kRows[] = {Row<ConvRow>("Conv")};

}  // namespace

MGE_KERNELS(conv) = kRows;

}  // namespace mge::gpu
