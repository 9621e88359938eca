// SPDX-License-Identifier: Apache-2.0
// oneDNN's convolutions and products, offered beside our own kernels.
#include "onednn.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "support/gemm.h"
#include "support/kernel.h"
#include "support/onednn_kernel.h"

namespace mge::cpu {
namespace {

// ---------------------------------------------------------------- Conv

// Returns the factor by which an implementation is slower than the estimate.
double SlownessOf(const OnednnChoice& choice, const Convolution& c) {
  if (choice.code == "gemm") return 4;  // it copies the windows first
  // half of each vector is empty
  return choice.code.find("jit") != std::string::npos && c.groups > 1 && !(c.depthwise() && !c.volume()) ? 1.5 : 1;
}

// Returns true if the library takes milliseconds to compile a convolution of long windows: it prepares every tap of every
// column.
bool CompilesLong(const Convolution& c, double us) {
  constexpr int64_t kManyTaps = 64, kManyPlaces = 256 << 10;
  constexpr double kShortUs = 200;
  const int64_t taps = c.windows.kh * c.windows.kw;
  return taps > kManyTaps && (us < kShortUs || taps * c.windows.ow > kManyPlaces);
}

OnednnCut CutOf(const Convolution& c) {
  return [&c](int64_t ways, std::vector<OnednnSlice>* slices) {
    auto describe = [&](const onednn::Band& band, onednn::PrimitivePtr* out) {
      return onednn::DescribeConvolution(c, band, out);
    };
    return OnednnImages{c.images, c.channels, c.outputs, c.windows}.Cut(ways, describe, slices);
  };
}

OnednnChoice ChoiceOf(const Problem& p, const Convolution& c) {
  const ConvWindows& w = c.windows;
  std::vector<int64_t> problem = {'C',  c.images, c.channels, c.outputs, c.groups, w.h,  w.w,  w.kh, w.kw,
                                  w.sh, w.sw,     w.ph,       w.pw,      w.dh,     w.dw, w.oh, w.ow};
  AppendEpilogue(c.epilogue, c.bias >= 0, c.add >= 0, problem);
  return ChooseOnednn(std::move(problem), WaysOf(p, OnednnConvUs(c)), CutOf(c));
}

struct ConvRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers, /*groups=*/true)) return;
    Convolution c;
    if (Result r = FindConvolution(p, &c); !r.ok()) return offers.Refuse("oneDNN: " + r.text());
    if (c.volume()) return offers.Refuse("oneDNN: only images");
    if (!c.weights_constant && !c.weights_state) return offers.Refuse("oneDNN: only filters that are constants or states");
    if (c.x_constant || c.add_constant) return offers.Refuse("oneDNN: constant image or addend, which is always plain");
    double us = OnednnConvUs(c);
    if (!OnednnUsable(offers, us)) return;
    if (CompilesLong(c, us)) return offers.Refuse("oneDNN: compiling so many taps takes longer than a run saves");
    OnednnChoice choice = ChoiceOf(p, c);
    if (choice.ways == 0) return offers.Refuse(choice.reason);
    Candidate candidate = {
        .id = "onednn.conv." + choice.code,
        .rank = kOnednnRank,
        .attributes = kOnednnAttributes,
        .workspace = choice.workspace,
        .cost_us = OnednnCostUs(SlownessOf(choice, c) * us + (c.weights_state ? OnednnPackUs(p.input(c.weights)) : 0) +
                                    (c.add >= 0 ? StreamUs(static_cast<double>(p.output(0).bytes())) : 0),
                                choice)};
    candidate.inputs.assign(static_cast<size_t>(p.input_count()), PlainLayout());
    candidate.inputs[static_cast<size_t>(c.x)] = ChannelsLast(c.rank);
    if (c.add >= 0) candidate.inputs[static_cast<size_t>(c.add)] = ChannelsLast(c.rank);
    candidate.outputs = {ChannelsLast(c.rank)};
    if (c.add >= 0 && c.add != c.x) candidate.in_place.push_back({0, static_cast<uint32_t>(c.add)});
    Add(offers, AllowedIsa(), std::move(candidate));
  }

  static KernelPtr Make(const Problem& p, const Candidate& candidate) {
    Convolution c;
    if (!FindConvolution(p, &c).ok()) return nullptr;
    OnednnPlaces places = {c.x, c.weights, c.bias, c.add, p.output(0).bytes()};
    return MakeOnednnKernel(places, ChoiceOf(p, c), CutOf(c), candidate);
  }
};

