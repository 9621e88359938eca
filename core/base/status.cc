// SPDX-License-Identifier: Apache-2.0
#include "core/base/status.h"

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "absl/strings/cord.h"
#include "core/base/errors.h"
#include "core/base/utf8.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Checks the rows: ids ascend, and each kind is a documented exit code.
constexpr bool RowsAreValid() {
  int before = 0;
  for (const ErrorRow* row : errors::kAll) {
    bool named = false;
    for (const ExitCodeRow& exit : kExitCodes) named |= exit.code == ExitCode(row->kind());
    if (!named || row->id <= before) return false;
    before = row->id;
  }
  return true;
}
static_assert(RowsAreValid());

constexpr absl::string_view kIdKey = "mge/id";
constexpr absl::string_view kWhatKey = "mge/what";
constexpr absl::string_view kWhereKey = "mge/where";
constexpr absl::string_view kFixKey = "mge/fix";

std::string Payload(const absl::Status& status, absl::string_view key) {
  auto cord = status.GetPayload(key);
  return cord ? std::string(*cord) : std::string();
}

void SetPayload(absl::Status& status, absl::string_view key, const std::string& text) {
  if (!text.empty()) status.SetPayload(key, absl::Cord(text));
}

// Escapes `text` and leaves out the middle of a very long one, because a name read from a file may be a megabyte long.
// Keeps the end, which matters as much as the beginning.
std::string Shown(std::string_view text) {
  constexpr size_t kHead = 1600, kTail = 400;
  if (text.size() <= kHead + kTail) return EscapeControl(text);
  return fmt::format("{} ... [{} bytes left out] ... {}", EscapeControl(text.substr(0, kHead)), text.size() - kHead - kTail,
                     EscapeControl(text.substr(text.size() - kTail)));
}

}  // namespace

absl::Status Fail(const ErrorRow& row, std::string title, ErrorParts parts) {
  absl::Status status(row.code, title);
  SetPayload(status, kIdKey, std::to_string(row.id));
  SetPayload(status, kWhatKey, parts.what);
  SetPayload(status, kWhereKey, parts.where);
  SetPayload(status, kFixKey, parts.fix);
  return status;
}

absl::Status AddWhere(absl::Status status, std::string_view where) {
  if (status.ok() || where.empty()) return status;
  std::string present = Payload(status, kWhereKey);
  SetPayload(status, kWhereKey, present.empty() ? std::string(where) : fmt::format("{}; {}", where, present));
  return status;
}

int ErrorId(const absl::Status& status) {
  std::string id = Payload(status, kIdKey);
  return id.empty() ? 0 : std::atoi(id.c_str());
}

ErrorKind KindOf(const absl::Status& status) {
  if (status.ok()) return ErrorKind::kNone;
  if (const ErrorRow* row = errors::Find(ErrorId(status))) return row->kind();
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange: return ErrorKind::kInvalid;
    case absl::StatusCode::kUnimplemented: return ErrorKind::kUnsupported;
    case absl::StatusCode::kUnavailable: return ErrorKind::kDevice;
    case absl::StatusCode::kResourceExhausted: return ErrorKind::kMemory;
    case absl::StatusCode::kDeadlineExceeded: return ErrorKind::kTimeout;
    case absl::StatusCode::kCancelled: return ErrorKind::kInterrupted;
    case absl::StatusCode::kDataLoss: return ErrorKind::kIo;
    default: return ErrorKind::kOther;
  }
}

std::string ErrorTitle(const absl::Status& status) { return std::string(status.message()); }

ErrorParts PartsOf(const absl::Status& status) {
  return {Payload(status, kWhatKey), Payload(status, kWhereKey), Payload(status, kFixKey)};
}

std::string FixOf(const absl::Status& status) {
  std::string fix = PartsOf(status).fix;
  const ErrorRow* row = fix.empty() ? errors::Find(ErrorId(status)) : nullptr;
  return row ? std::string(row->remedy) : fix;
}

std::string EscapeControl(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::string_view rest = text;
    uint32_t c;
    if (!TakeUtf8(&rest, &c)) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
      continue;
    }
    // Zero-width characters, line and paragraph separators, direction marks and the byte order mark.
    bool invisible = (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
                     c == 0x061c || c == 0xfeff;
    if (c < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", c);
    } else if ((c >= 0x80 && c < 0xa0) || invisible) {
      out += fmt::format("\\u{:04x}", c);
    } else {
      out += text.substr(0, text.size() - rest.size());
    }
    text = rest;
  }
  return out;
}

std::string FormatError(const absl::Status& status) {
  if (status.ok()) return "ok";
  int id = ErrorId(status);
  std::string out = id ? fmt::format("error[E{:04d}] ", id) : "error: ";
  out += Shown(ErrorTitle(status));
  ErrorParts parts = PartsOf(status);
  if (!parts.what.empty()) out += "\n  what:  " + Shown(parts.what);
  if (!parts.where.empty()) out += "\n  where: " + Shown(parts.where);
  if (std::string fix = FixOf(status); !fix.empty()) out += "\n  fix:   " + Shown(fix);
  return out;
}

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "mge: internal check failed: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace mge
