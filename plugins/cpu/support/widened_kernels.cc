// SPDX-License-Identifier: Apache-2.0
#include "support/widened_kernels.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "kernel_table.h"
#include "support/kernel.h"
#include "support/widened_problem.h"
#include "support/work.h"
#include "vec/tile.h"

namespace mge::cpu {
namespace {

constexpr std::string_view kPrefix = "cpu.widened.";
constexpr uint64_t kAlign = 64;

uint64_t Aligned(uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

// A candidate of a row for the problem in float32.
struct Inner {
  const KernelRow* row;
  Candidate candidate;
};

// The offers of all rows for a problem in float32.
class Collector {
 public:
  // Passes refusals on to `offers`, which may be nullptr.
  Collector(const Problem& wide, Offers* offers)
      : offers_(offers), inputs_(wide.input_count()), outputs_(wide.output_count()) {
    uint64_t count = 0;
    const KernelRow* const* rows = Kernels::Rows(&count);
    const auto operands = static_cast<size_t>(std::max(wide.input_count(), wide.output_count()));
    const mge_candidate_sink sink = {sizeof(mge_candidate_sink), 0, this, Take, Refuse};
    uint64_t offered = 0;
    for (uint64_t i = 0; i < count; ++i) {
      if (!wide.node().Is(rows[i]->op, rows[i]->domain) && rows[i]->op != std::string_view(kAnyOp)) continue;
      row_ = rows[i];
      Offers inner(&sink, nullptr, wide.node().op(), 0, operands, offered);
      row_->offer(wide, inner);
      offered = inner.count();
    }
  }
  std::vector<Inner>& found() { return found_; }

 private:
  static void Take(void* self, const mge_candidate* raw) { static_cast<Collector*>(self)->Add(*raw); }
  static void Refuse(void* self, const mge_text*, const mge_text* reason) {
    Offers* offers = static_cast<Collector*>(self)->offers_;
    if (offers) offers->Refuse("in float32: " + std::string(View(*reason)));
  }
  void Add(const mge_candidate& raw) {
    Candidate c = {.id = std::string(View(raw.id)),
                   .rank = raw.rank,
                   .attributes = raw.attributes,
                   .workspace = raw.workspace_bound,
                   .cost_us = raw.cost_us,
                   .variant = raw.token & 0xffffffffu};
    if (!TakeLayouts(raw.input_layouts, inputs_, c.inputs) || !TakeLayouts(raw.output_layouts, outputs_, c.outputs)) return;
    found_.push_back({row_, std::move(c)});
  }
  // Returns false for a layout whose elements have other places than in a tensor of 16 bits.
  static bool TakeLayouts(const mge_layout* const* raw, int count, std::vector<mge_layout>& out) {
    for (int i = 0; raw && i < count; ++i) {
      out.push_back(raw[i] ? *raw[i] : PlainLayout());
      const bool dense =
          out.back().kind == MGE_LAYOUT_PLAIN || (out.back().kind == MGE_LAYOUT_PERMUTED && out.back().block_count == 0);
      if (!dense) return false;
    }
    return true;
  }

  Offers* const offers_;
  const int inputs_, outputs_;
  const KernelRow* row_ = nullptr;  // the one that offers
  std::vector<Inner> found_;
};

// A conversion of one operand, between the problem's memory and the workspace.
struct Conversion {
  Slot from, to;
  TileFn cast;
  uint32_t from_size, to_size;  // of an element
  Chunks chunks;
};

// The arguments of a step. `conversions` follow it, then the inner arguments.
struct Args {
  mge_step_fn inner;
  uint32_t before, after;  // numbers of conversions
  uint64_t inner_offset;   // from this object
  const Conversion* conversions() const { return reinterpret_cast<const Conversion*>(this + 1); }
};

void Convert(const Conversion& c, const mge_run* run) {
  ForChunks(run, c.chunks, [&](uint64_t begin, uint64_t end) {
    c.cast(At<char>(run, c.from) + begin * c.from_size, nullptr, nullptr, At<char>(run, c.to) + begin * c.to_size,
           static_cast<int64_t>(end - begin), nullptr);
  });
}

mge_code Launch(const Args& a, const mge_run* run) {
  for (uint32_t i = 0; i < a.before; ++i) Convert(a.conversions()[i], run);
  if (const mge_code code = a.inner(reinterpret_cast<const char*>(&a) + a.inner_offset, run); code != MGE_OK) return code;
  for (uint32_t i = 0; i < a.after; ++i) Convert(a.conversions()[a.before + i], run);
  return MGE_OK;
}

double ConversionUs(uint64_t elements) { return StreamUs(6.0 * static_cast<double>(elements)); }

class WidenedKernel final : public Kernel {
 public:
  WidenedKernel(const Problem& p, KernelPtr inner) : inner_(std::move(inner)) {
    inner_->inputs = p.input_count();
    inner_->outputs = p.output_count();
    inner_->device = p.handle();
    workspace_ = Aligned(inner_->workspace_bytes());
    for (int i = 0; i < p.input_count(); ++i) inputs_.push_back(Take(p.input(i), inner_->prepack_bytes(i)));
    for (int i = 0; i < p.output_count(); ++i) outputs_.push_back(Take(p.output(i), 0));
  }

  uint32_t args_bytes() const override { return static_cast<uint32_t>(InnerOffset() + inner_->args_bytes()); }
  uint64_t workspace_bytes() const override { return workspace_; }
  uint64_t prepack_bytes(int i) const override { return inputs_[static_cast<size_t>(i)].packed; }
  std::string prepack_form(int i) const override {
    const Operand& o = inputs_[static_cast<size_t>(i)];
    const std::string form = o.packs_itself ? "float32" : inner_->prepack_form(i);
    return form.empty() || !o.half ? form : "widened " + form;
  }
  Result Prepack(int i, const void* from, void* to) override {
    const Operand& o = inputs_[static_cast<size_t>(i)];
    if (!o.half) return inner_->Prepack(i, from, to);
    if (o.packs_itself) return WidenElements(o.type, from, o.elements, static_cast<float*>(to)), Result();
    const auto wide = std::make_unique<float[]>(o.elements);
    WidenElements(o.type, from, o.elements, wide.get());
    return inner_->Prepack(i, wide.get(), to);
  }
  uint64_t random_blocks() const override { return inner_->random_blocks(); }
  bool has_state() const override { return inner_->has_state(); }
  Result CreateState(void** out) override { return inner_->CreateState(out); }
  void DestroyState(void* state) override { inner_->DestroyState(state); }

  Result Bind(const Binding& binding, void* args, StepFn* step) override {
    const Isa isa = AllowedIsa();
    std::vector<mge_slot> in, out;
    std::vector<Conversion> conversions;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Operand& o = inputs_[i];
      in.push_back(binding.input(static_cast<int>(i)));
      if (!o.half || o.packed) continue;
      const Slot wide = {binding.workspace().base, 0, binding.workspace().offset + o.offset};
      conversions.push_back({in.back(), wide, FindCast(isa, o.type, MGE_DTYPE_F32), 2, 4, Split(o)});
      in.back() = wide;
    }
    const auto before = static_cast<uint32_t>(conversions.size());
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Operand& o = outputs_[i];
      out.push_back(binding.output(static_cast<int>(i)));
      if (!o.half) continue;
      const Slot wide = {binding.workspace().base, 0, binding.workspace().offset + o.offset};
      conversions.push_back({wide, out.back(), FindCast(isa, MGE_DTYPE_F32, o.type), 4, 2, Split(o)});
      out.back() = wide;
    }
    std::vector<const mge_layout*> in_layouts, out_layouts;
    for (size_t i = 0; i < inputs_.size(); ++i) in_layouts.push_back(binding.input_layout(static_cast<int>(i)));
    for (size_t i = 0; i < outputs_.size(); ++i) out_layouts.push_back(binding.output_layout(static_cast<int>(i)));
    const mge_binding raw = {
        sizeof(mge_binding), binding.state_index(), in.data(),          out.data(),
        binding.workspace(), in_layouts.data(),     out_layouts.data(), has_random() ? binding.random() : mge_slot{}};
    auto* a = new (args) Args{nullptr, before, static_cast<uint32_t>(conversions.size()) - before, InnerOffset()};
    std::uninitialized_copy(conversions.begin(), conversions.end(), reinterpret_cast<Conversion*>(a + 1));
    StepFn inner;
    const Result bound =
        inner_->Bind(Binding(&raw, inner_->inputs, inner_->outputs), static_cast<char*>(args) + InnerOffset(), &inner);
    if (!bound.ok()) return bound;
    a->inner = inner.get();
    *step = StepFn::Of<Launch>();
    return {};
  }

