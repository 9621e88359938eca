// SPDX-License-Identifier: Apache-2.0
// The machine code of chains: when it is made, where it lives, and who owns it.
//
//   - Code is written to pages that are then made executable and never writable again.
//   - Programs own the code that they use. The process keeps the code of the last kMaxCachedCodes chains for later programs.
//   - If the system refuses executable pages, one warning says so, and chains are interpreted.
#pragma once

#include <memory>

#include "jit/compiler.h"
#include "jit/generator.h"

namespace mge::cpu {

inline constexpr size_t kMaxCachedCodes = 256;

// Executable code of a function ChainFn.
class ChainCode {
 public:
  // Copies the code to new pages. Fails if the system refuses them.
  static Result Make(const std::vector<uint8_t>& code, std::shared_ptr<const ChainCode>* out);
  ChainCode(const ChainCode&) = delete;
  ~ChainCode();
  ChainFn function() const { return reinterpret_cast<ChainFn>(pages_); }

 private:
  ChainCode(void* pages, size_t bytes) : pages_(pages), bytes_(bytes) {}
  void* const pages_;
  const size_t bytes_;
};

// Checks whether a compiler can make machine code of chains for an instruction set: the setting cpu.jit, the generator, and the
// system. Fails with the reason. [any]
Result CanMakeCode(Isa isa, Compiler compiler);

// Returns the code for a range of a chain's steps, which all have code: kept or new. Writes files if jit.keep_files asks for
// them. [any]
Result CodeOf(const Chain& chain, ChainRange range, Isa isa, Compiler compiler, std::shared_ptr<const ChainCode>* out);

// The ranges of a chain that become machine code. Micro-kernels run the steps between them.
struct CodePlan {
  std::vector<ChainRange> ranges;
  std::string interpreted;  // names of the steps without code, separated by commas; empty if there are none
};
CodePlan PlanCode(const Chain& chain, Compiler compiler);

}  // namespace mge::cpu
