// SPDX-License-Identifier: Apache-2.0
// A backend with its own layout, "sealed": a header of 64 bytes, then the elements in reverse order.
//
// Its strategy chooses the kernel with the largest estimate, or the smallest if SEALED_BY_COST is defined. Its reorders
// have the estimate SEALED_REORDER_US. Its kernels, with their estimates:
//   Relu  sealed 50 us, plain 10 us
//   Neg   sealed 1 us, plain 100 us
//   Abs   sealed, plain (takes 2 ms), and sealed_wrong, which is the fastest and does not change the sign
//   Mul   sealed 50 us, plain 10 us; it also wants a constant in the sealed layout, which the contract forbids
#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <string>
#include <string_view>

#include "mge/plugin.hpp"
#include "test_device.h"

#ifndef SEALED_NAME
#define SEALED_NAME "sealed"
#endif
#ifndef SEALED_REORDER_US
#define SEALED_REORDER_US -1
#endif

namespace {

constexpr uint64_t kSealed = 7, kHeader = 64;

uint64_t SealedBytes(uint64_t elements) { return kHeader + 4 * elements; }

struct Layouts {
  static mge::Result Describe(Device&, const mge::LayoutQuestion& question, mge_layout_info* out) {
    if (question.layout.opaque_id != kSealed) return {MGE_INVALID_ARGUMENT, "there is one layout, number 7"};
    uint64_t elements = 1;
    for (int64_t d : question.dims) elements *= static_cast<uint64_t>(d);
    out->bytes = SealedBytes(elements);
    out->name = mge::Text("sealed");
    return {};
  }
};

// A view of a plain or sealed tensor. Index i is the position in the plain layout.
struct Cells {
  float* base;
  uint64_t count;
  bool sealed;
  float& operator[](uint64_t i) const { return sealed ? base[kHeader / 4 + count - 1 - i] : base[i]; }
};

struct Reorder {
  static constexpr const char* kOp = "Reorder";
  static constexpr const char* kDomain = "mge";
  static void Offer(const mge::Problem& p, mge::Offers& offers) {
    if (p.input(0).dtype() != MGE_DTYPE_F32) return offers.Refuse("only float32");
    offers.Add({.id = SEALED_NAME ".reorder", .cost_us = SEALED_REORDER_US});
  }
  Reorder(const mge::Problem& p, const mge::Candidate&)
      : count(p.input(0).elements()), from(!mge::IsPlain(p.input(0).layout())), to(!mge::IsPlain(p.output(0).layout())) {}
  void Bind(const mge::Binding& b) { x = b.input(0), y = b.output(0); }
  mge_code Launch(const mge_run* run) const {
    Cells in{mge::At<float>(run, x), count, from}, out{mge::At<float>(run, y), count, to};
    for (uint64_t i = 0; i < count; ++i) out[i] = in[i];
    return MGE_OK;
  }
  uint64_t count;
  bool from, to;
  mge::Slot x, y;
};

enum Variant : uint64_t { kPlain, kInSeal, kWrong };

struct Unary {
  static void Offer(const mge::Problem& p, mge::Offers& offers) {
    if (p.node_count() != 1 || p.input(0).dtype() != MGE_DTYPE_F32 || !p.is_static()) {
      return offers.Refuse("only float32 of a known shape");
    }
    const mge_layout sealed = mge::Opaque(kSealed, SealedBytes(p.input(0).elements()));
    auto add = [&](const char* id, Variant variant, double cost_us) {
      mge::Candidate c = {.id = id, .cost_us = cost_us, .variant = variant};
      if (variant != kPlain) c.inputs = c.outputs = {sealed};
      offers.Add(c);
    };
    if (p.node().Is("Relu")) return add("sealed", kInSeal, 50), add("plain", kPlain, 10);
    if (p.node().Is("Neg")) return add("sealed", kInSeal, 1), add("plain", kPlain, 100);
    add("sealed", kInSeal, 5), add("plain", kPlain, 5), add("sealed_wrong", kWrong, 5);
  }
  Unary(const mge::Problem& p, const mge::Candidate& c)
      : count(p.input(0).elements()),
        variant(c.variant),
        op(p.node().Is("Relu")  ? 'r'
           : p.node().Is("Neg") ? 'n'
                                : 'a') {}
  void Bind(const mge::Binding& b) { x = b.input(0), y = b.output(0); }
  mge_code Launch(const mge_run* run) const {
    const auto begin = std::chrono::steady_clock::now();
    const bool sealed = variant != kPlain;
    Cells in{mge::At<float>(run, x), count, sealed}, out{mge::At<float>(run, y), count, sealed};
    for (uint64_t i = 0; i < count; ++i) {
      out[i] = variant == kWrong ? in[i] : op == 'r' ? std::max(in[i], 0.0f) : op == 'n' ? -in[i] : std::fabs(in[i]);
    }
    while (op == 'a' && !sealed && std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(2)) {
    }
    return MGE_OK;
  }
  uint64_t count, variant;
  char op;
  mge::Slot x, y;
};
template <size_t kIndex>
struct Named : Unary {
  static constexpr const char* kOps[] = {"Relu", "Neg", "Abs"};
  static constexpr const char* kOp = kOps[kIndex];
  using Unary::Unary;
};

struct Mul {
  static constexpr const char* kOp = "Mul";
  static void Offer(const mge::Problem& p, mge::Offers& offers) {
    if (p.input_count() != 2 || p.input(0).elements() != p.input(1).elements()) return offers.Refuse("only two of one size");
    const mge_layout sealed = mge::Opaque(kSealed, SealedBytes(p.input(0).elements()));
    offers.Add({.id = "sealed", .cost_us = 50, .variant = kInSeal, .inputs = {sealed, sealed}, .outputs = {sealed}});
    offers.Add({.id = "plain", .cost_us = 10, .variant = kPlain});
  }
  Mul(const mge::Problem& p, const mge::Candidate& c) : count(p.input(0).elements()), sealed(c.variant == kInSeal) {}
  void Bind(const mge::Binding& b) { x = b.input(0), z = b.input(1), y = b.output(0); }
  mge_code Launch(const mge_run* run) const {
    Cells a{mge::At<float>(run, x), count, sealed}, b{mge::At<float>(run, z), count, sealed},
        out{mge::At<float>(run, y), count, sealed};
    for (uint64_t i = 0; i < count; ++i) out[i] = a[i] * b[i];
    return MGE_OK;
  }
  uint64_t count;
  bool sealed;
  mge::Slot x, z, y;
};
constexpr mge::KernelRow kRelu = mge::Row<Named<0>>(), kNeg = mge::Row<Named<1>>(), kAbs = mge::Row<Named<2>>(),
                         kMul = mge::Row<Mul>(), kReorder = mge::Row<Reorder>();

struct Strategy {
#ifdef SEALED_BY_COST
  static constexpr bool kByCost = true;
  static mge::Result Order(Device&, const mge::Choice& choice, std::span<uint32_t> order) {
    return mge::ReadyOrder(choice, order);
  }
#else
  static mge::Result Order(Device&, const mge::Choice& choice, std::span<uint32_t> order) {
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return choice.candidate(a).cost_us > choice.candidate(b).cost_us; });
    return {};
  }
#endif
};

struct Backend : mge::BackendDefaults {
  static constexpr std::string_view kName = SEALED_NAME, kVersion = "1.0";
  using Device = ::Device;
  using Layouts = ::Layouts;
  using Strategy = ::Strategy;
  using Kernels = mge::Kernels<kRelu, kNeg, kAbs, kMul, kReorder>;
};

}  // namespace

MGE_BACKEND(Backend);
