// SPDX-License-Identifier: Apache-2.0
// Tensors in memory that an application has created with a driver, by its handle. The driver is that of the SDK's example.
#include <dlfcn.h>

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mge/mge.hpp"
#include "sdk/examples/driver/toy_driver.h"
#include "tests/core/api/api_models.h"

namespace mge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kExamples[] = MGE_BINARY_DIR "/tests/examples";
constexpr uint64_t kBytes = 4096;

class WrappedHandles : public ::testing::Test {
 protected:
  void SetUp() override {
    RuntimeOptions options;
    options.settings = {"threads=2", "virtual.devices=1", "select.strategy=heuristic"};
    options.plugin_directories = {kExamples, MGE_BINARY_DIR "/lib/mge/plugins"};
    options.built_in_plugins = options.environment = false;
    Expect(Runtime::Create(options).MoveTo(runtime_));
    // Starts the driver, and loads the library that the application shares with the backend.
    const int64_t one[] = {1};
    Tensor first;
    Expect(Tensor::CreateOn(runtime_, "example_driver0", MGE_DTYPE_F32, one).MoveTo(first));
    driver_ = dlopen(MGE_BINARY_DIR "/tests/examples/libtoy.so.1", RTLD_NOW);
    ASSERT_NE(driver_, nullptr) << dlerror();
  }
  void TearDown() override {
    runtime_ = Runtime();
    if (driver_) dlclose(driver_);
  }

  static void Expect(const Status& status) { ASSERT_TRUE(status.ok()) << status.text(); }

  template <typename F>
  F* Function(const char* name) const {
    return reinterpret_cast<F*>(dlsym(driver_, name));
  }
  // Creates memory with the driver, as an application would.
  toy_memory* Memory(int device) const {
    toy_memory* memory = nullptr;
    EXPECT_EQ(Function<decltype(toy_memory_create)>("toy_memory_create")(device, kBytes, &memory), TOY_OK);
    return memory;
  }
  void Destroy(toy_memory* memory) const { Function<decltype(toy_memory_destroy)>("toy_memory_destroy")(memory); }

  // Wraps three floats. `released_` counts the calls of the callback.
  Status Wrap(const char* device, void* handle, uint64_t offset, Tensor* out, uint64_t bytes = 12) {
    const int64_t dims[] = {3};
    mge_tensor* tensor = nullptr;
    Status status(mge_tensor_wrap_handle(
        runtime_.get(), device, MGE_DTYPE_F32, dims, 1, handle, offset, bytes,
        [](void* count) { ++*static_cast<int*>(count); }, &released_, &tensor));
    if (status.ok()) *out = Tensor(tensor);
    return status;
  }
  static Tensor Host(std::initializer_list<float> values) {
    Tensor t;
    Expect(Tensor::Of<float>({static_cast<int64_t>(values.size())}, values).MoveTo(t));
    return t;
  }

  Runtime runtime_;
  void* driver_ = nullptr;
  int released_ = 0;
};

TEST_F(WrappedHandles, AreInputsAndOutputsOfRunsAndReleasedOnce) {
  static const std::string model = api_models::RunningTotal();
  Session session;
  SessionOptions options;
  options.device = "example_driver0";
  Expect(Session::LoadBytes(runtime_, model.data(), model.size(), options).MoveTo(session));
  toy_memory* const memory = Memory(0);
  {
    Tensor state;
    std::vector<Tensor> out(2);
    Expect(Wrap("example_driver0", memory, 0, &state));
    Expect(Wrap("example_driver0", memory, 2 * TOY_ALIGNMENT, &out[0]));
    Expect(Host({1, 2, 3}).CopyTo(state));
    const Tensor x = Host({10, 20, 30});
    for (int i = 0; i < 3; ++i) Expect(session.Run({&state, &x}, out));
    Tensor total;
    Expect(out[0].ToHost().MoveTo(total));
    EXPECT_THAT(total.data<float>(), ElementsAre(11, 22, 33));
    EXPECT_EQ(out[0].device(), "example_driver0");
    EXPECT_EQ(out[0].raw_data(), nullptr);
    EXPECT_EQ(released_, 0);
  }
  EXPECT_EQ(released_, 2);
  // The elements are in the application's memory, which is still there.
  Tensor again;
  Expect(Wrap("example_driver0", memory, 2 * TOY_ALIGNMENT, &again));
  Tensor total;
  Expect(again.ToHost().MoveTo(total));
  EXPECT_THAT(total.data<float>(), ElementsAre(11, 22, 33));
  again = Tensor();
  Destroy(memory);
}

TEST_F(WrappedHandles, OfAnotherDeviceSizeOrAlignmentAreRefused) {
  toy_memory* const memory = Memory(1);
  Tensor t;
  Status status = Wrap("example_driver0", memory, 0, &t);
  EXPECT_THAT(std::string(status.text()), HasSubstr("the memory is on another device"));
  EXPECT_EQ(released_, 1);
  status = Wrap("example_driver1", memory, kBytes - 8, &t);
  EXPECT_THAT(std::string(status.text()), HasSubstr("the memory has fewer bytes than that"));
  status = Wrap("example_driver1", memory, 64, &t);
  EXPECT_EQ(status.id(), 305);
  EXPECT_THAT(std::string(status.text()), HasSubstr("is not a multiple of 256"));
  status = Wrap("example_driver1", memory, 0, &t, 16);
  EXPECT_THAT(std::string(status.text()), HasSubstr("float32[3] needs 12 bytes, got 16"));
  status = Wrap("example_driver1", memory, UINT64_MAX - 3, &t);
  EXPECT_THAT(std::string(status.text()), HasSubstr("larger than any memory"));
  status = Wrap("example_driver1", nullptr, 0, &t);
  EXPECT_EQ(status.id(), 207);
  EXPECT_EQ(released_, 6);
  Destroy(memory);
}

TEST_F(WrappedHandles, AreRefusedByABackendWithoutThem) {
  int object = 0;
  Tensor t;
  for (const char* device : {"virtual0", "cpu0"}) {
    const Status status = Wrap(device, &object, 0, &t);
    EXPECT_EQ(status.id(), 502);
    EXPECT_THAT(std::string(status.text()), HasSubstr("cannot use memory by its handle"));
    EXPECT_THAT(std::string(status.text()), HasSubstr("does not offer the extension mge.memory_handles"));
  }
}

}  // namespace
}  // namespace mge
