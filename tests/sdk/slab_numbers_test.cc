// SPDX-License-Identifier: Apache-2.0
// Numbers in place of addresses (mge/plugin/slab_numbers.hpp), and signal handlers around a driver (mge/plugin/signals.hpp).
#include "mge/plugin/slab_numbers.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include "mge/plugin/signals.hpp"

namespace {

struct Memory {};

TEST(SlabNumbers, ReturnHandleAndOffset) {
  mge::SlabNumbers<Memory, 4> slabs;
  Memory a, b;
  char* first = static_cast<char*>(slabs.Add(&a));
  char* second = static_cast<char*>(slabs.Add(&b));
  EXPECT_EQ(slabs.Find(first).handle, &a);
  EXPECT_EQ(slabs.Find(first + 4096).offset, 4096u);
  EXPECT_EQ(slabs.Find(second + (uint64_t{1} << 40) - 1).handle, &b);  // the last byte of the largest slab
  EXPECT_EQ(reinterpret_cast<uintptr_t>(second) % 4096, 0u);
}

TEST(SlabNumbers, DoNotContainAddressesOfTheHost) {
  mge::SlabNumbers<Memory, 4> slabs;
  Memory on_stack;
  slabs.Add(&on_stack);
  EXPECT_EQ(slabs.Find(&on_stack).handle, nullptr);
  EXPECT_EQ(slabs.Find(nullptr).handle, nullptr);
  EXPECT_EQ(slabs.Find(reinterpret_cast<void*>(UINTPTR_MAX)).handle, nullptr);
}

TEST(SlabNumbers, AreUsedAgainAfterOthers) {
  mge::SlabNumbers<Memory, 4> slabs;
  Memory memory[5];
  void* address[4];
  for (int i = 0; i < 4; ++i) address[i] = slabs.Add(&memory[i]);
  EXPECT_EQ(slabs.Add(&memory[4]), nullptr);
  slabs.Remove(address[2]);
  EXPECT_EQ(slabs.Find(address[2]).handle, nullptr);
  EXPECT_EQ(slabs.Add(&memory[4]), address[2]);
  EXPECT_EQ(slabs.Find(address[2]).handle, &memory[4]);
  EXPECT_EQ(slabs.Find(address[3]).handle, &memory[3]);
}

TEST(KeepSignalHandlers, RestoresHandlersThatADriverReplaced) {
  struct sigaction mine = {}, now = {};
  mine.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGUSR1, &mine, nullptr), 0);
  {
    mge::KeepSignalHandlers keep;
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, [](int) {});
  }
  sigaction(SIGUSR1, nullptr, &now);
  EXPECT_EQ(now.sa_handler, mine.sa_handler);
  sigaction(SIGUSR2, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
  signal(SIGUSR1, SIG_DFL);
}

}  // namespace
