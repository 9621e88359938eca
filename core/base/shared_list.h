// SPDX-License-Identifier: Apache-2.0
// A list that its copies share.
#pragma once

#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace mge {

// A list that does not change. A copy costs one reference count. Thread-safe as std::shared_ptr is.
template <typename T>
class SharedList {
 public:
  SharedList() = default;
  SharedList(std::vector<T> items)  // NOLINT: a list of items is what it is made of
      : items_(items.empty() ? nullptr : std::make_shared<const std::vector<T>>(std::move(items))) {}
  SharedList(std::initializer_list<T> items) : SharedList(std::vector<T>(items)) {}

  size_t size() const { return items_ ? items_->size() : 0; }
  bool empty() const { return size() == 0; }
  const T* data() const { return items_ ? items_->data() : nullptr; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  const T& operator[](size_t i) const { return (*items_)[i]; }
  const T& front() const { return items_->front(); }
  const T& back() const { return items_->back(); }

 private:
  std::shared_ptr<const std::vector<T>> items_;  // nullptr: empty
};

}  // namespace mge
