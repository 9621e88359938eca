// SPDX-License-Identifier: Apache-2.0
// Classes of mge.hpp and of the core have the same names. A program may use both, in different source files.
#include "gtest/gtest.h"
#include "mge/mge.hpp"
#include "tests/core/api/core_classes.h"

namespace mge {
namespace {

TEST(PublicClasses, DifferFromTheCoreClassesOfTheSameNames) {
  const std::type_info* mine[] = {&typeid(Tensor),         &typeid(Runtime),        &typeid(Session),
                                  &typeid(RuntimeOptions), &typeid(SessionOptions), &typeid(RunControl)};
  const auto cores = CoreClasses();
  ASSERT_EQ(std::size(mine), cores.size());
  for (size_t i = 0; i < cores.size(); ++i) EXPECT_NE(*mine[i], *cores[i]) << mine[i]->name();
}

TEST(PublicClasses, WorkInAProgramThatUsesTheCoreClassesToo) {
  Tensor tensor;
  ASSERT_TRUE(Tensor::Of<float>({3}, {1, 2, 3}).MoveTo(tensor).ok());
  EXPECT_EQ(tensor.elements(), 3u);
  EXPECT_EQ(SumOfCoreTensor(3), 6);
  Runtime runtime;
  RuntimeOptions options;
  options.built_in_plugins = options.environment = false;
  Status made = Runtime::Create(options).MoveTo(runtime);
  EXPECT_TRUE(made.ok()) << made.text();
}

}  // namespace
}  // namespace mge
