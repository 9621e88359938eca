// SPDX-License-Identifier: Apache-2.0
// Structs that begin with struct_size, shared by two sides that may know different numbers of members.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// Returns whether the other side's struct has that member: older structs are shorter. Reads nothing but struct_size.
template <typename T, typename M>
bool Covers(const T* s, M T::*member) {
  auto end = reinterpret_cast<uintptr_t>(&(s->*member)) + sizeof(M) - reinterpret_cast<uintptr_t>(s);
  return end <= s->struct_size;
}

// Returns how many bytes of the other side's struct are known here. A size that ends within a member is cut before it.
template <typename T>
size_t KnownBytes(const T& given) {
  return std::min<size_t>(given.struct_size / alignof(T) * alignof(T), sizeof(T));
}

// Returns a copy of the other side's struct, with unknown members set to zero.
template <typename T>
T Whole(const T& given) {
  T out = {};
  std::memcpy(&out, &given, KnownBytes(given));
  out.struct_size = sizeof(T);
  return out;
}

// Copies into the other side's out struct as much as it has room for. Keeps its struct_size.
template <typename T>
void Fill(T* out, const T& value) {
  constexpr size_t kHead = sizeof(out->struct_size);
  const size_t size = KnownBytes(*out);
  if (size <= kHead) return;
  std::memcpy(reinterpret_cast<char*>(out) + kHead, reinterpret_cast<const char*>(&value) + kHead, size - kHead);
}

}  // namespace MGE_HIDDEN
