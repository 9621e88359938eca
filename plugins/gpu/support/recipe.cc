// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/recipe.h"

#include <algorithm>
#include <new>
#include <string>

#include "plugins/gpu/kernels/copy.h"

namespace mge::gpu {
namespace {

// The memory of a bound step: a Header, then for each step a StepHead, its pointers and its argument struct.
struct Header {
  uint64_t steps;
  uint64_t reserved;
};
struct BoundPointer {
  Operand::Kind kind;
  uint32_t reserved;
  Slot slot;  // the operand's slot, with the offset added
};
struct StepHead {
  uint32_t kind, pointers;
  Launch launch;
  int64_t byte;
  uint64_t bytes;
  uint64_t next;  // distance in bytes to the next step
};

uint64_t Aligned(uint64_t n) { return (n + 15) & ~uint64_t{15}; }
uint64_t ArgsOffset(size_t pointers) { return Aligned(sizeof(StepHead) + pointers * sizeof(BoundPointer)); }

void* Resolve(const mge_run* run, const BoundPointer& p) {
  if (p.kind == Operand::kNull) return nullptr;
  return p.kind == Operand::kFault ? static_cast<void*>(FaultOf(run)) : At<void>(run, p.slot);
}

mge_code Run(const Header& bound, const mge_run* run) {
  auto* at = reinterpret_cast<const char*>(&bound) + Aligned(sizeof(Header));
  for (uint64_t i = 0; i < bound.steps; ++i) {
    auto& head = *reinterpret_cast<const StepHead*>(at);
    auto* pointers = reinterpret_cast<const BoundPointer*>(at + sizeof(StepHead));
    mge_code code;
    if (head.kind == 0) {
      alignas(16) char args[kMaxArgsBytes];
      std::memcpy(args, at + ArgsOffset(head.pointers), head.launch.args_bytes);
      for (uint32_t k = 0; k < head.pointers; ++k) {
        void* p = Resolve(run, pointers[k]);
        std::memcpy(args + k * sizeof(void*), &p, sizeof(p));
      }
      Launch launch = head.launch;
      launch.args = args;
      code = Enqueue(run, launch);
    } else if (head.kind == 1) {
      code = EnqueueFill(run, Resolve(run, pointers[0]), static_cast<int>(head.byte), head.bytes);
    } else {
      void *to = Resolve(run, pointers[0]), *from = Resolve(run, pointers[1]);
      code = to == from ? MGE_OK : EnqueueCopy(run, to, from, head.bytes);
    }
    if (code != MGE_OK) return code;
    at += head.next;
  }
  return MGE_OK;
}

}  // namespace

class RecipeKernel : public Kernel {
 public:
  explicit RecipeKernel(Recipe recipe) : recipe_(std::move(recipe)) {}
  uint32_t args_bytes() const override {
    uint64_t bytes = Aligned(sizeof(Header));
    for (const Recipe::Step& s : recipe_.steps_) bytes += BytesOf(s);
    return static_cast<uint32_t>(bytes);
  }
  uint64_t workspace_bytes() const override { return recipe_.workspace_; }
  uint64_t prepack_bytes(int input) const override { return input == recipe_.packed_ ? recipe_.packing_.bytes() : 0; }
  std::string prepack_form(int) const override { return recipe_.packing_.Form(); }
  Result Prepack(int, const void* from, void* to) override { return recipe_.packing_.OnHost(from, to); }
  Result PrepackOn(int, mge_queue* queue, const void* from, void* to) override {
    return recipe_.packing_.OnQueue(queue, from, to);
  }
  uint64_t random_blocks() const override { return recipe_.random_blocks_; }
  Result Bind(const Binding& binding, void* args, StepFn* step) override {
    auto* at = static_cast<char*>(args);
    new (at) Header{recipe_.steps_.size(), 0};
    at += Aligned(sizeof(Header));
    for (const Recipe::Step& s : recipe_.steps_) {
      auto* head =
          new (at) StepHead{s.kind, static_cast<uint32_t>(s.pointers.size()), s.launch, s.byte, s.bytes, BytesOf(s)};
      auto* pointers = reinterpret_cast<BoundPointer*>(head + 1);
      for (size_t k = 0; k < s.pointers.size(); ++k) new (pointers + k) BoundPointer(Bound(s.pointers[k], binding));
      if (!s.args.empty()) std::memcpy(at + ArgsOffset(s.pointers.size()), s.args.data(), s.args.size());
      at += head->next;
    }
    *step = StepFn::Of<Run>();
    return {};
  }