// ---------------------------------------------------------------- MatMul, Gemm

// Returns why oneDNN's product is not offered for p; empty if it is.
std::string_view WhyNot(const Product& p) {
  if (p.type != MGE_DTYPE_F32) return "oneDNN: only float32";
  if (p.size.batch != 1 || !p.b_constant || p.size.k == 0) return "oneDNN: only one product with a constant B";
  if (p.alpha != 1 || p.epilogue.scale != 1) return "oneDNN: no scale";
  if (p.start >= 0 &&
      (p.beta != 1 || p.start_value.elements() != static_cast<uint64_t>(p.size.n) || p.start_value.dim(-1) != p.size.n)) {
    return "oneDNN: only one addend per column";
  }
  return {};
}

OnednnCut CutOf(const Product& product) {
  return [&product](int64_t ways, std::vector<OnednnSlice>* slices) -> Result {
    std::map<int64_t, std::shared_ptr<onednn::Primitive>> made;  // by number of rows
    int64_t m = product.size.m;
    for (int64_t i = 0; i < ways; ++i) {
      int64_t m0 = m * i / ways, rows = m * (i + 1) / ways - m0;
      std::shared_ptr<onednn::Primitive>& primitive = made[rows];
      if (!primitive) {
        onednn::PrimitivePtr described;
        if (Result r = onednn::DescribeProduct(product, rows, &described); !r.ok()) return r;
        primitive = std::move(described);
      }
      slices->push_back({.primitive = primitive,
                         .x = static_cast<uint64_t>(m0 * product.a_row) * sizeof(float),
                         .y = static_cast<uint64_t>(m0 * product.size.n) * sizeof(float),
                         .work = rows});
    }
    return {};
  };
}

OnednnChoice ChoiceOf(const Problem& p, const Product& product) {
  const GemmSize& s = product.size;
  std::vector<int64_t> problem = {'M', s.m, s.n, s.k, product.a_row, product.a_k, product.b_k, product.b_column};
  AppendEpilogue(product.epilogue, product.start >= 0 || product.epilogue_bias >= 0, product.epilogue_add >= 0, problem);
  OnednnWays ways = WaysOf(p, GemmSerialUs(s, AllowedIsa()));
  ways.most = std::min(ways.most, std::max<int64_t>(1, s.m / 8));
  ways.threads = std::min(ways.threads, ways.most);
  return ChooseOnednn(std::move(problem), ways, CutOf(product));
}

struct ProductRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers, /*groups=*/true)) return;
    Product product;
    if (Result r = FindProduct(p, &product); !r.ok()) return offers.Refuse("oneDNN: " + r.text());
    if (std::string_view why = WhyNot(product); !why.empty()) return offers.Refuse(why);
    double us = GemmSerialUs(product.size, AllowedIsa());
    if (!OnednnUsable(offers, us)) return;
    OnednnChoice choice = ChoiceOf(p, product);
    if (choice.ways == 0) return offers.Refuse(choice.reason);
    Candidate c = {.id = "onednn.matmul." + choice.code,
                   .rank = kOnednnRank,
                   .attributes = kOnednnAttributes,
                   .workspace = choice.workspace,
                   .cost_us = OnednnCostUs(us * 1.02, choice)};
    if (product.epilogue_add >= 0 && product.epilogue_add != product.a) {
      c.in_place.push_back({0, static_cast<uint32_t>(product.epilogue_add)});
    }
    Add(offers, AllowedIsa(), std::move(c));
  }

  static KernelPtr Make(const Problem& p, const Candidate& candidate) {
    Product product;
    if (!FindProduct(p, &product).ok() || !WhyNot(product).empty()) return nullptr;
    OnednnPlaces places = {product.a, product.b, product.start >= 0 ? product.start : product.epilogue_bias,
                           product.epilogue_add, p.output(0).bytes()};
    return MakeOnednnKernel(places, ChoiceOf(p, product), CutOf(product), candidate);
  }
};

constexpr KernelRow kRows[] = {Row<ConvRow>("Conv"), Row<ProductRow>("MatMul"), Row<ProductRow>("Gemm")};

}  // namespace

MGE_KERNELS(onednn) = kRows;

}  // namespace mge::cpu
