// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/host_blocks.h"

#include <cstring>
#include <set>
#include <vector>

#include "core/plan/memory/source_buffers.h"
#include "gtest/gtest.h"
#include "tests/support/plugin_files.h"

namespace mge {
namespace {

class HostBlocksTest : public ::testing::Test {
 protected:
  Device& host() { return *devices_->Resolve("host")->devices[0].device; }
  std::unique_ptr<Devices> devices_ = Load({});
};

TEST_F(HostBlocksTest, PartsLieInOneBlockAndDoNotOverlap) {
  const std::vector<int64_t> sizes = {1000, 64, 1, 70000, 63};
  HostBlocks blocks(host());
  for (const int64_t bytes : sizes) blocks.Expect(bytes);
  std::set<const void*> owners;
  std::vector<Tensor> parts;
  for (const int64_t bytes : sizes) {
    absl::StatusOr<Tensor> part = blocks.Allocate(bytes);
    ASSERT_TRUE(part.ok());
    EXPECT_EQ(part->bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(part->data()) % 64, 0u);
    std::memset(part->mutable_data(), static_cast<int>(parts.size() + 1), static_cast<size_t>(bytes));
    owners.insert(part->owner().get());
    parts.push_back(*std::move(part));
  }
  EXPECT_EQ(owners.size(), 1u);
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const uint8_t byte : parts[i].Data<uint8_t>()) ASSERT_EQ(byte, i + 1);
  }
}

TEST_F(HostBlocksTest, APartKeepsItsBlock) {
  Tensor part;
  {
    HostBlocks blocks(host());
    blocks.Expect(100);
    part = *blocks.Allocate(100);
  }
  std::memset(part.mutable_data(), 7, 100);
  EXPECT_EQ(part.Data<uint8_t>()[99], 7);
}

TEST_F(HostBlocksTest, MoreThanWasExpectedGetsBlocksOfItsOwn) {
  HostBlocks blocks(host());
  blocks.Expect(64);
  const Tensor first = *blocks.Allocate(64), second = *blocks.Allocate(64);
  EXPECT_NE(first.owner(), second.owner());
}

TEST(SourceBuffersTest, GiveTheBytesOfAConstantAndItsError) {
  SourceBuffers buffers;
  for (const int64_t bytes : {10, 1000, 100}) {
    auto lazy = std::make_shared<LazyBytes>(bytes, "", [](std::span<std::byte> out) {
      std::memset(out.data(), 3, out.size());
      return absl::OkStatus();
    });
    const Tensor constant = Tensor::Lazy(DType::kU8, {bytes}, lazy);
    int64_t threes = 0;
    ASSERT_TRUE(buffers
                    .With(constant,
                          [&](const void* source) {
                            for (int64_t i = 0; i < bytes; ++i) threes += static_cast<const uint8_t*>(source)[i] == 3;
                            return absl::OkStatus();
                          })
                    .ok());
    EXPECT_EQ(threes, bytes);
  }
  auto broken =
      std::make_shared<LazyBytes>(4, "", [](std::span<std::byte>) { return absl::NotFoundError("the file is gone"); });
  const absl::Status status =
      buffers.With(Tensor::Lazy(DType::kU8, {4}, broken), [](const void*) { return absl::OkStatus(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace mge
