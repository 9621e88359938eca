// SPDX-License-Identifier: Apache-2.0
// The compilers that jit.backend can name for elementwise chains, instead of our generator.
//
//   - Each is a helper library beside the backends (compilers/), which is opened when code is wanted that the host's cache of blobs
//     lacks. A process that finds all its code there opens no compiler.
//   - A compiler that failed is named once and not used again. Chains are then interpreted.
#pragma once

#include <string>
#include <vector>

#include "isa.h"
#include "jit/chain.h"

namespace mge::cpu {

enum class Compiler : uint8_t { kOwn, kHalide, kMlir };

// Returns the compiler of the setting jit.backend. Compilers of GPUs, and auto, leave chains to our generator. [any]
Compiler WantedCompiler();
// Returns its name in jit.backend; "jit" for our generator.
const char* NameOf(Compiler compiler);
// Returns the names of the compilers whose helper libraries are installed, separated by spaces. Opens nothing.
std::string InstalledCompilers();
// Fails if jit.backend names a compiler whose helper library is missing, with the package. Opens nothing. [any]
Result CheckCompilerSetting();
// Fails if the compiler's library is missing, or if the compiler has failed in this process. Opens nothing. [any]
Result CheckCompiler(Compiler compiler);

// Returns why a range of steps with code is left to the interpreter: the memory that it would share. Empty if it is compiled.
const char* WhyNotCompiled(const Chain& chain, ChainRange range);
// Returns whether a range stores several results: then no result may use the memory of an operand.
bool StoresSeveral(const Chain& chain, ChainRange range);

// Files of a compilation for a user who keeps them.
struct CompiledChain {
  std::string image;   // position-independent code of a function ChainFn
  std::string source;  // in the compiler's language; empty if the code comes from the cache
  const char* suffix = "";
};

// Returns code for the range from the host's cache or from the compiler. `text` is the chain's. Fails with the compiler's reason.
// [any]
Result CompileChain(Compiler compiler, const Chain& chain, ChainRange range, Isa isa, const std::string& text,
                    CompiledChain* out);

}  // namespace mge::cpu
