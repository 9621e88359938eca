// SPDX-License-Identifier: Apache-2.0
// Transpose, with the plain layout or channels last on either side. If a model only changes the order of dimensions that a
// layout already represents, no copy is needed.
#include "support/kernel.h"
#include "support/move.h"

namespace mge::cpu {
namespace {

enum Kind : uint32_t { kPlain = 0, kFromLast = 1, kToLast = 2 };

struct Built {
  Moves moves;
  bool identity = true;  // the bytes keep their order
};

Result Build(const Problem& p, Isa isa, uint32_t kind, Built* out) {
  Value x = p.node().input(0), y = p.node().output(0);
  auto rank = static_cast<size_t>(x.rank());
  auto perm = p.node().Ints("perm");
  std::vector<int64_t> from = StridesIn(x.dims(), kind & kFromLast), walked(rank);
  for (size_t i = 0; i < rank; ++i) {
    walked[i] = from[static_cast<size_t>(perm[i])];
  }
  auto dims = y.dims();
  Copy copy = {.input = 0,
               .output = 0,
               .dims = {dims.begin(), dims.end()},
               .from_strides = walked,
               .to_strides = StridesIn(dims, kind & kToLast)};
  for (size_t i = 0; i < rank; ++i) out->identity &= dims[i] == 1 || copy.from_strides[i] == copy.to_strides[i];
  if (!out->moves.Add(copy, SizeOf(x.dtype()), isa)) return {MGE_UNIMPLEMENTED, "too many dimensions"};
  return {};
}

struct TransposeRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Isa isa = AllowedIsa();
    Value x = p.node().input(0);
    constexpr const char* kIds[] = {"cpu.transpose", "cpu.transpose.from_nhwc", "cpu.transpose.to_nhwc"};
    for (uint32_t kind : {kPlain, kFromLast, kToLast}) {
      if (kind != kPlain && (x.rank() < 3 || x.rank() > 5 || x.is_constant())) continue;
      Built built;
      if (Result r = Build(p, isa, kind, &built); !r.ok()) return offers.Refuse(r.text());
      Candidate c = {.id = kIds[kind], .attributes = kExact, .cost_us = RunUs(p, built.moves.serial_us()), .variant = kind};
      if (kind == kFromLast) c.inputs = {ChannelsLast(x.rank())};
      if (kind == kToLast) c.outputs = {ChannelsLast(x.rank())};
      if (built.identity) c.in_place = {{0, 0}};
      Add(offers, isa, std::move(c));
    }
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Built built;
    if (!Build(p, IsaOf(c), KindOf(c), &built).ok()) return nullptr;
    return std::move(built.moves).MakeKernel();
  }
};

constexpr KernelRow kRows[] = {Row<TransposeRow>("Transpose")};

}  // namespace

MGE_KERNELS(transpose) = kRows;

}  // namespace mge::cpu
