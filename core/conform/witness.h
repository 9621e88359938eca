// SPDX-License-Identifier: Apache-2.0
// The account that a check gives while it runs, in a process of its own: what was written before a crash is not lost.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace mge::conform {

enum class RecordKind : char {
  kBegin = 'B',       // from here on a crash is the fault of `check`
  kAt = 'A',          // what is being done, in `where`
  kApplied = 'P',     // `check` was put to the test
  kFound = 'F',       // a breach of the contract
  kNotOffered = 'U',  // `check` has nothing to test; `what` is the reason
  kSupported = 'S',   // operator `check`, element type `where`, candidates `what`
  kRefused = 'R',     // the same, with the reason
  kFact = 'I',        // a fact for the head of the report: `where` is its name
  kMisuse = 'M',      // what was given to the kit is wrong: id of the error `check`, title `where`, fix `what`
  kWarning = 'W',     // `what` is for the user, not for the report
  kTime = 'T',        // the process asks for `what` seconds in all
  kThrown = 'X',      // an exception, `what`, came out of the task
  kEnd = 'E',         // the process did not end before its time
};

struct Record {
  RecordKind kind;
  std::string check, where, what;
};

// How many times its limit a check may get that asks for more time.
inline constexpr double kMostLimits = 5;

// Writes records to a pipe. [any thread]
class Witness {
 public:
  // `seconds`: the limit of the process, which begins now.
  Witness(int fd, double seconds) : fd_(fd), seconds_(seconds), begin_(std::chrono::steady_clock::now()) {}

  void Begin(std::string_view check) { Write(RecordKind::kBegin, check, {}, {}); }
  void At(std::string_view where) { Write(RecordKind::kAt, {}, where, {}); }
  void Applied(std::string_view check) { Write(RecordKind::kApplied, check, {}, {}); }
  void Found(std::string_view check, std::string_view where, std::string_view what) {
    Write(RecordKind::kFound, check, where, what);
  }
  void NotOffered(std::string_view check, std::string_view reason) { Write(RecordKind::kNotOffered, check, {}, reason); }
  void Support(std::string_view op, std::string_view dtype, bool supported, std::string_view what) {
    Write(supported ? RecordKind::kSupported : RecordKind::kRefused, op, dtype, what);
  }
  void Fact(std::string_view name, std::string_view value) { Write(RecordKind::kFact, {}, name, value); }
  void Misuse(std::string_view id, std::string_view title, std::string_view fix) {
    Write(RecordKind::kMisuse, id, title, fix);
  }
  void Thrown(std::string_view what) { Write(RecordKind::kThrown, {}, {}, what); }
  void Warning(std::string_view what) { Write(RecordKind::kWarning, {}, {}, what); }
  void End() { Write(RecordKind::kEnd, {}, {}, {}); }
  void EndWithExit();  // End(), as the last thing that exit() does
  // How many of `wanted` pieces of work, of some `seconds` each, there is time for; at least one. Asks for more time if the
  // limit is too short for all.
  int Fit(int wanted, double seconds);

 private:
  void Write(RecordKind kind, std::string_view check, std::string_view where, std::string_view what);
  int fd_;
  double seconds_;
  std::chrono::steady_clock::time_point begin_;
};

// Takes complete records off the front of `text`.
std::vector<Record> TakeRecords(std::string& text);

}  // namespace mge::conform
