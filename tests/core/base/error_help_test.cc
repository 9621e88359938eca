// SPDX-License-Identifier: Apache-2.0
#include "core/base/error_help.h"

#include "core/base/errors.h"
#include "gmock/gmock.h"

namespace mge {
namespace {

using testing::HasSubstr;

TEST(Status, ShowsItsOwnFixOrTheFixOfItsErrorRow) {
  absl::Status own = Fail(errors::kNotOnnx, "title", {.fix = "turn it around"});
  EXPECT_EQ(FixOf(own), "turn it around");
  for (const ErrorHelp& help : AllErrorHelp()) {
    absl::Status usual = Fail(*help.row, "title");
    EXPECT_EQ(FixOf(usual), help.remedy);
    EXPECT_FALSE(help.remedy.empty());
    EXPECT_THAT(FormatError(usual), HasSubstr("\n  fix:   " + std::string(help.remedy)));
  }
}

TEST(Status, OfAnotherLibraryHasNoFix) { EXPECT_EQ(FixOf(absl::InternalError("odd")), ""); }

}  // namespace
}  // namespace mge
