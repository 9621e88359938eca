// SPDX-License-Identifier: Apache-2.0
// The types of settings' values: what a consumer reads from a snapshot.
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

// A size in bytes. Written plainly or with a unit: 4096, 512KiB, 2G (K, M, G, T are powers of 1024
// with and without B or iB).
struct ByteCount {
  int64_t count = 0;
  friend constexpr auto operator<=>(ByteCount, ByteCount) = default;
};

using Seconds = std::chrono::duration<double>;  // written 1.5, 500ms, 2s, 3min, 1h

// Budgets of device memory: one for every device, or one per device by name.
struct MemoryLimits {
  std::optional<ByteCount> all;
  std::vector<std::pair<std::string, ByteCount>>
      by_device;  // in the order they were written; names are not checked here

  std::optional<ByteCount> For(std::string_view device) const;  // the device's own, else `all`
  friend bool operator==(const MemoryLimits&, const MemoryLimits&) = default;
};

// Several values of an enum whose values are bits, written joined by `_`, `|`, `,` or `+`.
template <typename E>
struct Flags {
  uint32_t bits = 0;
  constexpr Flags() = default;
  constexpr Flags(E flag) : bits(static_cast<uint32_t>(flag)) {}
  constexpr explicit Flags(uint32_t b) : bits(b) {}
  constexpr bool Has(E flag) const { return (bits & static_cast<uint32_t>(flag)) != 0; }
  friend constexpr bool operator==(Flags, Flags) = default;
};

// Tags for types whose default is written as text and whose value owns memory.
struct Text {};      // std::string
struct Path {};      // std::string; `~` is not expanded
struct TextList {};  // std::vector<std::string>, written with commas
struct PathList {};  // std::vector<std::string>, written with colons

// What a setting holds at run time: enums, flags and bytes as int64_t, seconds as double.
using SettingValue =
    std::variant<bool, int64_t, double, std::string, std::vector<std::string>, MemoryLimits>;

}  // namespace mge
