// SPDX-License-Identifier: Apache-2.0
// The backend calls in progress in a child process, in memory shared with its parent. After a crash or a hang, the parent
// can name the call.
#pragma once

#include <string>
#include <string_view>

namespace mge::conform {

// A shared list of the calls in progress, one object per child process.
class CallBoard {
 public:
  CallBoard();  // must be created in the parent before the child is forked
  ~CallBoard();
  CallBoard(const CallBoard&) = delete;
  CallBoard& operator=(const CallBoard&) = delete;
  void Serve() const;         // called in the child: makes Enter() write to this object
  std::string Calls() const;  // returns "launching, waiting on a queue", or "" if there are none

  // Enter() records a call of this thread and returns its place. Leave() frees the place. Neither allocates memory.
  // Thread-safe.
  static int Enter(std::string_view call);
  static void Leave(int place);

 private:
  struct Places;
  static Places* served_;  // the places of this process if it is a child, else NULL
  Places* places_;         // NULL if there was not enough memory; then no call is recorded
};

}  // namespace mge::conform
