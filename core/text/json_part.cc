// SPDX-License-Identifier: Apache-2.0
#include "core/text/json_part.h"

#include <utility>

#include "fmt/format.h"

namespace mge::text {
namespace {

std::string PathIn(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

}  // namespace

Part Part::Member(const char* key) const {
  static const Json kNull;
  return Part(Has(key) ? json_->at(key) : kNull, PathIn(path_, key), *status_);
}

std::vector<Part> Part::Elements() const {
  std::vector<Part> out;
  if (json_->is_null()) return out;
  if (!json_->is_array()) Refuse("a list");
  for (size_t i = 0; json_->is_array() && i < json_->size(); ++i) {
    out.emplace_back((*json_)[i], fmt::format("{}[{}]", path_, i), *status_);
  }
  return out;
}

std::string Part::Text(const char* key, std::string fallback) const { return Has(key) ? Member(key).AsText() : fallback; }

bool Part::Flag(const char* key, bool fallback) const {
  if (!Has(key)) return fallback;
  const Part part = Member(key);
  if (part.json_->is_boolean()) return part.json_->get<bool>();
  part.Refuse("true or false");
  return fallback;
}

int64_t Part::Count(const char* key, int64_t fallback) const { return Has(key) ? Member(key).AsCount() : fallback; }

std::string Part::AsText() const {
  if (json_->is_string()) return json_->get<std::string>();
  Refuse("a text");
  return {};
}

int64_t Part::AsCount() const {
  if (json_->is_number_integer() && *json_ >= 0 && *json_ <= INT32_MAX) return json_->get<int64_t>();
  Refuse("a whole number between 0 and 2147483647");
  return 0;
}

double Part::AsNumber() const {
  if (json_->is_number()) return json_->get<double>();
  Refuse("a number");
  return 0;
}

void Part::Refuse(std::string_view what) const {
  status_->Update(Fail(errors::kConfigFile, fmt::format("{} is not {}", path_, what),
                       {.where = "tokenizer.json", .fix = "save the tokenizer again"}));
}

void Part::RefuseKind(std::string_view kind) const {
  status_->Update(
      Fail(errors::kUnsupportedFeature, fmt::format("the tokenizer has {}, which is not supported", kind),
           {.where = fmt::format("{} of tokenizer.json", path_),
            .fix = "give token ids, or use Python, which reads all tokenizers: mge.Generator(FOLDER).generate(TEXT)"}));
}

}  // namespace mge::text
