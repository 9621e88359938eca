// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "core/plugin/devices.h"
#include "tests/plugins/virtual/virtual_backend.h"
#include "tests/support/plugin_files.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(VirtualDevice, IsNotThereUnlessAskedFor) {
  VirtualBackend b(Settings{});
  EXPECT_THAT(b.List(), IsEmpty());
  EXPECT_THAT(b.logged, IsEmpty());
}

TEST(VirtualDevice, DescribesItselfAsVirtual) {
  VirtualBackend b({{"virtual.devices", "3"}, {"virtual.memory_bytes", "1000000"}});
  auto list = b.List();
  ASSERT_THAT(list, SizeIs(3));
  for (const auto& device : list) {
    EXPECT_EQ(device.class_name, "virtual");
    EXPECT_THAT(device.name, HasSubstr("software"));
    EXPECT_EQ(device.score, 1u);
    EXPECT_EQ(device.flags, uint32_t{MGE_DEVICE_ONLY_BY_NAME});
    EXPECT_EQ(device.memory, 1000000u);
  }
  mge_device* none = nullptr;
  ErrorText error;
  EXPECT_EQ(b.plugin().device->open(3, &none, error), MGE_NOT_FOUND);
  EXPECT_THAT(error.text, HasSubstr("virtual3"));
}

// Loads the backends of `folder`. `set` holds settings of the virtual backend.
std::unique_ptr<Devices> LoadWith(const PluginFolder& folder, Settings set) {
  set.emplace("virtual.memory_bytes", "1048576");
  set.emplace("virtual.max_allocation_bytes", "70368744177664");  // the host gives numbers
  DevicesOptions options;
  options.directories = {{folder.path(), "a test"}};
  options.settings = [set](std::string_view, std::span<const mge_setting* const> rows) {
    std::vector<std::string> values;
    for (const mge_setting* row : rows) {
      auto it = set.find(std::string(row->key.data, row->key.size));
      values.push_back(it != set.end() ? it->second : std::string(row->default_value.data, row->default_value.size));
    }
    return values;
  };
  auto devices = Devices::Create(std::move(options));
  EXPECT_TRUE(devices.ok()) << devices.status();
  return *std::move(devices);
}

TEST(VirtualDevice, IsNeverChosenByItself) {
  PluginFolder folder;
  folder.Write("mge_virtual.so", ReadAll(MGE_BINARY_DIR "/lib/mge/plugins/mge_virtual.so"));
  auto devices = LoadWith(folder, {{"virtual.devices", "2"}, {"virtual.gpu", "1"}});
  EXPECT_FALSE(devices->Resolve("xpux").ok());
  EXPECT_TRUE(devices->Resolve("virtual1").ok());
  EXPECT_FALSE(devices->Resolve("virtual2").ok());
}

TEST(VirtualDevice, MatchesGpuOnlyIfASettingAllowsIt) {
  PluginFolder folder;
  folder.Write("mge_virtual.so", ReadAll(MGE_BINARY_DIR "/lib/mge/plugins/mge_virtual.so"));
  {
    auto devices = LoadWith(folder, {{"virtual.devices", "2"}});
    EXPECT_EQ(devices->gpu_count(), 0);
    EXPECT_FALSE(devices->Resolve("gpu0").ok());
  }
  auto devices = LoadWith(folder, {{"virtual.devices", "2"}, {"virtual.gpu", "1"}});
  EXPECT_EQ(devices->gpu_count(), 2);
  auto gpu1 = devices->Resolve("gpu1");
  ASSERT_TRUE(gpu1.ok()) << gpu1.status();
  EXPECT_EQ(gpu1->devices[0].device->name(), "virtual1");
}

