// SPDX-License-Identifier: Apache-2.0
// Stamps, and modelled times.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plugins/virtual/virtual_backend.h"

namespace mge {
namespace {

TEST(VirtualProfile, StampsAreTakenInTheOrderOfTheQueue) {
  VirtualBackend b({{"virtual.devices", "1"}, {"virtual.latency_us", "2000"}, {"virtual.fault", "copy@1=hang"}});
  const mge_profile_api& api = *b.plugin().profile;
  Slab slab(b, 8);
  Queue queue(b);
  Gate gate(b);
  mge_stamp *first = nullptr, *second = nullptr;
  ASSERT_EQ(api.stamp_create(b.Device(), &first, nullptr), MGE_OK);
  ASSERT_EQ(api.stamp_create(b.Device(), &second, nullptr), MGE_OK);
  char byte = 0;
  double us = -1;
  gate.Hold(queue);
  ASSERT_EQ(api.stamp(queue, first, nullptr), MGE_OK);
  ASSERT_EQ(queue.Copy(slab.at(), &byte, 1), MGE_OK);
  ASSERT_EQ(api.stamp(queue, second, nullptr), MGE_OK);
  EXPECT_EQ(api.elapsed_us(first, second, &us, nullptr), MGE_FAILED_PRECONDITION);
  gate.Open();
  ASSERT_EQ(queue.Finish(), MGE_OK);
  ASSERT_EQ(api.elapsed_us(first, second, &us, nullptr), MGE_OK);
  EXPECT_GE(us, 2000);  // a copy takes at least the modelled latency
  api.stamp_destroy(first);
  api.stamp_destroy(second);
}

TEST(VirtualProfile, EachKernelStartsALaunchLatencyAfterThePreviousOne) {
  VirtualBackend b({{"virtual.devices", "1"}, {"virtual.launch_latency_us", "5000"}});
  const mge_profile_api& api = *b.plugin().profile;
  Slab x(b, 40), y(b, 40);
  Queue queue(b);
  ElementwiseKernel relu(b, "Relu", 10);
  mge_stamp *first = nullptr, *second = nullptr;
  ASSERT_EQ(api.stamp_create(b.Device(), &first, nullptr), MGE_OK);
  ASSERT_EQ(api.stamp_create(b.Device(), &second, nullptr), MGE_OK);
  void* record = nullptr;
  ASSERT_EQ(b.queues().capture_begin(queue, nullptr), MGE_OK);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(relu.Run(queue, {x.at(), y.at()}), MGE_OK);
  ASSERT_EQ(b.queues().capture_end(queue, &record, nullptr), MGE_OK);
  auto microseconds = [&](auto&& enqueue) {
    EXPECT_EQ(api.stamp(queue, first, nullptr), MGE_OK);
    enqueue();
    EXPECT_EQ(api.stamp(queue, second, nullptr), MGE_OK);
    EXPECT_EQ(queue.Finish(), MGE_OK);
    double us = 0;
    EXPECT_EQ(api.elapsed_us(first, second, &us, nullptr), MGE_OK);
    return us;
  };
  EXPECT_GE(microseconds([&] {
              for (int i = 0; i < 3; ++i) EXPECT_EQ(relu.Run(queue, {x.at(), y.at()}), MGE_OK);
            }),
            15000);
  EXPECT_GE(microseconds([&] { EXPECT_EQ(b.queues().replay(queue, record, nullptr), MGE_OK); }), 10000);
  float got = 1;
  double copy_us = 1e9;  // least time of several copies, which have no launch latency
  for (int i = 0; i < 20 && copy_us >= 5000; ++i) {
    copy_us = std::min(copy_us, microseconds([&] { EXPECT_EQ(queue.Copy(&got, y.at(), 4), MGE_OK); }));
  }
  EXPECT_LT(copy_us, 5000);
  EXPECT_EQ(got, 0);
  b.queues().record_destroy(b.Device(), record);
  api.stamp_destroy(first);
  api.stamp_destroy(second);
}

}  // namespace
}  // namespace mge
