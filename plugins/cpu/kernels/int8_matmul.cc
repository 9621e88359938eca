// SPDX-License-Identifier: Apache-2.0
// MatMulInteger, alone or followed by Cast, Mul and Add, and QLinearMatMul.
#include "support/int8_product.h"
#include "support/kernel.h"

namespace mge::cpu {
namespace {

struct Int8MatMulRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers, /*groups=*/true)) return;
    Int8Product product;
    if (Result r = FindInt8Product(p, &product); !r.ok()) return offers.Refuse(r.text());
    const Isa isa = AllowedIsa();
    Add(offers, isa,
        {.id = AllowsVnni(isa) ? "cpu.int8.matmul.vnni" : "cpu.int8.matmul",
         .attributes = kExact,
         .workspace = Int8Workspace(product, isa),
         .cost_us = RunUs(p, product.serial_us(isa))});
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Int8Product product;
    if (!FindInt8Product(p, &product).ok()) return nullptr;
    return MakeInt8Kernel(product, IsaOf(c));
  }
};

constexpr KernelRow kRows[] = {Row<Int8MatMulRow>("MatMulInteger"), Row<Int8MatMulRow>("QLinearMatMul")};

}  // namespace

MGE_KERNELS(int8_matmul) = kRows;

}  // namespace mge::cpu
