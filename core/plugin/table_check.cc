// SPDX-License-Identifier: Apache-2.0
// Checks a backend's tables against the contract, after Widen().
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <set>
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
constexpr uint32_t kMaxBufferAlignment = 4096;
constexpr uint32_t kMaxComputeQueues = 1024;
constexpr uint64_t kMaxProperties = 64;
constexpr uint64_t kMaxPropertyKey = 64;      // bytes
constexpr uint64_t kMaxPropertyValue = 1024;  // bytes

// A function of a table.
struct SlotRow {
  std::string_view name;
  size_t offset;
  enum { kRequired, kOptional, kWith } need;
  std::string_view with = {};  // kWith: the slot is NULL if and only if this one is
  size_t with_offset = 0;
};

// Slots<Table>::kRows are the functions of a table. CMakeLists.txt derives them from plugin.h.
template <typename Table>
struct Slots;
// clang-format off
#define MGE_TABLE(table) template <> struct Slots<table> { using Table = table; static constexpr SlotRow kRows[] = {
#define MGE_SLOT(slot, need) {#slot, offsetof(Table, slot), SlotRow::need},
#define MGE_SLOT_WITH(slot, other) {#slot, offsetof(Table, slot), SlotRow::kWith, #other, offsetof(Table, other)},
#define MGE_TABLE_END }; };
// clang-format on
#include "slot_rows.inc"
#undef MGE_TABLE
#undef MGE_SLOT
#undef MGE_SLOT_WITH
#undef MGE_TABLE_END

// Checks that the required slots of a table are filled, and that slots that belong together are all filled or all NULL.
template <typename Table>
std::string CheckTable(std::string_view name, const Table* table) {
  if (!table) return fmt::format("table '{}' is NULL", name);
  auto filled = [&](size_t offset) {
    void (*function)() = nullptr;
    std::memcpy(&function, reinterpret_cast<const char*>(table) + offset, sizeof(function));
    return function != nullptr;
  };
  for (const SlotRow& slot : Slots<Table>::kRows) {
    if (slot.need != SlotRow::kRequired || filled(slot.offset)) continue;
    if (table->struct_size >= sizeof(Table)) {
      return fmt::format("slot '{}' of table '{}' is NULL, but required", slot.name, name);
    }
    return fmt::format("table '{}' says {} bytes (struct_size) and lacks the required slot '{}'; this host's has {}", name,
                       table->struct_size, slot.name, sizeof(Table));
  }
  for (const SlotRow& slot : Slots<Table>::kRows) {
    if (slot.need != SlotRow::kWith || filled(slot.offset) == filled(slot.with_offset)) continue;
    const bool lacks = !filled(slot.offset);
    return fmt::format("slot '{}' of table '{}' is NULL, but '{}' is not: a backend must fill both or neither",
                       lacks ? slot.name : slot.with, name, lacks ? slot.with : slot.name);
  }
  return {};
}

std::string CheckMemory(const mge_memory_api& memory) {
  if (memory.own_pool) {
    std::string bad = CheckTable("memory.own_pool", memory.own_pool);
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
    return CheckTable("memory.own_reserve", memory.own_reserve);
  }
  absl::StatusOr<ReservePolicy> policy = ReservePolicy::Parse(CopyText(memory.reserve, 64));
  if (!policy.ok()) return fmt::format("table 'memory' names an invalid reserve policy: {}", ErrorTitle(policy.status()));
  return {};
}

