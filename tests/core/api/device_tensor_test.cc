// SPDX-License-Identifier: Apache-2.0
// Tensors on devices through the public C++ API: bound without a copy, exchanged, and kept between runs.
#include <chrono>
#include <cstring>
#include <future>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mge/mge.hpp"
#include "tests/core/api/api_models.h"

namespace mge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DeviceTensors : public ::testing::Test {
 protected:
  void SetUp() override { Start({}); }

  void Start(std::vector<std::string> settings) {
    session_ = Session();
    runtime_ = Runtime();
    RuntimeOptions options;
    options.settings = {"virtual.devices=2", "threads=2", "select.strategy=heuristic"};
    options.settings.insert(options.settings.end(), settings.begin(), settings.end());
    options.plugin_directories = {MGE_BINARY_DIR "/lib/mge/plugins"};
    options.built_in_plugins = options.environment = false;
    Expect(Runtime::Create(options).MoveTo(runtime_));
    session_ = LoadOn("virtual0");
  }

  // Loads the model total = state + x, y = relu(total) * total.
  Session LoadOn(const std::string& device, bool outputs_on_device = true) {
    static const std::string model = api_models::RunningTotal();
    Session session;
    SessionOptions options;
    options.device = device;
    options.outputs_on_device = outputs_on_device;
    Expect(Session::LoadBytes(runtime_, model.data(), model.size(), options).MoveTo(session));
    return session;
  }

  static void Expect(const Status& status) { ASSERT_TRUE(status.ok()) << status.text(); }

  Tensor Host(std::initializer_list<float> values) {
    Tensor t;
    Expect(Tensor::Of<float>({static_cast<int64_t>(values.size())}, values).MoveTo(t));
    return t;
  }
  Tensor On(const std::string& device, std::initializer_list<float> values) {
    Tensor t;
    const int64_t dims[] = {static_cast<int64_t>(values.size())};
    Expect(Tensor::CreateOn(runtime_, device, MGE_DTYPE_F32, dims).MoveTo(t));
    Expect(Host(values).CopyTo(t));
    return t;
  }
  static std::vector<float> Values(const Tensor& t) {
    Tensor host;
    Expect(t.ToHost().MoveTo(host));
    return {host.data<float>().begin(), host.data<float>().end()};
  }
  static uint64_t Staged(const Session& session) {
    mge_memory_facts facts = {};
    Expect(session.Memory().MoveTo(facts));
    return facts.staged_bytes;
  }

  Runtime runtime_;
  Session session_;
};

TEST_F(DeviceTensors, AreBoundWithoutStaging) {
  const Tensor state = On("virtual0", {1, 2, 3}), x = On("virtual0", {10, -20, 30});
  std::vector<Tensor> out;
  Expect(session_.Run({&state, &x}, out));
  EXPECT_EQ(out[0].device(), "virtual0");
  EXPECT_EQ(out[0].raw_data(), nullptr);  // the host cannot access it
  EXPECT_TRUE(out[0].data<float>().empty());
  EXPECT_THAT(Values(out[0]), ElementsAre(11, -18, 33));
  EXPECT_THAT(Values(out[1]), ElementsAre(121, 0, 1089));
  EXPECT_EQ(Staged(session_), 0u);

  std::vector<Tensor> again;
  const Tensor plain = Host({10, -20, 30});
  Expect(session_.Run({&state, &plain}, again));
  EXPECT_THAT(Values(again[0]), ElementsAre(11, -18, 33));
  EXPECT_EQ(Staged(session_), 12u);
}

TEST_F(DeviceTensors, AreWrittenInPlaceAsOutputs) {
  const Tensor state = On("virtual0", {1, 2, 3}), x = On("virtual0", {4, 5, 6});
  std::vector<Tensor> out(2);
  out[0] = On("virtual0", {0, 0, 0});
  void* const address = out[0].address();
  Expect(session_.Run({&state, &x}, out));
  EXPECT_EQ(out[0].address(), address);
  EXPECT_THAT(Values(out[0]), ElementsAre(5, 7, 9));
}

TEST_F(DeviceTensors, KeepStateBetweenRuns) {
  Tensor state = On("virtual0", {0, 0});
  const Tensor x = On("virtual0", {1, 2});
  for (int i = 0; i < 6; ++i) {  // addresses change in every run, so records of earlier runs must not be replayed
    std::vector<Tensor> out;
    Expect(session_.Run({&state, &x}, out));
    state = std::move(out[0]);
  }
  EXPECT_THAT(Values(state), ElementsAre(6, 12));
  EXPECT_EQ(Staged(session_), 0u);
}

