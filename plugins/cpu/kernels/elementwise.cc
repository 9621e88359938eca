// SPDX-License-Identifier: Apache-2.0
// All elementwise operators, alone or in a group: one pass by a tile program.

#include "support/elementwise_ops.h"
#include "support/kernel.h"
#include "support/program.h"

namespace mge::cpu {
namespace {

enum Kind : uint32_t { kPlain = 0, kChannelsLast = 1 };

class ElementwiseKernel : public Kernel {
 public:
  explicit ElementwiseKernel(std::unique_ptr<Program> program) : program_(std::move(program)) {}
  uint32_t args_bytes() const override { return program_->args_bytes(); }
  Result Bind(const Binding& binding, void* args, StepFn* step) override {
    program_->Write(binding, args);
    *step = StepFn::Of<LaunchProgram>();
    return {};
  }

 private:
  std::unique_ptr<Program> program_;
};

void OfferLayout(const Problem& p, Offers& offers, Isa isa, Kind kind) {
  std::unique_ptr<Program> program;
  if (Result r = Program::Build(p, isa, kind == kChannelsLast, &program); !r.ok()) return offers.Refuse(r.text());
  Candidate c = {.id = kind == kChannelsLast ? "cpu.elementwise.nhwc" : "cpu.elementwise",
                 .rank = 0,
                 .attributes = kExact,
                 .cost_us = RunUs(p, program->serial_us()),
                 .variant = kind};
  if (kind == kChannelsLast) {
    int rank = p.output(0).rank();
    for (int i = 0; i < p.input_count(); ++i) {
      bool moves = p.input(i).rank() == rank && !p.input(i).is_constant();
      c.inputs.push_back(moves ? ChannelsLast(rank) : PlainLayout());
    }
    c.outputs.assign(static_cast<size_t>(p.output_count()), ChannelsLast(rank));
  }
  for (uint32_t i : program->in_place()) c.in_place.push_back({0, i});
  Add(offers, isa, std::move(c));
}

struct ElementwiseRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers, /*groups=*/true)) return;
    Isa isa = AllowedIsa();
    OfferLayout(p, offers, isa, kPlain);
    int rank = p.output(0).rank();
    if (rank >= 3 && rank <= 5) OfferLayout(p, offers, isa, kChannelsLast);
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    std::unique_ptr<Program> program;
    if (!Program::Build(p, IsaOf(c), KindOf(c) == kChannelsLast, &program).ok()) return nullptr;
    return std::make_unique<ElementwiseKernel>(std::move(program));
  }
};

constexpr auto kRows = ElementwiseRows<ElementwiseRow>();

}  // namespace

MGE_KERNELS(elementwise) = kRows;

}  // namespace mge::cpu