std::string CheckStrategy(const mge_strategy_api& strategy) {
  if (std::string bad = CheckTable("strategy", &strategy); !bad.empty()) return bad;
  if (strategy.mode < MGE_SELECT_HEURISTIC || strategy.mode > MGE_SELECT_REPRODUCIBLE) {
    return fmt::format("table 'strategy' names a mode of selection that this host does not know ({})", strategy.mode);
  }
  if (uint32_t unknown = strategy.flags & ~MGE_STRATEGY_KNOWN_BITS) {
    return fmt::format("table 'strategy' sets flags that this host does not know ({:#x})", unknown);
  }
  return {};
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

// Returns true for a key of a property: a-z, 0-9 and '_'.
bool IsSettingKey(const mge_text& text) {
  return IsText(text, kMaxPropertyKey) && text.size > 0 && std::all_of(text.data, text.data + text.size, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

std::string WhyPropertiesAreBad(const mge_device_info& device) {
  if (device.property_count > kMaxProperties || (device.property_count > 0 && !device.properties)) {
    return fmt::format("the list of properties of its device {} is NULL or longer than {} ({})", device.index,
                       kMaxProperties, device.property_count);
  }
  std::set<std::string> keys;
  for (uint64_t i = 0; i < device.property_count; ++i) {
    const mge_property* p = device.properties[i];
    if (!p || p->struct_size < sizeof(mge_property)) {
      return fmt::format("property {} of its device {} is NULL or too short (struct_size)", i, device.index);
    }
    const std::string key = IsText(p->key) ? EscapeControl(CopyText(p->key, kMaxPropertyKey)) : "";
    if (!IsSettingKey(p->key)) {
      return fmt::format("property {} of its device {} has the key '{}'; a key has 1 to {} characters of a-z, 0-9 and _", i,
                         device.index, key, kMaxPropertyKey);
    }
    if (!IsText(p->value, kMaxPropertyValue)) {
      return fmt::format("the property '{}' of its device {} has a value that is missing or longer than {} bytes", key,
                         device.index, kMaxPropertyValue);
    }
    if (!keys.insert(key).second) return fmt::format("its device {} has two properties '{}'", device.index, key);
  }
  return {};
}

}  // namespace

std::string WhyDeviceInfoIsBad(const mge_device_info& device) {
  const std::pair<const char*, mge_text> texts[] = {{"class", device.class_name},          {"name", device.name},
                                                    {"fingerprint", device.fingerprint},   {"reason", device.reason},
                                                    {"device class", device.device_class}, {"driver", device.driver}};
  for (const auto& [what, text] : texts) {
    if (!IsText(text, kMaxDeviceText))
      return fmt::format("the {} of its device {} is missing or longer than {} bytes", what, device.index, kMaxDeviceText);
  }
  if (device.buffer_alignment > kMaxBufferAlignment || (device.buffer_alignment & (device.buffer_alignment - 1))) {
    return fmt::format("the buffer_alignment of its device {} is {}; it must be a power of two up to {}, or 0", device.index,
                       device.buffer_alignment, kMaxBufferAlignment);
  }
  if (device.compute_queues > kMaxComputeQueues) {
    return fmt::format("its device {} has {} compute_queues; the most is {}", device.index, device.compute_queues,
                       kMaxComputeQueues);
  }
  return WhyPropertiesAreBad(device);
}

std::string WhyWidenedTableIsBad(const mge_plugin& plugin) {
  std::string bad = CheckTable("mge_plugin", &plugin);
  if (!bad.empty()) return bad;
  if (!IsText(plugin.name) || !IsText(plugin.version)) return "its name or version is not a valid text";
  bad = CheckTable("device", plugin.device);
  if (bad.empty()) bad = CheckTable("memory", plugin.memory);
  if (bad.empty()) bad = CheckMemory(*plugin.memory);
  if (bad.empty()) bad = CheckTable("kernel", plugin.kernel);
  if (!bad.empty()) return bad;
  if (!IsText(plugin.kernel->set_version)) return "set_version of table 'kernel' is not a valid text";
  if (plugin.queue) bad = CheckTable("queue", plugin.queue);
  if (bad.empty() && plugin.graph) bad = CheckTable("graph", plugin.graph);
  if (bad.empty() && plugin.strategy) bad = CheckStrategy(*plugin.strategy);
  if (bad.empty() && plugin.layout) bad = CheckTable("layout", plugin.layout);
  if (bad.empty() && plugin.profile) bad = CheckTable("profile", plugin.profile);
  if (bad.empty() && plugin.profile && !plugin.queue)
    bad = "it has a table 'profile', which measures times on queues, but no table 'queue'";
  if (bad.empty() && plugin.collective) bad = CheckTable("collective", plugin.collective);
  if (bad.empty() && plugin.collective && !plugin.queue)
    bad = "it has a table 'collective', whose operations run on queues, but no table 'queue'";
  return bad.empty() ? CheckSettings(plugin) : bad;
}

}  // namespace mge
