// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <charconv>
#include <string_view>

namespace mge::virtual_gpu {
namespace {

// Reads the host's values. The first invalid one becomes the problem.
struct Values {
  Result problem;

  std::string Text(const mge_setting& setting) {
    std::string_view text;
    if (Result r = ReadSetting(setting, &text); !r.ok()) {
      if (problem.ok()) problem = {MGE_INVALID_ARGUMENT, r.text()};
      return {};
    }
    return std::string(text);
  }
  template <typename T>
  T Number(const mge_setting& setting) {
    std::string text = Text(setting);
    T value{};
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size()) return value;
    if (problem.ok())
      problem = {MGE_INVALID_ARGUMENT, std::string(View(setting.key)) + " is '" + text + "', which is not a number"};
    return {};
  }
  bool IsOn(const mge_setting& setting) { return ToBool(Text(setting)); }
};

Result ReadInto(Options& o) {
  Values values;
  o.devices = values.Number<int>(kDevices);
  o.gpu = values.IsOn(kGpu);
  o.wrong_kernel = values.IsOn(kWrongKernel);
  o.reopen = values.IsOn(kReopen);
  o.forbidden = "," + values.Text(kForbidRewrites) + ",";
  o.compile_ms = values.Number<double>(kCompileTime);
  o.device.memory_bytes = values.Number<uint64_t>(kMemory);
  o.max_allocation = values.Number<uint64_t>(kMaxAllocation);
  if (o.max_allocation == static_cast<uint64_t>(kMaxAllocation.max)) o.max_allocation = 0;
  o.buffer_alignment = values.Number<uint32_t>(kBufferAlignment);
  o.compute_queues = values.Number<uint32_t>(kComputeQueues);
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
      return {MGE_INVALID_ARGUMENT, "virtual.bandwidth_gb_s, virtual.latency_us: the matrix " + path +
                                        " already contains the link of virtual" + std::to_string(i) +
                                        " to the host; set both to 0, or write 0 instead of its cells over the host"};
    }
  }
  return {};
}

}  // namespace

Options ReadOptions() {
  Options options;
  options.problem = ReadInto(options);
  return options;
}

}  // namespace mge::virtual_gpu
