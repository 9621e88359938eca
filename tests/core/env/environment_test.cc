// SPDX-License-Identifier: Apache-2.0
#include "core/env/environment.h"

#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

using testing::Contains;
using testing::Key;
using testing::Not;
using testing::Pair;

TEST(Environment, HoldsOnlyVariablesWithThePrefixesOfMge) {
  setenv("MGE_SOME_TYPO", "x=y", 1);
  setenv("MXNET_ENGINE_TYPE", "NaiveEngine", 1);
  setenv("CUDA_BIN_PATH", "/opt/cuda/bin", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "hush", 1);
  Environment environment = CaptureEnvironment();
  for (const char* name : {"MGE_SOME_TYPO", "MXNET_ENGINE_TYPE", "CUDA_BIN_PATH", "AWS_SECRET_ACCESS_KEY"}) unsetenv(name);
  EXPECT_THAT(environment.variables, Contains(Pair("MGE_SOME_TYPO", "x=y")));
  EXPECT_THAT(environment.variables, Contains(Pair("MXNET_ENGINE_TYPE", "NaiveEngine")));
  EXPECT_THAT(environment.variables, Contains(Key("CUDA_BIN_PATH")));
  EXPECT_THAT(environment.variables, Not(Contains(Key("AWS_SECRET_ACCESS_KEY"))));
  EXPECT_EQ(environment.Find("MXNET_ENGINE_TYPE"), "NaiveEngine");
}

TEST(Environment, TreatsEmptyAsUnset) {
  Environment environment = {{{"HOME", ""}, {"XDG_CACHE_HOME", "/c"}}};
  EXPECT_EQ(environment.Find("HOME"), std::nullopt);
  EXPECT_EQ(environment.Find("XDG_CACHE_HOME"), "/c");
  EXPECT_EQ(environment.Find("MGE_THREADS"), std::nullopt);
}

}  // namespace
}  // namespace mge
