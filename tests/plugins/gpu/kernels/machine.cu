// SPDX-License-Identifier: Apache-2.0
// Kernels for the tests of the emulator, and kernels with one fault each for the tests of its checkers.
#include <unistd.h>

#include "plugins/gpu/kernels/async_copy.h"
#include "plugins/gpu/kernels/block_reduce.h"
#include "plugins/gpu/kernels/mma.h"
#include "plugins/gpu/port.h"
#include "tests/plugins/gpu/kernels/machine.h"

namespace mge::gpu {

// ---------------------------------------------------------------- correct kernels

// Writes three values per thread: the number of set lanes before it, the number of set lanes, the value two lanes further.
GPU_DEVICE void WarpOperations(const MachineArgs& args) {
  const int lane = static_cast<int>(threadIdx.x) % GPU_WARP, v = args.x[threadIdx.x];
  const uint64_t set = Ballot(v != 0);
  int before = 0, all = 0;
  for (int i = 0; i < GPU_WARP; ++i) {
    const int bit = static_cast<int>((set >> i) & 1);
    all += bit;
    before += i < lane ? bit : 0;
  }
  args.y[3 * threadIdx.x] = before;
  args.y[3 * threadIdx.x + 1] = Shuffle(all, GPU_WARP - 1);
  args.y[3 * threadIdx.x + 2] = ShuffleDown(v, 2);
}
// Writes into y[i] the thread that started as number i.
GPU_DEVICE void OrderOfThreads(const MachineArgs& args) {
  args.y[atomicAdd(args.y + args.n, 1)] = static_cast<int32_t>(threadIdx.x);
}
// Writes into y[block] the initial content of shared memory.
GPU_DEVICE void FirstShared(const MachineArgs& args) {
  GPU_SHARED(int32_t, s, [64]);
  if (threadIdx.x == 0) args.y[blockIdx.x] = s[0];
  GPU_BARRIER();
  s[threadIdx.x] = 7;
}
// Writes into y the elements of x, reversed within each block.
GPU_DEVICE void TurnRound(const MachineArgs& args) {
  GPU_DYNAMIC_SHARED(int32_t, s);
  const int64_t base = static_cast<int64_t>(blockIdx.x) * blockDim.x;
  s[threadIdx.x] = args.x[base + threadIdx.x];
  GPU_BARRIER();
  args.y[base + threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
// Copies x to y through both parts of shared memory, static and dynamic.
GPU_DEVICE void TwoParts(const MachineArgs& args) {
  GPU_DYNAMIC_SHARED(int32_t, a);
  GPU_SHARED(int32_t, b, [64]);
  b[threadIdx.x] = args.x[threadIdx.x];
  a[threadIdx.x] = b[threadIdx.x];
  args.y[threadIdx.x] = a[threadIdx.x];
}
GPU_DEVICE void SumOfBlock(const MachineArgs& args) {
  GPU_SHARED(float, part, [32]);
  const float sum = BlockReduce<JoinSum>(static_cast<float>(args.x[threadIdx.x]), part);
  args.y[threadIdx.x] = static_cast<int32_t>(sum);
}
GPU_DEVICE void Place(const MachineArgs& args) {
  const uint32_t block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const uint32_t thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  args.y[block * blockDim.x * blockDim.y * blockDim.z + thread] = static_cast<int32_t>(block * 1000 + thread);
}

// Multiplies x (a, 16 x K, by rows, then b, K x 8, by rows; the numbers are small integers) into y (16 x 8, by rows) with
// the fragments that mma.h describes; K is 16 for 16-bit floats, 8 for TF32. Both warps of the block compute the same.
template <typename T>
GPU_DEVICE void MatrixUnits(const MachineArgs& args) {
  constexpr int kEach = 4 / sizeof(T), kDepth = 8 * kEach;
  GPU_STATE(uint32_t, a, 64, [1][4]);
  GPU_STATE(uint32_t, b, 64, [1][2]);
  GPU_STATE(float, d, 64, [1][1][4]);
  // Returns the register with the elements at `at` and, of 16-bit floats, `next`.
  const auto word = [&](int64_t at, int64_t next) {
    if constexpr (kEach == 1) {
      return BitCast<uint32_t>(RoundToTf32(static_cast<float>(args.x[at])));
    } else {
      const auto bits = [&](int64_t i) { return static_cast<uint32_t>(Narrow<T>::Of(static_cast<float>(args.x[i])).bits); };
      return bits(at) | bits(next) << 16;
    }
  };
  GPU_PHASE(l) {
    const int g = l % 32 / 4, t = l % 4;
    for (int r = 0; r < 4; ++r) {
      const int row = g + (r % 2 ? 8 : 0), k = kEach * t + (r >= 2 ? kDepth / 2 : 0);
      GPU_OWN(a, l)[0][r] = word(row * kDepth + k, row * kDepth + k + 1);
      GPU_OWN(d, l)[0][0][r] = 0;
    }
    for (int r = 0; r < 2; ++r) {
      const int k = kEach * t + kDepth / 2 * r;
      GPU_OWN(b, l)[0][r] = word(16 * kDepth + k * 8 + g, 16 * kDepth + (k + 1) * 8 + g);
    }
  }
  GPU_WARP_PHASE(first) { MultiplyFragments<T, 1, 1>(GPU_LANES(d, first), GPU_LANES(a, first), GPU_LANES(b, first), 0, 0); }
  GPU_PHASE(l) {
    for (int r = 0; l < 32 && r < 4; ++r) {
      args.y[(l / 4 + 8 * (r / 2)) * 8 + 2 * (l % 4) + r % 2] = static_cast<int32_t>(GPU_OWN(d, l)[0][0][r]);
    }
  }
}

// Writes into y the elements of x, in groups of 4 from last to first, through copies to shared memory in the background.
template <bool kAwaits>
GPU_DEVICE void CopyInBackground(const MachineArgs& args) {
  GPU_SHARED(CopyUnit, s, [64]);
  const int t = static_cast<int>(threadIdx.x);
  CopyAsync(&s[t], args.x + 4 * t, true, t);
  if (kAwaits) AwaitCopies(t);
  GPU_BARRIER();
  for (int i = 0; i < 4; ++i) args.y[4 * t + i] = static_cast<int32_t>(s[63 - t].words[i]);
}

// Copies elements of x, and zeros as a second group. Writes into y the elements and what the place of the zeros has when the
// thread has waited for the first group, then what it has when the thread has waited for both.
GPU_DEVICE void CopyGroups(const MachineArgs& args) {
  GPU_SHARED(CopyUnit, first, [64]);
  GPU_SHARED(CopyUnit, second, [64]);
  const int t = static_cast<int>(threadIdx.x);
  CopyAsync(&first[t], args.x + 4 * t, true, t);
  CommitCopies(t);
  CopyAsync(&second[t], nullptr, false, t);
  CommitCopies(t);
  AwaitCopiesBefore<1>(t);
  for (int i = 0; i < 4; ++i) args.y[4 * t + i] = static_cast<int32_t>(first[t].words[i]);
  args.y[256 + t] = static_cast<int32_t>(second[t].words[0]);
  AwaitCopiesBefore<0>(t);
  args.y[320 + t] = static_cast<int32_t>(second[t].words[0]);
}

// Rounds the floats whose bits x holds to TF32, into y.
GPU_DEVICE void RoundAll(const MachineArgs& args) {
  const int64_t i = GridThread();
  args.y[i] = BitCast<int32_t>(RoundToTf32(BitCast<float>(args.x[i])));
}

// ---------------------------------------------------------------- faulty kernels

GPU_DEVICE void BarrierForSome(const MachineArgs& args) {
  if (threadIdx.x < 16) GPU_BARRIER();
  args.y[threadIdx.x] = 1;
}
GPU_DEVICE void TwoBarriers(const MachineArgs& args) {
  if (threadIdx.x < 16)
    GPU_BARRIER();
  else
    GPU_BARRIER();
  args.y[threadIdx.x] = 1;
}
GPU_DEVICE void WarpWaitsForBlock(const MachineArgs& args) {
  if (threadIdx.x % 2) GPU_BARRIER();
  args.y[threadIdx.x] = ShuffleXor(static_cast<int32_t>(threadIdx.x), 1);
}
GPU_DEVICE void TooMuchShared(const MachineArgs& args) {
  GPU_SHARED(int32_t, s, [20000]);
  s[threadIdx.x] = 1;
  args.y[threadIdx.x] = s[threadIdx.x];
}
GPU_DEVICE void RaceOfNeighbours(const MachineArgs& args) {
  GPU_SHARED(int32_t, s, [64]);
  s[threadIdx.x] = static_cast<int32_t>(threadIdx.x);
  args.y[threadIdx.x] = s[threadIdx.x ^ 32];
}
GPU_DEVICE void RaceOfBlocks(const MachineArgs& args) { args.y[threadIdx.x] += 1; }
GPU_DEVICE void PhasesWithoutBarrier(const MachineArgs& args) {
  GPU_SHARED(int32_t, s, [64]);
  GPU_PHASE(t) s[t] = args.x[t];
  GPU_PHASE(t) args.y[t] = s[63 - t];
}
GPU_DEVICE void SharedTooFar(const MachineArgs& args) {
  GPU_SHARED(int32_t, s, [64]);
  s[threadIdx.x + 1] = 1;
  GPU_BARRIER();
  args.y[threadIdx.x] = s[threadIdx.x];
}

// Fills n KiB of stack by recursion.
[[gnu::noinline]] static int32_t Deep(int64_t n) {
  volatile int32_t kib[256];
  for (int i = 0; i < 256; ++i) kib[i] = static_cast<int32_t>(n);
  return (n == 0 ? 0 : Deep(n - 1)) + kib[n & 255];
}
GPU_DEVICE void DeepStack(const MachineArgs& args) {
  if (threadIdx.x == 1) {
    args.y[0] = Deep(args.n);
    _exit(kCameThrough);
  }
  GPU_BARRIER();
}

GPU_KERNEL(machine_warp_operations, 256, MachineArgs, WarpOperations)
GPU_KERNEL(machine_order_of_threads, 256, MachineArgs, OrderOfThreads)
GPU_KERNEL(machine_first_shared, 256, MachineArgs, FirstShared)
GPU_KERNEL(machine_turn_round, 256, MachineArgs, TurnRound)
GPU_KERNEL(machine_two_parts, 256, MachineArgs, TwoParts)
GPU_KERNEL(machine_sum_of_block, 256, MachineArgs, SumOfBlock)
GPU_KERNEL(machine_place, 256, MachineArgs, Place)
GPU_PHASED_KERNEL(machine_matrix_units_f16, 64, MachineArgs, MatrixUnits<f16>)
GPU_PHASED_KERNEL(machine_matrix_units_bf16, 64, MachineArgs, MatrixUnits<bf16>)
GPU_PHASED_KERNEL(machine_matrix_units_tf32, 64, MachineArgs, MatrixUnits<float>)
GPU_KERNEL(machine_copy, 64, MachineArgs, CopyInBackground<true>)
GPU_KERNEL(machine_copy_groups, 64, MachineArgs, CopyGroups)
GPU_KERNEL(machine_copy_without_wait, 64, MachineArgs, CopyInBackground<false>)
GPU_KERNEL(machine_round_to_tf32, 256, MachineArgs, RoundAll)
GPU_KERNEL(machine_barrier_for_some, 256, MachineArgs, BarrierForSome)
GPU_KERNEL(machine_two_barriers, 256, MachineArgs, TwoBarriers)
GPU_KERNEL(machine_warp_waits_for_block, 256, MachineArgs, WarpWaitsForBlock)
GPU_KERNEL(machine_too_much_shared, 256, MachineArgs, TooMuchShared)
GPU_KERNEL(machine_race_of_neighbours, 256, MachineArgs, RaceOfNeighbours)
GPU_KERNEL(machine_race_of_blocks, 256, MachineArgs, RaceOfBlocks)
GPU_PHASED_KERNEL(machine_phases_without_barrier, 256, MachineArgs, PhasesWithoutBarrier)
GPU_KERNEL(machine_shared_too_far, 256, MachineArgs, SharedTooFar)
GPU_KERNEL(machine_deep_stack, 256, MachineArgs, DeepStack)

}  // namespace mge::gpu
