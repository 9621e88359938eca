// SPDX-License-Identifier: Apache-2.0
#include "communication_thread.h"

#include <dlfcn.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace mge::mpi {
namespace {

// While bytes flow, MPI moves them only in its calls. So the thread looks without a pause for this time after something has
// happened, and then ever more rarely: other threads, and other processes on the same cores, compute meanwhile.
constexpr uint64_t kPatienceNs = 200'000;
constexpr uint64_t kLongestPauseNs = 1'000'000;
// Large messages may move in small pieces, each in a call of its own, which their state does not show. A call that takes longer
// than a look has moved bytes.
constexpr uint64_t kLookNs = 5'000;
constexpr uint64_t kLargeBytes = 64 << 10;
constexpr uint64_t kLongestPauseOfLargeNs = 50'000;

uint64_t NowNs() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

std::string ErrorText(int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int size = 0;
  MPI_Error_string(code, text, &size);
  return std::string(text, static_cast<size_t>(size));
}

}  // namespace

CommunicationThread::Joined CommunicationThread::Join(uint64_t timeout_ns, Place* place, std::string* error) {
  std::unique_lock lock(mutex_);
  if (left_ || started_) return Joined::kAlreadyLeft;
  started_ = true;
  thread_ = std::thread([this] { Run(); });
  const bool there =
      changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), [&] { return begun_ || failure_.has_value(); });
  if (!there) return Joined::kLate;
  if (failure_) {
    *error = *failure_;
    return Joined::kFailed;
  }
  *place = place_;
  return Joined::kYes;
}

void CommunicationThread::Start(Exchange* exchange) {
  std::lock_guard lock(mutex_);
  new_.push_back(exchange);
  work_.notify_one();
}

bool CommunicationThread::Wait(Exchange* exchange, uint64_t timeout_ns, std::string* error) {
  std::unique_lock lock(mutex_);
  if (timeout_ns > 0) {
    exchange->awaited = true;
    changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), [&] { return exchange->ended; });
    exchange->awaited = false;
  }
  *error = exchange->error;
  return exchange->ended;
}

void CommunicationThread::Release(Exchange* exchange) {
  std::unique_lock lock(mutex_);
  exchange->dropped = true;
  work_.notify_one();
  changed_.wait(lock, [&] { return exchange->released; });
}

void CommunicationThread::Leave(uint64_t timeout_ns, int exit_code) {
  {
    std::lock_guard lock(mutex_);
    if (!started_ || left_) return;
    leave_ns_ = timeout_ns;
    exit_code_ = exit_code;
    left_ = true;
    if (!begun_ && !failure_) {  // MPI_Init_thread still waits for other processes, and nothing can end it
      thread_.detach();
      return;
    }
    work_.notify_one();
  }
  thread_.join();
}

bool CommunicationThread::Begin() {
  // Components that Open MPI opens may expect its symbols to be global.
  dlopen("libmpi.so.40", RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  int provided = 0;
  const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  std::string error;
  if (code != MPI_SUCCESS) error = "MPI_Init_thread: " + ErrorText(code);
  if (error.empty() && provided < MPI_THREAD_FUNNELED) error = "this MPI cannot be used by a process with several threads";
  Place place;
  if (error.empty()) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int rank = 0, ranks = 1, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    MPI_Get_library_version(library, &size);
    place.rank = static_cast<uint32_t>(rank);
    place.ranks = static_cast<uint32_t>(ranks);
    place.library = std::string(library, static_cast<size_t>(size));
    place.library.resize(std::min(place.library.find_first_of(",\n"), place.library.size()));
  }
  std::lock_guard lock(mutex_);
  if (!error.empty()) failure_ = error;
  place_ = place;
  begun_ = error.empty();
  changed_.notify_all();
  return begun_;
}

void CommunicationThread::Post(Exchange& exchange) {
  exchange.pieces_left.resize(exchange.count);
  exchange.messages_left = exchange.count;
  for (uint64_t i = 0; i < exchange.count; ++i) {
    const mge_message& m = exchange.messages[i];
    for (uint64_t at = 0; at < m.bytes || at == 0; at += kPieceBytes) {
      Exchange::Piece piece = {MPI_REQUEST_NULL, i, m.sends != 0};
      char* const data = static_cast<char*>(m.data) + at;
      const int bytes = static_cast<int>(std::min(kPieceBytes, m.bytes - at));
      const int peer = static_cast<int>(m.peer), tag = static_cast<int>(exchange.channel);
      const int code = m.sends ? MPI_Isend(data, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &piece.request)
                               : MPI_Irecv(data, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &piece.request);
      if (code != MPI_SUCCESS) {
        std::lock_guard lock(mutex_);
        exchange.error = ErrorText(code);
      }
      ++exchange.pieces_left[i];
      exchange.pieces.push_back(piece);
    }
  }
}

