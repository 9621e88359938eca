// SPDX-License-Identifier: Apache-2.0
// Runs the kernels of plugins/gpu on the CPU, so that they can be tested, and used by the software GPU, without a GPU.
//
// Algorithm
//   - Blocks run in a loop, one after another.
//   - The threads of a block run one after another on one fiber, each to its end. If a thread has to wait (barrier, warp
//     operation), its fiber stops there, and a second fiber runs the threads that have not begun. The last thread to arrive
//     makes all waiting fibers ready. So a kernel without waits costs only a loop, and kernels do not declare whether they
//     wait.
//   - A phased kernel (GPU_PHASE in port.h) contains the loops over threads itself and needs no fibers.
//   - If no fiber is ready and no thread is left to begin, the block is in a deadlock: the launch fails and names the
//     places. Threads at different barriers are reported as divergent.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "plugins/gpu/launch.h"

namespace mge::gpu {

// Properties that differ between real devices. Tests vary them: a correct kernel's results depend on `warp` only by
// rounding.
struct EmulatorSettings {
  enum class Order { kForward, kReverse, kShuffled };
  Order order = Order::kForward;  // order in which the threads of a block begin
  uint32_t seed = 1;              // seed for kShuffled
  uint32_t warp = 32;             // threads per warp: 32 or 64
  bool poison = true;             // fills shared memory with 0xff bytes before each block
  bool whole_reductions = true;   // true: a block reduction waits once; false: it uses shuffles, as on a GPU
};

// One streaming multiprocessor: runs one block at a time in the calling thread. Not thread-safe, but several emulators may
// run blocks of one launch in parallel.
class Emulator {
 public:
  explicit Emulator(const EmulatorSettings& settings = {});
  ~Emulator();
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;

  static uint64_t BlockCount(const Launch& launch) { return uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2]; }
  // Runs blocks [first, first + count), where x varies fastest. Returns false and sets error() if the launch does not match
  // the kernel, or if the kernel breaks a rule: divergent barriers, a deadlock, too much shared memory.
  bool Run(const Launch& launch, uint64_t first, uint64_t count);
  bool Run(const Launch& launch) { return Run(launch, 0, BlockCount(launch)); }
  const std::string& error() const;
  // Returns the number of switches between fibers so far.
  uint64_t switches() const;

  struct Block;  // internal

 private:
  std::unique_ptr<Block> block_;
};

// The kernels of this binary, numbered from 0.
uint32_t KernelCount();
std::string_view KernelName(uint32_t kernel);
uint32_t KernelArgsBytes(uint32_t kernel);  // size of its argument struct

namespace emulation {
struct Kernel;
}
// Adds kernels of another library, which stays loaded: they get the next numbers. A kernel whose name exists is not added.
// [any]
void AddKernels(std::span<const emulation::Kernel* const> kernels);

}  // namespace mge::gpu
