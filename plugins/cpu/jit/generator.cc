// SPDX-License-Identifier: Apache-2.0
#include "jit/generator.h"

#include <algorithm>
#include <memory>

#include "jit/loop_code.h"
#include "jit/step_code.h"
#include "support/kernel.h"

namespace mge::cpu {
const char* WhyNoGenerator() { return ""; }

Result GenerateCode(const Chain& chain, ChainRange range, Isa isa, std::vector<uint8_t>* code) {
  constexpr size_t kMaxBytes = 128 << 10, kAlignment = 64;
  const std::unique_ptr<uint8_t[]> buffer(new uint8_t[kMaxBytes + kAlignment]);
  const size_t past = reinterpret_cast<uintptr_t>(buffer.get()) % kAlignment;
  uint8_t* aligned = buffer.get() + (kAlignment - past) % kAlignment;
  // More copies are faster, if there are registers for them.
  for (int copies = kMaxCopies;; copies /= 2) {
    try {
      LoopCode loop(chain, range, isa, aligned, kMaxBytes);
      loop.Run(copies);
      code->assign(aligned, aligned + loop.getSize());
      return {};
    } catch (const Xbyak::Error& error) {
      if (copies > 1) continue;
      return {MGE_INTERNAL, std::string("no machine code for a chain: ") + error.what()};
    }
  }
}

}  // namespace mge::cpu
