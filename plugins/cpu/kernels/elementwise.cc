// SPDX-License-Identifier: Apache-2.0
// All elementwise operators, alone or in a group: one pass by a tile program.
#include <algorithm>

#include "support/elementwise_ops.h"
#include "support/kernel.h"
#include "support/program.h"

namespace mge::cpu {
namespace {

// The layout, and whether instructions become machine code, and by which compiler; without one it is our generator.
enum Kind : uint32_t { kPlain = 0, kChannelsLast = 1, kCode = 2, kHalide = 4, kMlir = 8 };

Compiler CompilerOf(uint32_t kind) {
  return kind & kHalide ? Compiler::kHalide : kind & kMlir ? Compiler::kMlir : Compiler::kOwn;
}

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

// Offers the program with code that the compiler makes, or names the reason against it. Returns whether it is offered.
bool OfferCode(const Problem& p, Offers& offers, Isa isa, const Program& program, Compiler compiler, Candidate c) {
  const std::string what = compiler == Compiler::kOwn ? "generated code" : std::string("code of ") + NameOf(compiler);
  const auto refuse = [&](const std::string& why) {
    offers.Refuse("no " + what + ": " + why);
    return false;
  };
  if (Result r = CanMakeCode(isa, compiler); !r.ok()) return refuse(r.text());
  const CodePlan plan = PlanCode(program.chain(), compiler);
  if (plan.ranges.empty()) {
    return refuse(plan.interpreted.empty() ? "a single instruction gains nothing from it"
                                           : plan.interpreted + " cannot be expressed");
  }
  if (!plan.interpreted.empty()) offers.Refuse(what + " only around " + plan.interpreted + ", which it cannot express");
  c.id = std::string("cpu.elementwise.") + NameOf(compiler) + (c.variant == kChannelsLast ? ".nhwc" : "");
  c.rank = 0;
  c.cost_us = RunUs(p, program.code_us(plan));
  c.variant |= kCode;
  if (compiler != Compiler::kOwn) {
    c.cost_us = std::min(c.cost_us, RunUs(p, program.serial_us()));  // a user has asked for it
    c.variant |= compiler == Compiler::kHalide ? kHalide : kMlir;
    for (const ChainRange& range : plan.ranges) {
      if (StoresSeveral(program.chain(), range)) c.in_place.clear();
    }
  }
  Add(offers, isa, std::move(c));
  return true;
}

// Offers code of the compiler that the user wants, otherwise that of our generator.
void OfferCode(const Problem& p, Offers& offers, Isa isa, const Program& program, const Candidate& c) {
  if (program.chain().steps.size() < 2) return;  // one instruction is a loop of machine code already
  const Compiler wanted = WantedCompiler();
  if (wanted != Compiler::kOwn && OfferCode(p, offers, isa, program, wanted, c)) return;
  OfferCode(p, offers, isa, program, Compiler::kOwn, c);
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
    // If the system has no memory for the code now, or the compiler fails, the instructions are interpreted.
    if (KindOf(c) & kCode) (void)program->MakeCode(isa, CompilerOf(KindOf(c)));
    return std::make_unique<ElementwiseKernel>(std::move(program));
  }
};

constexpr auto kRows = ElementwiseRows<ElementwiseRow>();

}  // namespace

MGE_KERNELS(elementwise) = kRows;

}  // namespace mge::cpu
