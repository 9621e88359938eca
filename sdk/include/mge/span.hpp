// SPDX-License-Identifier: Apache-2.0
// A view of consecutive elements: what std::span is in C++20, for programs in C++17. It converts from and to std::span.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <type_traits>
#include <utility>

#if __cplusplus >= 202002L
#include <ranges>
#endif

#include "mge/namespace.hpp"

namespace mge {
MGE_APPLICATION_NAMESPACE(v0) {

template <typename T>
class Span {
  struct Nothing {};
  using Listed = std::conditional_t<std::is_const_v<T>, std::remove_cv_t<T>, Nothing>;  // a list has constant elements

 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  using size_type = size_t;
  using pointer = T*;
  using reference = T&;
  using iterator = T*;
  using const_iterator = T*;

  constexpr Span() = default;
  constexpr Span(T* data, size_t size) : data_(data), size_(size) {}
  // The elements of a vector, an array, or anything else with data() and size(). It must outlive the view.
  template <typename C, typename = std::enable_if_t<!std::is_same_v<std::decay_t<C>, Span> &&
                                                    std::is_convertible_v<decltype(std::declval<C&>().data()), T*> &&
                                                    std::is_convertible_v<decltype(std::declval<C&>().size()), size_t>>>
  constexpr Span(C&& from) : data_(from.data()), size_(from.size()) {}
  template <size_t N>
  constexpr Span(T (&from)[N]) : data_(from), size_(N) {}

  // The elements of a list {a, b}, as an argument of a call. It is valid until the call returns.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
#endif
  constexpr Span(std::initializer_list<Listed> list) : data_(list.begin()), size_(list.size()) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

  constexpr T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr size_t size_bytes() const { return size_ * sizeof(T); }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }
  constexpr T& operator[](size_t i) const { return data_[i]; }
  constexpr T& front() const { return data_[0]; }
  constexpr T& back() const { return data_[size_ - 1]; }
  constexpr Span first(size_t count) const { return Span(data_, count); }
  constexpr Span subspan(size_t offset) const { return Span(data_ + offset, size_ - offset); }
  constexpr Span subspan(size_t offset, size_t count) const { return Span(data_ + offset, count); }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // MGE_APPLICATION_NAMESPACE(v0)
}  // namespace mge

#if __cplusplus >= 202002L
template <typename T>
inline constexpr bool std::ranges::enable_borrowed_range<mge::v0::Span<T>> = true;
template <typename T>
inline constexpr bool std::ranges::enable_view<mge::v0::Span<T>> = true;
#endif
