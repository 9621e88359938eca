// SPDX-License-Identifier: Apache-2.0
// Run controls of the public API: time limits and priorities.
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <limits>

#include "tests/core/api/relu_session.h"

namespace mge {
namespace {

class RunControls : public ReluSession {
 protected:
  // Runs the session with this time limit. Returns the error's text, "" if there is none.
  std::string RunWithin(double seconds) {
    mge_run_control* control = nullptr;
    mge_tensor* output = nullptr;
    EXPECT_EQ(mge_run_control_create(&control), nullptr);
    mge_run_control_set_timeout(control, seconds);
    mge_run_options options;
    mge_run_options_init(&options);
    options.control = control;
    mge_status* status = mge_session_run(session_, &input_, 1, &output, 1, &options, nullptr);
    std::string text = status ? mge_status_text(status) : "";
    mge_status_release(status);
    mge_tensor_release(output);
    mge_run_control_release(control);
    return text;
  }

  // Runs the session asynchronously. ended() is called on a worker.
  void RunAsync(mge_run_control* control, std::function<void()>& ended) {
    mge_run_options options;
    mge_run_options_init(&options);
    options.control = control;
    options.state = &ended;
    options.done = [](void* state, mge_status* status, mge_tensor** outputs, size_t count) {
      EXPECT_EQ(status, nullptr);
      mge_status_release(status);
      for (size_t i = 0; i < count; ++i) mge_tensor_release(outputs[i]);
      (*static_cast<std::function<void()>*>(state))();
    };
    EXPECT_EQ(mge_session_run(session_, &input_, 1, nullptr, 0, &options, nullptr), nullptr);
  }
};

TEST_F(RunControls, IgnoreTimeLimitsOutOfRange) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  for (double seconds : {0.0, -5.0, 9.3e9, 1e300, kInfinite, -kInfinite, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(RunWithin(seconds), "") << seconds;
  }
  EXPECT_NE(RunWithin(1e-9), "");
}

TEST_F(RunControls, GiveAPrioritizedRunItsOwnThread) {
  std::promise<void> open, passed, over;
  std::shared_future<void> opened = open.get_future().share();
  std::function<void()> waits = [&] {
    opened.wait();
    over.set_value();
  };
  std::function<void()> passes = [&] { passed.set_value(); };
  RunAsync(nullptr, waits);  // the only worker for plain runs is busy until `open`
  mge_run_control* control = nullptr;
  ASSERT_EQ(mge_run_control_create(&control), nullptr);
  mge_run_control_set_priority(control, 7);
  RunAsync(control, passes);
  passed.get_future().wait();
  open.set_value();
  over.get_future().wait();
  mge_run_control_release(control);
}

}  // namespace
}  // namespace mge
