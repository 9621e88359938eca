// SPDX-License-Identifier: Apache-2.0
// Errors: an absl::Status that carries the four parts a user sees (title, what, where, fix) and a documented id.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/exit_code.h"

namespace mge {

// A documented error. All rows are in core/base/error_rows.inc; the id is printed as E0502.
struct ErrorRow {
  int id;
  absl::StatusCode code;
  std::string_view doc;     // shown by `mge help errors`
  std::string_view causes;  // usual causes, as full sentences
  std::string_view remedy;  // usual remedy, as imperatives

  constexpr ErrorKind kind() const { return static_cast<ErrorKind>(id / 100); }
};

// The parts of an error in addition to its title. Empty parts are not printed.
struct ErrorParts {
  std::string what = {};   // the value and the limit
  std::string where = {};  // the file, node or variable
  std::string fix = {};    // the remedy, as an imperative
};

// Creates an error. `title` is one sentence that names the object that failed.
absl::Status Fail(const ErrorRow& row, std::string title, ErrorParts parts = {});

// Puts `where` in front of the error's place. Returns an OK status unchanged.
absl::Status AddWhere(absl::Status status, std::string_view where);

// Accessors. An error that Fail() did not create has id 0, its message as title, and a kind derived from its code.
int ErrorId(const absl::Status& status);
ErrorKind KindOf(const absl::Status& status);
std::string ErrorTitle(const absl::Status& status);
ErrorParts PartsOf(const absl::Status& status);

// Returns the fix that FormatError prints: the error's own fix if it has one, else the remedy of its row, else "".
std::string FixOf(const absl::Status& status);

// Returns "error[E0502] title\n  what: ...\n  where: ...\n  fix: ...". Escapes control characters and shortens parts of
// more than 2000 bytes. The fix is FixOf(status).
std::string FormatError(const absl::Status& status);

// Escapes control characters, invisible characters, characters that change the text direction, and invalid UTF-8. A name
// read from a file then cannot control the terminal or mislead the reader.
std::string EscapeControl(std::string_view text);

inline std::string_view Std(absl::string_view s) { return {s.data(), s.size()}; }
inline absl::string_view Absl(std::string_view s) { return {s.data(), s.size()}; }

}  // namespace mge

#define MGE_RETURN_IF_ERROR(expr)                                                 \
  do {                                                                            \
    if (absl::Status mge_status_ = (expr); !mge_status_.ok()) return mge_status_; \
  } while (false)

#define MGE_CONCAT_INNER_(a, b) a##b
#define MGE_CONCAT_(a, b) MGE_CONCAT_INNER_(a, b)
#define MGE_ASSIGN_OR_RETURN(lhs, expr) MGE_ASSIGN_OR_RETURN_IMPL_(MGE_CONCAT_(mge_or_, __LINE__), lhs, expr)
#define MGE_ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                               \
  if (!tmp.ok()) return std::move(tmp).status();   \
  lhs = std::move(tmp).value()

// Aborts the process if `cond` is false. Only for defects of MGE: no user's data may make it fail.
#define MGE_CHECK(cond)                                         \
  do {                                                          \
    if (!(cond)) ::mge::CheckFailed(#cond, __FILE__, __LINE__); \
  } while (false)

namespace mge {
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);
}
