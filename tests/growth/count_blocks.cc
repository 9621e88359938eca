// SPDX-License-Identifier: Apache-2.0
// The callback of -fsanitize-coverage=trace-pc. This file is compiled without the option.
#include "tests/growth/count_blocks.h"
namespace {

std::atomic<uint64_t> g_blocks{0}, g_at{UINT64_MAX};
std::atomic<int32_t>* g_flag = nullptr;
int32_t g_value = 0;

}  // namespace

extern "C" void __sanitizer_cov_trace_pc() {
  if (g_blocks.fetch_add(1, std::memory_order_relaxed) == g_at.load(std::memory_order_relaxed)) g_flag->store(g_value);
}

uint64_t BlocksExecuted() { return g_blocks.load(std::memory_order_relaxed); }

void SetFlagAt(uint64_t blocks, std::atomic<int32_t>* flag, int32_t value) {
  g_flag = flag;
  g_value = value;
  g_at.store(blocks);
}
