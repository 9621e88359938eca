// SPDX-License-Identifier: Apache-2.0
// The interface between the operators of plugins/gpu and the backend that links them. The operators provide rows, the
// backend runs launches.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mge/plugin.hpp"
#include "plugins/gpu/fault.h"

namespace mge::gpu {

// A launch: one kernel over a grid of blocks.
struct Launch {
  uint32_t kernel = 0;            // number given by FindKernel
  uint32_t grid[3] = {1, 1, 1};   // blocks
  uint32_t block[3] = {1, 1, 1};  // threads; the product is a multiple of 64
  uint32_t shared_bytes = 0;      // dynamic shared memory per block
  const void* args = nullptr;     // the kernel's argument, a plain struct; Enqueue copies it
  uint32_t args_bytes = 0;        // at most kMaxArgsBytes
  void* function = nullptr;       // the driver's function of a kernel compiled at run time, instead of `kernel`
};
inline constexpr uint32_t kMaxArgsBytes = 4096;
inline constexpr uint32_t kNoKernel = ~0u;

// Returns the error of a fault: MGE_OUT_OF_RANGE for an index or a length, MGE_INVALID_ARGUMENT for a number without a result.
Result ErrorOf(const Fault& fault);

// ---------------------------------------------------------------- implemented by the backend

// Each enqueues on run->queue and returns at once. On failure returns a code and writes the text to run->error.
mge_code Enqueue(const mge_run* run, const Launch& launch);
Result EnqueueOn(mge_queue* queue, const Launch& launch);  // outside of a run; `queue` is null on devices without queues
mge_code EnqueueFill(const mge_run* run, void* destination, int byte, uint64_t bytes);
mge_code EnqueueCopy(const mge_run* run, void* destination, const void* source, uint64_t bytes);  // device to device
// Returns the fault word of the run's queue, where its kernels report faults; valid as long as the queue. In front of each
// signal, the backend enqueues a copy of the word to page-locked memory. The host's wait for the signal checks that copy: if
// it is set, the wait fails with ErrorOf the fault. The queue itself works on, and the word stays set.
Fault* FaultOf(const mge_run* run);
// Returns the number of a kernel in the backend's image of plugins/gpu/kernels, or kNoKernel. plugins/gpu provides this
// function for emulated kernels (emulation/emulator.h).
uint32_t FindKernel(std::string_view name);

// Returns the compute capability (10 * major + minor) for which the code was compiled that runs on a device, as far as it has
// NVIDIA's matrix units; 0: it has none.
int MatrixCapability(mge_device* device);
// Returns whether a vendor's library computes products of 16-bit floats with the device's matrix units.
bool HasLibraryOfProducts(mge_device* device, mge_dtype type);

// ---------------------------------------------------------------- implemented by the operators

// All rows of ops/: using Kernels = gpu::KernelRows.
struct KernelRows {
  static const KernelRow* const* Rows(uint64_t* count);
};
// Offers all groups that one row computes: using Claims = mge::Claims<gpu::FindClaims>.
void FindClaims(const Pattern& pattern, ClaimList& claims);

}  // namespace mge::gpu
