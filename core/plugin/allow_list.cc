// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/allow_list.h"

#include <algorithm>
#include <vector>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/file_trust.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int64_t kMaxBytes = 1 << 20;
constexpr size_t kDigits = 64;

}  // namespace

absl::StatusOr<AllowList> AllowList::Read(const std::string& path) {
  MGE_ASSIGN_OR_RETURN(RegularFile file, OpenRegularFile(path));
  if (std::string why = WhyNotTrusted(file.fd.get()); !why.empty()) {
    return Fail(errors::kBadSetting, fmt::format("the list of allowed backends '{}' is not trusted", path),
                {.what = std::move(why),
                 .where = "plugin.allow",
                 .fix = "make yourself its owner (chown), and remove write permission of group and others (chmod go-w)"});
  }
  if (file.size > kMaxBytes) {
    return Fail(errors::kBadSetting, fmt::format("the list of allowed backends '{}' is too large", path),
                {.what = fmt::format("it has {} bytes; the limit is {}", file.size, kMaxBytes), .where = "plugin.allow"});
  }
  std::string text(static_cast<size_t>(file.size), '\0');
  MGE_RETURN_IF_ERROR(ReadRange(file.fd.get(), 0, std::as_writable_bytes(std::span(text)), path));
  AllowList out;
  out.path_ = path;
  int line = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view row = std::string_view(text).substr(at, end - at);
    at = end + 1;
    ++line;
    row.remove_prefix(std::min(row.find_first_not_of(" \t\r\\"), row.size()));  // sha256sum puts '\' before escaped names
    if (row.empty() || row[0] == '#') continue;
    std::string hash(row.substr(0, kDigits));
    for (char& c : hash) c = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
    bool whole = hash.size() == kDigits && hash.find_first_not_of("0123456789abcdef") == hash.npos &&
                 (row.size() == kDigits || row[kDigits] == ' ' || row[kDigits] == '\t' || row[kDigits] == '\r');
    if (!whole) {
      return Fail(errors::kBadSetting, fmt::format("the list of allowed backends '{}' cannot be read", path),
                  {.what = fmt::format("line {} does not begin with the 64 digits of a SHA-256", line),
                   .where = "plugin.allow",
                   .fix = "create it with: sha256sum FILE.so > LIST"});
    }
    out.hashes_.insert(std::move(hash));
  }
  return out;
}

}  // namespace mge
