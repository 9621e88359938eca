// SPDX-License-Identifier: Apache-2.0
// The table of the transport. All state of MPI belongs to the process: it can be started once.
#include <memory>
#include <new>
#include <string>

#include "communication_thread.h"

namespace {

using mge::mpi::CommunicationThread;
using mge::mpi::Exchange;

const mge_transport_host* g_host = nullptr;

// Never deleted: a thread in MPI_Init_thread, which nothing can end, may outlive the last call.
CommunicationThread& Communication() {
  static auto* const thread = new CommunicationThread;
  return *thread;
}

mge_code FailWith(mge_error* error, mge_code code, const std::string& text) {
  return g_host->fail(g_host->self, error, code, text.data(), text.size());
}

mge_code Join(const mge_transport_host* host, uint64_t timeout_ns, mge_transport_place* out, mge_error* error) {
  static std::string library;
  g_host = host;
  CommunicationThread::Place place;
  std::string why;
  switch (Communication().Join(timeout_ns, &place, &why)) {
    case CommunicationThread::Joined::kYes: break;
    case CommunicationThread::Joined::kLate: return MGE_DEADLINE_EXCEEDED;
    case CommunicationThread::Joined::kFailed: return FailWith(error, MGE_UNAVAILABLE, why);
    case CommunicationThread::Joined::kAlreadyLeft:
      return FailWith(error, MGE_FAILED_PRECONDITION,
                      "MPI can be started once per process, and an earlier runtime has used it; keep that runtime");
  }
  library = place.library;
  out->rank = place.rank;
  out->ranks = place.ranks;
  out->library = {library.data(), library.size()};
  return MGE_OK;
}

mge_exchange* HandleOf(Exchange* exchange) { return reinterpret_cast<mge_exchange*>(exchange); }
Exchange* ExchangeOf(mge_exchange* handle) { return reinterpret_cast<Exchange*>(handle); }

mge_code Start(uint32_t channel, mge_message* messages, uint64_t count, mge_exchange** out, mge_error* error) {
  try {
    auto exchange = std::make_unique<Exchange>();
    exchange->channel = channel;
    exchange->messages = messages;
    exchange->count = count;
    for (uint64_t i = 0; i < count; ++i) {
      messages[i].done = 0;
      exchange->bytes += messages[i].bytes;
    }
    Communication().Start(exchange.get());
    *out = HandleOf(exchange.release());
    return MGE_OK;
  } catch (const std::bad_alloc&) {
    return FailWith(error, MGE_RESOURCE_EXHAUSTED, "there is not enough memory for the messages");
  }
}

mge_code Wait(mge_exchange* handle, uint64_t timeout_ns, mge_error* error) {
  std::string why;
  const bool ended = Communication().Wait(ExchangeOf(handle), timeout_ns, &why);
  if (!why.empty()) return FailWith(error, MGE_UNAVAILABLE, why);
  return ended ? MGE_OK : MGE_DEADLINE_EXCEEDED;
}

void Release(mge_exchange* handle) {
  const std::unique_ptr<Exchange> exchange(ExchangeOf(handle));
  Communication().Release(exchange.get());
}

void Leave(uint64_t timeout_ns, int32_t exit_code) { Communication().Leave(timeout_ns, exit_code); }

constexpr char kName[] = "mpi";
constexpr mge_transport kTable = {
    sizeof(mge_transport), MGE_TRANSPORT_VERSION, {kName, sizeof(kName) - 1}, Join, Start, Wait, Release, Leave};

}  // namespace

MGE_TRANSPORT_NOTE("mpi", MGE_MPI_VERSION);

extern "C" MGE_EXPORT const mge_transport* mge_transport_query(uint32_t version) {
  return version == MGE_TRANSPORT_VERSION ? &kTable : nullptr;
}
