// SPDX-License-Identifier: Apache-2.0
#include "core/api/objects.h"
#include "core/base/error_help.h"
#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge::api {

mge_status* Wrap(const absl::Status& status) {
  if (status.ok()) return nullptr;
  ErrorParts parts = PartsOf(status);
  return new mge_status{static_cast<int32_t>(KindOf(status)), ErrorId(status), FormatError(status), ErrorTitle(status),
                        parts.what, parts.where, FixOf(status)};
}

mge_status* Misuse(std::string_view function, std::string_view what) {
  return Wrap(Fail(errors::kApiMisuse, fmt::format("{}: {}", function, what)));
}

mge_string* NewString(std::string text) { return new mge_string{std::move(text)}; }

}  // namespace mge::api

const char* mge_version(void) { return MGE_VERSION; }

int32_t mge_status_kind(const mge_status* status) { return status ? status->kind : 0; }
int32_t mge_status_id(const mge_status* status) { return status ? status->id : 0; }
const char* mge_status_text(const mge_status* status) { return status ? status->text.c_str() : "ok"; }
const char* mge_status_title(const mge_status* status) { return status ? status->title.c_str() : ""; }
const char* mge_status_what(const mge_status* status) { return status ? status->what.c_str() : ""; }
const char* mge_status_where(const mge_status* status) { return status ? status->where.c_str() : ""; }
const char* mge_status_fix(const mge_status* status) { return status ? status->fix.c_str() : ""; }
void mge_status_release(mge_status* status) { delete status; }

const char* mge_string_data(const mge_string* text) { return text ? text->text.c_str() : ""; }
size_t mge_string_size(const mge_string* text) { return text ? text->text.size() : 0; }
void mge_string_release(mge_string* text) { delete text; }
