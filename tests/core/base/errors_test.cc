// SPDX-License-Identifier: Apache-2.0
#include "core/base/errors.h"

#include <cerrno>

#include "core/base/errno_text.h"
#include "gmock/gmock.h"

namespace mge {
namespace {

using testing::HasSubstr;

TEST(Errors, ShowTheirOwnFixOrTheRemedyOfTheirRow) {
  absl::Status own = Fail(errors::kNotOnnx, "title", {.fix = "turn it around"});
  EXPECT_EQ(FixOf(own), "turn it around");
  for (const ErrorRow* row : errors::kAll) {
    absl::Status usual = Fail(*row, "title");
    EXPECT_EQ(FixOf(usual), row->remedy);
    EXPECT_FALSE(row->remedy.empty());
    EXPECT_THAT(FormatError(usual), HasSubstr("\n  fix:   " + std::string(row->remedy)));
  }
}

TEST(Errors, HaveTheExitCodeInTheHundredsOfTheirId) {
  for (const ErrorRow* row : errors::kAll) {
    EXPECT_EQ(errors::Find(row->id), row);
    EXPECT_EQ(KindOf(Fail(*row, "title")), row->kind());
    EXPECT_EQ(ExitCode(row->kind()), row->id / 100);
  }
  EXPECT_EQ(ExitCode(KindOf(Fail(errors::kTimeout, "title"))), 124);
  EXPECT_EQ(errors::Find(99), nullptr);
}

TEST(Errors, OfAnotherLibraryHaveNoFixAndTheKindOfTheirCode) {
  EXPECT_EQ(FixOf(absl::InternalError("odd")), "");
  EXPECT_EQ(KindOf(absl::ResourceExhaustedError("odd")), ErrorKind::kMemory);
}

TEST(ErrnoText, IsTheTextOfTheSystem) { EXPECT_EQ(ErrnoText(ENOENT), "No such file or directory"); }

}  // namespace
}  // namespace mge
