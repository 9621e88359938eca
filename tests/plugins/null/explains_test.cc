// SPDX-License-Identifier: Apache-2.0
// The template of `mge sdk new` mentions every slot that a backend can fill, in code or in a comment.
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

namespace {

namespace fs = std::filesystem;

std::string ReadText(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The text in the template that stands for a slot, if it is not the slot's name in the form CopyPeer.
const std::map<std::string, std::string> kWords = {
    {"mge_plugin.name", "kName"},
    {"mge_plugin.version", "kVersion"},
    {"mge_plugin.settings", "kSettings"},
    {"mge_plugin.setting_count", "kSettings"},
    {"mge_plugin.start", "Result Start()"},
    {"mge_plugin.stop", "void Stop()"},
    {"mge_plugin.device", "using Device"},
    {"mge_plugin.memory", "using Memory"},
    {"mge_plugin.queue", "using Queue"},
    {"mge_plugin.kernel", "using Kernels"},
    {"mge_plugin.graph", "using Claims"},
    {"mge_plugin.strategy", "using Strategy"},
    {"mge_plugin.extension", "Extension(std::string_view"},
    {"mge_plugin.layout", "using Layouts"},
    {"mge_plugin.profile", "using Stamp"},
    {"mge_plugin.collective", "using Communicator"},
    {"mge_device_api.enumerate", "Device::List"},
    {"mge_device_api.open", "Device::Init"},
    {"mge_device_api.close", "The destructor closes it"},
    {"mge_device_api.status", "Device::Health"},
    {"mge_device_api.link", "Link(Device& to"},
    {"mge_memory_api.slab_acquire", "Memory::Acquire"},
    {"mge_memory_api.slab_release", "Memory::Release"},
    {"mge_memory_api.memory_info", "Memory::Info"},
    {"mge_memory_api.pool", "using Pool"},
    {"mge_memory_api.own_pool", "Growing, or a class of your own"},
    {"mge_memory_api.reserve", "using Reserve"},
    {"mge_memory_api.own_reserve", "All, or a class of your own"},
    {"mge_memory_api.slab_release_after", "ReleaseAfter"},
    {"mge_queue_api.create", "Queue(Device&, int32_t"},
    {"mge_queue_api.destroy", "Its destructor waits"},
    {"mge_queue_api.copy", "Queue::Copy"},
    {"mge_queue_api.signal", "Queue::Signal"},
    {"mge_queue_api.wait", "Queue::Wait"},
    {"mge_queue_api.fence_create", "Fence(Device&)"},
    {"mge_queue_api.fence_destroy", "Fence(Device&)"},
    {"mge_queue_api.host_wait", "Fence::HostWait"},
    {"mge_queue_api.record_destroy", "class Record"},
    {"mge_profile_api.stamp_create", "Stamp(Device&)"},
    {"mge_profile_api.stamp_destroy", "Stamp(Device&)"},
    {"mge_profile_api.stamp", "Stamp::Take"},
    {"mge_profile_api.elapsed_us", "Stamp::ElapsedUs"},
    {"mge_layout_api.describe", "LayoutQuestion"},
    {"mge_kernel_api.set_version", "kKernelSet"},
    {"mge_kernel_api.enumerate", "Supports(const mge::Problem&"},
    {"mge_kernel_api.prepare", "Relu(const mge::Problem&"},
    {"mge_kernel_api.destroy", "Created once per problem"},
    {"mge_kernel_api.bind", "Bind(const mge::Binding&"},
    {"mge_kernel_api.prepack", "Prepack(int input"},
    {"mge_kernel_api.state_create", "struct State"},
    {"mge_kernel_api.state_destroy", "struct State"},
    {"mge_graph_api.claim", "FindClaims"},
    {"mge_strategy_api.order", "Strategy::Order"},
    {"mge_strategy_api.flags", "kByCost"},
    {"mge_strategy_api.mode", "kMode"},
};

// Returns "CopyPeer" for "mge_queue_api.copy_peer".
std::string FunctionName(const std::string& slot) {
  std::string out;
  bool begins = true;
  for (char c : slot.substr(slot.find('.') + 1)) {
    if (c != '_') out += begins ? static_cast<char>(std::toupper(c)) : c;
    begins = c == '_';
  }
  return out;
}

// Returns the members of the plugin's table and of its nested tables, except those that the SDK's headers always fill.
std::set<std::string> Slots() {
  const std::set<std::string> tables = {"mge_plugin",     "mge_device_api",  "mge_memory_api",
                                        "mge_queue_api",  "mge_profile_api", "mge_layout_api",
                                        "mge_kernel_api", "mge_graph_api",   "mge_strategy_api"};
  const std::set<std::string> filled = {"struct_size", "minor", "reserved", "abi_major", "abi_minor", "header_hash"};
  std::set<std::string> out;
  std::ifstream in(MGE_SOURCE_DIR "/tests/abi/plugin_abi.txt");
  for (std::string slot, rest; in >> slot && std::getline(in, rest);) {
    const size_t dot = slot.find('.');
    if (dot == std::string::npos || filled.count(slot.substr(dot + 1))) continue;
    if (tables.count(slot.substr(0, dot))) out.insert(slot);
  }
  return out;
}

TEST(NullTemplate, ExplainsEverySlotThatABackendCanFill) {
  std::string text;
  for (const auto& entry : fs::recursive_directory_iterator(MGE_SOURCE_DIR "/plugins/null")) {
    if (entry.path().extension() == ".cc" || entry.path().extension() == ".h") text += ReadText(entry.path());
  }
  const std::set<std::string> slots = Slots();
  for (const std::string& slot : slots) {
    auto row = kWords.find(slot);
    const std::string words = row != kWords.end() ? row->second : FunctionName(slot);
    EXPECT_NE(text.find(words), std::string::npos) << slot << ": nothing in plugins/null says '" << words << "'";
  }
  for (const auto& [slot, words] : kWords) EXPECT_TRUE(slots.count(slot)) << slot << " is not a slot of the interface";
}

}  // namespace
