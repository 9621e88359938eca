// SPDX-License-Identifier: Apache-2.0
// Reading the option structs of C callers.
#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/base/errors.h"
#include "core/base/status.h"
#include "fmt/format.h"

namespace mge::api {

// A struct of this size or below has no member but struct_size, so that the caller has set it to something else.
inline constexpr size_t kSmallestStruct = 2 * sizeof(size_t);
inline constexpr size_t kLargestStruct = 4096;

// Checks the member struct_size of a caller's struct. Fails with kApiMisuse if it is not the size of a struct, which is mostly
// because it was not set.
inline absl::Status CheckStructSize(size_t size, std::string_view type) {
  if (size >= kSmallestStruct && size <= kLargestStruct) return absl::OkStatus();
  return Fail(errors::kApiMisuse, fmt::format("struct_size of {} is {}", type, size),
              {.what = "the library cannot tell which members the caller knows",
               .fix = fmt::format("set struct_size to sizeof({})", type)});
}

// Returns a copy of a caller's options: all zero if `given` is NULL. Members that an older caller lacks are zero. Fails with
// kApiMisuse if struct_size is not set, or if a newer caller sets a member that this library does not know.
template <typename T>
absl::StatusOr<T> CopyOptions(const T* given, std::string_view type) {
  T out = {};
  if (!given) return out;
  MGE_RETURN_IF_ERROR(CheckStructSize(given->struct_size, type));
  const auto* bytes = reinterpret_cast<const std::byte*>(given);
  for (size_t i = sizeof(T); i < given->struct_size; ++i) {
    if (bytes[i] == std::byte{0}) continue;
    return Fail(errors::kApiMisuse, fmt::format("{} has a member that this version of the library does not know", type),
                {.what = fmt::format("its size is {}, the library knows {} bytes, and byte {} is not zero",
                                     given->struct_size, sizeof(T), i),
                 .fix = "use the library that belongs to the header mge/mge.h, or leave the newer members zero"});
  }
  std::memcpy(&out, given, std::min(given->struct_size, sizeof(T)));
  return out;
}

}  // namespace mge::api
