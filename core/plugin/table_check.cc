// SPDX-License-Identifier: Apache-2.0
// Checks a backend's tables against the contract, after Widen().
#include <initializer_list>
#include <string_view>
#include <utility>

#include "core/plugin/abi_call.h"
#include "core/plugin/memory/pool.h"
#include "core/plugin/tables.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge {
namespace {

constexpr uint64_t kMaxText = 4096;
constexpr uint64_t kMaxDeviceText = 1 << 20;  // may hold a driver's log; the loader cuts it later

// Checks a table. `required` calls its argument for each required function.
template <typename Table, typename SlotsOf>
std::string CheckTable(std::string_view name, const Table* table, SlotsOf&& required) {
  if (!table) return fmt::format("table '{}' is NULL", name);
  std::string bad;
  required([&](std::string_view slot, bool filled) {
    if (filled || !bad.empty()) return;
    bad = table->struct_size < sizeof(Table)
              ? fmt::format("table '{}' says {} bytes (struct_size) and lacks the required slot '{}'; this host's has {}",
                            name, table->struct_size, slot, sizeof(Table))
              : fmt::format("slot '{}' of table '{}' is NULL, but required", slot, name);
  });
  return bad;
}

// A function of a group that a table must provide completely or not at all.
struct GroupSlot {
  std::string_view name;
  bool filled;
};
std::string CheckGroup(std::string_view table, std::initializer_list<GroupSlot> slots) {
  const GroupSlot *there = nullptr, *missing = nullptr;
  for (const GroupSlot& slot : slots) (slot.filled ? there : missing) = &slot;
  if (!there || !missing) return {};
  return fmt::format("slot '{}' of table '{}' is NULL, but '{}' is not: a backend must fill both or neither", missing->name,
                     table, there->name);
}

std::string CheckMemory(const mge_memory_api& memory) {
  std::string halved = CheckGroup("memory", {{"range_granularity", memory.range_granularity != nullptr},
                                             {"range_reserve", memory.range_reserve != nullptr},
                                             {"range_release", memory.range_release != nullptr},
                                             {"range_commit", memory.range_commit != nullptr},
                                             {"range_decommit", memory.range_decommit != nullptr}});
  if (!halved.empty()) return halved;
  if (memory.own_pool) {
    std::string bad = CheckTable("memory.own_pool", memory.own_pool, [&](auto&& need) {
      need("create", memory.own_pool->create != nullptr);
      need("destroy", memory.own_pool->destroy != nullptr);
      need("acquire", memory.own_pool->acquire != nullptr);
      need("release", memory.own_pool->release != nullptr);
      need("trim", memory.own_pool->trim != nullptr);
      need("stats", memory.own_pool->stats != nullptr);
    });
    if (!bad.empty()) return bad;
  } else {
    std::string pool = CopyText(memory.pool, 64);
    bool known = false;
    for (std::string_view name : PoolNames()) known |= name == pool;
    if (!known) {
      return fmt::format("table 'memory' names the pool '{}'; this host has {}", pool, fmt::join(PoolNames(), ", "));
    }
  }
  if (memory.own_reserve) {
    return CheckTable("memory.own_reserve", memory.own_reserve,
                      [&](auto&& need) { need("decide", memory.own_reserve->decide != nullptr); });
  }
  absl::StatusOr<ReservePolicy> policy = ReservePolicy::Parse(CopyText(memory.reserve, 64));
  if (!policy.ok()) return fmt::format("table 'memory' names an invalid reserve policy: {}", ErrorTitle(policy.status()));
  return {};
}

std::string CheckQueue(const mge_queue_api& queue) {
  std::string bad = CheckTable("queue", &queue, [&](auto&& need) {
    need("create", queue.create != nullptr);
    need("destroy", queue.destroy != nullptr);
    need("copy", queue.copy != nullptr);
    need("fence_create", queue.fence_create != nullptr);
    need("fence_destroy", queue.fence_destroy != nullptr);
    need("signal", queue.signal != nullptr);
    need("wait", queue.wait != nullptr);
    need("host_wait", queue.host_wait != nullptr);
  });
  if (!bad.empty()) return bad;
  return CheckGroup("queue", {{"capture_begin", queue.capture_begin != nullptr},
                              {"capture_end", queue.capture_end != nullptr},
                              {"replay", queue.replay != nullptr},
                              {"record_destroy", queue.record_destroy != nullptr}});
}

std::string CheckProfile(const mge_profile_api& profile) {
  return CheckTable("profile", &profile, [&](auto&& need) {
    need("stamp_create", profile.stamp_create != nullptr);
    need("stamp_destroy", profile.stamp_destroy != nullptr);
    need("stamp", profile.stamp != nullptr);
    need("elapsed_us", profile.elapsed_us != nullptr);
  });
}

bool IsText(const mge_text& text, uint64_t most = kMaxText) { return text.size == 0 || (text.data && text.size <= most); }

std::string CheckSettings(const mge_plugin& plugin) {
  for (uint64_t i = 0; i < plugin.setting_count; ++i) {
    const mge_setting* s = plugin.settings[i];
    if (!s) return fmt::format("its setting {} is NULL", i);
    if (!IsText(s->key) || s->key.size == 0 || !IsText(s->default_value) || !IsText(s->choices) || !IsText(s->unit) ||
        !IsText(s->doc)) {
      return fmt::format("a text of its setting {} is missing or longer than {} bytes", i, kMaxText);
    }
    auto unknown = [&](std::string_view what, int32_t number, int32_t last) {
      return fmt::format("its setting {} ('{}') has the {} {}, which this host does not know; the last that it knows is {}",
                         i, EscapeControl(CopyText(s->key, 64)), what, number, last);
    };
    if (s->type < 0 || s->type > MGE_SETTING_CHOICE) return unknown("type", s->type, MGE_SETTING_CHOICE);
    if (s->lifecycle < 0 || s->lifecycle > MGE_LIFECYCLE_DYNAMIC) {
      return unknown("lifecycle", s->lifecycle, MGE_LIFECYCLE_DYNAMIC);
    }
  }
  return {};
}

}  // namespace

