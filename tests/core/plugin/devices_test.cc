// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/devices.h"

#include <gmock/gmock.h>

#include "core/base/errors.h"
#include "mge/plugin/host_limits.hpp"
#include "tests/support/plugin_files.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// The devices of a runtime whose plugin folder holds the given fake backends.
class Machine {
 public:
  explicit Machine(const std::vector<std::string>& kinds, DevicesOptions options = {}) {
    for (const std::string& kind : kinds) folder_.Add(kind);
    devices_ = Load({folder_.path()}, std::move(options));
  }
  Devices* operator->() { return devices_.get(); }
  Devices& operator*() { return *devices_; }
  // Resolves a device text. Returns the name of the chosen device, or the error as the user sees it.
  std::string Chosen(std::string_view text) {
    absl::StatusOr<Resolution> r = devices_->Resolve(text, "MGE_DEFAULT_DEVICE");
    if (!r.ok()) return FormatError(r.status());
    std::string names;
    for (const DeviceUse& use : r->devices) names += (names.empty() ? "" : "+") + use.device->name();
    for (const DeviceUse& use : r->fallbacks) names += "," + use.device->name();
    return names;
  }

 private:
  PluginFolder folder_;
  std::unique_ptr<Devices> devices_;
};

TEST(Devices, WithoutABackendAreTheHostAlone) {
  Machine machine({});
  EXPECT_EQ(machine.Chosen("host"), "host");
  EXPECT_EQ(machine.Chosen("host0"), "host");
  EXPECT_THAT(machine.Chosen("xpux"), HasSubstr("E0502"));  // the host is never chosen by default
  EXPECT_TRUE(machine->host().Is(MGE_DEVICE_ONLY_BY_NAME));
}

TEST(Devices, AreNumberedByClass) {
  Machine machine({"processor", "card", "good"});
  std::vector<std::string> names;
  for (const auto& d : machine->all()) names.push_back(d->name());
  EXPECT_THAT(names, ElementsAre("card0", "card1", "fake0", "fake1", "cpu0", "cpu1", "host"));
  EXPECT_EQ(machine->gpu_count(), 2);
  EXPECT_EQ(machine.Chosen("gpu1"), "card1");
  EXPECT_EQ(machine.Chosen("gpu(0)"), "card0");
}

TEST(Devices, TheBestIsAGpuThenAnAcceleratorThenTheCpu) {
  EXPECT_EQ(Machine({"processor", "card", "good"}).Chosen("xpux"), "card0");
  EXPECT_EQ(Machine({"processor", "good"}).Chosen("xpu"), "fake0");
  EXPECT_EQ(Machine({"processor"}).Chosen("xpux"), "cpu0");
  EXPECT_EQ(Machine({"processor", "shy"}).Chosen("xpux"), "cpu0");
  EXPECT_EQ(Machine({"processor", "shy"}).Chosen("shy0"), "shy0");
  EXPECT_EQ(Machine({"processor", "card"}).Chosen("xpu1"), "card1");
}

TEST(Devices, OneCardInTwoBackendsIsOneGpuOfTheHigherScore) {
  Machine machine({"card", "board"});  // equal fingerprints, scores 10 and 20
  EXPECT_EQ(machine->gpu_count(), 2);
  EXPECT_EQ(machine.Chosen("gpu0"), "board0");
  EXPECT_EQ(machine.Chosen("card0"), "card0");  // its own class still names it
}

TEST(Devices, AnUnusableDeviceIsAnErrorWithTheReason) {
  Machine machine({"old_driver", "processor"});
  EXPECT_EQ(machine->gpu_count(), 0);
  std::string error = machine.Chosen("gpu0");
  EXPECT_THAT(error,
              AllOf(HasSubstr("error[E0502] device 'gpu0' cannot be used"), HasSubstr("what:  the fake driver is too old"),
                    HasSubstr("where: MGE_DEFAULT_DEVICE"), HasSubstr("cpu0"), HasSubstr("gpu0,cpu0")));
  EXPECT_EQ(machine.Chosen("xpux"), "cpu0");
  EXPECT_THAT(machine.Chosen("gpux"), HasSubstr("too old"));
}

