// SPDX-License-Identifier: Apache-2.0
#include "core/generate/layer_names.h"

namespace mge {

std::string LayerOf(std::string_view name, std::string_view pattern) {
  const size_t at = pattern.find("%d");
  if (at == pattern.npos) return "";
  const std::string_view before = pattern.substr(0, at), after = pattern.substr(at + 2);
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after)) return "";
  const std::string_view number = name.substr(before.size(), name.size() - before.size() - after.size());
  return number.find_first_not_of("0123456789") == number.npos ? std::string(number) : "";
}

std::string WithLayer(std::string pattern, const std::string& layer) {
  const size_t at = pattern.find("%d");
  return at == pattern.npos ? pattern : pattern.replace(at, 2, layer);
}

}  // namespace mge
