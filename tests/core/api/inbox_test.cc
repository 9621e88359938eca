// SPDX-License-Identifier: Apache-2.0
// Inboxes of the public API, and callbacks that end their thread.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>

#include <set>

#include "tests/core/api/relu_session.h"

namespace mge {
namespace {

using testing::HasSubstr;

// An inbox that gets the messages of its runtime. Its creation logs one.
mge_runtime_options LoggingTo(mge_inbox** inbox) {
  EXPECT_EQ(mge_inbox_create(inbox), nullptr);
  static const char* const settings[] = {"debug.dump_inputs=1"};  // a warning: it has no effect without a folder
  mge_runtime_options options = {};
  options.log_inbox = *inbox;
  options.settings = settings;
  options.setting_count = 1;
  return options;
}

// The inbox is a base class, since it must exist before the runtime.
struct OwnedInbox {
  mge_inbox* inbox_ = nullptr;
  ~OwnedInbox() { mge_inbox_release(inbox_); }
};

class Inboxes : protected OwnedInbox, public ReluSession {
 protected:
  Inboxes() : ReluSession(LoggingTo(&inbox_)) {}
  bool Readable(int milliseconds) const {
    pollfd polled = {mge_inbox_descriptor(inbox_), POLLIN, 0};
    return poll(&polled, 1, milliseconds) == 1;
  }
  // Takes all messages. Returns their number.
  int TakeMessages() {
    int32_t level = 0;
    mge_string* message = nullptr;
    int count = 0;
    for (; mge_inbox_take_message(inbox_, &level, &message); ++count) mge_string_release(message);
    return count;
  }
  // Starts a run whose result goes to the inbox.
  mge_status* RunInto(uint64_t tag, mge_run_control* control = nullptr) {
    mge_run_options options;
    mge_run_options_init(&options);
    options.control = control;
    options.inbox = inbox_;
    options.tag = tag;
    return mge_session_run(session_, &input_, 1, nullptr, 0, &options, nullptr);
  }
};

TEST_F(Inboxes, KeepTheResultsOfRuns) {
  TakeMessages();
  constexpr uint64_t kRuns = 20;
  for (uint64_t tag = 0; tag < kRuns; ++tag) {
    ASSERT_EQ(RunInto(100 + tag), nullptr);
  }
  std::set<uint64_t> tags;
  while (tags.size() < kRuns) {
    ASSERT_TRUE(Readable(10'000));
    TakeMessages();
    uint64_t tag = 0;
    mge_status* status = nullptr;
    mge_tensor* output = nullptr;
    size_t count = 0;
    if (!mge_inbox_take_run(inbox_, &tag, &status, &output, 1, &count)) continue;
    EXPECT_EQ(status, nullptr);
    ASSERT_EQ(count, 1u);
    EXPECT_EQ(mge_tensor_elements(output), 2u);
    mge_tensor_release(output);
    tags.insert(tag);
  }
  EXPECT_EQ(*tags.begin(), 100u);
  EXPECT_FALSE(Readable(0));
}

TEST_F(Inboxes, KeepTheErrorsOfRuns) {
  mge_run_control* control = nullptr;
  ASSERT_EQ(mge_run_control_create(&control), nullptr);
  mge_run_control_cancel(control);
  ASSERT_EQ(RunInto(7, control), nullptr);
  mge_run_control_release(control);  // the run retains it
  uint64_t tag = 0;
  mge_status* status = nullptr;
  size_t count = 1;
  mge_tensor* output = nullptr;
  do {
    ASSERT_TRUE(Readable(10'000));
    TakeMessages();
  } while (!mge_inbox_take_run(inbox_, &tag, &status, &output, 1, &count));
  EXPECT_EQ(tag, 7u);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(mge_status_code(status), MGE_CANCELLED);
  EXPECT_EQ(mge_status_exit_code(status), 130);
  mge_status_release(status);
}

TEST_F(Inboxes, KeepMessagesAndMayBeReleasedBeforeTheRuntime) {
  EXPECT_TRUE(Readable(0));
  EXPECT_GT(TakeMessages(), 0);
  EXPECT_FALSE(Readable(0));
  ASSERT_EQ(RunInto(1), nullptr);
  mge_inbox_release(inbox_);
  inbox_ = nullptr;
}

TEST_F(Inboxes, ExcludeALogFunction) {
  mge_runtime_options options = {};
  options.struct_size = sizeof(options);
  options.log_inbox = inbox_;
  options.log = [](void*, int32_t, const char*, size_t) {};
  mge_runtime* made = nullptr;
  mge_status* status = mge_runtime_create(&options, &made);
  ASSERT_NE(status, nullptr);
  EXPECT_THAT(mge_status_text(status), HasSubstr("both log and log_inbox"));
  mge_status_release(status);
}

// Python ends every thread that enters it after the interpreter has ended.
TEST_F(Inboxes, AreNotNeededByAProgramWhoseCallbackEndsItsThread) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        mge_run_options options;
        mge_run_options_init(&options);
        options.done = [](void*, mge_status*, mge_tensor**, size_t) { pthread_exit(nullptr); };
        for (int i = 0; i < 8; ++i) {
          if (mge_session_run(session_, &input_, 1, nullptr, 0, &options, nullptr)) exit(1);
        }
        usleep(100'000);
        exit(0);
      },
      testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace mge