TEST(Devices, ARefusedBackendOfTheClassIsNamed) {
  PluginFolder folder;
  folder.Write("mge_card.so", WithNote(ReadAll(FakeFile("card")), [](mge_note& n) { n.hash_low ^= 1; }));
  std::unique_ptr<Devices> devices = Load({folder.path()});
  absl::Status status = devices->Resolve("gpu0").status();
  EXPECT_EQ(ErrorId(status), errors::kDeviceUnusable.id);
  EXPECT_THAT(PartsOf(status).what, AllOf(HasSubstr("mge_card.so"), HasSubstr("refused"), HasSubstr("both must be equal")));
  EXPECT_THAT(PartsOf(status).fix, HasSubstr("build it again"));
  EXPECT_THAT(PartsOf(devices->Resolve("rocm0").status()).fix, HasSubstr("install a backend"));
}

TEST(Devices, TheErrorNamesAnUntrustedPluginDirectory) {
  PluginFolder folder;
  folder.Add("processor");
  folder.Mode("", 0777);
  absl::Status status = Load({folder.path()})->Resolve("cpu0").status();
  EXPECT_THAT(PartsOf(status).what, AllOf(HasSubstr(folder.path()), HasSubstr("writable by others")));
  EXPECT_THAT(PartsOf(status).fix, HasSubstr("chmod go-w"));
}

TEST(Devices, IfNoneIsUsableTheErrorGivesAllReasons) {
  EXPECT_THAT(Machine({"old_driver", "throws"}).Chosen("xpux"),
              AllOf(HasSubstr("device 'xpux' cannot be used"), HasSubstr("card0: the fake driver is too old"),
                    HasSubstr("mge_throws.so is refused: it does not start"), HasSubstr("fix:")));
}

TEST(Devices, NumbersBeyondTheLastAreRefused) {
  Machine machine({"card"});
  EXPECT_THAT(machine.Chosen("gpu2"), AllOf(HasSubstr("E0502"), HasSubstr("there are 2 devices")));
}

TEST(Devices, ANumberBeyondTheLastGetsTheDevicesOfItsClassAsAFix) {
  Machine machine({"card", "processor"});
  for (const char* wrong : {"gpu2", "gpu(9)"}) {
    EXPECT_THAT(machine.Chosen(wrong), AllOf(HasSubstr("choose an available device (gpu0, gpu1)"), Not(HasSubstr("cpu0"))));
  }
  EXPECT_THAT(machine.Chosen("card7"), AllOf(HasSubstr("(card0, card1)"), Not(HasSubstr("cpu0"))));
}

TEST(Devices, AMisspeltClassWithoutANumberGetsTheFirstDeviceAsASuggestion) {
  Machine machine({"processor"});
  EXPECT_THAT(machine.Chosen("cpuu"), AllOf(HasSubstr("cpu0"), Not(HasSubstr("cpux"))));
  EXPECT_THAT(machine.Chosen("cpuux"), HasSubstr("cpux"));
}

TEST(Devices, AMisspeltClassGetsASuggestion) {
  Machine machine({"good"});
  EXPECT_THAT(machine.Chosen("fkae0"), AllOf(HasSubstr("E0501"), HasSubstr("fake0")));
  EXPECT_THAT(machine.Chosen("quantum0"), HasSubstr("E0502"));
  EXPECT_THAT(machine.Chosen("gqu0"), AllOf(HasSubstr("E0502"), HasSubstr("Did you mean \"gpu0\"?")));
  EXPECT_THAT(machine.Chosen("fake0,fkae1"),
              Not(HasSubstr("fake0,")));  // not skipped silently
}

TEST(Devices, FallBackOnlyWithinAList) {
  Machine machine({"processor", "card"});
  EXPECT_EQ(machine.Chosen("gpu0,cpu0"), "card0,cpu0");
  EXPECT_EQ(machine.Chosen("rocm0,cpu0"), "cpu0");
  EXPECT_EQ(machine.Chosen("gpu0+gpu1"), "card0+card1");
  EXPECT_EQ(machine.Chosen("gpu0+gpu5,gpu1"), "card1");
  EXPECT_THAT(machine.Chosen("rocm0,npu0"),
              AllOf(HasSubstr("none of the devices"), HasSubstr("rocm0:"), HasSubstr("npu0:")));
  EXPECT_THAT(machine->Resolve("rocm0,cpu0")->passed_over, ElementsAre(HasSubstr("rocm0: no backend")));
}

