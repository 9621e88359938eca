// SPDX-License-Identifier: Apache-2.0
// Measures how well copies and kernels of the virtual GPU overlap.
//
// Times 8 copies to the device, 8 kernels, and a pipeline in which each kernel waits for its copy. Prints the ratio of the
// pipeline to the longer of the other two; the ideal is 9/8 if both take equally long. Takes the best of several rounds.
// Measures kernels with modelled time, like that of the copies, and kernels that keep a processor busy, which need a free
// one.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "tests/plugins/virtual/virtual_backend.h"

namespace mge {
namespace {

constexpr int kPieces = 8, kRounds = 10;

struct Pipeline {
  Pipeline(int64_t n, Settings settings) : count(n), b(std::move(settings)) {
    for (int i = 0; i < kPieces; ++i) {
      x.push_back(std::make_unique<Slab>(b, bytes));
      y.push_back(std::make_unique<Slab>(b, bytes));
    }
  }
  const int64_t count;
  const uint64_t bytes = static_cast<uint64_t>(count) * sizeof(float);
  VirtualBackend b;
  std::vector<std::unique_ptr<Slab>> x, y;
  std::vector<float> data = std::vector<float>(static_cast<size_t>(count), 1);
  ElementwiseKernel relu{b, "Relu", count};
  Queue in{b, MGE_QUEUE_COPY_IN}, compute{b};
  Fence copied{b};
  uint64_t value = 0;

  double Ms(bool copies, bool kernels) {
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kPieces; ++i) {
      if (copies) {
        in.Copy(x[i]->at(), data.data(), bytes);
        in.Signal(copied, ++value);
      }
      if (copies && kernels) compute.Wait(copied, value);
      if (kernels) relu.Run(compute, {x[i]->at(), y[i]->at()});
    }
    EXPECT_EQ(in.Finish(), MGE_OK);
    EXPECT_EQ(compute.Finish(), MGE_OK);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  }
};

void Measure(const char* what, int64_t n, Settings settings) {
  Pipeline p(n, std::move(settings));
  p.Ms(true, true);  // warm-up: the first access to memory is slow
  double copies = 1e9, kernels = 1e9, both = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    copies = std::min(copies, p.Ms(true, false));
    kernels = std::min(kernels, p.Ms(false, true));
    both = std::min(both, p.Ms(true, true));
  }
  std::printf("%-8s ratio %.3f: copies %.1f ms, kernels %.1f ms, pipeline %.1f ms (%d of %.1f MB each)\n", what,
              both / std::max(copies, kernels), copies, kernels, both, kPieces, static_cast<double>(p.bytes) / 1e6);
}

int Main() {
  Measure("modelled", 1 << 16,
          {{"virtual.devices", "1"}, {"virtual.bandwidth_gb_s", "0.03"}, {"virtual.fault", "kernel@1+=slow(8ms)"}});
  Measure("computed", 1 << 21, {{"virtual.devices", "1"}, {"virtual.bandwidth_gb_s", "1"}});
  return testing::Test::HasFailure() ? 1 : 0;
}

}  // namespace
}  // namespace mge

int main() { return mge::Main(); }