 private:
  struct Operand {
    bool half = false;
    mge_dtype type = MGE_DTYPE_UNDEFINED;
    uint64_t elements = 0;
    uint64_t packed = 0;        // bytes of its packed form; 0: it is not packed
    bool packs_itself = false;  // the packed form is the plain float32 tensor
    uint64_t offset = 0;        // of the float32 tensor in the workspace, if it is not packed
  };

  Operand Take(const Value& value, uint64_t packed) {
    Operand o = {IsHalf(value.dtype()), value.dtype(), value.elements(), packed, false, 0};
    if (!o.half || packed) return o;
    if (value.is_constant()) {
      o.packs_itself = true;
      o.packed = std::max<uint64_t>(o.elements, 1) * sizeof(float);
      return o;
    }
    o.offset = workspace_;
    workspace_ += Aligned(o.elements * sizeof(float));
    return o;
  }
  static Chunks Split(const Operand& o) {
    return SplitWork(o.elements, o.elements ? ConversionUs(o.elements) / static_cast<double>(o.elements) : 0);
  }
  bool has_random() const { return inner_->random_blocks() > 0; }
  uint64_t InnerOffset() const { return Aligned(sizeof(Args) + (inputs_.size() + outputs_.size()) * sizeof(Conversion)); }

  const KernelPtr inner_;
  std::vector<Operand> inputs_, outputs_;
  uint64_t workspace_ = 0;
};

struct Widened {
  static void Offer(const Problem& p, Offers& offers) {
    // The meaning of a gradient is its body, whose steps round.
    const bool gradient = p.node().domain() == "mge";
    if (offers.count() > 0 || gradient || !WidenedProblem::CanWiden(p)) return;
    const WidenedProblem wide(p, WidenedProblem::Constants::kSmall);
    uint64_t workspace = 0;
    double us = 0;
    auto count = [&](const Value& v) {
      if (!IsHalf(v.dtype()) || v.is_constant()) return;
      workspace += Aligned(v.elements() * sizeof(float));
      us += ConversionUs(v.elements());
    };
    for (int i = 0; i < p.input_count(); ++i) count(p.input(i));
    for (int i = 0; i < p.output_count(); ++i) count(p.output(i));
    Collector collector(wide.view(), &offers);
    for (Inner& inner : collector.found()) {
      Candidate& c = inner.candidate;
      c.id.insert(0, kPrefix);
      c.workspace = Aligned(c.workspace) + workspace;
      if (c.cost_us >= 0) c.cost_us += RunUs(p, us);
      c.variant = 0;
      offers.Add(c);
    }
  }

  // A token has no room for the inner row and its variant, so that the candidate is found again by its id.
  static KernelPtr Make(const Problem& p, const Candidate& c) {
    const WidenedProblem wide(p, WidenedProblem::Constants::kAll);
    Collector collector(wide.view(), nullptr);
    for (const Inner& inner : collector.found()) {
      if (c.id.compare(kPrefix.size(), std::string::npos, inner.candidate.id) != 0) continue;
      KernelPtr kernel = inner.row->make(wide.view(), inner.candidate);
      return kernel ? std::make_unique<WidenedKernel>(p, std::move(kernel)) : nullptr;
    }
    return nullptr;
  }
};

constexpr KernelRow kRow = {kAnyOp, Widened::Offer, Widened::Make};

}  // namespace

const KernelRow* const* WidenedKernels::Rows(uint64_t* count) {
  static constexpr const KernelRow* kRows[] = {&kRow};
  *count = 1;
  return kRows;
}

}  // namespace mge::cpu
