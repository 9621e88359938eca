// SPDX-License-Identifier: Apache-2.0
// A GPU of the machine, used through the library as applications do. The tarball has this program: it needs no source tree.
//
//   GPU_TEST_DEVICE   the device; without it, gpu0, and all tests are skipped if that cannot be used
//   GPU_TEST_MODELS   a folder with digits.onnx; without it, that of the source tree
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "mge/mge.hpp"

namespace mge {
namespace {

std::string Variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? value : otherwise;
}
std::string Gpu() { return Variable("GPU_TEST_DEVICE", "gpu0"); }

class Gpus : public testing::Test {
 protected:
  void SetUp() override {
    Status s = Runtime::Create({}).MoveTo(runtime_);
    ASSERT_TRUE(s.ok()) << s.text();
    s = Load(Gpu(), {}, &session_);
    if (s.ok()) return;
    if (std::getenv("GPU_TEST_DEVICE")) FAIL() << s.text();
    GTEST_SKIP() << s.title() << ": " << s.what();
  }

  Status Load(const std::string& device, SessionOptions options, Session* out) {
    options.device = device;
    return Session::Load(runtime_, Variable("GPU_TEST_MODELS", MGE_SOURCE_DIR "/packaging/digits") + "/digits.onnx", options)
        .MoveTo(*out);
  }
  // Returns inputs for this number of images.
  static std::vector<Tensor> Images(const Session& session, int count) {
    auto example = session.ExampleInputs({.shapes = {"image=" + std::to_string(count) + "x1x8x8"}});
    EXPECT_TRUE(example.ok()) << example.status().text();
    return example.ok() ? std::move(example->inputs) : std::vector<Tensor>();
  }
  // Runs the session. Returns the first output in host memory.
  static std::vector<float> Run(Session& session, const Tensor& input, RunControl* control = nullptr) {
    std::vector<Tensor> outputs;
    const Status s = session.Run({&input}, outputs, {.control = control});
    EXPECT_TRUE(s.ok()) << s.text();
    return s.ok() ? Numbers(outputs[0]) : std::vector<float>();
  }
  static std::vector<float> Numbers(const Tensor& tensor) {
    Tensor host;
    const Status s = tensor.ToHost().MoveTo(host);
    EXPECT_TRUE(s.ok()) << s.text();
    const std::span<float> data = host.data<float>();
    return {data.begin(), data.end()};
  }

  Runtime runtime_;
  Session session_;  // of the GPU
};

// New shapes are planned, and known ones are replayed.
TEST_F(Gpus, HaveTheResultsOfTheReferenceForEveryNumberOfImages) {
  Session host;
  ASSERT_TRUE(Load("host", {}, &host).ok());
  for (int images : {1, 3, 3, 3, 64, 5, 3, 1}) {
    const std::vector<Tensor> in = Images(host, images);
    const std::vector<float> got = Run(session_, in[0]), want = Run(host, in[0]);
    ASSERT_EQ(got.size(), want.size());
    float largest = 0, difference = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      largest = std::max(largest, std::abs(want[i]));
      difference = std::max(difference, std::abs(got[i] - want[i]));
    }
    EXPECT_LE(difference, 2e-3f * largest) << images;  // half of it is the error of TF32, which a setting may allow
  }
}

// The convolutions and products of the model have a Relu, which libraries compute with them.
TEST_F(Gpus, PassNanThroughLayersWithRelu) {
  std::vector<Tensor> in = Images(session_, 4);
  const std::span<float> pixels = in[0].data<float>();
  std::fill(pixels.begin(), pixels.begin() + 64, NAN);  // the first image
  const std::vector<float> got = Run(session_, in[0]);
  const size_t classes = got.size() / 4;
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(std::isnan(got[i]), i < classes) << i;
}

TEST_F(Gpus, HaveTheSameBitsInEveryRun) {
  const std::vector<Tensor> in = Images(session_, 16);
  const std::vector<float> first = Run(session_, in[0]);
  for (int run = 0; run < 50; ++run) {
    const std::vector<float> again = Run(session_, in[0]);
    ASSERT_EQ(std::memcmp(first.data(), again.data(), first.size() * sizeof(float)), 0) << run;
  }
}

