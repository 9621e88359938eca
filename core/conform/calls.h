// SPDX-License-Identifier: Apache-2.0
// The calls of the backend that a child is in, in memory which its parent reads when the child has ended: a hang or a crash
// has the name of a call.
#pragma once

#include <string>
#include <string_view>

namespace mge::conform {

class CallBoard {
 public:
  CallBoard();  // in the parent, before there is a child
  ~CallBoard();
  CallBoard(const CallBoard&) = delete;
  CallBoard& operator=(const CallBoard&) = delete;
  void Serve() const;         // in the child: calls are written here from now on
  std::string Calls() const;  // "launching, waiting on a queue"; "" if there are none

  // A thread is in a call from Enter, which answers its place, to Leave. Takes no memory. [any thread]
  static int Enter(std::string_view call);
  static void Leave(int place);

 private:
  struct Places;
  static Places* served_;  // of this process, if it is a child
  Places* places_;         // NULL: there is no memory, and nothing is written
};

}  // namespace mge::conform
