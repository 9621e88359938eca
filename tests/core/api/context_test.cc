// SPDX-License-Identifier: Apache-2.0
// Contexts through the public C++ API, on virtual GPUs: the names of mxnet.context.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mge/mge.hpp"
#include "tests/core/api/api_models.h"

namespace mge {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Contexts : public ::testing::Test {
 protected:
  void SetUp() override { Start({"virtual.devices=2", "virtual.gpu=1"}); }

  void Start(std::vector<std::string> settings) {
    runtime_ = Runtime();
    RuntimeOptions options;
    options.settings = std::move(settings);
    options.settings.push_back("select.strategy=heuristic");
    options.plugin_directories = {MGE_BINARY_DIR "/lib/mge/plugins"};
    options.built_in_plugins = options.environment = false;
    Expect(Runtime::Create(options).MoveTo(runtime_));
  }

  // Loads the model total = state + x, y = relu(total) * total.
  Session Load(const std::string& device = "") {
    static const std::string model = api_models::RunningTotal();
    Session session;
    SessionOptions options;
    options.device = device;
    Expect(Session::LoadBytes(runtime_, model.data(), model.size(), options).MoveTo(session));
    return session;
  }

  static void Expect(const Status& status) { ASSERT_TRUE(status.ok()) << status.text(); }

  Tensor In(const Context& context, int64_t elements) {
    Tensor t;
    Expect(Tensor::CreateOn(runtime_, context, MGE_DTYPE_F32, {elements}).MoveTo(t));
    return t;
  }
  Tensor InCurrent(int64_t elements) {
    Tensor t;
    Expect(Tensor::CreateOn(runtime_, MGE_DTYPE_F32, {elements}).MoveTo(t));
    return t;
  }
  std::string Current() {
    Context context;
    Expect(current_context(runtime_).MoveTo(context));
    return context.ToString();
  }
  uint64_t FreeBytes(int device) {
    const Result<GpuMemory> memory = gpu_memory_info(runtime_, device);
    Expect(memory.status());
    EXPECT_LE(memory->free_bytes, memory->total_bytes);
    return memory->free_bytes;
  }
  static uint64_t Staged(const Session& session) {
    mge_memory_facts facts = {};
    Expect(session.Memory().MoveTo(facts));
    return facts.staged_bytes;
  }