 private:
  static uint64_t BytesOf(const Recipe::Step& s) { return ArgsOffset(s.pointers.size()) + Aligned(s.args.size()); }
  static BoundPointer Bound(const Operand& o, const Binding& b) {
    BoundPointer p = {o.kind, 0, {}};
    if (o.kind == Operand::kInput) p.slot = b.input(static_cast<int>(o.index));
    if (o.kind == Operand::kOutput) p.slot = b.output(static_cast<int>(o.index));
    if (o.kind == Operand::kWorkspace) p.slot = b.workspace();
    if (o.kind == Operand::kRandom) p.slot = b.random();
    p.slot.offset += static_cast<uint64_t>(o.offset);
    return p;
  }
  Recipe recipe_;
};

Shape3 Spread(int64_t elements) {
  constexpr int64_t kMaxBlocks = 4096;
  Shape3 s;
  s.grid[0] = static_cast<uint32_t>(std::clamp<int64_t>((elements + 255) / 256, 1, kMaxBlocks));
  return s;
}

Shape3 Rows(int64_t rows) {
  Shape3 s;
  s.grid[0] = static_cast<uint32_t>(std::clamp<int64_t>(rows, 1, 65535));
  return s;
}

void Recipe::AddLaunch(std::string_view kernel, const Shape3& shape, const void* args, size_t bytes,
                       std::span<const Operand> pointers) {
  const Launch launch = {.kernel = FindKernel(kernel)};
  complete_ = complete_ && launch.kernel != kNoKernel;
  AddLaunch(launch, shape, args, bytes, pointers);
}

void Recipe::AddCompiled(void* function, const Shape3& shape, std::span<const int64_t> args,
                         std::span<const Operand> pointers) {
  AddLaunch({.kernel = kNoKernel, .function = function}, shape, args.data(), args.size_bytes(), pointers);
}

void Recipe::AddLaunch(const Launch& launch, const Shape3& shape, const void* args, size_t bytes,
                       std::span<const Operand> pointers) {
  Step s = {};
  s.kind = Step::kLaunch;
  s.launch = launch;
  for (int i = 0; i < 3; ++i) {
    s.launch.grid[i] = shape.grid[i];
    s.launch.block[i] = shape.block[i];
  }
  s.launch.shared_bytes = shape.shared_bytes;
  s.launch.args_bytes = static_cast<uint32_t>(bytes);
  s.pointers.assign(pointers.begin(), pointers.end());
  auto* raw = static_cast<const char*>(args);
  s.args.assign(raw, raw + bytes);
  steps_.push_back(std::move(s));
}

bool Recipe::Pack(int input, const Packing& packing) {
  if (!packing.Moves()) return false;
  packed_ = input;
  packing_ = packing;
  return true;
}

void Recipe::AddFill(Operand to, int byte, uint64_t bytes) {
  if (bytes) steps_.push_back({Step::kFill, {}, byte, bytes, {to}, {}});
}
void Recipe::AddConstant(Operand to, uint64_t bits, int64_t n, uint64_t element_bytes) {
  if (n) Add("fill_" + std::to_string(element_bytes), Spread(n), FillArgs{nullptr, n, bits}, {to});
}
void Recipe::AddCopy(Operand to, Operand from, uint64_t bytes) {
  if (bytes) steps_.push_back({Step::kCopy, {}, 0, bytes, {to, from}, {}});
}

KernelPtr Recipe::Make() && { return complete_ ? std::make_unique<RecipeKernel>(std::move(*this)) : nullptr; }

}  // namespace mge::gpu