TEST(Devices, ADeviceThatDoesNotOpenIsSkippedInAListAndAnErrorAlone) {
  Machine machine({"busy", "processor"});
  EXPECT_THAT(machine.Chosen("fake0"), AllOf(HasSubstr("E0502"), HasSubstr("in use by another program")));
  EXPECT_EQ(machine.Chosen("fake0,cpu0"), "cpu0");
  EXPECT_EQ(machine.Chosen("xpux"),
            "cpu0");  // the best device that opens; a message names the skipped one
  EXPECT_THAT(machine->Resolve("xpux")->passed_over, ElementsAre(HasSubstr("fake0: "), HasSubstr("fake1: ")));
  EXPECT_THAT(machine.Chosen("xpu0"), HasSubstr("E0502"));
}

TEST(Devices, NamesOfTheCpuCarryThreadsAndMemory) {
  Machine machine({"processor"});
  DeviceUse four = machine->Resolve("multithread4:0")->devices[0];
  EXPECT_EQ(four.device->name(), "cpu0");
  EXPECT_EQ(four.threads, 4);
  EXPECT_FALSE(four.synchronous);
  EXPECT_TRUE(machine->Resolve("multithread:default:2")->devices[0].synchronous);
  EXPECT_TRUE(machine->Resolve("cpu:default")->devices[0].synchronous);
  EXPECT_EQ(machine->Resolve("cpu0:1")->devices[0].stream, 1);
  EXPECT_EQ(machine->Resolve("cpu_pinned(0)")->devices[0].pinned, 0);
  EXPECT_EQ(machine->Resolve("cpu(7)")->devices[0].device->name(), "cpu0");
  EXPECT_EQ(machine.Chosen("cpu1"), "cpu1");
  EXPECT_THAT(machine.Chosen("cpu7"), HasSubstr("E0502"));
}

TEST(Devices, TwoBackendsOfOneClassAndOneProcessorAreOneDevice) {
  Machine machine({"processor", "fast_processor"});
  EXPECT_EQ(machine.Chosen("cpu0"), "cpu0");
  EXPECT_EQ(machine->Resolve("cpu0")->devices[0].device->backend().name(), "fast_processor");
  EXPECT_THAT(machine.Chosen("cpu2"), HasSubstr("there are 2 devices"));
  std::vector<std::string> hidden;
  for (const auto& d : machine->all()) {
    if (!d->usable()) hidden.push_back(d->name() + ": " + d->reason());
  }
  EXPECT_THAT(hidden, ElementsAre("cpu@processor: the same hardware is cpu0, driven by backend 'fast_processor'",
                                  "cpu@processor: the same hardware is cpu1, driven by backend 'fast_processor'"));
}

TEST(Devices, AreOpenedAtFirstUseOnly) {
  Machine machine({"good"});
  const mge_test_record& record = RecordOf(*machine->all()[0]);
  EXPECT_EQ(record.opens, 0);
  EXPECT_EQ(machine->all()[0]->handle(), nullptr);
  EXPECT_EQ(machine.Chosen("fake1,fake0"), "fake1,fake0");
  EXPECT_EQ(record.opens, 1);  // a fallback is opened only when it is needed
}

// ---------------------------------------------------------------- memory of a device

TEST(DeviceMemory, TheErrorOfALimitNamesTheSetting) {
  DevicesOptions options;
  options.memory_limits = {{"fake0", 10000}};
  Machine machine({"good"}, std::move(options));
  Device& device = *machine->Resolve("fake0")->devices[0].device;
  Pool& pool = **device.PoolOf();
  EXPECT_EQ(pool.name(), "naive");
  mge_reservation r = *pool.Acquire(5000);
  absl::Status status = pool.Acquire(6000).status();
  EXPECT_EQ(ErrorId(status), errors::kOverBudget.id);
  EXPECT_THAT(PartsOf(status).what, HasSubstr("6000 bytes were asked for, 5000 are in use, the limit is 10000"));
  EXPECT_THAT(ErrorTitle(status), HasSubstr("fake0"));
  pool.Release(r);
  r = *pool.Acquire(6000);  // the cache is released before the request fails
  EXPECT_EQ(device.Stats().charged, 6000u);
  pool.Release(r);
  EXPECT_EQ(device.Stats().limit, 10000u);
  EXPECT_EQ(machine->all()[1]->Stats().limit, 0u);
}

