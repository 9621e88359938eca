// SPDX-License-Identifier: Apache-2.0
// The types of settings' values, as Snapshot::Get returns them.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mge {

// A size in bytes. Text forms: 4096, 512KiB, 2G (K, M, G and T, alone or with iB, are powers of 1024), 64MB (with B, powers
// of 1000).
struct ByteCount {
  int64_t count = 0;
  friend constexpr auto operator<=>(ByteCount, ByteCount) = default;
};

using Seconds = std::chrono::duration<double>;  // text forms: 1.5, 500ms, 2s, 3min, 1h

// Limits of device memory: one that applies to every device, and limits of single devices by name.
struct MemoryLimits {
  std::optional<ByteCount> all;
  std::vector<std::pair<std::string, ByteCount>> by_device;  // in the order of the text; names are not checked here

  std::optional<ByteCount> For(std::string_view device) const;  // the device's own limit, else `all`
  friend bool operator==(const MemoryLimits&, const MemoryLimits&) = default;
};

// A set of values of an enum whose values are bits. In text they are joined by `_`, `|`, `,` or `+`.
template <typename E>
struct Flags {
  uint32_t bits = 0;
  constexpr Flags() = default;
  constexpr Flags(E flag) : bits(static_cast<uint32_t>(flag)) {}
  constexpr explicit Flags(uint32_t b) : bits(b) {}
  constexpr bool Has(E flag) const { return (bits & static_cast<uint32_t>(flag)) != 0; }
  friend constexpr bool operator==(Flags, Flags) = default;
};

// Tags for types whose default is a text and whose value owns memory. The comments name the type of the value.
struct Text {};      // std::string
struct Path {};      // std::string; `~` at the begin is the home folder
struct TextList {};  // std::vector<std::string>, separated by commas
struct PathList {};  // std::vector<std::string>, separated by colons

// The value of a setting at run time: enums, flags and bytes as int64_t, seconds as double.
using SettingValue = std::variant<bool, int64_t, double, std::string, std::vector<std::string>, MemoryLimits>;

}  // namespace mge
