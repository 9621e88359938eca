// SPDX-License-Identifier: Apache-2.0
// All elementwise operators, alone or in a group: one pass by a tile program.

#include "support/elementwise_ops.h"
#include "support/kernel.h"
#include "support/program.h"

namespace mge::cpu {
namespace {

// The layout, and whether instructions become machine code.
enum Kind : uint32_t { kPlain = 0, kChannelsLast = 1, kCode = 2 };

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

// Offers the program with generated code, or names the reason against it.
void OfferCode(const Problem& p, Offers& offers, Isa isa, const Program& program, Candidate c) {
  if (program.chain().steps.size() < 2) return;  // one instruction is a loop of machine code already
  if (Result r = CanMakeCode(isa); !r.ok()) return offers.Refuse("no generated code: " + r.text());
  const CodePlan plan = PlanCode(program.chain());
  if (plan.ranges.empty()) {
    return offers.Refuse("no generated code: " + (plan.interpreted.empty() ? "a single instruction" : plan.interpreted) +
                         (plan.interpreted.empty() ? " gains nothing from it" : " cannot be expressed"));
  }
  if (!plan.interpreted.empty())
    offers.Refuse("generated code only around " + plan.interpreted + ", which it cannot express");
  c.id = c.variant == kChannelsLast ? "cpu.elementwise.jit.nhwc" : "cpu.elementwise.jit";
  c.rank = 0;
  c.cost_us = RunUs(p, program.code_us(plan));
  c.variant |= kCode;
  Add(offers, isa, std::move(c));
}

void OfferLayout(const Problem& p, Offers& offers, Isa isa, Kind kind) {
  std::unique_ptr<Program> program;
  if (Result r = Program::Build(p, isa, kind == kChannelsLast, &program); !r.ok()) return offers.Refuse(r.text());
  Candidate c = {.id = kind == kChannelsLast ? "cpu.elementwise.nhwc" : "cpu.elementwise",
                 .rank = 1,
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
  OfferCode(p, offers, isa, *program, c);
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
    const Isa isa = IsaOf(c);
    if (!Program::Build(p, isa, (KindOf(c) & kChannelsLast) != 0, &program).ok()) return nullptr;
    // If the system has no memory for the code now, the instructions are interpreted.
    if (KindOf(c) & kCode) (void)program->MakeCode(isa);
    return std::make_unique<ElementwiseKernel>(std::move(program));
  }
};

constexpr auto kRows = ElementwiseRows<ElementwiseRow>();

}  // namespace

MGE_KERNELS(elementwise) = kRows;

}  // namespace mge::cpu