std::string WhyDeviceTextIsBad(const mge_device_info& device) {
  const std::pair<const char*, mge_text> texts[] = {{"class", device.class_name},          {"name", device.name},
                                                    {"fingerprint", device.fingerprint},   {"reason", device.reason},
                                                    {"device class", device.device_class}, {"driver", device.driver}};
  for (const auto& [what, text] : texts) {
    if (!IsText(text, kMaxDeviceText))
      return fmt::format("the {} of its device {} is missing or longer than {} bytes", what, device.index, kMaxDeviceText);
  }
  return {};
}

std::string WhyWidenedTableIsBad(const mge_plugin& plugin) {
  std::string bad = CheckTable("mge_plugin", &plugin, [&](auto&& need) {
    need("start", plugin.start != nullptr);
    need("stop", plugin.stop != nullptr);
  });
  if (!bad.empty()) return bad;
  if (!IsText(plugin.name) || !IsText(plugin.version)) return "its name or version is not a valid text";
  bad = CheckTable("device", plugin.device, [&](auto&& need) {
    need("enumerate", plugin.device->enumerate != nullptr);
    need("open", plugin.device->open != nullptr);
    need("close", plugin.device->close != nullptr);
  });
  if (!bad.empty()) return bad;
  bad = CheckTable("memory", plugin.memory, [&](auto&& need) {
    need("slab_acquire", plugin.memory->slab_acquire != nullptr);
    need("slab_release", plugin.memory->slab_release != nullptr);
    need("memory_info", plugin.memory->memory_info != nullptr);
  });
  if (bad.empty()) bad = CheckMemory(*plugin.memory);
  if (!bad.empty()) return bad;
  bad = CheckTable("kernel", plugin.kernel, [&](auto&& need) {
    need("enumerate", plugin.kernel->enumerate != nullptr);
    need("prepare", plugin.kernel->prepare != nullptr);
    need("bind", plugin.kernel->bind != nullptr);
    need("destroy", plugin.kernel->destroy != nullptr);
  });
  if (bad.empty()) {
    bad = CheckGroup("kernel", {{"state_create", plugin.kernel->state_create != nullptr},
                                {"state_destroy", plugin.kernel->state_destroy != nullptr}});
  }
  if (!bad.empty()) return bad;
  if (!IsText(plugin.kernel->set_version)) return "set_version of table 'kernel' is not a valid text";
  if (plugin.queue) bad = CheckQueue(*plugin.queue);
  if (bad.empty() && plugin.graph) {
    bad = CheckTable("graph", plugin.graph, [&](auto&& need) { need("claim", plugin.graph->claim != nullptr); });
  }
  if (bad.empty() && plugin.strategy) {
    bad = CheckTable("strategy", plugin.strategy, [](auto&&) {});
    const int32_t mode = plugin.strategy->mode;
    if (bad.empty() && (mode < MGE_SELECT_HEURISTIC || mode > MGE_SELECT_REPRODUCIBLE)) {
      bad = fmt::format("table 'strategy' names a mode of selection that this host does not know ({})", mode);
    }
    if (uint32_t unknown = plugin.strategy->flags & ~MGE_STRATEGY_KNOWN_BITS; bad.empty() && unknown) {
      bad = fmt::format("table 'strategy' sets flags that this host does not know ({:#x})", unknown);
    }
  }
  if (bad.empty() && plugin.layout) {
    bad = CheckTable("layout", plugin.layout, [&](auto&& need) { need("describe", plugin.layout->describe != nullptr); });
  }
  if (bad.empty() && plugin.profile) bad = CheckProfile(*plugin.profile);
  if (bad.empty() && plugin.profile && !plugin.queue)
    bad = "it has a table 'profile', which measures times on queues, but no table 'queue'";
  return bad.empty() ? CheckSettings(plugin) : bad;
}

}  // namespace mge
