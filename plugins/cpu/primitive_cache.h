// SPDX-License-Identifier: Apache-2.0
// The oneDNN primitives that are kept for later plans (cpu.onednn_cache_count).
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "onednn.h"

namespace mge::cpu::onednn {

// The key of a primitive: the bytes of all numbers on which it depends.
class PrimitiveKey {
 public:
  template <typename... T>
  explicit PrimitiveKey(const T&... parts) {
    (Add(parts), ...);
  }
  const std::string& text() const { return text_; }

 private:
  template <typename T>
  void Add(const T& part) {
    static_assert(std::has_unique_object_representations_v<T> || std::is_floating_point_v<T>, "its padding would differ");
    text_.append(reinterpret_cast<const char*>(&part), sizeof(part));
  }
  std::string text_;
};

// Keeps the primitives that were used last, at most as many as the setting says. A primitive that a plan uses lives on when
// it is dropped. Thread-safe.
class PrimitiveCache {
 public:
  // Returns the kept primitive, or the one that create() makes. The setting is read in each call.
  Result Find(const PrimitiveKey& key, const std::function<Result(PrimitivePtr*)>& create, PrimitivePtr* out);

 private:
  using Entry = std::pair<std::string, PrimitivePtr>;
  // Drops the primitives that were not used for the longest time, down to `most`.
  void Shrink(uint64_t most, std::list<Entry>& dropped);
  // Limits oneDNN's own cache, which would keep the generated code of dropped primitives.
  void LimitLibrary(int64_t most);

  std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> index_;
  int64_t library_most_ = INT64_MIN;
};

}  // namespace mge::cpu::onednn
