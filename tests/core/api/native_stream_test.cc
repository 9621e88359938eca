// SPDX-License-Identifier: Apache-2.0
// Runs that are ordered with the work on a stream of the application, on virtual devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

#include "mge/mge.hpp"
#include "mge/virtual_stream.h"
#include "tests/core/api/api_models.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kPlugins[] = MGE_BINARY_DIR "/lib/mge/plugins";
constexpr char kExamples[] = MGE_BINARY_DIR "/tests/examples";

// A stream of the application: a thread that does the work in order. The destructor waits for all of it.
class Stream {
 public:
  Stream() : thread_([this] { Work(); }) {}
  ~Stream() {
    Add(nullptr);
    thread_.join();
  }
  void* handle() { return &handle_; }
  void Refuse() { refuses_ = true; }

  // Appends work; null ends the thread.
  void Add(std::function<void()> work) {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    changed_.notify_one();
  }

 private:
  static int32_t Append(void* self, void (*work)(void*), void* argument) {
    auto* const stream = static_cast<Stream*>(self);
    if (stream->refuses_) return 7;
    stream->Add([work, argument] { work(argument); });
    return 0;
  }
  void Work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !queue_.empty(); });
      const std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      if (!work) return;
      work();
    }
  }

  mge_virtual_stream handle_ = {sizeof(mge_virtual_stream), this, Append};
  std::atomic<bool> refuses_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::thread thread_;
};

// Work that ends when the gate opens.
class Gate {
 public:
  ~Gate() { Open(); }
  void Open() { open_ = true; }
  std::function<void()> Work() {
    return [this] {
      while (!open_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
  }

 private:
  std::atomic<bool> open_ = false;
};

class NativeStreams : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(std::string(kPlugins) + "/mge_virtual.so")) GTEST_SKIP() << "virtual is not built";
    RuntimeOptions options;
    options.settings = {"threads=2", "virtual.devices=2", "select.strategy=heuristic"};
    options.plugin_directories = {kPlugins, kExamples};
    options.built_in_plugins = options.environment = false;
    Expect(Runtime::Create(options).MoveTo(runtime_));
    Load("virtual0");
    Expect(Tensor::CreateOn(runtime_, "virtual0", MGE_DTYPE_F32, {2}).MoveTo(x_));
    Expect(Tensor::CreateOn(runtime_, "virtual0", MGE_DTYPE_F32, {2}).MoveTo(state_));
    Expect(Tensor::Of<float>({2}, {0, 0})->CopyTo(state_));
    Expect(Tensor::Of<float>({2}, {-1, -1})->CopyTo(x_));
    options_.native_stream = stream_.handle();
  }
  static void Expect(const Status& status) { ASSERT_TRUE(status.ok()) << status.text(); }
  void Load(const std::string& device) {
    static const std::string model = api_models::RunningTotal();
    SessionOptions options;
    options.device = device;
    Expect(Session::LoadBytes(runtime_, model.data(), model.size(), options).MoveTo(session_));
  }
  // Work that writes the run's input.
  std::function<void()> Write(float a, float b) {
    return [this, a, b] { Expect(Tensor::Of<float>({2}, {a, b})->CopyTo(x_)); };
  }
  Status Run() {
    outputs_.clear();
    return session_.Run({&state_, &x_}, outputs_, options_);
  }
  // Returns the total, an output. The run has ended.
  std::vector<float> Total() const {
    const Tensor host = *outputs_[0].ToHost();
    const auto data = host.data<float>();
    return {data.begin(), data.end()};
  }

  Runtime runtime_;
  Session session_;
  Tensor x_, state_;
  std::vector<Tensor> outputs_;
  RunOptions options_;
  Gate gate_;
  Stream stream_;  // ends first; its work uses the members above
};

TEST_F(NativeStreams, AreFollowedByARunThatReadsWhatTheyWrite) {
  stream_.Add(gate_.Work());
  stream_.Add(Write(3, 4));
  RunFence fence;
  options_.fence = &fence;
  Expect(Run());
  EXPECT_FALSE(*fence.WaitFor(0.02));  // enqueued behind the work on the stream
  gate_.Open();
  Expect(fence.Wait());
  EXPECT_THAT(Total(), ElementsAre(3, 4));
}

