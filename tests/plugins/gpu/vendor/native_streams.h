// SPDX-License-Identifier: Apache-2.0
// Runs that are ordered with a stream that an application has created with a driver in software.
#pragma once

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/engine/run_fence.h"
#include "core/plugin/device_tensor.h"
#include "tests/plugins/gpu/vendor/software_driver.h"

namespace mge {

// The driver's names of the functions that an application calls.
struct StreamFunctions {
  const char *retain, *release, *push, *pop, *create, *destroy;
};

// A stream on the primary context of device 0.
class ApplicationStream {
 public:
  ApplicationStream(const DriverInSoftware& driver, const StreamFunctions& names) : driver_(driver), names_(names) {
    void* context = nullptr;
    EXPECT_EQ(driver.Get<int(void**, int)>(names.retain)(&context, 0), 0);
    EXPECT_EQ(driver.Get<int(void*)>(names.push)(context), 0);
    EXPECT_EQ(driver.Get<int(void**, unsigned)>(names.create)(&stream_, 1), 0);
    EXPECT_EQ(driver.Get<int(void**)>(names.pop)(&context), 0);
  }
  ~ApplicationStream() {
    driver_.Get<int(void*)>(names_.destroy)(stream_);
    driver_.Get<int(int)>(names_.release)(0);
  }
  void* handle() const { return stream_; }
  // Enqueues work(data, destination, source), whose addresses are memory of the device.
  void Add(void (*work)(void* data, void* destination, const void* source), void* data, const Tensor& memory) {
    void* const address = DeviceMemory::Of(memory)->QueueAddress(memory.data());
    auto enqueue = driver_.Get<decltype(mge_driver_enqueue)>("mge_driver_enqueue");
    EXPECT_EQ(enqueue(
                  stream_, work, [](void*) {}, data, address, address, static_cast<uint64_t>(memory.bytes())),
              0);
  }

 private:
  const DriverInSoftware& driver_;
  const StreamFunctions names_;
  void* stream_ = nullptr;
};

// Checks that a run of digits reads what earlier work on the stream writes, and that later work on it comes after the run.
inline void ExpectOrderWithAStream(const DriverInSoftware& driver, const std::shared_ptr<Runtime>& runtime,
                                   const std::string& name, const StreamFunctions& names,
                                   const std::vector<float>& expected) {
  auto session = LoadDigits(runtime, name);
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  Device& device = (*session)->device();
  const std::vector<HostValue> digits = DigitsInput();
  const Shape shape = digits[0].tensor.shape();
  auto image = DeviceMemory::Create(device, MGE_MEMORY_DEVICE, DType::kF32, shape, runtime);
  ASSERT_TRUE(image.ok()) << FormatError(image.status());
  struct Work {
    std::atomic<bool> open = false, over = false;
    const Tensor* digits;
  } work;
  work.digits = &digits[0].tensor;
  ApplicationStream application(driver, names);
  application.Add(
      [](void* data, void* destination, const void*) {
        auto& w = *static_cast<Work*>(data);
        while (!w.open) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        std::memcpy(destination, w.digits->data(), static_cast<size_t>(w.digits->bytes()));
      },
      &work, *image);

  auto stream = NativeStream::On(device, application.handle());
  ASSERT_TRUE(stream.ok()) << FormatError(stream.status());
  auto before = RunFence::OfStream(runtime, *stream);
  ASSERT_TRUE(before.ok()) << FormatError(before.status());
  HostValue input;
  input.tensor = *image;
  std::vector<HostValue> outputs(1);
  const std::vector<std::shared_ptr<RunFence>> after = {*before};
  RunState control;
  auto end =
      (*session)->Submit({.inputs = std::span(&input, 1), .outputs = outputs, .after = after, .wait = false}, control);
  ASSERT_TRUE(end.ok()) << FormatError(end.status());
  ASSERT_TRUE((*end)->Delay(*stream).ok());
  application.Add(
      [](void* data, void* destination, const void*) {
        std::memset(destination, 0, sizeof(float));
        static_cast<Work*>(data)->over = true;
      },
      &work, *image);
  EXPECT_FALSE(*(*end)->Wait(std::chrono::milliseconds(20)));
  EXPECT_FALSE(work.over);
  work.open = true;
  EXPECT_TRUE(*(*end)->Wait(std::chrono::minutes(1)));
  auto host = Tensor::Create(DType::kF32, outputs[0].tensor.shape());
  ASSERT_TRUE(host.ok() && CopyTensor(outputs[0].tensor, *host).ok());
  const auto got = host->Data<float>();
  EXPECT_THAT(std::vector<float>(got.begin(), got.end()), testing::Pointwise(testing::FloatNear(1e-5f), expected));
  while (!work.over) std::this_thread::yield();
}

}  // namespace mge