TEST(DeviceMemory, ALimitMayNameAGpuOrAllDevices) {
  DevicesOptions options;
  options.memory_limits = {{"gpu1", 5000}};
  options.memory_limit = 7000;
  Machine machine({"card"}, std::move(options));
  EXPECT_EQ(machine->Find(*ParseDeviceName("card0"))->device->budget().limit(), 7000u);
  EXPECT_EQ(machine->Find(*ParseDeviceName("card1"))->device->budget().limit(), 5000u);
}

TEST(DeviceMemory, ALimitOfAnAbsentDeviceGivesAWarning) {
  std::string message;
  DevicesOptions options;
  options.memory_limits = {{"gpu9", 5000}};
  options.logger = Logger(
      LogLevel::kWarning, [](void* state, LogLevel, std::string_view m) { *static_cast<std::string*>(state) = m; },
      &message);
  Machine machine({"good"}, std::move(options));
  EXPECT_THAT(message, HasSubstr("gpu9"));
}

TEST(DeviceMemory, AFailedAllocationOfTheDriverIsOutOfMemory) {
  Machine machine({"good"});
  Pool& pool = **machine->Resolve("fake0")->devices[0].device->PoolOf();
  absl::Status status = pool.Acquire(2000000).status();
  EXPECT_EQ(ErrorId(status), errors::kOutOfMemory.id);
  EXPECT_THAT(PartsOf(status).what, AllOf(HasSubstr("1000000 are free"), HasSubstr("the fake card is full")));
}

TEST(DeviceMemory, ABackendsOwnPoolIsTheDefault) {
  {
    Machine machine({"own_pool"});
    Device& device = *machine->Resolve("fake0")->devices[0].device;
    Pool& pool = **device.PoolOf();
    EXPECT_EQ(pool.name(), "own");
    mge_reservation r = *pool.Acquire(300000);
    EXPECT_EQ(RecordOf(device).pool_acquires, 1);
    EXPECT_EQ(RecordOf(device).trims, 0);
    // The backend's policy keeps half of the card free, so the pool is trimmed before less is free.
    mge_reservation s = *pool.Acquire(300000);
    EXPECT_EQ(RecordOf(device).trims, 1);
    EXPECT_EQ(device.budget().in_use(), 600000u);
    pool.Release(r);
    pool.Release(s);
    EXPECT_EQ(device.budget().in_use(), 0u);
  }
  DevicesOptions options;
  options.memory.pool = "round";
  Machine machine({"own_pool"}, std::move(options));
  EXPECT_EQ((*machine->Resolve("fake0")->devices[0].device->PoolOf())->name(), "round");
}

TEST(DeviceMemory, TheBudgetLimitsABackendsOwnPool) {
  DevicesOptions options;
  options.memory_limit = 1000;
  Machine machine({"own_pool"}, std::move(options));
  Pool& pool = **machine->Resolve("fake0")->devices[0].device->PoolOf();
  EXPECT_EQ(ErrorId(pool.Acquire(1001).status()), errors::kOverBudget.id);
}