TEST_F(DeviceTensors, MayBeTheSameInEveryRun) {
  const Tensor state = On("virtual0", {1, 2});
  Tensor x = On("virtual0", {1, 2});
  std::vector<Tensor> out;
  for (float i = 0; i < 5; ++i) {  // the third run and later ones replay a record
    Expect(Host({i, i}).CopyTo(x));
    Expect(session_.Run({&state, &x}, out));
    EXPECT_THAT(Values(out[0]), ElementsAre(1 + i, 2 + i));
  }
}

TEST_F(DeviceTensors, InPageLockedMemoryAreNotStaged) {
  const Tensor state = On("cpu_pinned(virtual0)", {1, 2}), x = On("cpu_pinned(virtual0)", {3, 4});
  EXPECT_NE(state.raw_data(), nullptr);
  EXPECT_TRUE(state.page_locked());
  std::vector<Tensor> out(2);
  out[0] = On("cpu_pinned(virtual0)", {0, 0});
  for (int i = 0; i < 4; ++i) Expect(session_.Run({&state, &x}, out));
  EXPECT_THAT(out[0].data<float>(), ElementsAre(4, 6));
  EXPECT_THAT(Values(out[1]), ElementsAre(16, 36));
  EXPECT_EQ(Staged(session_), 0u);
}

TEST_F(DeviceTensors, AreCopiedBetweenAnyTwoPlaces) {
  const Tensor first = On("virtual0", {1, 2, 3});
  Tensor second = On("virtual1", {0, 0, 0}), third = On("virtual1", {0, 0, 0}),
         locked = On("cpu_pinned(virtual0)", {0, 0, 0});
  Expect(first.CopyTo(second));
  Expect(second.CopyTo(third));
  Expect(third.CopyTo(locked));
  EXPECT_THAT(locked.data<float>(), ElementsAre(1, 2, 3));
  Tensor shorter = On("virtual1", {0, 0});
  const Status status = first.CopyTo(shorter);
  EXPECT_EQ(status.id(), 305);
  EXPECT_THAT(std::string(status.text()), HasSubstr("the source is float32[3], the destination float32[2]"));
}

