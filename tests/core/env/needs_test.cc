// SPDX-License-Identifier: Apache-2.0
// Warnings about settings that can do nothing, because another one is off.
#include "core/env/needs.h"

#include <gmock/gmock.h>

#include "tests/core/env/env_test_util.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> Unmet(Variables variables, NeedsOf part = NeedsOf::kSession) {
  return UnmetNeeds(*MustCreate(FromEnvironment(std::move(variables)))->snapshot(), part);
}

TEST(Needs, ASettingWithoutItsSwitchIsReportedWithItsOrigin) {
  EXPECT_THAT(Unmet({{"MGB_SUBLINEAR_MEMORY_THRESH_NR_TRY", "5"}}),
              ElementsAre(AllOf(HasSubstr("train.sublinear_tries has no effect without train.sublinear = true"),
                                HasSubstr("MGB_SUBLINEAR_MEMORY_THRESH_NR_TRY"))));
  EXPECT_THAT(Unmet({{"MGB_DUMP_INPUT", "1"}}), ElementsAre(HasSubstr("debug.dump_dir")));
  EXPECT_THAT(Unmet({{"MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF", "22"}, {"MXNET_GPU_MEM_POOL_TYPE", "Naive"}}),
              ElementsAre(HasSubstr("memory.gpu_pool = Round")));
}

TEST(Needs, ASettingWithItsSwitchIsNotReported) {
  EXPECT_THAT(Unmet({}), IsEmpty());
  EXPECT_THAT(Unmet({{"MGB_SUBLINEAR_MEMORY_THRESH_NR_TRY", "5"}, {"MGE_TRAIN_SUBLINEAR", "1"}}), IsEmpty());
  EXPECT_THAT(Unmet({{"MXNET_KVSTORE_LOGTREE", "1"}, {"MXNET_KVSTORE_USETREE", "1"}}), IsEmpty());
  EXPECT_THAT(Unmet({{"MXNET_KVSTORE_LOGTREE", "0"}}), IsEmpty());
  EXPECT_THAT(Unmet({{"MXNET_USE_NUM_CORES_OPERATOR_TUNING", "2"}, {"MXNET_USE_OPERATOR_TUNING", "1"}}), IsEmpty());
}

TEST(Needs, EagerSettingsAreReportedInEagerModeOnly) {
  EXPECT_THAT(Unmet({{"MEGENGINE_DTR_EVICTION_THRESHOLD", "1MiB"}}), IsEmpty());
  EXPECT_THAT(Unmet({{"MEGENGINE_DTR_EVICTION_THRESHOLD", "1MiB"}}, NeedsOf::kEager),
              ElementsAre(HasSubstr("eager.dtr_auto_drop = true")));
  EXPECT_THAT(Unmet({{"MEGENGINE_RECORD_COMPUTING_PATH", "1"}, {"MEGENGINE_DTR_AUTO_DROP", "1"}}, NeedsOf::kEager),
              IsEmpty());
}

}  // namespace
}  // namespace mge
