// SPDX-License-Identifier: Apache-2.0
#include "core/conform/check_reporter.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace mge::conform {
namespace {

constexpr size_t kLongest = 1000;  // longest field in bytes: a record is shorter than PIPE_BUF, so writes are atomic

void AppendField(std::string& line, std::string_view field) {
  for (char c : field.substr(0, kLongest)) line += c == '\t' || c == '\n' ? ' ' : c;
}

}  // namespace

void CheckReporter::Write(RecordKind kind, std::string_view check, std::string_view where, std::string_view what) {
  std::string line(1, static_cast<char>(kind));
  for (std::string_view field : {check, where, what}) {
    line += '\t';
    AppendField(line, field);
  }
  line += '\n';
  for (size_t at = 0; at < line.size();) {
    ssize_t n = write(fd_, line.data() + at, line.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // the reader has closed the pipe
    at += static_cast<size_t>(n);
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
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    std::string fields[4];
    size_t at = begin;
    for (std::string& field : fields) {
      size_t stop = std::min(text.find('\t', at), end);
      field = text.substr(at, stop - at);
      at = std::min(stop + 1, end);
    }
    if (fields[0].size() == 1) {
      out.push_back(
          {static_cast<RecordKind>(fields[0][0]), std::move(fields[1]), std::move(fields[2]), std::move(fields[3])});
    }
  }
  text.erase(0, begin);
  return out;
}

}  // namespace mge::conform