TEST(DeviceMemory, PooledMemoryIsReleasedBeforeATensorFails) {
  for (const char* pool : {"naive", "growing"}) {
    DevicesOptions options;
    options.memory_limits = {{"cpu0", 800 << 10}};
    options.memory = {.pool = pool, .reserve = "bytes:200K"};
    Machine machine({"processor"}, std::move(options));
    Device& device = *machine->Resolve("cpu0")->devices[0].device;
    Pool& memory = **device.PoolOf();
    for (uint64_t kib : {100, 200, 300}) memory.Release(*memory.Acquire(kib << 10));
    ASSERT_GT(device.Stats().pool.committed, 300u << 10);
    absl::StatusOr<Tensor> tensor = Tensor::Create(DType::kU8, {500 << 10}, device.host_allocator());
    ASSERT_TRUE(tensor.ok()) << pool << FormatError(tensor.status());
    EXPECT_LE(device.Stats().pool.committed, 300u << 10) << pool;
    tensor = Tensor();  // refunds the budget
    tensor = Tensor::Create(DType::kU8, {800 << 10}, device.host_allocator());
    ASSERT_TRUE(tensor.ok()) << pool << FormatError(tensor.status());
    EXPECT_EQ(device.Stats().pool.committed, 0u) << pool;  // reserved memory is released, too
  }
}

TEST(DeviceMemory, UnderPressureTheBackendsPolicyDecides) {
  DevicesOptions options;
  options.memory_limits = {{"host", 1 << 20}};
  Machine machine({"own_pool"}, std::move(options));
  Device& device = *machine->Resolve("fake0")->devices[0].device;
  Pool& pinned = **device.PoolOf(MGE_MEMORY_PINNED);  // charged to the host's budget
  pinned.Release(*pinned.Acquire(600 << 10));
  const auto trims = RecordOf(device).trims;
  EXPECT_FALSE(Tensor::Create(DType::kU8, {2 << 20}, device.host_allocator()).ok());
  EXPECT_EQ(RecordOf(device).pressures, 0);  // the request is larger than all releasable memory
  Tensor most = *Tensor::Create(DType::kU8, {700 << 10}, device.host_allocator());
  EXPECT_FALSE(Tensor::Create(DType::kU8, {700 << 10}, device.host_allocator()).ok());
  EXPECT_EQ(RecordOf(device).pressures, 1 << MGE_PRESSURE_MODERATE | 1 << MGE_PRESSURE_CRITICAL);
  EXPECT_EQ(RecordOf(device).trims, trims + 2);
}

TEST(DeviceMemory, IdleMemoryIsReleasedDownToThePolicysRetainedBytes) {
  DevicesOptions options;
  options.memory = {.pool = "naive", .reserve = "bytes:100K"};
  Machine machine({"good"}, std::move(options));
  Device& device = *machine->Resolve("fake0")->devices[0].device;
  Pool& pool = **device.PoolOf();
  mge_reservation used = *pool.Acquire(5000);
  for (uint64_t bytes : {200000, 90000}) pool.Release(*pool.Acquire(bytes));
  device.TrimIdle();
  EXPECT_EQ(device.Stats().pool.committed, 295000u);
  pool.Release(used);
  device.TrimIdle();
  EXPECT_EQ(device.Stats().pool.committed, 95000u);
}

TEST(DeviceMemory, WithoutAPolicyIdleMemoryIsKept) {
  DevicesOptions options;
  options.memory = {.pool = "naive", .reserve = "none"};
  Machine machine({"good"}, std::move(options));
  Device& device = *machine->Resolve("fake0")->devices[0].device;
  Pool& pool = **device.PoolOf();
  pool.Release(*pool.Acquire(200000));
  device.TrimIdle();
  EXPECT_EQ(device.Stats().pool.committed, 200000u);
}

TEST(DeviceMemory, IdleMemoryOfPinnedPoolsIsNotInUseOnTheHost) {
  Machine machine({"good"});
  Pool& pinned = **machine->Resolve("fake0")->devices[0].device->PoolOf(MGE_MEMORY_PINNED);
  mge_reservation r = *pinned.Acquire(100000);
  EXPECT_EQ(machine->host().LiveBytes(), 100000u);
  pinned.Release(r);
  EXPECT_EQ(machine->host().LiveBytes(), 0u);
  EXPECT_EQ(machine->host().budget().in_use(), 100000u);
}

TEST(DeviceMemory, AReserveRoundedAboveTheLimitIsReduced) {
  for (const char* pool : {"naive", "round", "growing"}) {
    DevicesOptions options;
    options.memory_limits = {{"fake0", 700000}};
    options.memory = {.pool = pool, .reserve = "bytes:900K"};
    Machine machine({"good"}, std::move(options));
    Device& device = *machine->Resolve("fake0")->devices[0].device;
    absl::Status status = device.Reserve({});
    EXPECT_TRUE(status.ok()) << pool << FormatError(status);
    EXPECT_GE(device.Stats().pool.committed, 350000u) << pool;
  }
}

