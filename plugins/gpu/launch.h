// SPDX-License-Identifier: Apache-2.0
// The seam between the operators of plugins/gpu and the backend that links them: rows go up, launches come down.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mge/plugin.hpp"
#include "plugins/gpu/fault.h"

namespace mge::gpu {

// One kernel over a grid of blocks of threads.
struct Launch {
  uint32_t kernel = 0;                // number given by FindKernel
  uint32_t grid[3] = {1, 1, 1};       // blocks
  uint32_t block[3] = {1, 1, 1};      // threads; a multiple of 64 in all
  uint32_t shared_bytes = 0;          // dynamic shared memory of a block
  const void* args = nullptr;         // the kernel's one argument, a plain struct; copied by Enqueue
  uint32_t args_bytes = 0;            // at most kMaxArgsBytes
};
inline constexpr uint32_t kMaxArgsBytes = 4096;
inline constexpr uint32_t kNoKernel = ~0u;

// The sentence for a fault that was raised.
std::string FaultText(const Fault& fault);

// ---------------------------------------------------------------- what the backend gives

// All enqueue on run->queue and answer at once; text of an error goes to run->error.
mge_code Enqueue(const mge_run* run, const Launch& launch);
mge_code EnqueueFill(const mge_run* run, void* destination, int byte, uint64_t bytes);
mge_code EnqueueCopy(const mge_run* run, void* destination, const void* source, uint64_t bytes);  // device to device
// Where kernels of the run's queue report; lives as long as the queue. The backend looks at it before it signals a
// fence: if it is raised, the fence fails with MGE_OUT_OF_RANGE and FaultText, and the fault is cleared.
Fault* FaultOf(const mge_run* run);
// Number of a kernel in the backend's image of plugins/gpu/kernels; kNoKernel if there is none. For kernels that are
// emulated plugins/gpu provides it (emulation/emulator.h).
uint32_t FindKernel(std::string_view name);

// ---------------------------------------------------------------- what the operators give

// All rows of ops/, for mge::KernelTable.
const KernelRow* const* KernelRows(uint64_t* count);
// All groups that a row computes as one, for mge_graph_api.claim.
mge_code OfferClaims(mge_device* device, const mge_graph* graph, const mge_claim_sink* sink, mge_error* error) noexcept;

}  // namespace mge::gpu