TEST_F(DeviceTensors, OfManyMegabytesAreCopiedBetweenDevices) {
  const int64_t dims[] = {(9 << 20) / 4 + 3};
  Tensor sent, first, second, got;
  Expect(Tensor::Create(MGE_DTYPE_F32, dims).MoveTo(sent));
  for (size_t i = 0; i < sent.data<float>().size(); ++i) sent.data<float>()[i] = static_cast<float>(i % 10'007);
  Expect(Tensor::CreateOn(runtime_, "virtual0", MGE_DTYPE_F32, dims).MoveTo(first));
  Expect(Tensor::CreateOn(runtime_, "virtual1", MGE_DTYPE_F32, dims).MoveTo(second));
  Expect(sent.CopyTo(first));
  Expect(first.CopyTo(second));
  Expect(second.ToHost().MoveTo(got));
  EXPECT_EQ(std::memcmp(got.raw_data(), sent.raw_data(), sent.bytes()), 0);
}

TEST_F(DeviceTensors, OfASessionOnTwoDevicesMayLieOnEither) {
  Session both = LoadOn("virtual0+virtual1");
  EXPECT_EQ(both.device_count(), 2u);
  EXPECT_EQ(both.device(1), "virtual1");
  const Tensor state = On("virtual0", {1, 2}), x = On("virtual1", {3, 4});
  std::vector<Tensor> out;
  Expect(both.Run({&state, &x}, out));
  EXPECT_THAT(Values(out[0]), ElementsAre(4, 6));
  EXPECT_EQ(Staged(both), 0u);
}

TEST_F(DeviceTensors, OfAnotherDeviceAreRefused) {
  const Tensor state = On("virtual1", {1, 2}), x = Host({3, 4});
  std::vector<Tensor> out;
  const Status status = session_.Run({&state, &x}, out);
  EXPECT_EQ(status.id(), 307);
  EXPECT_THAT(std::string(status.text()), HasSubstr("input 'state' lies on device virtual1"));
  EXPECT_THAT(std::string(status.text()), HasSubstr("the session uses virtual0"));
  Session cpu = LoadOn("cpu0");
  EXPECT_EQ(cpu.Run({&state, &x}, out).id(), 307);
  const Tensor good = On("virtual0", {1, 2});
  std::vector<Tensor> wrong(2);
  wrong[0] = On("virtual1", {0, 0});
  EXPECT_THAT(std::string(session_.Run({&good, &x}, wrong).text()), HasSubstr("output 'total' lies on device virtual1"));
  wrong[0] = On("virtual0", {0, 0, 0});
  EXPECT_EQ(session_.Run({&good, &x}, wrong).id(), 307);
  wrong[0] = Tensor();
  Expect(session_.Run({&good, &x}, wrong));  // the session still works
}

TEST_F(DeviceTensors, ThatWereReleasedAreRefused) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer reports the access to the released tensor";
#endif
  for (const char* device : {"", "virtual0"}) {
    const Tensor x = Host({3, 4});
    Tensor state = *device ? On(device, {1, 2}) : Host({1, 2});
    mge_tensor* const gone = state.get();
    state = Tensor();
    mge_tensor* in[] = {gone, x.get()};
    mge_tensor* out[2] = {};
    mge_run_fence* fence = nullptr;
    for (const Status& status : {Status(mge_session_run(session_.get(), in, 2, out, 2, nullptr, nullptr)),
                                 Status(mge_session_run(session_.get(), in, 2, out, 2, nullptr, &fence))}) {
      EXPECT_EQ(status.id(), 207);
      EXPECT_THAT(std::string(status.text()), HasSubstr("input 0 is a tensor that was released"));
    }
    out[1] = gone;
    in[0] = x.get();
    const Status output(mge_session_run(session_.get(), in, 2, out, 2, nullptr, nullptr));
    EXPECT_THAT(std::string(output.text()), HasSubstr("output 1 is a tensor that was released"));
    const Status copied(mge_tensor_copy(x.get(), gone));
    EXPECT_THAT(std::string(copied.text()), HasSubstr("argument 'destination' is a tensor that was released"));
  }
}

TEST_F(DeviceTensors, MustNotBeInputAndOutputOfOneRun) {
  const Tensor x = Host({3, 4});
  std::vector<Tensor> out(2);
  out[0] = On("virtual0", {1, 2});
  const Status status = session_.Run({&out[0], &x}, out);
  EXPECT_THAT(std::string(status.text()), HasSubstr("output 'total' is given the memory of input 'state'"));
}

TEST_F(DeviceTensors, CannotBeMappedIfTheHostCannotAccessTheMemory) {
  void* data = nullptr;
  const Tensor there = On("virtual0", {1}), locked = On("cpu_pinned(virtual0)", {1});
  const Status status(mge_tensor_map(there.get(), &data));
  EXPECT_EQ(status.id(), 207);
  EXPECT_THAT(std::string(status.text()), HasSubstr("device virtual0, whose memory the host cannot access"));
  Expect(Status(mge_tensor_map(locked.get(), &data)));
  EXPECT_EQ(data, locked.raw_data());
}

TEST_F(DeviceTensors, OnACpuAreHostMemory) {
  Session cpu = LoadOn("cpu0");
  const Tensor state = On("cpu0", {1, 2}), x = On("cpu0", {3, 4});
  EXPECT_EQ(state.device(), "cpu0");
  EXPECT_THAT(state.data<float>(), ElementsAre(1, 2));
  std::vector<Tensor> out;
  Expect(cpu.Run({&state, &x}, out));
  EXPECT_THAT(out[0].data<float>(), ElementsAre(4, 6));
  Tensor locked;
  EXPECT_EQ(Tensor::CreateOn(runtime_, "cpu_pinned(cpu0)", MGE_DTYPE_F32, {}).status().id(), 502);
}