TEST(DeviceMemory, ReservingTakesTheMemoryBeforeTheFirstRun) {
  DevicesOptions options;
  options.memory = {.pool = "growing", .reserve = "bytes:500K"};
  Machine machine({"good"}, std::move(options));
  Device& device = *machine->Resolve("fake0")->devices[0].device;
  ASSERT_TRUE(device.Reserve({}).ok());
  EXPECT_GE(device.Stats().pool.committed, 500u << 10);
  EXPECT_EQ(device.Stats().pool.slab_acquires, 1u);
  device.Trim(MGE_TRIM_EXCESS);
  EXPECT_GE(device.Stats().pool.committed, 500u << 10);  // the policy retains it
  ASSERT_TRUE(device.Reserve({}).ok());
  EXPECT_EQ(device.Stats().pool.slab_acquires, 1u);  // a single slab
  device.Trim(MGE_TRIM_ALL);
  EXPECT_EQ(device.Stats().pool.committed, 0u);
}

TEST(DeviceMemory, BadMemoryOptionsAreErrorsAtCreation) {
  DevicesOptions options;
  options.memory.pool = "nave";
  absl::Status status = Devices::Create(options).status();
  EXPECT_EQ(ErrorId(status), errors::kBadSetting.id);
  EXPECT_THAT(PartsOf(status).what, HasSubstr("Did you mean \"naive\"?"));
  options.memory = {.pool = "naive", .reserve = "percent:101"};
  EXPECT_EQ(ErrorId(Devices::Create(options).status()), errors::kBadSetting.id);
}

TEST(DeviceMemory, HostTensorsCountAgainstTheDeviceAndOutliveIt) {
  DevicesOptions options;
  options.memory_limit = 1000;
  absl::StatusOr<Tensor> tensor;
  {
    Machine machine({"processor"}, std::move(options));
    Device& device = *machine->Resolve("cpu0")->devices[0].device;
    tensor = Tensor::Create(DType::kF32, {200}, device.host_allocator());
    ASSERT_TRUE(tensor.ok());
    EXPECT_EQ(device.budget().in_use(), 800u);
    EXPECT_EQ(ErrorId(Tensor::Create(DType::kF32, {51}, device.host_allocator()).status()), errors::kOverBudget.id);
  }
  tensor->MutableData<float>()[199] = 1;  // AddressSanitizer would report freed memory
}

TEST(DeviceMemory, EverySlabIsReleasedAtTheEnd) {
  PluginFolder folder;
  folder.Add("good");
  std::unique_ptr<Devices> devices = Load({folder.path()});
  Device& device = *devices->Resolve("fake0")->devices[0].device;
  const mge_test_record& record = RecordOf(device);
  Pool& pool = **device.PoolOf();
  for (uint64_t bytes : {100, 5000, 70000}) pool.Release(*pool.Acquire(bytes));
  EXPECT_EQ(record.slabs, 3);
  devices.reset();
  EXPECT_EQ(record.slabs, 0);
  EXPECT_EQ(record.held, 0u);
}

TEST(HostDevice, HasTheInterfaceOfOtherDevices) {
  Machine machine({});
  Device& host = *machine->Resolve("host")->devices[0].device;
  EXPECT_TRUE(host.Is(MGE_DEVICE_HOST_ACCESSIBLE));
  EXPECT_EQ(host.queue_api(), nullptr);
  EXPECT_GT(host.QueryMemory()->total_bytes, 0u);
  EXPECT_EQ(host.QueryMemory()->total_bytes, HostMemoryAmount().total_bytes);
  Pool& pool = **host.PoolOf();
  mge_reservation r = *pool.Acquire(100, 4096);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(r.address) % 4096, 0u);
  EXPECT_EQ(r.address, r.host_address);
  pool.Release(r);
  EXPECT_EQ(pool.Stats().committed, 0u);
  EXPECT_TRUE(host.Health().ok());
}

}  // namespace
}  // namespace mge