TEST(VirtualDevice, IsUnusableWithABadSettingAndGivesTheReason) {
  const std::pair<const char*, const char*> cases[] = {
      {"copy", "the rule 'copy' is not of the form [DEVICE:]OPERATION@N[+]=EFFECT"},
      {"copy@0=fail", "has the count '0'"},
      {"copy@1x=fail", "has the count '1x'"},
      {"paste@1=fail", "the operation 'paste'; allowed: allocation, copy, kernel, any"},
      {"copy@1=explode", "the effect 'explode'; allowed: fail, slow(TIME), hang, lost"},
      {"copy@1=slow(5)", "the time '5'; write 20us, 50ms or 1.5s"},
      {"copy@1=slow(99999999s)", "at most a day"},
      {"allocation@1=hang", "makes an allocation hang"},
      {"kernel@1=fail, x:copy@1=fail", "the rule 'x:copy@1=fail' has no device number"},
      {"2:copy@1=fail", "names device 2, but virtual.devices is 2"},
  };
  for (auto [value, text] : cases) {
    VirtualBackend b({{"virtual.devices", "2"}, {"virtual.fault", value}});
    auto list = b.List();
    ASSERT_THAT(list, SizeIs(2));
    EXPECT_EQ(list[1].score, 0u) << value;
    EXPECT_THAT(list[1].reason, AllOf(HasSubstr("virtual.fault: "), HasSubstr(text)));
    mge_device* device = nullptr;
    ErrorText error;
    EXPECT_EQ(b.plugin().device->open(0, &device, error), MGE_INVALID_ARGUMENT);
    EXPECT_EQ(error.text, list[0].reason);
  }
}

TEST(VirtualDevice, IsUnusableIfTheHostGivesNoValueForASetting) {
  const std::pair<const char*, const char*> cases[] = {
      {"virtual.memory_bytes", "virtual.memory_bytes has no value from the host"},
      {"virtual.links", "virtual.links has no value"},
      {"virtual.warp", "virtual.warp has no value"}};
  for (auto [key, text] : cases) {
    VirtualBackend b({{"virtual.devices", "1"}, {key, kNoValue}});
    auto list = b.List();
    ASSERT_THAT(list, SizeIs(1));
    EXPECT_EQ(list[0].score, 0u) << key;
    EXPECT_THAT(list[0].reason, HasSubstr(text));
  }
  for (const char* key : {"virtual.memory_bytes", "virtual.bandwidth_gb_s", "virtual.warp"}) {
    VirtualBackend b({{"virtual.devices", "1"}, {key, "1GiB"}});
    EXPECT_THAT(b.List()[0].reason, HasSubstr(std::string(key) + " is '1GiB'"));
  }
  VirtualBackend b(Settings{{"virtual.devices", kNoValue}});
  EXPECT_THAT(b.List(), IsEmpty());
  EXPECT_THAT(b.logged, ElementsAre(HasSubstr("virtual.devices has no value")));
}

TEST(VirtualDevice, ABadSettingWithoutDevicesIsOnlyAWarning) {
  VirtualBackend b(Settings{{"virtual.fault", "nonsense"}});
  EXPECT_THAT(b.List(), IsEmpty());
  EXPECT_THAT(b.logged, ElementsAre(HasSubstr("virtual.fault: the rule 'nonsense'")));
}

