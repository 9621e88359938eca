// SPDX-License-Identifier: Apache-2.0
#include "core/cli/interrupt.h"

#include <pthread.h>

#include <ctime>

namespace mge::cli {
namespace {

sigset_t OnlyInterrupt() {
  sigset_t out;
  sigemptyset(&out);
  sigaddset(&out, SIGINT);
  return out;
}

sigset_t Block(const sigset_t& signals) {
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  return before;
}

}  // namespace

Interrupt::Interrupt(RunControl& control)
    : control_(control), signals_(OnlyInterrupt()), before_(Block(signals_)), thread_([this] { Wait(); }) {}

Interrupt::~Interrupt() {
  end_ = true;
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Interrupt::Wait() {
  constexpr timespec kPoll = {.tv_sec = 0, .tv_nsec = 50'000'000};
  while (!end_) {
    if (sigtimedwait(&signals_, nullptr, &kPoll) != SIGINT) continue;
    received_ = true;
    control_.Cancel();
    pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);  // this thread now receives the next one
    return;
  }
}

}  // namespace mge::cli
