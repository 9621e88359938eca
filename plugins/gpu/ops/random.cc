// SPDX-License-Identifier: Apache-2.0
// Random operators without a seed of their own, and Dropout in training. The host keeps the counter of Philox blocks.
#include "plugins/gpu/kernels/random.h"

#include <string_view>

#include "plugins/gpu/support/moves.h"

namespace mge::gpu {
namespace {

uint64_t BlocksOf(const Value& y) { return (y.elements() + 3) / 4; }

Result BuildRandom(const Problem& p, Recipe& recipe) {
  const Node n = p.node();
  const Value y = n.output(0);
  if (n.attr("seed")) return Refusal("has a seed of its own");
  if (!IsFloating(y.dtype())) return Refusal("does not give " + std::string(TypeName(y.dtype())));
  const bool normal = n.op().find("Normal") != std::string_view::npos;
  const double low = normal ? n.Float("mean") : n.Float("low");
  const double scale = normal ? n.Float("scale") : n.Float("high") - low;
  if (y.elements() == 0) return {};
  recipe.Add(KernelFor(normal ? "random_normal" : "random_uniform", y.dtype()), Spread(static_cast<int64_t>(BlocksOf(y))),
             RandomArgs{nullptr, nullptr, static_cast<int64_t>(y.elements()), low, scale},
             {Operand::Random(), Operand::Out()});
  recipe.SetRandomBlocks(BlocksOf(y));
  return {};
}

Result BuildDropout(const Problem& p, Recipe& recipe) {
  const Node n = p.node();
  const Value x = n.input(0);
  if (!n.has_input(2)) return Refusal("only Dropout in training");
  const Value training = n.input(2);
  if (!training.is_constant() || training.elements() != 1 || !training.data<uint8_t>()[0]) {
    return Refusal("only Dropout in training");
  }
  if (n.attr("seed")) return Refusal("has a seed of its own");
  if (!IsFloating(x.dtype())) return Refusal("does not take " + std::string(TypeName(x.dtype())));
  double ratio = 0.5;
  if (n.has_input(1)) {
    const Value r = n.input(1);
    if (!r.is_constant() || r.elements() != 1 || r.dtype() != MGE_DTYPE_F32) return Refusal("the ratio is not one float32");
    ratio = r.data<float>()[0];
  }
  if (!(ratio >= 0 && ratio < 1)) return Refusal("the ratio is outside of [0, 1)");
  if (x.elements() == 0) return {};
  const bool mask = n.output_count() > 1 && n.has_output(1);
  recipe.Add(KernelFor("dropout", x.dtype()), Spread(static_cast<int64_t>(BlocksOf(x))),
             DropoutArgs{nullptr, nullptr, nullptr, nullptr, static_cast<int64_t>(x.elements()), ratio},
             {Operand::Random(), Operand::In(InputOf(p, 0)), Operand::Out(OutputOf(p, 0)),
              mask ? Operand::Out(OutputOf(p, 1)) : Operand::Null()});
  recipe.SetRandomBlocks(BlocksOf(x));
  return {};
}

// A row of random kernels with one builder.
template <Result (*Build)(const Problem&, Recipe&)>
struct RandomRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Recipe recipe;
    if (Result r = Build(p, recipe); !r.ok()) return offers.Refuse(r.text());
    offers.Add({.id = "gpu.random",
                .attributes = kExact,
                .cost_us = GpuUs(p, BytesOf(p), 100.0 * static_cast<double>(p.output(0).elements()))});
  }
  static KernelPtr Make(const Problem& p, const Candidate&) {
    Recipe recipe;
    return Build(p, recipe).ok() ? std::move(recipe).Make() : nullptr;
  }
};

constexpr KernelRow kRows[] = {
    Row<RandomRow<BuildRandom>>("RandomNormal"),  Row<RandomRow<BuildRandom>>("RandomNormalLike"),
    Row<RandomRow<BuildRandom>>("RandomUniform"), Row<RandomRow<BuildRandom>>("RandomUniformLike"),
    Row<RandomRow<BuildDropout>>("Dropout"),
};

}  // namespace

MGE_KERNELS(random) = kRows;

}  // namespace mge::gpu