// A temporary file with a link matrix.
class LinkFile {
 public:
  explicit LinkFile(const std::string& text) : path_(testing::TempDir() + "mge_links_XXXXXX") {
    int file = mkstemp(path_.data());
    EXPECT_GE(file, 0);
    close(file);
    std::ofstream(path_) << text;
  }
  ~LinkFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(VirtualLinks, TheErrorOfABadMatrixNamesFileAndLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"", ":1: there is no row"},
      {"# nothing\n\n", ":1: there is no row"},
      {"0 1\n1\n", ":2: this row has 1 cells, the first has 2"},
      {"0,1\n", ":1: a link matrix must be square; this one has 1 rows of 2 cells"},
      {"0,1\n9,0\n", ":2: the cell '9'"},
      {"0,25/x\n1,0\n", ":1: the cell '25/x'"},
      {"0,0/1\n1,0\n", ":1: the cell '0/1'"},
      {"0", "the matrix"},
      {"0 2\n2 25/1\n", ":2: a peer link from device 1 to itself"},
      {"0 20/9/host\n1 0\n", ":2: device 1 reaches the host by 12/10 here and by 20/9 in a cell before"},
  };
  for (auto [text, why] : cases) {
    LinkFile file(text);
    VirtualBackend b({{"virtual.devices", "2"}, {"virtual.links", file.path()}});
    EXPECT_EQ(b.List()[0].score, 0u) << text;
    EXPECT_THAT(b.List()[0].reason, AllOf(HasSubstr("virtual.links: "), HasSubstr(file.path()), HasSubstr(why)));
  }
  for (const char* path : {"/nowhere/links.csv", "/"}) {
    VirtualBackend b({{"virtual.devices", "2"}, {"virtual.links", path}});
    EXPECT_EQ(b.List()[0].score, 0u);
    EXPECT_THAT(b.List()[0].reason, HasSubstr(std::string("the link matrix ") + path + " cannot be read: "));
  }
}

// Opening a FIFO would wait for a writer, and reading a device might never end.
TEST(VirtualLinks, AMatrixIsReadFromARegularFileOnly) {
  PluginFolder folder;
  const std::string fifo = folder.At("links");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {fifo, std::string("/dev/zero")}) {
    VirtualBackend b({{"virtual.devices", "2"}, {"virtual.links", path}});
    EXPECT_EQ(b.List()[0].score, 0u);
    EXPECT_THAT(b.List()[0].reason, HasSubstr(path + " cannot be read: it is not a regular file"));
  }
}

mge_link LinkOf(VirtualBackend& b, uint32_t from, uint32_t to) {
  mge_link link = {};
  link.struct_size = sizeof(link);
  EXPECT_EQ(b.plugin().device->link(b.Device(from), b.Device(to), &link, nullptr), MGE_OK);
  return link;
}
std::string NameOf(const mge_link& link) { return std::string(link.name.data, link.name.size); }

TEST(VirtualLinks, ReadsTheTopologyOfADgx1V) {
  VirtualBackend b({{"virtual.devices", "8"}, {"virtual.links", MGE_SOURCE_DIR "/configs/links/dgx1v.csv"}});
  ASSERT_EQ(b.List()[0].score, 1u) << b.List()[0].reason;
  mge_link one = LinkOf(b, 0, 1), two = LinkOf(b, 0, 3), none = LinkOf(b, 0, 5);
  EXPECT_EQ(NameOf(one), "NVLink");
  EXPECT_EQ(NameOf(two), "NVLink x2");
  EXPECT_EQ(NameOf(none), "PCIe");
  EXPECT_EQ(one.flags, uint32_t{MGE_LINK_PEER});
  EXPECT_EQ(two.flags, uint32_t{MGE_LINK_PEER});
  EXPECT_EQ(none.flags, 0u);
  EXPECT_EQ(two.bandwidth_gb_s, 2 * one.bandwidth_gb_s);
  EXPECT_LT(none.bandwidth_gb_s, one.bandwidth_gb_s);
}

TEST(VirtualLinks, WithoutAMatrixAllDevicesArePeers) {
  VirtualBackend b(Settings{{"virtual.devices", "2"}});
  mge_link link = LinkOf(b, 1, 0);
  EXPECT_EQ(link.flags, uint32_t{MGE_LINK_PEER});
  EXPECT_EQ(link.bandwidth_gb_s, 0);
}

