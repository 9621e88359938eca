// SPDX-License-Identifier: Apache-2.0
// Reports of the kit, as Markdown and as JSON.
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include "core/plugin/host_services.h"
#include "gmock/gmock.h"
#include "mge/plugin.h"
#include "tests/core/conform/reports.h"

namespace mge::conform {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Report, ShowsTheMatrixAndTheReasons) {
  absl::StatusOr<Report> report = CheckBackend(Plugin("null"), {.quick = true});
  ASSERT_TRUE(report.ok());
  std::string json = ReportJson(*report), text = ReportMarkdown(*report);
  EXPECT_TRUE(json.starts_with("{\n  \"schema\": \"mge.sdk-test/1\"")) << json.substr(0, 60);
  EXPECT_THAT(text, HasSubstr("| Relu | yes |"));
  EXPECT_THAT(text, HasSubstr("only float32"));
  EXPECT_THAT(text, HasSubstr("Without a kernel: "));
}

TEST(Report, ListsTheCasesThatRanAndTheAttributesThatTheySet) {
  absl::StatusOr<Report> report =
      CheckBackend(MGE_BINARY_DIR "/tests/mutants/none.so", {.quick = true, .only = {"Softmax"}});
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(ReportJson(*report), AllOf(HasSubstr("\"Softmax(T[2,5,3]) {axis=-2} T=float32\""),
                                         HasSubstr("\"Softmax\": {\n      \"axis\": [\n        \"-1\"")));
  EXPECT_THAT(ReportMarkdown(*report), HasSubstr(" cases ran; they set 1 of the 1 attributes of their operators.\n"));
}

// Writes a copy of a correct backend whose note is changed by `edit`. Returns its path.
std::string WithNote(const std::function<void(mge_note&)>& edit) {
  std::ifstream in(MGE_BINARY_DIR "/tests/mutants/none.so", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const uint32_t head[] = {sizeof(mge_note), MGE_ABI_MAJOR, MGE_ABI_MINOR, 0, static_cast<uint32_t>(MGE_ABI_HASH)};
  const size_t at = bytes.find(std::string_view(reinterpret_cast<const char*>(head), sizeof(head)));
  EXPECT_NE(at, std::string::npos);
  mge_note note;
  std::memcpy(&note, bytes.data() + at, sizeof(note));
  edit(note);
  std::memcpy(bytes.data() + at, &note, sizeof(note));
  std::string path = testing::TempDir() + "/noted.so";
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST(Report, TheNoteIsCheckedAsTheHostDoes) {
  auto found = [](const std::function<void(mge_note&)>& edit) {
    absl::StatusOr<Report> report = CheckBackend(WithNote(edit), {.only = {"abi.note"}});
    return report.ok() ? Findings(*report) : report.status().ToString();
  };
  EXPECT_EQ(found([](mge_note&) {}), "");
  EXPECT_THAT(found([](mge_note& n) { n.isa = 64; }), HasSubstr("which this machine does not offer"));
  EXPECT_THAT(found([](mge_note& n) { n.abi_minor = 99; }), HasSubstr("it says interface 0.99; the headers"));
}

TEST(Report, AnOperatorWithoutAKernelIsNotPassed) {
  absl::StatusOr<Report> report = CheckBackend(Plugin("null"), {.only = {"Tanh"}});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->Result(), "incomplete");
  EXPECT_THAT(ReportMarkdown(*report),
              AllOf(testing::StartsWith("# null: incomplete\n\n**No kernel was tested**: it has none "
                                        "for Tanh.\n"),
                    testing::EndsWith("\nincomplete: no kernel was tested\n")));
  report = CheckBackend(Plugin("null"), {.only = {"Relu"}});
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->passed());
}

TEST(Report, ARunOfSomeChecksReportsOnlyThem) {
  absl::StatusOr<Report> report = CheckBackend(Plugin("null"), {.only = {"memory.slabs"}});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->checks.size(), 1u);
  EXPECT_THAT(ReportMarkdown(*report), AllOf(HasSubstr("# null: passed"), HasSubstr(", version "), HasSubstr("\n- device 0"),
                                             testing::EndsWith("\npassed\n")));
}

TEST(Report, TheLastLineNamesFailedChecksAndEqualFindingsAreCounted) {
  Report report;
  report.checks = {{"a.b", "B.", Outcome::kFailed, "", {{"here", "wrong", "", 3}, {"there", "wrong", "", 1}}, 4},
                   {"a.c", "C.", Outcome::kPassed, "", {}, 0},
                   {"a.d", "D.", Outcome::kFailed, "", {{"", "broken", "", 1}}, 1}};
  std::string text = ReportMarkdown(report);
  EXPECT_THAT(text, AllOf(HasSubstr("- here: wrong (3 times)\n- there: wrong\n\n"),
                          testing::EndsWith("\n\nfailed: a.b (4), a.d (1)\n")));
  report = *CheckBackend(MGE_BINARY_DIR "/tests/mutants/one_byte_too_far.so", {.quick = true, .only = {"Relu"}});
  for (const CheckResult& c : report.checks) {
    std::set<std::string> seen;
    for (const Finding& f : c.findings) EXPECT_TRUE(seen.insert(f.where + f.what).second) << f.where << ": " << f.what;
  }
}

TEST(Report, TheFirstCauseIsFirstAndWhatMayFollowIsBehindIt) {
  auto failed = [](const char* name, const char* where) {
    return CheckResult{name, "It.", Outcome::kFailed, "", {{where, "wrong", "", 1}}, 1};
  };
  Report report;
  report.checks = {failed("pool.last_use", ""), failed("fence.wait", ""), failed("kernel.numerics", "Relu(T[3]) T=float32"),
                   failed("life.leaks", "")};
  EXPECT_THAT(ReportMarkdown(report),
              AllOf(testing::EndsWith("\nfailed: fence.wait (1), perhaps therefore pool.last_use (1), kernel.numerics (1), "
                                      "life.leaks (1)\n"),
                    HasSubstr("**kernel.numerics** (1 found, perhaps because of fence.wait): It.")));
  EXPECT_THAT(ReportJson(report),
              AllOf(HasSubstr("\"first_cause\": \"fence.wait\""), HasSubstr("\"cause\": \"fence.wait\"")));
  report.checks = {failed("kernel.write_add", "Add(T[3], T[3]) T=int64"),
                   failed("kernel.numerics", "Add(T[3], T[3]) T=int64"),
                   failed("kernel.concurrent", "MatMul(T[3,5], T[5,7])")};
  EXPECT_THAT(ReportMarkdown(report),
              testing::EndsWith("\nfailed: kernel.numerics (1), perhaps therefore kernel.write_add (1), "
                                "kernel.concurrent (1)\n"));
}

TEST(Report, AnUnknownCodeIsShownAsItsNumber) {
  EXPECT_EQ(CodeName(MGE_INTERNAL), "MGE_INTERNAL");
  EXPECT_EQ(CodeName(777), "777, which is not an MGE code");
}

}  // namespace
}  // namespace mge::conform
