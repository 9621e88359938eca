// SPDX-License-Identifier: Apache-2.0
#include "core/base/status.h"

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "absl/strings/cord.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr absl::string_view kIdKey = "mge/id";
constexpr absl::string_view kKindKey = "mge/kind";
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

}  // namespace

absl::Status Fail(const ErrorRow& row, std::string title, ErrorParts parts) {
  absl::Status status(row.code, title);
  SetPayload(status, kIdKey, std::to_string(row.id));
  SetPayload(status, kKindKey, std::to_string(static_cast<int>(row.kind)));
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
  if (std::string kind = Payload(status, kKindKey); !kind.empty()) {
    return static_cast<ErrorKind>(std::atoi(kind.c_str()));
  }
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

std::string EscapeControl(std::string_view text) {
  std::string out;
  for (unsigned char c : text) {
    if (c < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", c);
    } else {
      out += static_cast<char>(c);
    }
  }
  return out;
}

std::string FormatError(const absl::Status& status) {
  if (status.ok()) return "ok";
  int id = ErrorId(status);
  std::string out = id ? fmt::format("error[E{:04d}] ", id) : "error: ";
  out += EscapeControl(ErrorTitle(status));
  ErrorParts parts = PartsOf(status);
  if (!parts.what.empty()) out += "\n  what:  " + EscapeControl(parts.what);
  if (!parts.where.empty()) out += "\n  where: " + EscapeControl(parts.where);
  if (!parts.fix.empty()) out += "\n  fix:   " + EscapeControl(parts.fix);
  return out;
}

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "mge: internal check failed: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace mge
