// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/backends.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "core/base/errors.h"
#include "tests/support/forked_child.h"
#include "tests/support/plugin_files.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Returns the names of the files of the folder that are mapped into this process.
std::vector<std::string> Mapped(const PluginFolder& folder) {
  const std::string maps = ReadAll("/proc/self/maps");
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (maps.find(entry.path()) != maps.npos) out.push_back(entry.path().filename());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> Names(const Devices& devices) {
  std::vector<std::string> out;
  for (const auto& device : devices.all()) out.push_back(device->name());
  return out;
}

TEST(Backends, AreOpenedWhenOneOfTheirClassesIsRequested) {
  PluginFolder folder;
  for (const char* kind : {"processor", "card", "good", "shy"}) folder.Add(kind);
  std::unique_ptr<Devices> devices = Discover({folder.path()});
  EXPECT_THAT(Mapped(folder), IsEmpty());
  for (const PluginFile& file : devices->files()) {
    EXPECT_EQ(file.verdict, Verdict::kAccepted);
    EXPECT_EQ(file.devices, -1);
  }
  EXPECT_TRUE(devices->Resolve("host").ok());
  EXPECT_THAT(Mapped(folder), IsEmpty());
  EXPECT_TRUE(devices->Resolve("cpu(0)").ok());
  EXPECT_TRUE(devices->Resolve("multithread2:0").ok());
  EXPECT_THAT(Mapped(folder), ElementsAre("mge_processor.so"));
  EXPECT_THAT(Names(*devices), ElementsAre("cpu0", "cpu1", "host"));
  EXPECT_TRUE(devices->Resolve("fake0").ok());
  EXPECT_THAT(Mapped(folder), ElementsAre("mge_good.so", "mge_processor.so"));
  EXPECT_TRUE(devices->Resolve("gpu0").ok());
  EXPECT_THAT(Mapped(folder), ElementsAre("mge_card.so", "mge_good.so", "mge_processor.so", "mge_shy.so"));
  EXPECT_EQ(FileNamed(devices->files(), "mge_good.so").verdict, Verdict::kLoaded);
  EXPECT_EQ(FileNamed(devices->files(), "mge_good.so").devices, 2);
}

TEST(Backends, AllOpenForTheBestDevice) {
  PluginFolder folder;
  for (const char* kind : {"processor", "good"}) folder.Add(kind);
  std::unique_ptr<Devices> devices = Discover({folder.path()});
  EXPECT_EQ(devices->Resolve("xpux")->devices[0].device->name(), "fake0");
  EXPECT_THAT(Mapped(folder), ElementsAre("mge_good.so", "mge_processor.so"));
}

TEST(Backends, NumbersDoNotDependOnTheOrderOfRequests) {
  for (const char* first : {"card0", "board0", "gpu0", "shy1"}) {
    PluginFolder folder;
    for (const char* kind : {"card", "board", "shy"}) folder.Add(kind);
    std::unique_ptr<Devices> devices = Discover({folder.path()});
    ASSERT_TRUE(devices->Resolve(first).ok()) << first;
    EXPECT_EQ(devices->gpu_count(), 4);
    EXPECT_EQ(devices->Resolve("gpu0")->devices[0].device->name(), "board0") << first;
    EXPECT_EQ(devices->Resolve("gpu2")->devices[0].device->name(), "shy0") << first;
    EXPECT_EQ(devices->Resolve("card1")->devices[0].device->gpu_name(), "") << first;  // board1 is the same hardware
  }
}

TEST(Backends, ALimitOfAGpuAppliesToADeviceRequestedByItsClass) {
  PluginFolder folder;
  for (const char* kind : {"card", "shy"}) folder.Add(kind);
  DevicesOptions options;
  options.memory_limits = {{"gpu2", 5000}};
  std::unique_ptr<Devices> devices = Discover({folder.path()}, std::move(options));
  EXPECT_EQ(devices->Resolve("shy0")->devices[0].device->budget().limit(), 5000u);
}

TEST(Backends, ALimitOfADeviceWhoseBackendIsNotOpenGivesNoWarning) {
  PluginFolder folder;
  for (const char* kind : {"card", "processor"}) folder.Add(kind);
  std::vector<std::string> messages;
  DevicesOptions options;
  options.memory_limits = {{"card0", 5000}, {"card7", 5000}};
  options.logger = Logger(
      LogLevel::kWarning,
      [](void* state, LogLevel, std::string_view m) { static_cast<std::vector<std::string>*>(state)->emplace_back(m); },
      &messages);
  std::unique_ptr<Devices> devices = Discover({folder.path()}, std::move(options));
  EXPECT_TRUE(devices->Resolve("cpu0").ok());
  EXPECT_THAT(messages, IsEmpty());
  EXPECT_TRUE(devices->Resolve("card0").ok());
  EXPECT_THAT(messages, ElementsAre(HasSubstr("card7")));
}

TEST(Backends, AFailedStartIsNotRepeatedAndDoesNotAffectTheOthers) {
  PluginFolder folder;
  for (const char* kind : {"fails", "processor"}) folder.Add(kind);
  std::unique_ptr<Devices> devices = Discover({folder.path()});
  for (int i = 0; i < 2; ++i) {
    absl::Status status = devices->Resolve("fake0").status();
    EXPECT_THAT(FormatError(status), testing::AllOf(HasSubstr("no luck"), HasSubstr("cpu0")));
  }
  EXPECT_EQ(devices->Resolve("fake0,cpu0")->devices[0].device->name(), "cpu0");
}

TEST(Backends, StartOncePerRuntimeForManyThreads) {
  PluginFolder folder;
  for (const char* kind : {"slow", "card", "processor"}) folder.Add(kind);
  std::unique_ptr<Devices> devices = Discover({folder.path()});
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (const char* name : {"fake0", "gpu0", "cpu0", "fake1", "card1", "xpux", "fake0", "cpu0"}) {
    threads.emplace_back([&, name] { failed += !devices->Resolve(name).ok(); });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(RecordOf(*devices->Resolve("fake0")->devices[0].device).starts, 1);
  EXPECT_EQ(devices->all().size(), 7u);
}

TEST(Backends, ASlowOneDoesNotDelayARequestForAnother) {
  PluginFolder folder;
  for (const char* kind : {"slow", "processor"}) folder.Add(kind);
  std::unique_ptr<Devices> devices = Discover({folder.path()});
  std::atomic<bool> done{false};
  const auto begin = std::chrono::steady_clock::now();
  std::thread other([&] {
    EXPECT_TRUE(devices->Resolve("fake0").ok());
    done = true;
  });
  EXPECT_TRUE(devices->Resolve("cpu0").ok());
  const bool was_done = done;
  if (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(200)) {  // its start takes that long
    EXPECT_FALSE(was_done);
  }
  other.join();
}

TEST(Backends, StartAllReportsThoseThatExceedTheLimit) {
  PluginFolder folder;
  for (const char* kind : {"slow", "good", "processor"}) folder.Add(kind);
  std::unique_ptr<Devices> devices = Discover({folder.path()});
  EXPECT_THAT(devices->StartAll(std::chrono::milliseconds(50)), testing::Contains("slow"));
  PluginFile slow = FileNamed(devices->files(), "mge_slow.so");
  EXPECT_EQ(slow.verdict, Verdict::kAccepted);
  EXPECT_THAT(slow.warning, testing::AllOf(HasSubstr("within 0.05 s"), HasSubstr("mge doctor")));
  EXPECT_TRUE(devices->Resolve("cpu0").ok());
  EXPECT_THAT(devices->StartAll(), IsEmpty());  // waits for it
  EXPECT_EQ(FileNamed(devices->files(), "mge_slow.so").verdict, Verdict::kLoaded);
}

TEST(Backends, ARuntimeMayEndWhileABackendIsStillStarting) {
  PluginFolder folder;
  folder.Add("slow");
  std::unique_ptr<Devices> devices = Discover({folder.path()});
  EXPECT_THAT(devices->StartAll(std::chrono::milliseconds(20)), ElementsAre("slow"));
  devices.reset();
  EXPECT_TRUE(Discover({folder.path()})->Resolve("fake0").ok());
}

TEST(Backends, AChildOfAForkOpensWhatItsParentHasNotOpened) {
  PluginFolder folder;
  for (const char* kind : {"good", "card"}) folder.Add(kind);
  std::unique_ptr<Devices> devices = Discover({folder.path()});
  ASSERT_TRUE(devices->Resolve("card0").ok());
  EXPECT_EQ(InChild([&] {
              return devices->Resolve("fake0").ok() && ErrorId(devices->Resolve("card0").status()) == errors::kForked.id;
            }),
            0);
}

}  // namespace
}  // namespace mge