TEST(VirtualLinks, PeersCopyDirectlyAndOthersDoNot) {
  LinkFile file("0 40/1 20/9/host  # a ring that is not closed\n40/1 0 0\n20/9/host 0 0\n");
  VirtualBackend b({{"virtual.devices", "3"}, {"virtual.links", file.path()}});
  EXPECT_EQ(LinkOf(b, 0, 1).latency_us, 1);
  EXPECT_EQ(LinkOf(b, 0, 2).bandwidth_gb_s, 20);
  EXPECT_EQ(LinkOf(b, 0, 2).flags, 0u);
  Slab zero(b, 1000, 0), one(b, 1000, 1), two(b, 1000, 2);
  std::vector<char> data(1000, 'p'), got(1000);
  Queue queue0(b, MGE_QUEUE_COMPUTE, 0), queue1(b, MGE_QUEUE_COPY_IN, 1), queue2(b, MGE_QUEUE_COPY_IN, 2);
  const mge_queue_api& q = b.queues();
  ErrorText error;
  ASSERT_EQ(queue0.Copy(zero.at(), data.data(), 1000), MGE_OK);
  ASSERT_EQ(queue0.Finish(), MGE_OK);
  ASSERT_EQ(q.copy_peer(queue1, b.Device(1), one.at(), b.Device(0), zero.at(), 1000, error), MGE_OK) << error.text;
  ASSERT_EQ(queue1.Copy(got.data(), one.at(), 1000), MGE_OK);
  ASSERT_EQ(queue1.Finish(), MGE_OK);
  EXPECT_EQ(got, data);
  EXPECT_EQ(q.copy_peer(queue2, b.Device(2), two.at(), b.Device(0), zero.at(), 1000, error), MGE_FAILED_PRECONDITION);
  EXPECT_THAT(error.text, HasSubstr("virtual0 and virtual2 are not linked as peers"));
  EXPECT_EQ(q.copy_peer(queue2, b.Device(1), one.at(), b.Device(0), zero.at(), 1000, error), MGE_INVALID_ARGUMENT);
  EXPECT_EQ(q.copy_peer(queue1, b.Device(1), one.at(), b.Device(0), zero.at(500), 501, error), MGE_INVALID_ARGUMENT);
  EXPECT_EQ(q.copy_peer(queue1, b.Device(1), one.at(), b.Device(0), one.at(), 1, error), MGE_INVALID_ARGUMENT);
}

// Returns the time of a copy in microseconds, measured by the device's stamps.
double CopyUs(VirtualBackend& b, uint32_t device, bool in, uint64_t bytes) {
  const mge_profile_api& api = *b.plugin().profile;
  Slab slab(b, bytes, device);
  std::vector<char> data(bytes);
  Queue queue(b, in ? MGE_QUEUE_COPY_IN : MGE_QUEUE_COPY_OUT, device);
  mge_stamp *begin = nullptr, *end = nullptr;
  EXPECT_EQ(api.stamp_create(b.Device(device), &begin, nullptr), MGE_OK);
  EXPECT_EQ(api.stamp_create(b.Device(device), &end, nullptr), MGE_OK);
  EXPECT_EQ(api.stamp(queue, begin, nullptr), MGE_OK);
  EXPECT_EQ(in ? queue.Copy(slab.at(), data.data(), bytes) : queue.Copy(data.data(), slab.at(), bytes), MGE_OK);
  EXPECT_EQ(api.stamp(queue, end, nullptr), MGE_OK);
  EXPECT_EQ(queue.Finish(), MGE_OK);
  double us = -1;
  EXPECT_EQ(api.elapsed_us(begin, end, &us, nullptr), MGE_OK);
  api.stamp_destroy(begin);
  api.stamp_destroy(end);
  return us;
}

TEST(VirtualLinks, TheBandwidthToTheHostIsModelledBothWays) {
  VirtualBackend b({{"virtual.devices", "1"}, {"virtual.bandwidth_gb_s", "0.0005"}});  // 500 kB per second
  EXPECT_GE(CopyUs(b, 0, true, 10000), 20000);
  EXPECT_GE(CopyUs(b, 0, false, 5000), 10000);
}

