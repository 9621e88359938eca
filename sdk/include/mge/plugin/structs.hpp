// SPDX-License-Identifier: Apache-2.0
// Structs that begin with struct_size, between two sides of which one may know more members than the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mge __attribute__((visibility("hidden"))) {

// Whether a struct of the other side has that member: older ones are shorter. Nothing behind struct_size is read.
template <typename T, typename M>
bool Covers(const T* s, M T::*member) {
  auto end = reinterpret_cast<uintptr_t>(&(s->*member)) + sizeof(M) - reinterpret_cast<uintptr_t>(s);
  return end <= s->struct_size;
}

// Bytes of a struct of the other side that this one knows, too. A size that no struct has, within a member, ends before it.
template <typename T>
size_t KnownBytes(const T& given) {
  return std::min<size_t>(given.struct_size / alignof(T) * alignof(T), sizeof(T));
}

// What stands in a struct of the other side, the rest zero.
template <typename T>
T Whole(const T& given) {
  T out = {};
  std::memcpy(&out, &given, KnownBytes(given));
  out.struct_size = sizeof(T);
  return out;
}

// Writes into an out struct of the other side what it has room for. Its struct_size stays.
template <typename T>
void Fill(T* out, const T& value) {
  constexpr size_t kHead = sizeof(out->struct_size);
  const size_t size = KnownBytes(*out);
  if (size <= kHead) return;
  std::memcpy(reinterpret_cast<char*>(out) + kHead, reinterpret_cast<const char*>(&value) + kHead, size - kHead);
}

}  // namespace mge
