// SPDX-License-Identifier: Apache-2.0
#include "core/graph/attribute.h"

namespace mge {

void Attributes::Set(std::string name, AttributeValue value) {
  for (auto& [key, present] : items_) {
    if (key == name) {
      present = std::move(value);
      return;
    }
  }
  items_.emplace_back(std::move(name), std::move(value));
}

void Attributes::Remove(std::string_view name) {
  std::erase_if(items_, [&](const auto& item) { return item.first == name; });
}

}  // namespace mge