TEST(VirtualLinks, CellsMarkedHostDescribeTheLinkToTheHost) {
  LinkFile file("0 0.0005/10000/host 0\n0.0005/10000/host 0 0\n0 0 0.001/0/host\n");
  VirtualBackend b({{"virtual.devices", "3"}, {"virtual.links", file.path()}});
  for (uint32_t device : {0, 1}) {
    EXPECT_GE(CopyUs(b, device, true, 10000), 30000);
    EXPECT_GE(CopyUs(b, device, false, 5000), 20000);
  }
  EXPECT_GE(CopyUs(b, 2, true, 10000), 10000);
  EXPECT_EQ(LinkOf(b, 0, 1).latency_us, 10000);
}

TEST(VirtualLinks, InADgx1VTheLinkToTheHostIsPcie) {
  VirtualBackend b({{"virtual.devices", "2"}, {"virtual.links", MGE_SOURCE_DIR "/configs/links/dgx1v.csv"}});
  EXPECT_GE(CopyUs(b, 1, true, 8), 10);
}

TEST(VirtualLinks, TheLinkToTheHostMayBeGivenOnlyOnce) {
  LinkFile file("0 12/10/host\n12/10/host 0\n"), silent("0 0\n0 0\n");
  for (const char* setting : {"virtual.bandwidth_gb_s", "virtual.latency_us"}) {
    {
      VirtualBackend b({{"virtual.devices", "2"}, {"virtual.links", file.path()}, {setting, "1"}});
      EXPECT_EQ(b.List()[0].score, 0u);
      EXPECT_THAT(b.List()[0].reason,
                  AllOf(HasSubstr("already contains the link of virtual0 to the host"), HasSubstr(file.path())));
    }
    VirtualBackend b({{"virtual.devices", "2"}, {"virtual.links", silent.path()}, {setting, "1"}});
    EXPECT_EQ(b.List()[0].score, 1u) << b.List()[0].reason;
  }
}

TEST(VirtualLinks, CopiesOverOneLinkAreSequential) {
  LinkFile file("0 0.0001/0\n0.0001/0 0\n");  // 100 kB per second: 1000 bytes in 10 ms
  VirtualBackend b({{"virtual.devices", "2"}, {"virtual.links", file.path()}, {"virtual.fault", "0:copy@1=hang"}});
  const mge_profile_api& api = *b.plugin().profile;
  Slab zero(b, 1000, 0), one(b, 2000, 1);
  char* place = one.at();
  Fence done(b, 1);
  Queue first(b, MGE_QUEUE_COPY_IN, 1), second(b, MGE_QUEUE_COPY_IN, 1), stamps(b, MGE_QUEUE_COMPUTE, 1);
  Gate gate(b);
  mge_stamp *begun = nullptr, *ended = nullptr;
  ASSERT_EQ(api.stamp_create(b.Device(1), &begun, nullptr), MGE_OK);
  ASSERT_EQ(api.stamp_create(b.Device(1), &ended, nullptr), MGE_OK);
  for (Queue* queue : {&first, &second}) {
    gate.Hold(*queue);
    ASSERT_EQ(b.queues().copy_peer(*queue, b.Device(1), place, b.Device(0), zero.at(), 1000, nullptr), MGE_OK);
    place += 1000;
  }
  ASSERT_EQ(second.Signal(done, 1), MGE_OK);
  ASSERT_EQ(first.Wait(done, 1), MGE_OK);
  ASSERT_EQ(api.stamp(first, ended, nullptr), MGE_OK);
  ASSERT_EQ(api.stamp(stamps, begun, nullptr), MGE_OK);
  ASSERT_EQ(stamps.Finish(), MGE_OK);
  gate.Open();
  ASSERT_EQ(first.Finish(), MGE_OK);
  double us = 0;
  ASSERT_EQ(api.elapsed_us(begun, ended, &us, nullptr), MGE_OK);
  EXPECT_GE(us, 20000);
  api.stamp_destroy(begun);
  api.stamp_destroy(ended);
}

}  // namespace
}  // namespace mge
