// SPDX-License-Identifier: Apache-2.0
#include "core/base/thread.h"

#include <sys/resource.h>

#include <exception>
#include <memory>
#include <system_error>
#include <utility>

namespace mge {
namespace {

using Body = absl::AnyInvocable<void()>;

// Does not catch exceptions: an exception that leaves a thread ends the process, and the system ends threads by one.
void* RunBody(void* body) {
  const std::unique_ptr<Body> owned(static_cast<Body*>(body));
  (*owned)();
  return nullptr;
}

}  // namespace

Thread::Thread(Body body) {
  auto owned = std::make_unique<Body>(std::move(body));
  pthread_attr_t attributes;
  int failed = pthread_attr_init(&attributes);
  if (failed == 0) {
    failed = pthread_attr_setstacksize(&attributes, kStackBytes);
    if (failed == 0) failed = pthread_create(&handle_, &attributes, RunBody, owned.get());
    pthread_attr_destroy(&attributes);
  }
  if (failed != 0) throw std::system_error(failed, std::generic_category(), "a thread cannot be started");
  (void)owned.release();  // RunBody owns it
  running_ = true;
}

Thread& Thread::operator=(Thread&& other) noexcept {
  if (running_) std::terminate();
  handle_ = other.handle_;
  running_ = std::exchange(other.running_, false);
  return *this;
}

Thread::~Thread() {
  if (running_) std::terminate();
}

void Thread::join() {
  pthread_join(handle_, nullptr);
  running_ = false;
}

void Thread::detach() {
  pthread_detach(handle_);
  running_ = false;
}

int CallOnLargeStack(int (*main)(int argc, char** argv), int argc, char** argv) {
  rlimit limit = {};
  const bool known = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  if (!known || limit.rlim_cur >= kStackBytes / 4) return main(argc, argv);
  int result = 1;
  Thread thread([&] { result = main(argc, argv); });
  thread.join();
  return result;
}

}  // namespace mge
