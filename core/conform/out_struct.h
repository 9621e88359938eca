// SPDX-License-Identifier: Apache-2.0
// Output structs of older and newer hosts: shorter and longer ones, followed by a pattern that the backend must not
// overwrite.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/conform/backend_under_test.h"
#include "fmt/format.h"

namespace mge::conform {

// Memory for an output struct whose struct_size differs from this host's.
template <typename T>
class OutStruct {
 public:
  // Creates the struct of an older host, which knows the first `covered` bytes.
  explicit OutStruct(size_t covered) : OutStruct(covered, covered) {}
  // Creates the struct of a newer host, which knows more members than these headers.
  static OutStruct Longer() { return OutStruct(sizeof(T), sizeof(T) + kMore); }

  T* get() { return reinterpret_cast<T*>(bytes_); }
  // Returns a copy of the members that both sides know; the rest is zero.
  T Whole() const {
    T whole = {};
    whole.struct_size = sizeof(T);
    std::memcpy(reinterpret_cast<char*>(&whole) + kHead, bytes_ + kHead, known_ - kHead);
    return whole;
  }
  // Returns Broken() if other bytes than the members that both sides know were written.
  absl::Status Intact(std::string_view name) const {
    uint32_t size;
    std::memcpy(&size, bytes_, sizeof(size));
    std::string_view how = size_ > sizeof(T) ? "a longer" : "a shorter";
    auto written = std::find_if(bytes_ + known_, std::end(bytes_), [](unsigned char c) { return c != kPattern; });
    if (written != std::end(bytes_)) {
      return Broken(fmt::format("{} {} of {} bytes (struct_size), of which {} are known, is written at byte {}", how, name,
                                size_, known_, written - bytes_));
    }
    if (size == size_) return absl::OkStatus();
    return Broken(fmt::format("the struct_size of {} {} is overwritten: it was {}, it is {}", how, name, size_, size));
  }

 private:
  static constexpr size_t kHead = sizeof(uint32_t), kMore = 64;
  static constexpr unsigned char kPattern = 0xee;
  OutStruct(size_t known, size_t size) : known_(known), size_(static_cast<uint32_t>(size)) {
    std::memset(bytes_, 0, known);
    std::memset(bytes_ + known, kPattern, sizeof(bytes_) - known);
    std::memcpy(bytes_, &size_, sizeof(size_));
  }
  alignas(T) unsigned char bytes_[sizeof(T) + kMore];
  size_t known_;
  uint32_t size_;
};

// Calls f(OutStruct<T>&) -> absl::Status with a shorter and with a longer struct and checks them afterwards. `shorter` is
// the size of the shorter struct. If it is 0, only the longer one is tried: a shorter struct would lack the handle needed
// for the release.
template <typename T, typename F>
absl::Status TryOutStruct(BackendUnderTest& s, std::string_view name, size_t shorter, F&& f) {
  for (bool longer : {false, true}) {
    if (!longer && shorter == 0) continue;
    OutStruct<T> room = longer ? OutStruct<T>::Longer() : OutStruct<T>(shorter);
    s.At(fmt::format("a {} {}", longer ? "longer" : "shorter", name));
    MGE_RETURN_IF_ERROR(f(room));
    MGE_RETURN_IF_ERROR(room.Intact(name));
  }
  return absl::OkStatus();
}

}  // namespace mge::conform
