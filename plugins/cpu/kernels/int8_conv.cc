// SPDX-License-Identifier: Apache-2.0
// ConvInteger, alone or followed by Cast, Mul and Add, and QLinearConv, channels last. Either a product whose rows are the
// windows of the image, or depthwise loops.
#include "support/conv_threads.h"
#include "support/int8_depthwise.h"
#include "support/kernel.h"

namespace mge::cpu {
namespace {

enum Kind : uint32_t { kProduct = 0, kDepthwise = 1 };

struct Int8ConvRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers, /*groups=*/true)) return;
    Int8Product product;
    if (Result r = FindInt8Product(p, &product); !r.ok()) return offers.Refuse(r.text());
    const Isa isa = AllowedIsa();
    const Convolution& conv = product.convolution;
    Candidate c;
    c.attributes = kExact;
    if (IsInt8Depthwise(product)) {
      double serial_us;
      c.id = "cpu.int8.conv.depthwise";
      c.workspace = MakeInt8Depthwise(p, product, isa, &serial_us)->workspace_bytes();
      c.cost_us = ConvRunUs(p, serial_us);
      c.variant = kDepthwise;
    } else {
      c.id = product.pointwise ? "cpu.int8.conv.pointwise" : "cpu.int8.conv.windows";
      c.workspace = Int8Workspace(product, isa);
      c.cost_us = ConvRunUs(p, product.serial_us(isa));
      c.variant = kProduct;
    }
    if (AllowsVnni(isa)) c.id += ".vnni";
    c.inputs.assign(static_cast<size_t>(p.input_count()), PlainLayout());
    if (!product.a_constant) c.inputs[static_cast<size_t>(product.a)] = ChannelsLast(conv.rank);
    c.outputs = {ChannelsLast(conv.rank)};
    Add(offers, isa, std::move(c));
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Int8Product product;
    if (!FindInt8Product(p, &product).ok()) return nullptr;
    if (KindOf(c) == kDepthwise) return MakeInt8Depthwise(p, product, IsaOf(c));
    return MakeInt8Kernel(product, IsaOf(c));
  }
};

constexpr KernelRow kRows[] = {Row<Int8ConvRow>("ConvInteger"), Row<Int8ConvRow>("QLinearConv")};

}  // namespace

MGE_KERNELS(int8_conv) = kRows;

}  // namespace mge::cpu