TEST_F(DeviceTensors, UseMemoryOfTheCallerAndReleaseItOnce) {
  const Tensor owner = On("virtual0", {1, 2}), x = On("virtual0", {3, 4});
  const int64_t dims[] = {2};
  int released = 0;
  const mge_release_fn release = [](void* count) { ++*static_cast<int*>(count); };
  mge_tensor* wrapped = nullptr;
  Expect(Status(mge_tensor_wrap_on(runtime_.get(), "virtual0", MGE_DTYPE_F32, dims, 1, owner.address(), 8, release,
                                   &released, &wrapped)));
  {
    const Tensor state(wrapped);
    std::vector<Tensor> out;
    Expect(session_.Run({&state, &x}, out));
    EXPECT_THAT(Values(out[0]), ElementsAre(4, 6));
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);

  char* const odd = static_cast<char*>(owner.address()) + 4;
  const Status unaligned(
      mge_tensor_wrap_on(runtime_.get(), "virtual0", MGE_DTYPE_F32, dims, 0, odd, 4, release, &released, &wrapped));
  EXPECT_EQ(unaligned.id(), 305);
  EXPECT_THAT(std::string(unaligned.text()), HasSubstr("is not a multiple of 64"));
  EXPECT_EQ(released, 2);
  const Status size(mge_tensor_wrap_on(runtime_.get(), "virtual0", MGE_DTYPE_F32, dims, 1, owner.address(), 4, release,
                                       &released, &wrapped));
  EXPECT_THAT(std::string(size.text()), HasSubstr("float32[2] needs 8 bytes, got 4"));
  EXPECT_EQ(released, 3);
}

TEST_F(DeviceTensors, TravelThroughDlpack) {
  DLManagedTensorVersioned* managed = nullptr;
  mge_tensor* back = nullptr;
  Tensor plain = Host({1, 2, 3});
  Expect(Status(mge_tensor_to_dlpack(plain.get(), &managed)));
  Expect(Status(mge_tensor_from_dlpack(nullptr, nullptr, managed, &back)));
  const void* const data = plain.raw_data();
  plain = Tensor();  // the memory lives on
  EXPECT_EQ(Tensor(back).raw_data(), data);

  Tensor there = On("virtual0", {1, 2}), x = On("virtual0", {3, 4});
  Expect(Status(mge_tensor_to_dlpack(there.get(), &managed)));
  there = Tensor();
  EXPECT_EQ(Status(mge_tensor_from_dlpack(nullptr, nullptr, managed, &back)).id(), 207);  // the device is not named
  Expect(Status(mge_tensor_from_dlpack(runtime_.get(), "virtual0", managed, &back)));
  const Tensor state(back);
  std::vector<Tensor> out;
  Expect(session_.Run({&state, &x}, out));
  EXPECT_THAT(Values(out[0]), ElementsAre(4, 6));
}

TEST_F(DeviceTensors, ThatMustNotBeWrittenTravelThroughDlpackAsSuch) {
  mge_tensor* back = nullptr;
  const Tensor plain = Host({1, 2});
  mge_tensor_set_read_only(plain.get());
  DLManagedTensorVersioned* managed = nullptr;
  Expect(Status(mge_tensor_to_dlpack(plain.get(), &managed)));
  Expect(Status(mge_tensor_from_dlpack(nullptr, nullptr, managed, &back)));
  const Tensor again(back);
  EXPECT_EQ(mge_tensor_read_only(again.get()), 1);
  DLManagedTensor* old = nullptr;
  EXPECT_EQ(Status(mge_tensor_to_old_dlpack(again.get(), &old)).id(), 207);

  const Tensor x = Host({3, 4});
  EXPECT_EQ(Status(mge_tensor_copy(x.get(), again.get())).id(), 207);
  mge_tensor* inputs[] = {x.get(), x.get()};
  mge_tensor* outputs[] = {again.get(), nullptr};
  const Status refused(mge_session_run(session_.get(), inputs, 2, outputs, 2, nullptr, nullptr));
  EXPECT_THAT(std::string(refused.text()), HasSubstr("output 0 is a tensor that must not be written"));
  EXPECT_THAT(Values(again), ElementsAre(1, 2));

  Expect(Status(mge_tensor_to_old_dlpack(x.get(), &old)));
  Expect(Status(mge_tensor_from_old_dlpack(nullptr, nullptr, old, &back)));
  EXPECT_EQ(Tensor(back).raw_data(), x.raw_data());
}