  Runtime runtime_;
};

TEST_F(Contexts, AreATypeAndAnId) {
  EXPECT_EQ(gpu(2).device_type(), "gpu");
  EXPECT_EQ(gpu(2).device_id(), 2);
  EXPECT_EQ(gpu(2), Context("gpu", 2));
  EXPECT_EQ(cpu(), Context());
  EXPECT_FALSE(cpu_pinned() == cpu());
  Context parsed;
  Expect(Context::Parse("gpu(1)").MoveTo(parsed));
  EXPECT_EQ(parsed, gpu(1));
  Expect(Context::Parse("virtual1").MoveTo(parsed));
  EXPECT_EQ(parsed.ToString(), "virtual(1)");
}

TEST_F(Contexts, AreTheCurrentOneInsideAScope) {
  EXPECT_EQ(Current(), "cpu(0)");
  {
    const auto outer = ContextScope::Enter(gpu(1));
    Expect(outer.status());
    EXPECT_EQ(Current(), "gpu(1)");
    std::thread([&] { EXPECT_EQ(Current(), "cpu(0)"); }).join();  // a scope belongs to its thread
    {
      const auto inner = ContextScope::Enter("cpu_pinned(0)");
      EXPECT_EQ(Current(), "cpu_pinned(0)");
    }
    EXPECT_EQ(Current(), "gpu(1)");
  }
  EXPECT_EQ(Current(), "cpu(0)");
}

TEST_F(Contexts, MayBeLeftOpenByAThreadThatEnds) {
  std::thread([&] {
    const Context context = gpu(1);
    for (int i = 0; i < 10'000; ++i) Expect(Status(mge_context_push(context.get())));
    EXPECT_EQ(Current(), "gpu(1)");
  }).join();
  EXPECT_EQ(Current(), "cpu(0)");
}

TEST_F(Contexts, DecideWhereTensorsAndSessionsAre) {
  EXPECT_EQ(In(gpu(1), 6).context(), gpu(1));
  const auto scope = ContextScope::Enter(gpu(1));
  EXPECT_EQ(InCurrent(6).context(), gpu(1));
  EXPECT_EQ(In(cpu(), 6).context(), cpu());
  Session session = Load();
  EXPECT_EQ(session.device(0), "virtual1");
  const Tensor state = InCurrent(3), x = InCurrent(3);
  std::vector<Tensor> out;
  Expect(session.Run({&state, &x}, out));
  EXPECT_EQ(Staged(session), out[0].bytes() + out[1].bytes());  // the inputs lie where the session runs
}

TEST_F(Contexts, AreWordsForPlacesOfTensorsInC) {
  struct Row {
    const char *place, *device;
    int page_locked;
  };
  const int64_t dims[] = {2};
  for (const Row& row : {Row{"cpu", "", 0}, Row{"cpu(0)", "", 0}, Row{"cpu0", "cpu0", 0}, Row{"gpu1", "virtual1", 0},
                         Row{"gpu(1)", "virtual1", 0}, Row{"virtual0", "virtual0", 0}, Row{"cpu_pinned(0)", "virtual0", 1},
                         Row{"cpu_pinned(1)", "virtual1", 1}, Row{"cpu_pinned(virtual1)", "virtual1", 1}}) {
    mge_tensor* raw = nullptr;
    Expect(Status(mge_tensor_create_on(runtime_.get(), row.place, MGE_DTYPE_F32, dims, 1, &raw)));
    Tensor t(raw);
    EXPECT_EQ(t.device(), row.device) << row.place;
    EXPECT_EQ(t.page_locked(), row.page_locked != 0) << row.place;
    EXPECT_THAT(t.data<float>(), Each(0.0F)) << row.place;  // nothing where the host cannot access it
  }
  Expect(Status(mge_device_push("gpu1")));
  mge_string* current = nullptr;
  Expect(Status(mge_device_current(runtime_.get(), &current)));
  EXPECT_STREQ(mge_string_data(current), "gpu(1)");
  mge_string_release(current);
  EXPECT_EQ(InCurrent(2).device(), "virtual1");
  Expect(Status(mge_device_pop()));
  EXPECT_EQ(Status(mge_device_pop()).id(), 207);
  Tensor t;
  EXPECT_EQ(Tensor::CreateOn(runtime_, "gpu0+gpu1", MGE_DTYPE_F32, dims).MoveTo(t).id(), 501);
  EXPECT_EQ(Tensor::CreateOn(runtime_, "cpu_pinned(virtul0)", MGE_DTYPE_F32, dims).MoveTo(t).id(), 501);
}

TEST_F(Contexts, OfAnUnknownTypeOrDeviceAreErrors) {
  const auto scope = ContextScope::Enter(Context("gpi", 0));
  EXPECT_THAT(scope.status().text(), HasSubstr("gpi(0)"));
  EXPECT_THAT(scope.status().text(), HasSubstr("Did you mean \"gpu\"?"));
  EXPECT_EQ(Current(), "cpu(0)");
  EXPECT_FALSE(ContextScope::Enter(Context("gpu", -1)).ok());
  EXPECT_FALSE(ContextScope::Enter(Context(std::string(200, 'a'), 0)).ok());
  EXPECT_FALSE(ContextScope::Enter(Context("", 0)).ok());
  const Status absent = Tensor::CreateOn(runtime_, gpu(7), MGE_DTYPE_F32, {1}).status();
  EXPECT_THAT(absent.text(), HasSubstr("there are 2 devices"));
  EXPECT_FALSE(Tensor::CreateOn(runtime_, cpu_pinned(7), MGE_DTYPE_F32, {1}).ok());
  EXPECT_FALSE(gpu_memory_info(runtime_, 7).ok());
  EXPECT_FALSE(gpu(7).empty_cache(runtime_).ok());
}

TEST_F(Contexts, EmptyTheCacheOfTheirDevice) {
  EXPECT_EQ(num_gpus(runtime_), 2);
  const uint64_t before = FreeBytes(0);
  Tensor live = In(gpu(0), 1000);
  { Tensor dead = In(gpu(0), 25'000'000); }
  EXPECT_LE(FreeBytes(0), before - 100'000'000);
  Expect(gpu(0).empty_cache(runtime_));
  EXPECT_GE(FreeBytes(0), before - 4'000'000);
  EXPECT_LT(FreeBytes(0), before);  // `live` keeps its memory
}

TEST_F(Contexts, EmptyTheCacheOfWhatIdleRunsKeep) {
  Session session = Load("gpu0");
  std::vector<float> numbers(1'000'000, 1.0F);
  Tensor x;
  Expect(Tensor::Of<float>(std::vector<int64_t>{1'000'000}, numbers).MoveTo(x));
  std::vector<Tensor> out;
  const uint64_t before = FreeBytes(0);
  Expect(session.Run({&x, &x}, out));
  EXPECT_LE(FreeBytes(0), before - 8'000'000);
  Expect(gpu(0).empty_cache(runtime_));
  EXPECT_GE(FreeBytes(0), before - 100'000);
  Expect(session.Run({&x, &x}, out));  // the session takes new memory
  EXPECT_THAT(out[0].data<float>().first(3), Each(2.0F));
}

TEST_F(Contexts, OfPinnedTensorsAreBoundWithoutStaging) {
  Session session = Load("virtual0");
  const int64_t n = 1000;
  Tensor state = In(cpu_pinned(), n), x = In(cpu_pinned(1), n);  // memory that one GPU page-locks serves all of its driver
  EXPECT_EQ(state.context(), cpu_pinned(0));
  EXPECT_EQ(x.context(), cpu_pinned(1));
  std::fill_n(static_cast<float*>(state.raw_data()), n, 1.0F);
  std::fill_n(static_cast<float*>(x.raw_data()), n, 2.0F);
  std::vector<Tensor> out;
  {
    const auto scope = ContextScope::Enter(cpu_pinned());
    for (size_t i = 0; i < session.output_count(); ++i) out.push_back(InCurrent(n));
  }
  Expect(session.Run({&state, &x}, out));
  EXPECT_EQ(Staged(session), 0u);
  EXPECT_THAT(out[0].data<float>(), Each(3.0F));

  std::vector<Tensor> plain;
  Tensor a = In(cpu(), n), b = In(cpu(), n);
  Expect(session.Run({&a, &b}, plain));
  EXPECT_EQ(Staged(session), 4 * a.bytes());
}

TEST_F(Contexts, OfPinnedMemoryRunOnTheCpuAndLockItsOutputs) {
  const auto scope = ContextScope::Enter(cpu_pinned());
  Session session = Load();
  EXPECT_EQ(session.device(0), "cpu0");
  Tensor x;
  Expect(Tensor::Of<float>({2}, {1, 2}).MoveTo(x));
  for (int run = 0; run < 2; ++run) {
    std::vector<Tensor> out;
    Expect(session.Run({&x, &x}, out));
    EXPECT_EQ(out[0].context(), cpu_pinned());
    EXPECT_TRUE(out[1].page_locked());
    EXPECT_THAT(out[0].data<float>(), ElementsAre(2, 4));
  }
}

TEST_F(Contexts, OfPinnedMemoryAreOrdinaryMemoryWithoutAGpu) {
  Start({});
  EXPECT_EQ(num_gpus(runtime_), 0);
  Tensor t = In(cpu_pinned(), 4);
  EXPECT_EQ(t.context(), cpu());
  EXPECT_THAT(t.data<float>(), Each(0.0F));
}

TEST_F(Contexts, AreOnDevicesThatAProgramListsOneByOne) {
  std::vector<mge_device_facts> devices;
  Expect(runtime_.Devices().MoveTo(devices));
  const auto at =
      std::find_if(devices.begin(), devices.end(), [](const auto& d) { return d.name == std::string("virtual1"); });
  ASSERT_NE(at, devices.end());
  EXPECT_STREQ(at->gpu_name, "gpu1");
  EXPECT_STREQ(at->device_class, "virtual");
  EXPECT_STREQ(at->backend, "virtual");
  EXPECT_NE(std::string(at->description), "");
  EXPECT_GT(at->total_bytes, 0u);
  EXPECT_LE(at->free_bytes, at->total_bytes);
  EXPECT_EQ(at->usable, 1);
  EXPECT_THAT(std::string(Status(mge_runtime_device(runtime_.get(), devices.size(), &devices[0])).text()),
              HasSubstr(std::to_string(devices.size()) + " devices"));
}

// Runs twice on each device name without waiting. Returns how many of the callbacks were inside at the same time.
class Streams : public Contexts {
 protected:
  int Overlap(const std::string& first, const std::string& second, std::chrono::milliseconds patience) {
    Session sessions[] = {Load(first), Load(second)};
    Tensor x = In(cpu(), 2);
    std::atomic<int> inside{0}, most{0}, ended{0};
    for (Session& session : sessions) {
      Expect(session
                 .Run({&x, &x}, {.done =
                                     [&](Result<std::vector<Tensor>> outputs) {
                                       Expect(outputs.status());
                                       EXPECT_EQ(outputs->size(), 2u);
                                       const int now = ++inside;
                                       if (now > most) most = now;
                                       const auto end = std::chrono::steady_clock::now() + patience;
                                       while (most < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
                                       --inside;
                                       ++ended;
                                     }})
                 .status());
    }
    while (ended < 2) std::this_thread::yield();
    return most;
  }
};

TEST_F(Streams, OrderTheirRunsAndOverlapWithOthers) {
  using std::chrono::milliseconds;
  for (const std::string device : {"gpu0", "cpu0"}) {
    EXPECT_EQ(Overlap(device + ":1", device + ":1", milliseconds(100)), 1) << device;
    EXPECT_EQ(Overlap(device + ":0", device + ":1", milliseconds(20000)), 2) << device;
  }
}

TEST_F(Streams, OrderEnqueuedRuns) {
  Start({"virtual.devices=1", "virtual.gpu=1"});
  Session session = Load("gpu0:1");
  Tensor total = In(gpu(0), 1000), one;
  std::vector<float> ones(1000, 1.0F);
  Expect(Tensor::Of<float>(std::vector<int64_t>{1000}, ones).MoveTo(one));
  Tensor zero;
  std::vector<float> zeros(1000, 0.0F);
  Expect(Tensor::Of<float>(std::vector<int64_t>{1000}, zeros).MoveTo(zero));
  Expect(zero.CopyTo(total));
  Tensor x = In(gpu(0), 1000);
  Expect(one.CopyTo(x));
  // Each run reads the total that the run before it writes, although no fence orders them.
  std::vector<RunFence> fences(50);
  for (RunFence& fence : fences) {
    std::vector<Tensor> out;
    Expect(session.Run({&total, &x}, out, {.fence = &fence}));
    total = std::move(out[0]);
  }
  Expect(fences.back().Wait());
  Tensor host;
  Expect(total.ToHost().MoveTo(host));
  EXPECT_THAT(host.data<float>(), Each(50.0F));
}

TEST_F(Streams, DoNotPassTheFailureOfARunToTheNextOne) {
  Start({"virtual.devices=1", "virtual.gpu=1", "virtual.fault=kernel@1=fail"});
  Session session = Load("gpu0:1");
  Tensor x = In(gpu(0), 2);
  std::vector<RunFence> fences(3);
  for (RunFence& fence : fences) {
    std::vector<Tensor> out;
    Expect(session.Run({&x, &x}, out, {.fence = &fence}));
  }
  EXPECT_FALSE(fences[0].Wait().ok());
  Expect(fences[1].Wait());
  Expect(fences[2].Wait());
}

TEST_F(Streams, OrderAsynchronousAndEnqueuedRuns) {
  Start({"virtual.devices=1", "virtual.gpu=1", "virtual.fault=kernel@1=slow(300ms)"});
  for (const bool enqueue_first : {false, true}) {
    Session session = Load("gpu0:1");
    Tensor x = In(gpu(0), 2);
    std::atomic<bool> called{false};
    std::vector<Tensor> out;
    RunFence fence;
    bool ended = false;
    auto enqueue = [&] { Expect(session.Run({&x, &x}, out, {.fence = &fence})); };
    if (enqueue_first) enqueue();
    Expect(session
               .Run({&x, &x}, {.done =
                                   [&](Result<std::vector<Tensor>> outputs) {
                                     Expect(outputs.status());
                                     if (enqueue_first) Expect(fence.WaitFor(0).MoveTo(ended));
                                     called = true;
                                   }})
               .status());
    if (!enqueue_first) {
      enqueue();
      EXPECT_TRUE(called);
    }
    Expect(fence.Wait());
    while (!called) std::this_thread::yield();
    EXPECT_TRUE(ended || !enqueue_first);
    Start({"virtual.devices=1", "virtual.gpu=1", "virtual.fault=kernel@1=slow(300ms)"});
  }
}

TEST_F(Streams, OfCpuDefaultRunInTheCallersThread) {
  Session session = Load("cpu:default");
  EXPECT_EQ(session.threads(), 1);
  Tensor x = In(cpu(), 2);
  std::thread::id where;
  Expect(session.Run({&x, &x}, {.done = [&](auto) { where = std::this_thread::get_id(); }}).status());
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST_F(Streams, AndTheDefaultDeviceAreCheckedWhenTheRuntimeIsMade) {
  for (const char* bad : {"gpu0:", "gpu0:x", "gpu:1", "cuda:0", "multithread0:0", "multithread:default", "cpu_pinned0"}) {
    RuntimeOptions options;
    options.settings = {std::string("MGE_DEFAULT_DEVICE=") + bad};
    options.built_in_plugins = options.environment = false;
    Runtime runtime;
    const Status made = Runtime::Create(options).MoveTo(runtime);
    EXPECT_EQ(made.id(), 501) << bad << made.text();
    EXPECT_THAT(made.text(), HasSubstr(bad));
  }
  Start({"MGE_DEFAULT_DEVICE=gpu0:1", "virtual.devices=1", "virtual.gpu=1"});
  EXPECT_EQ(Current(), "gpu(0)");
  EXPECT_EQ(Load().device(0), "virtual0");
}

}  // namespace
}  // namespace mge