TEST_F(Gpus, ServeSeveralThreads) {
  std::vector<std::vector<Tensor>> inputs;
  std::vector<std::vector<float>> expected;
  for (int t = 0; t < 4; ++t) {
    inputs.push_back(Images(session_, t + 1));
    expected.push_back(Run(session_, inputs.back()[0]));
  }
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int run = 0; run < 25; ++run) wrong[t] += Run(session_, inputs[t][0]) != expected[t];
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST_F(Gpus, RunWhatIsEnqueuedInItsOrder) {
  Session on_device;
  ASSERT_TRUE(Load(Gpu(), {.outputs_on_device = true}, &on_device).ok());
  // All runs write one tensor, from different images. Only the last one is that of the expected numbers.
  constexpr size_t kRuns = 10;
  const std::vector<Tensor> images = Images(session_, 8);
  std::vector<Tensor> in(kRuns);
  for (size_t i = 0; i < kRuns; ++i) {
    std::vector<float> pixels = Numbers(images[0]);
    for (float& p : pixels) p *= static_cast<float>(kRuns - i);
    ASSERT_TRUE(Tensor::Of<float>(std::vector<int64_t>{8, 1, 8, 8}, pixels).MoveTo(in[i]).ok());
  }
  const std::vector<float> expected = Run(session_, in.back());
  EXPECT_NE(Run(session_, in[0]), expected);
  std::vector<Tensor> output;
  ASSERT_TRUE(on_device.Run({&in[0]}, output).ok());
  EXPECT_NE(output[0].device(), "");
  std::vector<RunFence> fences(kRuns);
  for (size_t i = 0; i < kRuns; ++i) {
    const Tensor* const input[] = {&in[i]};
    std::vector<const RunFence*> after;
    if (i) after.push_back(&fences[i - 1]);
    const Status s = on_device.Run(std::span(input), output, {.after = after, .fence = &fences[i]});
    ASSERT_TRUE(s.ok()) << s.text();
  }
  const Status s = fences.back().Wait();
  ASSERT_TRUE(s.ok()) << s.text();
  EXPECT_EQ(Numbers(output[0]), expected);
}

TEST_F(Gpus, WorkOnAfterErrors) {
  const std::vector<Tensor> in = Images(session_, 2);
  const std::vector<float> expected = Run(session_, in[0]);
  Tensor wrong;
  ASSERT_TRUE(Tensor::Of<float>({1, 2}, {1, 2}).MoveTo(wrong).ok());
  for (int round = 0; round < 3; ++round) {
    std::vector<Tensor> outputs;
    EXPECT_FALSE(session_.Run({&wrong}, outputs).ok());
    RunControl control = *RunControl::Create();
    control.Cancel();
    outputs.clear();
    EXPECT_FALSE(session_.Run({&in[0]}, outputs, {.control = &control}).ok());
    EXPECT_EQ(Run(session_, in[0]), expected);
  }
}

// The first session makes the driver allocate memory of its own, which it keeps.
TEST_F(Gpus, GetTheirMemoryBack) {
  const std::string name = Gpu();
  if (!name.starts_with("gpu")) GTEST_SKIP() << "the memory of " << name << " is not that of a gpu";
  const int number = std::atoi(name.c_str() + 3);
  session_ = Session();
  const auto used = [&] {
    EXPECT_TRUE(gpu(number).empty_cache(runtime_).ok());
    const Result<GpuMemory> memory = gpu_memory_info(runtime_, number);
    EXPECT_TRUE(memory.ok()) << memory.status().text();
    return memory->total_bytes - memory->free_bytes;
  };
  uint64_t before = 0;
  for (int round = 0; round < 4; ++round) {
    Session session;
    ASSERT_TRUE(Load(Gpu(), {}, &session).ok());
    for (int images : {1, 200, 200, 200}) Run(session, Images(session, images)[0]);
    session = Session();
    if (round == 0) before = used();
  }
  constexpr uint64_t kOthers = 8 << 20;  // of other processes
  EXPECT_LE(used(), before + kOthers);
}

}  // namespace
}  // namespace mge
