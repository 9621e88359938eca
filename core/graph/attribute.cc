// SPDX-License-Identifier: Apache-2.0
#include "core/graph/attribute.h"

#include <algorithm>

namespace mge {

void Attributes::Set(std::string name, AttributeValue value) {
  const auto at = std::find_if(items_.begin(), items_.end(), [&](const auto& item) { return item.first == name; });
  const auto end = items_.begin() + static_cast<ptrdiff_t>(written_);
  if (at < end) {
    at->second = std::move(value);
    return;
  }
  if (at != items_.end()) items_.erase(at);
  items_.emplace(items_.begin() + static_cast<ptrdiff_t>(written_++), std::move(name), std::move(value));
}

void Attributes::SetImplied(std::string name, AttributeValue value) {
  for (auto& [key, present] : items_) {
    if (key == name) {
      present = std::move(value);
      return;
    }
  }
  items_.emplace_back(std::move(name), std::move(value));
}

void Attributes::Remove(std::string_view name) {
  for (size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].first != name) continue;
    items_.erase(items_.begin() + static_cast<ptrdiff_t>(i));
    written_ -= i < written_;
    return;
  }
}

}  // namespace mge
