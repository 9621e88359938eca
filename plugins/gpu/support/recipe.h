// SPDX-License-Identifier: Apache-2.0
// A recipe: a kernel as a list of launches, fills and copies, built once and enqueued in every run.
//
//   Recipe r;
//   r.Add("relu_f32", Spread(n), UnaryArgs{.n = n}, {Operand::In(0), Operand::Out(0)});
//   return std::move(r).Make();
//
// A kernel's argument struct begins with its pointers. The operands replace them, in order.
#pragma once

#include <cstring>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "plugins/gpu/launch.h"
#include "plugins/gpu/support/packing.h"

namespace mge::gpu {

// An operand of a launch: a pointer that is known only in a run.
struct Operand {
  enum Kind : uint32_t { kNull, kInput, kOutput, kWorkspace, kFault, kRandom } kind = kNull;
  uint32_t index = 0;
  int64_t offset = 0;  // bytes

  static Operand In(int input, int64_t offset = 0) { return {kInput, static_cast<uint32_t>(input), offset}; }
  static Operand Out(int output = 0, int64_t offset = 0) { return {kOutput, static_cast<uint32_t>(output), offset}; }
  static Operand Work(int64_t offset = 0) { return {kWorkspace, 0, offset}; }
  static Operand Null() { return {}; }
  // Returns the operand where the kernel reports faults.
  static Operand Faults() { return {kFault, 0, 0}; }
  // Returns the operand with the key and the counter of random numbers (RandomState).
  static Operand Random() { return {kRandom, 0, 0}; }
  // Returns In(input), or Null() if `input` is negative.
  static Operand MaybeIn(int input) { return input < 0 ? Null() : In(input); }
};

struct Shape3 {
  uint32_t grid[3] = {1, 1, 1}, block[3] = {256, 1, 1};
  uint32_t shared_bytes = 0;
};
// Returns the grid for one thread per element, at most as many blocks as fill a device. Kernels continue in strides of the
// grid.
Shape3 Spread(int64_t elements);
// Returns the grid for one block per row, at most 65535 blocks. Kernels continue in strides of the grid.
Shape3 Rows(int64_t rows);

// A list of launches, fills and copies, from which Make() creates a kernel.
class Recipe {
 public:
  template <typename Args>
  void Add(std::string_view kernel, const Shape3& shape, const Args& args, std::initializer_list<Operand> pointers) {
    Add(kernel, shape, args, std::span<const Operand>(pointers.begin(), pointers.size()));
  }
  template <typename Args>
  void Add(std::string_view kernel, const Shape3& shape, const Args& args, std::span<const Operand> pointers) {
    static_assert(std::is_trivially_copyable_v<Args> && std::is_standard_layout_v<Args> && sizeof(Args) <= kMaxArgsBytes);
    AddLaunch(kernel, shape, &args, sizeof(Args), pointers);
  }
  // Adds the launch of a kernel that the driver has compiled at run time. `args` is its argument struct as words.
  void AddCompiled(void* function, const Shape3& shape, std::span<const int64_t> args, std::span<const Operand> pointers);
  void AddFill(Operand to, int byte, uint64_t bytes);
  // Adds a fill of n elements with the given bits.
  void AddConstant(Operand to, uint64_t bits, int64_t n, uint64_t element_bytes);
  void AddCopy(Operand to, Operand from, uint64_t bytes);
  // Makes the launches read constant input `input` packed. Returns false, and changes nothing, if that would change no
  // element's place. At most one input is packed.
  bool Pack(int input, const Packing& packing);
  // Sets the bytes of workspace that the steps use.
  void SetWorkspace(uint64_t bytes) { workspace_ = bytes; }
  uint64_t workspace() const { return workspace_; }
  // Sets the number of Philox blocks that one run draws.
  void SetRandomBlocks(uint64_t blocks) { random_blocks_ = blocks; }
  int launches() const { return static_cast<int>(steps_.size()); }
  // Creates the kernel. Returns null if the backend's image lacks one of the kernels.
  KernelPtr Make() &&;

 private:
  friend class RecipeKernel;
  struct Step {
    enum Kind : uint32_t { kLaunch, kFill, kCopy } kind;
    Launch launch;  // args are in the member `args`
    int byte = 0;
    uint64_t bytes = 0;
    std::vector<Operand> pointers;  // kFill, kCopy: destination, source
    std::vector<char> args;
  };
  void AddLaunch(std::string_view kernel, const Shape3& shape, const void* args, size_t bytes,
                 std::span<const Operand> pointers);
  void AddLaunch(const Launch& launch, const Shape3& shape, const void* args, size_t bytes,
                 std::span<const Operand> pointers);

  std::vector<Step> steps_;
  int packed_ = -1;  // input; -1: none
  Packing packing_;
  uint64_t workspace_ = 0, random_blocks_ = 0;
  bool complete_ = true;
};

}  // namespace mge::gpu
