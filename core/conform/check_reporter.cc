// SPDX-License-Identifier: Apache-2.0
#include "core/conform/check_reporter.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "absl/strings/str_split.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

constexpr size_t kLongest = 1000;  // longest field in bytes: a record is shorter than PIPE_BUF, so writes are atomic

std::string Field(std::string_view text) {
  std::string out(text.substr(0, kLongest));
  for (char& c : out) c = c == '\t' || c == '\n' ? ' ' : c;
  return out;
}

}  // namespace

void CheckReporter::Write(RecordKind kind, std::string_view check, std::string_view where, std::string_view what) {
  const std::string line = fmt::format("{}\t{}\t{}\t{}\n", static_cast<char>(kind), Field(check), Field(where), Field(what));
  while (write(fd_, line.data(), line.size()) < 0 && errno == EINTR) {  // another error: the reader has closed the pipe
  }
}

void CheckReporter::EndWithExit() {
  std::FILE* file = fdopen(fd_, "w");  // exit() writes the buffer after all exit handlers
  if (file) std::fprintf(file, "%c\t\t\t\n", static_cast<char>(RecordKind::kEnd));
}

int CheckReporter::Fit(int wanted, double seconds) {
  double gone = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  // The factor 2 allows for a busy machine, on which later pieces are slower.
  double asked = gone + 2 * wanted * seconds;
  if (asked > seconds_) {
    asked = std::min(asked, kMostLimits * seconds_);
    Write(RecordKind::kTime, {}, {}, std::to_string(asked));
  }
  double room = 0.75 * std::max(asked, seconds_) - gone;
  return seconds * wanted <= room || wanted < 1 ? wanted : std::clamp(static_cast<int>(room / seconds), 1, wanted);
}

std::vector<CheckRecord> TakeRecords(std::string& text) {
  std::vector<CheckRecord> out;
  const size_t complete = text.rfind('\n') + 1;  // 0 if there is no line
  for (absl::string_view line : absl::StrSplit(absl::string_view(text.data(), complete), '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(line, '\t');
    if (fields.size() == 4 && fields[0].size() == 1)  // else the backend has written it
      out.push_back({static_cast<RecordKind>(fields[0][0]), fields[1], fields[2], fields[3]});
  }
  text.erase(0, complete);
  return out;
}

}  // namespace mge::conform
