// SPDX-License-Identifier: Apache-2.0
// oneDNN's convolutions and products beside our own.
#include "onednn.h"

#include <string>

#include "kernel_table.h"
#include "support/gemm.h"
#include "support/kernel.h"
#include "support/onednn_kernel.h"

namespace mge::cpu {
namespace {

// ---------------------------------------------------------------- Conv

double ConvUs(const Convolution& c) {
  Isa isa = AllowedIsa();
  if (c.depthwise()) {
    double flops = 2.0 * static_cast<double>(c.rows() * c.outputs * c.windows.kh * c.windows.kw);
    return flops / 75e3 + 0.5 * StreamUs(4.0 * static_cast<double>(c.images * c.channels * c.windows.h * c.windows.w + c.rows() * c.outputs));
  }
  return GemmSerialUs({c.rows(), c.outputs / c.groups, c.k(), c.groups}, isa, c.pointwise() ? 0.03 : 0);
}

OnednnImages ImagesOf(const Convolution& c) { return {c.images, c.channels, c.outputs, c.windows}; }

int64_t ConvWays(const Problem& p, const Convolution& c) { return ImagesOf(c).Ways(OnednnWays(p, ConvUs(c))); }

void OfferConv(const Problem& p, Offers& offers) {
  if (!Accept(p, offers, /*groups=*/true)) return;
  Convolution c;
  if (Result r = FindConvolution(p, &c); !r.ok()) return offers.Refuse("oneDNN: " + r.text());
  if (c.rank != 4 || !c.weights_constant) return offers.Refuse("oneDNN: only images, and filters that can be packed in advance");
  if (c.x_constant || c.add_constant) return offers.Refuse("oneDNN: no constant image or addend, which come plain");
  if (c.epilogue.activation == Activation::kHardSwish) return offers.Refuse("oneDNN: HardSwish is our own kernels'");
  double us = ConvUs(c);
  if (!OnednnUsable(offers, us)) return;
  int64_t ways = ConvWays(p, c);
  Candidate candidate = {.id = "onednn.conv",
                         .rank = kOnednnRank,
                         .attributes = kOnednnAttributes,
                         .workspace = OnednnWorkspaceBound(p, ways),
                         .cost_us = OnednnCostUs(us + (c.add >= 0 ? StreamUs(static_cast<double>(p.output(0).bytes())) : 0), ways)};
  candidate.inputs.assign(static_cast<size_t>(p.input_count()), PlainLayout());
  candidate.inputs[static_cast<size_t>(c.x)] = ChannelsLast(4);
  if (c.add >= 0) candidate.inputs[static_cast<size_t>(c.add)] = ChannelsLast(4);
  candidate.outputs = {ChannelsLast(4)};
  if (c.add >= 0 && c.add != c.x) candidate.in_place.push_back({0, static_cast<uint32_t>(c.add)});
  Add(offers, AllowedIsa(), std::move(candidate));
}

KernelPtr MakeConv(const Problem& p, const Candidate& candidate) {
  Convolution c;
  if (!FindConvolution(p, &c).ok()) return nullptr;
  auto make = [&](int64_t images, int64_t y0, int64_t y1, const onednn::Primitive* first, onednn::PrimitivePtr* out) {
    Convolution part = c;
    part.images = images;
    return onednn::MakeConvolution(part, y0, y1, first, out);
  };
  std::vector<OnednnSlice> slices = CutImages(ImagesOf(c), ConvWays(p, c), make);
  if (slices.empty()) return nullptr;
  OnednnPlaces places = {c.x, c.weights, c.bias, c.add, p.output(0).bytes()};
  return MakeOnednnKernel(places, std::move(slices), candidate);
}

// ---------------------------------------------------------------- MatMul, Gemm

// Why oneDNN's product is not offered for p; empty if it is.
std::string_view WhyNot(const Product& p) {
  if (p.type != MGE_DTYPE_F32) return "oneDNN: only float32";
  if (p.size.batch != 1 || !p.b_constant || p.size.k == 0) return "oneDNN: only one product with a constant B";
  if (p.alpha != 1 || p.epilogue.scale != 1) return "oneDNN: no scale";
  if (p.start >= 0 && (p.beta != 1 || p.start_value.elements() != static_cast<uint64_t>(p.size.n) || p.start_value.dim(-1) != p.size.n)) {
    return "oneDNN: only one addend per column";
  }
  if (p.epilogue.activation == Activation::kHardSwish) return "oneDNN: HardSwish is our own kernels'";
  return {};
}

int64_t ProductWays(const Problem& p, const Product& product, double us) {
  return std::min(OnednnWays(p, us), std::max<int64_t>(1, product.size.m / 8));
}

void OfferProduct(const Problem& p, Offers& offers) {
  if (!Accept(p, offers, /*groups=*/true)) return;
  Product product;
  if (Result r = FindProduct(p, &product); !r.ok()) return offers.Refuse("oneDNN: " + r.text());
  if (std::string_view why = WhyNot(product); !why.empty()) return offers.Refuse(why);
  double us = GemmSerialUs(product.size, AllowedIsa());
  if (!OnednnUsable(offers, us)) return;
  int64_t ways = ProductWays(p, product, us);
  Candidate c = {.id = "onednn.matmul",
                 .rank = kOnednnRank,
                 .attributes = kOnednnAttributes,
                 .workspace = OnednnWorkspaceBound(p, ways),
                 .cost_us = OnednnCostUs(us * 1.02, ways)};
  if (product.epilogue_add >= 0 && product.epilogue_add != product.a) {
    c.in_place.push_back({0, static_cast<uint32_t>(product.epilogue_add)});
  }
  Add(offers, AllowedIsa(), std::move(c));
}

KernelPtr MakeProduct(const Problem& p, const Candidate& candidate) {
  Product product;
  if (!FindProduct(p, &product).ok() || !WhyNot(product).empty()) return nullptr;
  int64_t m = product.size.m, ways = ProductWays(p, product, GemmSerialUs(product.size, AllowedIsa()));
  std::vector<OnednnSlice> slices;
  for (int64_t i = 0; i < ways; ++i) {
    int64_t m0 = m * i / ways, m1 = m * (i + 1) / ways;
    OnednnSlice s;
    const onednn::Primitive* first = slices.empty() ? nullptr : slices[0].primitive.get();
    if (!onednn::MakeProduct(product, m1 - m0, first, &s.primitive).ok()) return nullptr;
    s.x = static_cast<uint64_t>(m0 * product.a_row) * sizeof(float);
    s.y = static_cast<uint64_t>(m0 * product.size.n) * sizeof(float);
    slices.push_back(std::move(s));
  }
  OnednnPlaces places = {product.a, product.b, product.start >= 0 ? product.start : product.epilogue_bias, product.epilogue_add,
                   p.output(0).bytes()};
  return MakeOnednnKernel(places, std::move(slices), candidate);
}

constexpr KernelRow kRows[] = {{"Conv", OfferConv, MakeConv}, {"MatMul", OfferProduct, MakeProduct}, {"Gemm", OfferProduct, MakeProduct}};

}  // namespace

MGE_CPU_KERNELS(onednn) = kRows;

}  // namespace mge::cpu
