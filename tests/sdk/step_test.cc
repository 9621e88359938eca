// SPDX-License-Identifier: Apache-2.0
// The step that plugin.hpp creates from a kernel class, called as a host calls it.
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "mge/plugin.hpp"

namespace {

static_assert(!std::is_assignable_v<mge::StepFn&, mge_step_fn> && !std::is_constructible_v<mge::StepFn, mge_step_fn>,
              "a bare function has no guard around it");

struct Args {
  const char* what;
};

mge_code Launch(const Args& args, const mge_run* run) {
  const std::string what = args.what;
  if (what == "memory") throw std::bad_alloc();
  if (what == "exception") throw std::runtime_error("exploded");
  if (what == "number") throw 7;
  mge::ParallelFor(run, 8, [](uint64_t) {});
  return MGE_OK;
}
mge::Result Refuse(const Args& args, const mge_run*) { return {MGE_OUT_OF_RANGE, args.what}; }

class Kernel : public mge::Kernel {
 public:
  Kernel(const char* what, bool refuses) : what_(what), refuses_(refuses) {}
  uint32_t args_bytes() const override { return sizeof(Args); }
  mge::Result Bind(const mge::Binding&, void* args, mge::StepFn* step) override {
    if (!what_) return {MGE_UNIMPLEMENTED, "nothing to do"};
    new (args) Args{what_};
    *step = refuses_ ? mge::StepFn::Of<Refuse>() : mge::StepFn::Of<Launch>();
    return {};
  }

 private:
  const char* what_;
  bool refuses_;
};

const mge::KernelRow* const* NoRows(uint64_t* count) {
  *count = 0;
  return nullptr;
}

struct Bound {
  explicit Bound(const char* what, bool refuses = false) {
    Kernel kernel(what, refuses);
    mge_binding binding = {};
    code = mge::KernelTable<NoRows>::Bind(reinterpret_cast<mge_kernel*>(static_cast<mge::Kernel*>(&kernel)), &binding, &args,
                                          &step, nullptr);
  }
  mge_code Run(int32_t cancel = 0) {
    mge_run run = {};
    run.struct_size = sizeof(run);
    run.width = 1;
    run.cancel = &cancel;
    return step(&args, &run);
  }
  Args args = {};
  mge_step_fn step = nullptr;
  mge_code code;
};

TEST(Step, OfAKernelClassReturnsTheResultOfItsLaunch) {
  EXPECT_EQ(Bound("nothing").Run(), MGE_OK);
  EXPECT_EQ(Bound("an index", /*refuses=*/true).Run(), MGE_OUT_OF_RANGE);
}

TEST(Step, OfAKernelClassCatchesExceptions) {
  EXPECT_EQ(Bound("memory").Run(), MGE_RESOURCE_EXHAUSTED);
  EXPECT_EQ(Bound("exception").Run(), MGE_INTERNAL);
  EXPECT_EQ(Bound("number").Run(), MGE_INTERNAL);
}

TEST(Step, OfAKernelClassReturnsCancelledIfItsRunWasStopped) { EXPECT_EQ(Bound("nothing").Run(1), MGE_CANCELLED); }

TEST(Step, DoesNotExistIfTheKernelCannotBeBound) {
  Bound bound(nullptr);
  EXPECT_EQ(bound.code, MGE_UNIMPLEMENTED);
  EXPECT_EQ(bound.step, nullptr);
}

}  // namespace
