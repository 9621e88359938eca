// SPDX-License-Identifier: Apache-2.0
#include "core/base/input_file.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/base/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class InputFile : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mge_test_XXXXXX";
    root_ = mkdtemp(name);
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string Write(const std::string& name, const std::string& bytes) {
    std::ofstream(root_ / name, std::ios::binary) << bytes;
    return root_ / name;
  }

  fs::path root_;
};

// Two ends of a pipe or a socket, with a thread that writes to one of them.
class Stream {
 public:
  Stream(std::string bytes, bool socket) {
    std::signal(SIGPIPE, SIG_IGN);  // the reader may stop early
    int ends[2];
    EXPECT_EQ(socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends), 0);
    in_ = Fd(ends[0]);
    writer_ = std::thread([bytes = std::move(bytes), out = ends[1]] {
      for (size_t done = 0; done < bytes.size();) {
        const ssize_t n = write(out, bytes.data() + done, std::min<size_t>(bytes.size() - done, 100'000));
        if (n <= 0) break;
        done += static_cast<size_t>(n);
      }
      close(out);
    });
  }
  ~Stream() {
    in_ = Fd();
    writer_.join();
  }
  std::string path() const { return "/dev/fd/" + std::to_string(in_.get()); }

 private:
  Fd in_;
  std::thread writer_;
};

TEST_F(InputFile, MayBeAPipeOrASocketThatTheProcessHolds) {
  std::string bytes(3'000'000, 'x');
  bytes.back() = 'y';
  for (const bool socket : {false, true}) {
    Stream stream(bytes, socket);
    absl::StatusOr<InputBytes> input = ReadInput(stream.path(), 1 << 30);
    ASSERT_TRUE(input.ok()) << FormatError(input.status());
    EXPECT_EQ(AsText(input->bytes), bytes);
    EXPECT_EQ(input->name, stream.path());
  }
}

TEST_F(InputFile, OfAPipeCanBeOpenedAgainButNotChanged) {
  Stream stream("content", false);
  absl::StatusOr<RegularFile> file = OpenInput(stream.path(), 100);
  ASSERT_TRUE(file.ok()) << FormatError(file.status());
  EXPECT_TRUE(IsPipeMemory(file->fd.get()));
  const std::string again = "/proc/self/fd/" + std::to_string(file->fd.get());
  for (int i = 0; i < 2; ++i) {
    absl::StatusOr<InputBytes> input = ReadInput(again, 100);
    ASSERT_TRUE(input.ok()) << FormatError(input.status());
    EXPECT_EQ(AsText(input->bytes), "content");
    EXPECT_EQ(input->name, stream.path()) << "messages name the pipe";
  }
  EXPECT_NE(ftruncate(file->fd.get(), 0), 0);
  EXPECT_LT(pwrite(file->fd.get(), "x", 1, 0), 0);
}

TEST_F(InputFile, KeepsTheSizeLimit) {
  auto file = ReadInput(Write("a", "12345"), 4, "make it smaller");
  EXPECT_EQ(ErrorId(file.status()), errors::kLimit.id);
  EXPECT_THAT(FormatError(file.status()), HasSubstr("5 bytes; the limit is 4"));
  EXPECT_THAT(FormatError(file.status()), HasSubstr("make it smaller"));
  Stream stream(std::string(300'000, 'x'), false);
  auto piped = ReadInput(stream.path(), 4, "make it smaller");
  EXPECT_EQ(ErrorId(piped.status()), errors::kLimit.id);
  EXPECT_THAT(FormatError(piped.status()), HasSubstr("more than 4 bytes"));
}

TEST_F(InputFile, MayBeEmpty) {
  auto file = ReadInput(Write("a", ""), 4);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->bytes.empty());
  Stream stream("", false);
  auto piped = ReadInput(stream.path(), 4);
  ASSERT_TRUE(piped.ok());
  EXPECT_TRUE(piped->bytes.empty());
}

TEST_F(InputFile, IsNotANamedFifoOrADevice) {
  ASSERT_EQ(mkfifo((root_ / "fifo").c_str(), 0600), 0);  // opening it would wait for a writer
  EXPECT_THAT(FormatError(OpenInput(root_ / "fifo", 100).status()), HasSubstr("it is a FIFO"));
  EXPECT_THAT(FormatError(OpenInput("/dev/zero", 100).status()), HasSubstr("it is a device"));
  EXPECT_THAT(FormatError(OpenInput("/dev/zero", 100).status()), HasSubstr("/dev/stdin"));
  EXPECT_THAT(FormatError(OpenInput(root_, 100).status()), HasSubstr("it is a directory"));
}

}  // namespace
}  // namespace mge
