// SPDX-License-Identifier: Apache-2.0
// Reading the structs of C callers, who may have been compiled with an older or a newer header.
#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/base/errors.h"
#include "core/base/status.h"
#include "fmt/format.h"

namespace mge::api {

// The size of a struct in the first version of mge.h that promises to be kept. A smaller struct_size was not set.
template <typename T>
inline constexpr size_t kFirstSize = sizeof(T);

inline constexpr size_t kMaxStruct = 4096;

// Checks the size that a caller states for a struct of this type. `member` is the name of the member with the size. Fails with
// kApiMisuse if it is not the size of such a struct, which is mostly because it was not set.
template <typename T>
absl::Status CheckStructSize(size_t size, std::string_view type, std::string_view member = "struct_size") {
  if (size >= kFirstSize<T> && size <= kMaxStruct) return absl::OkStatus();
  return Fail(errors::kApiMisuse, fmt::format("{} of {} is {}", member, type, size),
              {.what = fmt::format("a struct of this type has {} bytes or more", kFirstSize<T>),
               .fix = fmt::format("call {}_init() first; it sets the size and the defaults", type)});
}

// Returns a copy of a caller's struct of this size. Members that an older caller lacks are zero. Fails with kApiMisuse if a newer
// caller sets a member that this library does not know.
template <typename T>
absl::StatusOr<T> CopyStruct(const T* given, size_t size, std::string_view type) {
  const auto* bytes = reinterpret_cast<const std::byte*>(given);
  for (size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] == std::byte{0}) continue;
    return Fail(
        errors::kApiMisuse, fmt::format("{} has a member that this version of the library does not know", type),
        {.what = fmt::format("its size is {}, the library knows {} bytes, and byte {} is not zero", size, sizeof(T), i),
         .fix = "use the library that belongs to the header mge/mge.h, or leave the newer members zero"});
  }
  T out = {};
  std::memcpy(&out, given, std::min(size, sizeof(T)));
  return out;
}

// Returns a copy of a caller's options. `given` must not be NULL. Fails like CheckStructSize() and CopyStruct().
template <typename T>
absl::StatusOr<T> CopyOptions(const T* given, std::string_view type) {
  MGE_RETURN_IF_ERROR(CheckStructSize<T>(given->struct_size, type));
  return CopyStruct(given, given->struct_size, type);
}

// The same for options that may be NULL. `init` sets the defaults.
template <typename T>
absl::StatusOr<T> CopyOptions(const T* given, void (*init)(T*), std::string_view type) {
  if (given) return CopyOptions(given, type);
  T defaults;
  init(&defaults);
  return defaults;
}

}  // namespace mge::api
