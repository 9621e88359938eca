// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <charconv>
#include <string_view>

namespace mge::virtual_gpu {
namespace {

enum Index : uint32_t {
  kDevices,
  kGpu,
  kMemory,
  kMaxAllocation,
  kLinks,
  kBandwidth,
  kLatency,
  kLaunchLatency,
  kFault,
  kPoison,
  kWarp,
  kThreadOrder,
  kWrongKernel,
  kCount
};

constexpr mge_setting Row(int32_t type, std::string_view key, std::string_view default_value, std::string_view unit,
                          std::string_view doc, double min = 0, double max = 0, std::string_view choices = {}) {
  return {sizeof(mge_setting),     type, Text(key), Text(default_value), Text(choices), Text(unit), Text(doc), min, max,
          MGE_LIFECYCLE_FIRST_SET, 0};
}

constexpr mge_setting kRows[kCount] = {
    Row(MGE_SETTING_INT, "virtual.devices", "0", "devices", "Number of GPUs in software: virtual0, virtual1 and so on.", 0,
        64),
    Row(MGE_SETTING_BOOL, "virtual.gpu", "false", "", "Make the devices also available as gpu0, gpu1 and so on."),
    Row(MGE_SETTING_BYTES, "virtual.memory", "1GiB", "", "Memory of each device.", 1 << 16, 0x1p46),
    Row(MGE_SETTING_BYTES, "virtual.max_allocation", "0", "", "Largest single allocation in bytes; 0 means no limit.", 0,
        0x1p46),
    Row(MGE_SETTING_TEXT, "virtual.links", "", "",
        "File with the link matrix of the devices, with optional links to the host; without a file all are peers at the "
        "speed of memory."),
    Row(MGE_SETTING_DOUBLE, "virtual.bandwidth", "0", "GB/s",
        "Simulated bandwidth between host and device per direction; 0 means the speed of memory.", 0, 1e6),
    Row(MGE_SETTING_DOUBLE, "virtual.latency", "0", "us", "Simulated latency of a copy between host and device.", 0, 1e6),
    Row(MGE_SETTING_DOUBLE, "virtual.launch_latency", "0", "us",
        "Simulated delay from a kernel's turn on its queue to its start.", 0, 1e6),
    Row(MGE_SETTING_TEXT, "virtual.fault", "", "",
        "Injected faults, such as copy@2=fail or 1:kernel@5+=slow(20ms): allocation, copy, kernel or any; fail, slow(TIME), "
        "hang or lost."),
    Row(MGE_SETTING_BOOL, "virtual.poison", "false", "", "Fill new device memory with NaN instead of zeros."),
    Row(MGE_SETTING_CHOICE, "virtual.warp", "32", "threads", "Threads of a warp.", 0, 0, "32|64"),
    Row(MGE_SETTING_CHOICE, "virtual.thread_order", "forward", "",
        "Order in which the threads of a block begin; no correct kernel depends on it.", 0, 0, "forward|reverse|shuffled"),
    Row(MGE_SETTING_BOOL, "virtual.wrong_kernel", "false", "",
        "Offer for every problem a kernel with a low estimate that computes nothing, to test how kernels are selected."),
};

// Reads the host's values. The first invalid one becomes the problem.
struct Values {
  Result problem;

  std::string Text(Index index) {
    mge_text text = {};
    if (Host()->setting(Host()->self, index, &text) != MGE_OK) Complain(index, " has no value from the host");
    return std::string(View(text));
  }
  template <typename T>
  T Number(Index index) {
    std::string text = Text(index);
    T value{};
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size()) return value;
    Complain(index, " is '" + text + "', which is not a number");
    return {};
  }
  bool IsOn(Index index) { return Text(index) == "1"; }  // the host writes true as 1

 private:
  void Complain(Index index, const std::string& what) {
    if (problem.ok()) problem = {MGE_INVALID_ARGUMENT, std::string(View(kRows[index].key)) + what};
  }
};

Result ReadInto(Options& o) {
  Values values;
  o.devices = values.Number<int>(kDevices);
  o.gpu = values.IsOn(kGpu);
  o.wrong_kernel = values.IsOn(kWrongKernel);
  o.device.memory_bytes = values.Number<uint64_t>(kMemory);
  o.max_allocation = values.Number<uint64_t>(kMaxAllocation);
  o.device.bandwidth_gb_s = values.Number<double>(kBandwidth);
  o.device.latency_us = values.Number<double>(kLatency);
  o.device.launch_latency_us = values.Number<double>(kLaunchLatency);
  o.device.poison = values.IsOn(kPoison);
  o.device.emulator.warp = values.Number<uint32_t>(kWarp);
  using Order = gpu::EmulatorSettings::Order;
  std::string order = values.Text(kThreadOrder), fault = values.Text(kFault), path = values.Text(kLinks);
  o.device.emulator.order = order == "reverse" ? Order::kReverse : order == "shuffled" ? Order::kShuffled : Order::kForward;
  if (!values.problem.ok()) return values.problem;

  if (Result r = software::ParseFaults(fault, &o.device.faults); !r.ok()) {
    return {r.code(), "virtual.fault: " + r.text()};
  }
  for (const software::FaultRule& rule : o.device.faults) {
    if (rule.device >= o.devices) {
      return {MGE_INVALID_ARGUMENT, "virtual.fault: the rule '" + rule.text + "' names device " +
                                        std::to_string(rule.device) + ", but virtual.devices is " +
                                        std::to_string(o.devices)};
    }
  }
  if (!path.empty()) {
    if (Result r = software::LinkMatrix::Read(path, &o.device.links); !r.ok())
      return {r.code(), "virtual.links: " + r.text()};
    if (o.device.links.size() < o.devices) {
      return {MGE_INVALID_ARGUMENT, "virtual.links: the matrix " + path + " has " + std::to_string(o.device.links.size()) +
                                        " devices, but virtual.devices is " + std::to_string(o.devices)};
    }
    bool set = o.device.bandwidth_gb_s > 0 || o.device.latency_us > 0;
    for (int i = 0; i < o.devices && set; ++i) {
      if (!o.device.links.to_host(i)) continue;
      return {MGE_INVALID_ARGUMENT, "virtual.bandwidth, virtual.latency: the matrix " + path +
                                        " already contains the link of virtual" + std::to_string(i) +
                                        " to the host; set both to 0, or write 0 instead of its cells over the host"};
    }
  }
  return {};
}

}  // namespace

constexpr const mge_setting* const kSettingRows[] = {
    &kRows[kDevices],   &kRows[kGpu],         &kRows[kMemory],        &kRows[kMaxAllocation], &kRows[kLinks],
    &kRows[kBandwidth], &kRows[kLatency],     &kRows[kLaunchLatency], &kRows[kFault],         &kRows[kPoison],
    &kRows[kWarp],      &kRows[kThreadOrder], &kRows[kWrongKernel],
};
static_assert(std::size(kSettingRows) == kSettingCount && kCount == kSettingCount);

Options ReadOptions() {
  Options options;
  options.problem = ReadInto(options);
  return options;
}

}  // namespace mge::virtual_gpu