TEST_F(DeviceTensors, OfDlpackAreRefusedOnAnotherDevice) {
  DLManagedTensorVersioned* managed = nullptr;
  mge_tensor* back = nullptr;
  const Tensor there = On("virtual0", {1, 2});
  Expect(Status(mge_tensor_to_dlpack(there.get(), &managed)));
  const Status wrong(mge_tensor_from_dlpack(runtime_.get(), "virtual1", managed, &back));
  EXPECT_EQ(wrong.id(), 305);
  EXPECT_THAT(std::string(wrong.text()), HasSubstr("the tensor does not lie on device virtual1"));
  Expect(Status(mge_tensor_from_dlpack(runtime_.get(), "virtual0", managed, &back)));  // it was not released
  EXPECT_THAT(Values(Tensor(back)), ElementsAre(1, 2));
}

// Each backend may give its first tensor the same address.
TEST_F(DeviceTensors, OfTwoRuntimesWithEqualAddressesAreCopied) {
  const Tensor first = On("virtual0", {1, 2, 3});
  const Runtime other_runtime = std::move(runtime_);
  const Session other_session = std::move(session_);
  Start({});
  Tensor second = On("virtual0", {0, 0, 0});
  Expect(first.CopyTo(second));
  EXPECT_THAT(Values(second), ElementsAre(1, 2, 3));
}

TEST_F(DeviceTensors, OutliveTheirRuntimeObject) {
  const Tensor there = On("virtual0", {1, 2});
  session_ = Session();
  runtime_ = Runtime();
  EXPECT_THAT(Values(there), ElementsAre(1, 2));
}

// ---------------------------------------------------------------- runs that do not block

TEST_F(DeviceTensors, OfEnqueuedRunsAreReadyWhenTheFenceIsReached) {
  Start({"virtual.launch_latency_us=20000"});
  const Tensor state = On("virtual0", {1, 2}), x = On("virtual0", {3, 4});
  std::vector<Tensor> warm;
  Expect(session_.Run({&state, &x}, warm));
  std::vector<Tensor> out;
  RunFence fence;
  Expect(session_.Run({&state, &x}, out, {.fence = &fence}));
  bool reached = true;
  Expect(fence.WaitFor(0).MoveTo(reached));
  EXPECT_FALSE(reached);
  Expect(fence.Wait());
  Expect(fence.WaitFor(0).MoveTo(reached));
  EXPECT_TRUE(reached);
  EXPECT_THAT(Values(out[0]), ElementsAre(4, 6));
}

TEST_F(DeviceTensors, MayBeReleasedWhileARunUsesThem) {
  Start({"virtual.launch_latency_us=5000"});
  Tensor state = On("virtual0", {0, 0});
  const Tensor x = On("virtual0", {1, 2});
  RunFence last;
  for (int i = 0; i < 5; ++i) {  // each run waits for the one before it on the device
    std::vector<Tensor> out;
    RunFence next;
    if (last) {
      Expect(session_.Run({&state, &x}, out, {.after = {&last}, .fence = &next}));
    } else {
      Expect(session_.Run({&state, &x}, out, {.fence = &next}));
    }
    state = std::move(out[0]);
    last = std::move(next);
  }
  Expect(last.Wait());
  EXPECT_THAT(Values(state), ElementsAre(5, 10));
}

TEST_F(DeviceTensors, OfOneSessionMayBeInputsOfAnother) {
  Session other = LoadOn("virtual1+virtual0"), cpu = LoadOn("cpu0");
  const Tensor state = On("virtual0", {1, 2}), x = Host({3, 4});
  std::vector<Tensor> first, second;
  RunFence one, two, three;
  Expect(session_.Run({&state, &x}, first, {.fence = &one}));
  Expect(other.Run({&first[0], &x}, second, {.after = {&one}, .fence = &two}));
  std::vector<Tensor> third;
  const Tensor plain = Host({1, 1});
  Expect(cpu.Run({&plain, &x}, third, {.after = {&two}, .fence = &three}));  // runs to its end, after the others
  EXPECT_THAT(third[0].data<float>(), ElementsAre(4, 5));
  EXPECT_THAT(Values(second[0]), ElementsAre(7, 10));
}

TEST_F(DeviceTensors, OfAFailedRunMakeDependentRunsFail) {
  Start({"virtual.fault=kernel@1=fail", "virtual.launch_latency_us=20000"});
  const Tensor s = On("virtual0", {1, 2}), y = On("virtual0", {3, 4});
  std::vector<Tensor> out, more;
  RunFence one, two;
  Expect(session_.Run({&s, &y}, out, {.fence = &one}));
  Expect(session_.Run({&s, &y}, more, {.after = {&one}, .fence = &two}));
  const Status failed = two.Wait();
  EXPECT_EQ(failed.exit_code(), one.Wait().exit_code());
  EXPECT_FALSE(failed.ok());
  EXPECT_THAT(std::string(failed.text()), HasSubstr("virtual0"));
  std::vector<Tensor> good;
  Expect(session_.Run({&s, &y}, good));  // the session still works
  EXPECT_THAT(Values(good[0]), ElementsAre(4, 6));
}

