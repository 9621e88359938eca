// SPDX-License-Identifier: Apache-2.0
#include "core/base/lazy_bytes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/base/errors.h"
#include "core/base/source_file.h"
#include "core/base/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Lazy bytes that count how often they were produced.
struct Counted {
  int count = 0;
  absl::Status fault = {};
  std::shared_ptr<LazyBytes> bytes = std::make_shared<LazyBytes>(8, "key", [this](std::span<std::byte> out) -> absl::Status {
    ++count;
    MGE_RETURN_IF_ERROR(fault);
    std::memset(out.data(), 7, out.size());
    return absl::OkStatus();
  });
};

TEST(LazyBytes, AreInMemoryOnlyWhileSomebodyHoldsThem) {
  Counted counted;
  const Tensor lazy = Tensor::Lazy(DType::kU8, {2, 4}, counted.bytes);
  EXPECT_EQ(counted.count, 0);
  {
    const Tensor held = *lazy.Held(), again = *lazy.Reshaped({8}).Held();
    EXPECT_EQ(counted.count, 1);
    EXPECT_EQ(held.data(), again.data());
    EXPECT_EQ(held.Data<uint8_t>()[5], 7);
    EXPECT_EQ(held.shape(), (Shape{2, 4}));
    EXPECT_EQ(again.shape(), (Shape{8}));
  }
  EXPECT_EQ(lazy.Held()->Data<uint8_t>()[0], 7);
  EXPECT_EQ(counted.count, 2);
  std::byte out[8] = {};
  EXPECT_TRUE(counted.bytes->ReadInto(out).ok());
  EXPECT_EQ(counted.count, 3);
}

TEST(LazyBytes, StayInMemoryForAReaderOfTheirAddress) {
  Counted counted;
  Tensor lazy = Tensor::Lazy(DType::kU8, {8}, counted.bytes);
  const void* data = lazy.data();
  EXPECT_EQ(lazy.Data<uint8_t>()[7], 7);
  EXPECT_EQ(lazy.data(), data);
  EXPECT_EQ(lazy.Held()->data(), data);
  EXPECT_EQ(counted.count, 1);
}

TEST(LazyBytes, AreUnpinnedByTheLastReaderOnly) {
  Counted counted;
  const Tensor lazy = Tensor::Lazy(DType::kU8, {8}, counted.bytes);
  counted.bytes->AddReader();
  counted.bytes->AddReader();
  const auto* data = static_cast<const uint8_t*>(lazy.data());
  counted.bytes->Unpin();
  EXPECT_EQ(data[0], 7) << "the other reader may use them";
  counted.bytes->RemoveReader();
  EXPECT_EQ(data[0], 7);
  const absl::StatusOr<Tensor> held = lazy.Held();
  counted.bytes->RemoveReader();
  EXPECT_EQ(held->Data<uint8_t>()[0], 7) << "they are held";
  EXPECT_EQ(lazy.data(), data) << "the address identifies the constant";
  EXPECT_EQ(counted.count, 1);
}

TEST(LazyBytes, AreProducedAgainAfterTheLastReader) {
  Counted counted;
  const Tensor lazy = Tensor::Lazy(DType::kU8, {8}, counted.bytes);
  counted.bytes->AddReader();
  const void* data = lazy.data();
  counted.bytes->RemoveReader();
  EXPECT_EQ(lazy.data(), data);
  EXPECT_EQ(lazy.Data<uint8_t>()[7], 7);
  EXPECT_EQ(counted.count, 2);
}

TEST(LazyBytes, KeepTheFirstResultForTheFirstUserOnly) {
  int count = 0;
  auto memory = std::make_shared<std::byte>(std::byte{5});
  std::weak_ptr<std::byte> watch = memory;
  auto fill = [&](std::span<std::byte> out) {
    ++count;
    out[0] = std::byte{5};
    return absl::OkStatus();
  };
  LazyBytes bytes(1, "", fill, std::move(memory));
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(*bytes.Hold()->get(), std::byte{5});
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(count, 0);
  EXPECT_EQ(*bytes.Hold()->get(), std::byte{5});
  EXPECT_EQ(count, 1);
}

TEST(LazyBytes, ThatCannotBeReadAreAnErrorAndNeverOtherBytes) {
  Counted counted;
  counted.fault = Fail(errors::kFileAccess, "gone");
  EXPECT_EQ(ErrorId(counted.bytes->Hold().status()), errors::kFileAccess.id);
  EXPECT_TRUE(counted.bytes->status().ok());
  EXPECT_EQ(*counted.bytes->Pin(), std::byte{0});
  EXPECT_EQ(ErrorId(counted.bytes->status()), errors::kFileAccess.id);
}

class Source : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mge_test_XXXXXX";
    root_ = mkdtemp(name);
    Write(path(), "0123456789");
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string path() const { return root_ / "file"; }
  void Write(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }
  SourceFile Open(bool keep_open) { return SourceFile(*OpenRegularFile(path()), "file", keep_open); }
  static std::string Read(const SourceFile& file) {
    std::string out(4, '\0');
    const absl::Status status = file.Read(2, std::as_writable_bytes(std::span(out)));
    return status.ok() ? out : FormatError(status);
  }
  fs::path root_;
};

TEST_F(Source, ThatWasWrittenToIsAnErrorInsteadOfOtherBytes) {
  for (const bool keep_open : {true, false}) {
    const SourceFile file = Open(keep_open);
    EXPECT_EQ(Read(file), "2345");
    fs::last_write_time(path(), fs::file_time_type::clock::now() - std::chrono::hours(1));
    EXPECT_THAT(Read(file), HasSubstr("'file' has changed since it was opened"));
    EXPECT_THAT(Read(file), HasSubstr("it was written again"));
    EXPECT_THAT(Read(file), HasSubstr("load the model again"));
    ASSERT_EQ(truncate(path().c_str(), 3), 0);
    EXPECT_THAT(Read(file), HasSubstr("it had 10 bytes, and now has 3"));
    Write(path(), "0123456789");
  }
}

TEST_F(Source, ThatWasReplacedIsReadAsItWasIfItIsOpen) {
  const SourceFile open = Open(true), closed = Open(false);
  Write(root_ / "new", "abcdefghij");
  fs::rename(root_ / "new", path());
  EXPECT_EQ(Read(open), "2345");
  EXPECT_THAT(Read(closed), HasSubstr("another file has replaced it"));
}

}  // namespace
}  // namespace mge
