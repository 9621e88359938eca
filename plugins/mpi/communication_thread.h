// SPDX-License-Identifier: Apache-2.0
// The one thread that makes all calls of MPI. Other threads leave exchanges with it and wait for their end.
//
// Why: few builds of Open MPI are safe with calls of several threads, and some transports say so only when they fail. With one
// thread, MPI_THREAD_FUNNELED is enough.
#pragma once

#include <mpi.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "mge/transport.h"

namespace mge::mpi {

// The largest piece of a message. Where the kernel forbids copies between processes, Open MPI copies through shared memory, and moves
// several pieces 2 to 7 times as fast as one large message. Elsewhere, the size makes no difference.
inline constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

// Messages on their way.
struct Exchange {
  uint32_t channel = 0;
  mge_message* messages = nullptr;
  uint64_t count = 0;
  uint64_t bytes = 0;  // of all messages
  // Used by the communication thread only.
  struct Piece {
    MPI_Request request = MPI_REQUEST_NULL;
    uint64_t message = 0;
    bool sends = false;
  };
  std::vector<Piece> pieces = {};
  std::vector<uint64_t> pieces_left = {};  // by message
  uint64_t messages_left = 0;
  // Guarded by the mutex of the thread, as `done` of the messages.
  bool ended = false;     // all messages are done
  bool awaited = false;   // the caller is in Wait()
  bool dropped = false;   // the caller no longer waits
  bool released = false;  // the thread no longer uses it
  std::string error = {};
};

// Thread-safe.
class CommunicationThread {
 public:
  enum class Joined { kYes, kLate, kFailed, kAlreadyLeft };
  struct Place {
    uint32_t rank = 0, ranks = 1;
    std::string library;
  };
  // Starts MPI and returns when all processes have done so. `error` is set if it fails.
  Joined Join(uint64_t timeout_ns, Place* place, std::string* error);
  void Start(Exchange* exchange);
  // Waits for the end of an exchange. Returns whether it has ended.
  bool Wait(Exchange* exchange, uint64_t timeout_ns, std::string* error);
  // Returns when the thread no longer uses the exchange.
  void Release(Exchange* exchange);
  void Leave(uint64_t timeout_ns, int exit_code);

 private:
  void Run();
  bool Begin();  // MPI_Init_thread
  void Post(Exchange& exchange);
  bool Progress(Exchange& exchange);  // returns whether a message has been done
  void Cancel(Exchange& exchange);
  void End();  // MPI_Finalize or MPI_Abort
  void Sleep(std::unique_lock<std::mutex>& lock, bool busy);

  std::mutex mutex_;
  std::condition_variable changed_;  // for callers
  std::condition_variable work_;     // for the thread
  std::thread thread_;
  bool started_ = false, begun_ = false, left_ = false;  // guarded by mutex_, as all below
  std::optional<std::string> failure_;                   // of MPI_Init_thread
  Place place_;
  std::vector<Exchange*> new_;
  std::optional<uint64_t> leave_ns_;
  int exit_code_ = 1;
  // Used by the thread only.
  std::vector<Exchange*> active_;
  uint64_t quiet_since_ns_ = 0;  // the last time that something happened
};

}  // namespace mge::mpi
