// SPDX-License-Identifier: Apache-2.0
// Attributes of a node: named constants, including the bodies of control-flow operators.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/tensor.h"

namespace mge {

class Graph;

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;
using Texts = std::vector<std::string>;
using GraphPtr = std::shared_ptr<const Graph>;

// The value of an attribute. The reader converts ONNX's other kinds: a sparse tensor becomes dense; a type (TYPE_PROTO)
// becomes text without the shape, such as "tensor(float32)" or "optional(seq(tensor(float32)))".
using AttributeValue = std::variant<int64_t, float, std::string, Ints, Floats, Texts, Tensor, std::vector<Tensor>, GraphPtr>;

// The attributes of a node: those that a model or a pass has set, in that order, then those that follow from the node (the
// implied ones: defaults and the like). Find() is linear: most nodes have fewer than ten attributes.
class Attributes {
 public:
  Attributes() = default;
  Attributes(const Attributes&) = default;
  Attributes& operator=(const Attributes&) = default;
  Attributes(Attributes&& other) noexcept { *this = std::move(other); }
  Attributes& operator=(Attributes&& other) noexcept {  // leaves `other` empty
    items_ = std::exchange(other.items_, {});
    written_ = std::exchange(other.written_, 0);
    return *this;
  }

  const AttributeValue* Find(std::string_view name) const {
    for (const auto& [key, value] : items_) {
      if (key == name) return &value;
    }
    return nullptr;
  }
  bool Has(std::string_view name) const { return Find(name) != nullptr; }

  // The getters return the attribute if it exists and has the type, else `fallback`. Nodes that are bound have all attributes
  // with a default. Pointers are valid until the attributes change.
  int64_t Int(std::string_view name, int64_t fallback = 0) const { return Or<int64_t>(name, fallback); }
  float Float(std::string_view name, float fallback = 0) const { return Or<float>(name, fallback); }
  std::string Text(std::string_view name, std::string fallback = "") const {
    return Or<std::string>(name, std::move(fallback));
  }
  Ints IntList(std::string_view name, Ints fallback = {}) const { return Or<Ints>(name, std::move(fallback)); }
  Floats FloatList(std::string_view name, Floats fallback = {}) const { return Or<Floats>(name, std::move(fallback)); }
  Texts TextList(std::string_view name, Texts fallback = {}) const { return Or<Texts>(name, std::move(fallback)); }
  /*nullable*/ const Tensor* TensorOrNull(std::string_view name) const { return Get<Tensor>(name); }
  GraphPtr GraphOrNull(std::string_view name) const { return Or<GraphPtr>(name, nullptr); }

  void Set(std::string name, AttributeValue value);
  // Sets an attribute that follows from the rest of the node. An attribute that is not implied only changes its value.
  void SetImplied(std::string name, AttributeValue value);
  void Remove(std::string_view name);
  // Removes the implied attributes for which `wanted`(name) is false.
  template <typename F>
  void KeepImplied(F wanted) {
    const auto first = items_.begin() + static_cast<ptrdiff_t>(written_);
    items_.erase(std::remove_if(first, items_.end(), [&](const auto& item) { return !wanted(item.first); }), items_.end());
  }

  // Returns the attributes that are not implied. They are the node's text.
  std::span<const std::pair<std::string, AttributeValue>> written() const { return {items_.data(), written_}; }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  size_t size() const { return items_.size(); }

 private:
  template <typename T>
  const T* Get(std::string_view name) const {
    const AttributeValue* value = Find(name);
    return value ? std::get_if<T>(value) : nullptr;
  }
  template <typename T>
  T Or(std::string_view name, T fallback) const {
    const T* value = Get<T>(name);
    return value ? *value : fallback;
  }

  std::vector<std::pair<std::string, AttributeValue>> items_;  // implied ones last
  size_t written_ = 0;                                         // number of items that are not implied
};

}  // namespace mge