bool CommunicationThread::Progress(Exchange& exchange) {
  bool some = false;
  for (size_t i = 0; i < exchange.pieces.size();) {
    int done = 0;
    const int code = MPI_Test(&exchange.pieces[i].request, &done, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS && !done) {
      ++i;
      continue;
    }
    const uint64_t message = exchange.pieces[i].message;
    exchange.pieces[i] = exchange.pieces.back();
    exchange.pieces.pop_back();
    some = true;
    std::lock_guard lock(mutex_);
    if (code != MPI_SUCCESS) {
      exchange.error = ErrorText(code);
      continue;
    }
    if (--exchange.pieces_left[message] > 0) continue;
    exchange.messages[message].done = 1;
    if (--exchange.messages_left == 0) exchange.ended = true;
  }
  std::lock_guard lock(mutex_);
  if (exchange.count == 0) exchange.ended = true;
  if (some || exchange.ended) changed_.notify_all();
  return some;
}

// Receives end here; sends are left to MPI, because it cannot cancel them.
void CommunicationThread::Cancel(Exchange& exchange) {
  for (Exchange::Piece& piece : exchange.pieces) {
    if (piece.request == MPI_REQUEST_NULL) continue;
    if (piece.sends) {
      MPI_Request_free(&piece.request);
      continue;
    }
    MPI_Cancel(&piece.request);
    MPI_Wait(&piece.request, MPI_STATUS_IGNORE);
  }
  exchange.pieces.clear();
}

void CommunicationThread::End() {
  uint64_t limit = 0;
  int exit_code = 1;
  {
    std::lock_guard lock(mutex_);
    limit = *leave_ns_;
    exit_code = exit_code_;
  }
  for (Exchange* exchange : active_) Cancel(*exchange);
  MPI_Request all = MPI_REQUEST_NULL;
  int done = MPI_Ibarrier(MPI_COMM_WORLD, &all) != MPI_SUCCESS;
  for (const uint64_t begin = NowNs(); !done;) {
    if (MPI_Test(&all, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
    if (done) break;
    if (limit > 0 && NowNs() - begin > limit) {
      std::fflush(nullptr);
      MPI_Abort(MPI_COMM_WORLD, exit_code);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(NowNs() - begin < 10'000'000 ? 50 : 1000));
  }
  MPI_Finalize();
}

void CommunicationThread::Sleep(std::unique_lock<std::mutex>& lock, bool busy) {
  const uint64_t now = NowNs();
  if (busy) quiet_since_ns_ = now;
  const uint64_t quiet = now - quiet_since_ns_;
  const bool flows = std::ranges::any_of(active_, [](const Exchange* e) { return !e->ended && e->awaited; });
  if (flows && quiet <= kPatienceNs) {
    lock.unlock();
    sched_yield();
    lock.lock();
    return;
  }
  const bool large = std::ranges::any_of(active_, [](const Exchange* e) { return !e->ended && e->bytes > kLargeBytes; });
  const uint64_t longest = large ? kLongestPauseOfLargeNs : kLongestPauseNs;
  work_.wait_for(lock, std::chrono::nanoseconds(std::min(quiet / 8 + 10'000, longest)));
}

void CommunicationThread::Run() {
  if (!Begin()) return;
  for (;;) {
    std::vector<Exchange*> added, dropped;
    {
      std::lock_guard lock(mutex_);
      if (leave_ns_ && new_.empty()) break;
      added.swap(new_);
    }
    for (Exchange* exchange : added) {
      Post(*exchange);
      active_.push_back(exchange);
    }
    const uint64_t begin = NowNs();
    bool busy = !added.empty();
    for (Exchange* exchange : active_) busy |= Progress(*exchange);
    busy |= NowNs() - begin > kLookNs;
    {
      std::lock_guard lock(mutex_);
      for (Exchange* exchange : active_) {
        if (exchange->dropped) dropped.push_back(exchange);
      }
    }
    for (Exchange* exchange : dropped) {
      Cancel(*exchange);
      std::erase(active_, exchange);
    }
    std::unique_lock lock(mutex_);
    for (Exchange* exchange : dropped) exchange->released = true;
    if (!dropped.empty()) changed_.notify_all();
    if (!new_.empty() || leave_ns_) continue;
    Sleep(lock, busy);
  }
  End();
}

}  // namespace mge::mpi
