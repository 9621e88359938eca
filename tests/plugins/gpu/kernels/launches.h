// SPDX-License-Identifier: Apache-2.0
// Launches of the kernels of plugins/gpu, for the checkers of memory and of races.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "plugins/gpu/emulation/emulator.h"
#include "plugins/gpu/fault.h"

namespace mge::gpu {

// Arrays that are separate heap allocations, so that an access outside of one is never inside another.
class Memory {
 public:
  static constexpr size_t kNone = SIZE_MAX;
  // Array number `short_one` lacks its last element.
  explicit Memory(size_t short_one = kNone) : short_one_(short_one) {}

  float* Floats(size_t n) {
    return Array<float>(n, [](size_t) { return 0.5f; });
  }
  uint8_t* Bytes(size_t n) {
    return Array<uint8_t>(n, [](size_t i) { return static_cast<uint8_t>(i % 2); });
  }
  // Creates an array with the elements value(i) for i < n.
  int64_t* Longs(
      size_t n, int64_t (*value)(size_t) = [](size_t) { return int64_t{0}; }) {
    return Array<int64_t>(n, value);
  }
  size_t arrays() const { return arrays_.size(); }
  Fault fault = {};

 private:
  template <typename T>
  T* Array(size_t n, T (*value)(size_t)) {
    if (arrays_.size() == short_one_) --n;
    std::shared_ptr<T[]> array(new T[n]);
    for (size_t i = 0; i < n; ++i) array[i] = value(i);
    arrays_.push_back(array);
    return array.get();
  }
  size_t short_one_;
  std::vector<std::shared_ptr<void>> arrays_;
};

template <typename Args>
Launch LaunchOf(std::string_view kernel, const Args& args, uint32_t threads, uint32_t blocks) {
  Launch launch;
  launch.kernel = FindKernel(kernel);
  launch.grid[0] = blocks;
  launch.block[0] = threads;
  launch.args = &args;
  launch.args_bytes = sizeof(args);
  return launch;
}

// Runs a launch and reports what its checker finds.
using Check = std::function<void(const char* what, const Launch& launch)>;

// Launches of the kernels of plugins/gpu/kernels/NAME.cu, for every way in which their threads share memory. The arrays have
// exactly the needed number of elements.
struct KernelFile {
  const char* name;
  void (*launches)(Memory& m, const Check& check);
};
std::span<const KernelFile> KernelFiles();

}  // namespace mge::gpu
