// SPDX-License-Identifier: Apache-2.0
// Snapshot: an immutable copy of the value and the origin of every setting. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/base/log.h"
#include "core/env/settings.h"

namespace mge {

// The source of a value, lowest precedence first.
enum class Source : uint8_t { kDefault, kConfigFile, kEnvironment, kCommandLine, kCall };

struct Origin {
  Source source = Source::kDefault;
  std::string detail = {};

  // Returns "default", "/etc/mge.toml:12", "environment MGE_THREADS", "command line --set threads=2",
  // "call" or "call NAME".
  std::string Describe() const;
};

// A setting's value with its origin.
struct SettingSlot {
  SettingValue value;
  Origin origin;
};

class Snapshot {
 public:
  // Returns the value: a bool, int64_t, double, ByteCount, Seconds, enum or Flags. For types that own
  // memory, returns a reference that is valid as long as the snapshot.
  template <const auto& kSetting>
  decltype(auto) Get() const {
    using Traits = typename std::remove_cvref_t<decltype(kSetting)>::Traits;
    using Result = typename Traits::ResultType;
    const auto& stored = *std::get_if<typename Traits::StoredType>(&Slot<kSetting>().value);
    if constexpr (std::is_reference_v<Result>) {
      return static_cast<Result>(stored);
    } else if constexpr (std::is_enum_v<Result>) {
      return static_cast<Result>(stored);
    } else {
      using Field = std::conditional_t<Traits::kType == SettingType::kFlags, uint32_t, typename Traits::StoredType>;
      return Result{static_cast<Field>(stored)};
    }
  }
  template <const auto& kSetting>
  const Origin& OriginOf() const {
    return Slot<kSetting>().origin;
  }
  // Returns whether any source set the value, even to its default.
  template <const auto& kSetting>
  bool IsSet() const {
    return OriginOf<kSetting>().source != Source::kDefault;
  }

  // Returns the lowest level of messages that are written: log.override if it is set, else log.level.
  LogLevel LogThreshold() const;

  // Returns a backend's values in the order of its declarations, or nullptr if it is not registered.
  const std::vector<SettingSlot>* Backend(std::string_view name) const;

  // Returns all dynamic settings that differ from their defaults, as "key=LENGTH:value;...". The text is
  // part of a plan's key.
  const std::string& DynamicKey() const { return dynamic_key_; }

 private:
  friend class Registry;
  struct BackendSlots {
    std::string name;
    std::vector<SettingSlot> slots;
  };

  template <const auto& kSetting>
  const SettingSlot& Slot() const {
    constexpr size_t kIndex = SettingIndex(kSetting.key);
    return core_[kIndex];
  }

  std::array<SettingSlot, kSettings.size()> core_;
  std::vector<BackendSlots> backends_;
  std::string dynamic_key_;
};

}  // namespace mge
