// SPDX-License-Identifier: Apache-2.0
#include "core/api/objects.h"
#include "core/base/errors.h"
#include "core/base/exception.h"
#include "fmt/format.h"

namespace mge::api {
namespace {

// Returns the code of an error: one of our own where the canonical code says less.
mge_code CodeOf(const absl::Status& status, int id) {
  if (id == errors::kDeviceLost.id) return MGE_DEVICE_LOST;
  if (id == errors::kForked.id) return MGE_FORKED;
  if (id == errors::kOverBudget.id) return MGE_OVER_BUDGET;
  if (id == errors::kGrowthRequired.id) return MGE_GROWTH_REQUIRED;
  return static_cast<mge_code>(status.code());
}

// A status that owns its texts.
struct OwnStatus : mge_status {
  explicit OwnStatus(const absl::Status& status)
      : mge_status{},
        parts(PartsOf(status)),
        own_title(ErrorTitle(status)),
        own_text(FormatError(status)),
        own_fix(FixOf(status)) {
    id = ErrorId(status);
    code = CodeOf(status, id);
    exit_code = ExitCode(KindOf(status));
    text = own_text.c_str();
    title = own_title.c_str();
    what = parts.what.c_str();
    where = parts.where.c_str();
    fix = own_fix.c_str();
  }
  const ErrorParts parts;
  const std::string own_title, own_text, own_fix;
};

// The status that is returned if there is no memory for another one. It is never freed.
#define MGE_NO_MEMORY_TITLE "the process has no host memory left"
#define MGE_NO_MEMORY_WHAT "there was no memory to describe the error"
#define MGE_NO_MEMORY_FIX "end other programs, or use a smaller model or batch"
constinit mge_status g_no_memory = {MGE_RESOURCE_EXHAUSTED,
                                    ExitCode(ErrorKind::kMemory),
                                    errors::kOutOfMemory.id,
                                    "error[E0601] " MGE_NO_MEMORY_TITLE "\n  what:  " MGE_NO_MEMORY_WHAT
                                    "\n  fix:   " MGE_NO_MEMORY_FIX,
                                    MGE_NO_MEMORY_TITLE,
                                    MGE_NO_MEMORY_WHAT,
                                    "",
                                    MGE_NO_MEMORY_FIX};

}  // namespace

mge_status* Wrap(const absl::Status& status) noexcept {
  if (status.ok()) return nullptr;
  const bool bare = absl::IsResourceExhausted(status) && status.message().empty();
  try {
    if (!bare) return new OwnStatus(status);
  } catch (const std::bad_alloc&) {  // return the constant
  }
  return &g_no_memory;
}

mge_status* Thrown(const char* function) noexcept {
  absl::Status status = StatusOfException();
  return Wrap(NoThrow([&] { return AddWhere(status, function); }));
}

mge_status* Misuse(std::string_view function, std::string_view what) {
  return Wrap(Fail(errors::kApiMisuse, fmt::format("{}: {}", function, what)));
}

mge_status* NullAmong(std::string_view function, std::initializer_list<Argument> arguments) {
  for (const Argument& a : arguments) {
    if (!a.given) return Misuse(function, fmt::format("argument '{}' is NULL", a.name));
    if (a.released) return Misuse(function, fmt::format("argument '{}' is a tensor that was released", a.name));
  }
  return nullptr;
}

mge_string* NewString(std::string text) { return new mge_string{std::move(text)}; }

}  // namespace mge::api

#define MGE_TEXT_OF(x) #x
#define MGE_DOTTED(major, minor, patch) MGE_TEXT_OF(major) "." MGE_TEXT_OF(minor) "." MGE_TEXT_OF(patch)
const char* mge_version(void) { return MGE_DOTTED(MGE_VERSION_MAJOR, MGE_VERSION_MINOR, MGE_VERSION_PATCH); }
int32_t mge_version_number(void) { return MGE_VERSION; }

mge_code mge_status_code(const mge_status* status) { return status ? status->code : MGE_OK; }
int32_t mge_status_exit_code(const mge_status* status) { return status ? status->exit_code : 0; }
int32_t mge_status_id(const mge_status* status) { return status ? status->id : 0; }
const char* mge_status_text(const mge_status* status) { return status ? status->text : "ok"; }
const char* mge_status_title(const mge_status* status) { return status ? status->title : ""; }
const char* mge_status_what(const mge_status* status) { return status ? status->what : ""; }
const char* mge_status_where(const mge_status* status) { return status ? status->where : ""; }
const char* mge_status_fix(const mge_status* status) { return status ? status->fix : ""; }
void mge_status_release(mge_status* status) {
  if (status != &mge::api::g_no_memory) delete static_cast<mge::api::OwnStatus*>(status);
}

const char* mge_string_data(const mge_string* text) { return text ? text->text.c_str() : ""; }
size_t mge_string_size(const mge_string* text) { return text ? text->text.size() : 0; }
void mge_string_release(mge_string* text) { delete text; }