TEST_F(DeviceTensors, AreTheOnlyOutputsOfEnqueuedRuns) {
  const Tensor state = On("virtual0", {1, 2}), x = On("virtual0", {3, 4});
  std::vector<Tensor> out(2);
  out[0] = Host({0, 0});
  RunFence fence;
  const Status status = session_.Run({&state, &x}, out, {.fence = &fence});
  EXPECT_EQ(status.id(), 307);
  EXPECT_THAT(std::string(status.text()), HasSubstr("output 'total' of an enqueued run is in plain host memory"));
  out[0] = On("cpu_pinned(virtual0)", {0, 0});
  Expect(session_.Run({&state, &x}, out, {.fence = &fence}));
  Expect(fence.Wait());
  EXPECT_THAT(out[0].data<float>(), ElementsAre(4, 6));
}

TEST_F(DeviceTensors, HaveFencesWhoseReleaseDoesNotWaitAndWhoseRunsEndBeforeTheirSessionIsReleased) {
  Start({"virtual.fault=kernel@1=slow(500ms)"});
  const Tensor state = On("virtual0", {1, 2}), x = On("virtual0", {3, 4});
  std::vector<Tensor> out(2);
  out[0] = On("cpu_pinned(virtual0)", {0, 0});
  RunFence fence;
  Expect(session_.Run({&state, &x}, out, {.fence = &fence}));
  fence = RunFence();
  EXPECT_THAT(out[0].data<float>(), ElementsAre(0, 0));  // the run still waits for its first kernel
  session_ = Session();
  EXPECT_THAT(out[0].data<float>(), ElementsAre(4, 6));
}

TEST_F(DeviceTensors, OfPostedRunsAreBoundByNameAfterOtherRuns) {
  Start({"virtual.launch_latency_us=20000"});
  const Tensor state = On("virtual0", {1, 2}), x = On("virtual0", {3, 4});
  std::vector<Tensor> first, second(1);
  RunFence fence;
  Expect(session_.Run({&state, &x}, first, {.fence = &fence}));
  second[0] = Host({0, 0});
  std::promise<std::vector<Tensor>> ended;
  Expect(session_.Run({&x, &first[0]}, second,
                      {.input_names = {"x", "state"},
                       .output_names = {"total"},
                       .after = {&fence},
                       .done = [&](Result<std::vector<Tensor>> outputs) {
                         Expect(outputs.status());
                         ended.set_value(*std::move(outputs));
                       }}));
  const std::vector<Tensor> results = ended.get_future().get();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_THAT(results[0].data<float>(), ElementsAre(7, 10));
  EXPECT_THAT(second[0].data<float>(), ElementsAre(7, 10));  // the same memory
}

TEST_F(DeviceTensors, OfOneRunGoToAFenceOrACallback) {
  const Tensor state = Host({1, 2}), x = Host({3, 4});
  RunFence fence;
  const Status status = session_.Run({&state, &x}, {.fence = &fence, .done = [](auto) {}}).status();
  EXPECT_THAT(std::string(status.text()), HasSubstr("a run has one of these: a fence, the callback 'done', an inbox"));
}

TEST_F(DeviceTensors, OfAnotherRuntimeHaveFencesThatRunsRefuse) {
  const Tensor state = On("virtual0", {1, 2}), x = On("virtual0", {3, 4});
  std::vector<Tensor> out, more;
  RunFence fence, none;
  Expect(session_.Run({&state, &x}, out, {.fence = &fence}));
  const Runtime first = std::move(runtime_);
  const Session session = std::move(session_);
  Start({});
  const Tensor s = On("virtual0", {1, 2}), y = On("virtual0", {3, 4});
  const Status status = session_.Run({&s, &y}, more, {.after = {&fence}, .fence = &none});
  EXPECT_EQ(status.id(), 207);
  EXPECT_THAT(std::string(status.text()), HasSubstr("a fence of another runtime"));
}

}  // namespace
}  // namespace mge
