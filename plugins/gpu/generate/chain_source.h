// SPDX-License-Identifier: Apache-2.0
// The source text of a kernel that computes a chain in one pass over memory: reads each operand once, writes each result
// once. The text uses port.h, so that it compiles for CUDA, for HIP and for the emulation.
#pragma once

#include <string>

#include "plugins/gpu/generate/chain_program.h"

namespace mge::gpu {

// A generated kernel.
struct KernelSource {
  std::string name;  // "chain_" and a hash of the text
  std::string text;
};

KernelSource SourceOf(const ChainProgram& program);

}  // namespace mge::gpu
