// SPDX-License-Identifier: Apache-2.0
// Runs the kernels of plugins/gpu on the CPU. Blocks are a loop. The threads of a block run one after another; where one
// waits for others (a barrier, an operation of its warp), a fiber is begun for those that have not run yet.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "plugins/gpu/launch.h"

namespace mge::gpu {

// What a real device leaves open, and tests therefore vary. Results of a right kernel depend on `warp` by rounding alone.
struct EmulatorSettings {
  enum class Order { kForward, kReverse, kShuffled };
  Order order = Order::kForward;  // in which the threads of a block begin
  uint32_t seed = 1;              // of kShuffled
  uint32_t warp = 32;             // threads of a warp: 32 or 64
  bool poison = true;             // shared memory begins as 0xff bytes, not as what the block before left
  bool whole_reductions = true;   // block reductions in one wait; false: by the shuffles that a GPU executes
};

// One streaming multiprocessor: runs one block at a time in the calling thread. Not thread-safe; several emulators may
// run blocks of one launch side by side.
class Emulator {
 public:
  explicit Emulator(const EmulatorSettings& settings = {});
  ~Emulator();
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;

  static uint64_t BlockCount(const Launch& launch) {
    return uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  }
  // Runs blocks [first, first + count), counted with x fastest. False with error() set if the launch does not fit the
  // kernel or the kernel breaks a rule of the machine: divergent barriers, threads that wait for ever, too much shared
  // memory.
  bool Run(const Launch& launch, uint64_t first, uint64_t count);
  bool Run(const Launch& launch) { return Run(launch, 0, BlockCount(launch)); }
  const std::string& error() const;
  // Switches between fibers so far.
  uint64_t switches() const;

  struct Block;  // internal

 private:
  std::unique_ptr<Block> block_;
};

// The kernels that this binary holds, by number.
uint32_t KernelCount();
std::string_view KernelName(uint32_t kernel);

}  // namespace mge::gpu