TEST_F(NativeStreams, DelayLaterWorkUntilTheRunHasEnded) {
  Gate other;
  Stream before;
  before.Add(other.Work());
  RunFence held = *RunFence::OfStream(runtime_, "virtual0", before.handle());  // keeps the run from its start
  RunFence fence;
  options_.after = {&held};
  options_.fence = &fence;
  Expect(Run());
  std::atomic<bool> written = false, ended = false;
  stream_.Add([&] { ended = *fence.WaitFor(0); });
  stream_.Add(Write(7, 7));  // over the input of the run
  stream_.Add([&] { written = true; });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(written);
  other.Open();
  Expect(fence.Wait());
  EXPECT_THAT(Total(), ElementsAre(-1, -1));  // not 7
  while (!written) std::this_thread::yield();
  EXPECT_TRUE(ended);
}

TEST_F(NativeStreams, AreFollowedByACallThatWaits) {
  stream_.Add([] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
  stream_.Add(Write(5, 6));
  Expect(Run());
  EXPECT_THAT(Total(), ElementsAre(5, 6));
}

TEST_F(NativeStreams, OrderManyRunsInARow) {
  RunFence fence;
  options_.fence = &fence;
  for (int i = 0; i < 50; ++i) {
    stream_.Add(Write(static_cast<float>(i), 1));
    Expect(Run());
  }
  Expect(fence.Wait());
  EXPECT_THAT(Total(), ElementsAre(49, 1));
}

TEST_F(NativeStreams, OrderModelsThatAreSplitOverDevices) {
  Load("virtual0+virtual1");
  stream_.Add(gate_.Work());
  stream_.Add(Write(1, 2));
  RunFence fence;
  options_.fence = &fence;
  Expect(Run());
  gate_.Open();
  Expect(fence.Wait());
  EXPECT_THAT(Total(), ElementsAre(1, 2));
}

TEST_F(NativeStreams, HaveFencesForWorkOfTheApplication) {
  stream_.Add(gate_.Work());
  const RunFence fence = *RunFence::OfStream(runtime_, "virtual0", stream_.handle());
  EXPECT_FALSE(*fence.WaitFor(0.01));
  gate_.Open();
  Expect(fence.Wait());
  EXPECT_TRUE(*fence.WaitFor(0));
}

TEST_F(NativeStreams, DoNotHoldARunBeyondItsTimeLimit) {
  stream_.Add(gate_.Work());
  RunControl control = *RunControl::Create();
  control.SetTimeout(0.05);
  options_.control = &control;
  const auto begin = std::chrono::steady_clock::now();
  const Status status = Run();
  EXPECT_EQ(status.code(), MGE_DEADLINE_EXCEEDED) << status.text();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  gate_.Open();
}

TEST_F(NativeStreams, AreRefusedByDevicesThatCannotUseThem) {
  options_.native_stream = stream_.handle();
  for (const auto& [device, reason] : {std::pair("host", "it has no queues"),
                                       std::pair("example_driver0", "does not offer the extension mge.native_streams")}) {
    Load(device);
    const Status status = Run();
    EXPECT_EQ(status.id(), 502) << device;
    EXPECT_THAT(std::string(status.text()), HasSubstr(reason));
    EXPECT_THAT(std::string(status.text()), HasSubstr("cannot be ordered with a stream of the application"));
    EXPECT_EQ(RunFence::OfStream(runtime_, device, stream_.handle()).status().id(), 502);
  }
}

TEST_F(NativeStreams, AreRefusedForRunsThatBeginLater) {
  const Inbox inbox = *Inbox::Create();
  options_.inbox = &inbox;
  EXPECT_THAT(std::string(Run().text()), HasSubstr("native_stream cannot order a run that begins later"));
}

TEST_F(NativeStreams, ThatFailAreAnErrorOfTheRun) {
  stream_.Refuse();
  EXPECT_THAT(std::string(Run().text()), HasSubstr("the stream's function append returned 7"));
  mge_virtual_stream empty = {};
  options_.native_stream = &empty;
  EXPECT_THAT(std::string(Run().text()), HasSubstr("call mge_virtual_stream_init() first"));
  mge_virtual_stream_init(&empty);
  EXPECT_THAT(std::string(Run().text()), HasSubstr("the stream's function append is NULL"));
}

}  // namespace
}  // namespace mge
