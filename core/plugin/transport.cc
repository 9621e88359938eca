// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/transport.h"

#include <dlfcn.h>

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/base/lines.h"
#include "core/plugin/abi_call.h"
#include "core/plugin/host_services.h"
#include "core/plugin/open_library.h"
#include "fmt/format.h"

namespace mge {
namespace {

mge_code FailOfTransport(void*, mge_error* error, mge_code code, const char* text, uint64_t size) noexcept {
  return AnswerBackend(error,
                       [&]() -> absl::Status {
                         if (error) error->text.assign(text, static_cast<size_t>(std::min<uint64_t>(size, 4096)));
                         return absl::OkStatus();
                       }) == MGE_OK
             ? code
             : MGE_RESOURCE_EXHAUSTED;
}

void LogOfTransport(void* self, int32_t severity, const char* text, uint64_t size) noexcept {
  const auto level = static_cast<LogLevel>(std::clamp<int32_t>(severity, MGE_LOG_DEBUG, MGE_LOG_ERROR));
  static_cast<const Logger*>(self)->Log(level, "{}",
                                        std::string_view(text, static_cast<size_t>(std::min<uint64_t>(size, 4096))));
}

absl::Status StatusOfTransport(mge_code code, const mge_error& error, std::string_view what) {
  if (code == MGE_OK) return absl::OkStatus();
  return Fail(errors::kRankFailed, fmt::format("{} failed", what), {.what = TextOfBackend(code, error)});
}

class PluginExchange final : public MessageExchange {
 public:
  PluginExchange(const mge_transport& api, mge_exchange* handle) : api_(api), handle_(handle) {}
  ~PluginExchange() override { api_.release(handle_); }
  absl::StatusOr<bool> Wait(std::chrono::nanoseconds limit) override {
    mge_error error;
    const auto ns = static_cast<uint64_t>(std::max<int64_t>(limit.count(), 0));
    const mge_code code = CallBackend(error, [&](mge_error* e) { return api_.wait(handle_, ns, e); });
    if (code == MGE_DEADLINE_EXCEEDED) return false;
    MGE_RETURN_IF_ERROR(StatusOfTransport(code, error, "moving messages between the processes"));
    return true;
  }

 private:
  const mge_transport& api_;
  mge_exchange* const handle_;
};

class PluginTransport final : public Transport {
 public:
  PluginTransport(const mge_transport& api, const Logger& logger) : api_(api), logger_(logger) {
    host_ = {sizeof(host_), 0, &logger_, FailOfTransport, LogOfTransport};
  }

  absl::Status Join(uint32_t ranks, std::chrono::nanoseconds timeout) {
    mge_error error;
    mge_transport_place place = {sizeof(place), 0, 0, 0, {nullptr, 0}};
    const mge_code code = CallBackend(
        error, [&](mge_error* e) { return api_.join(&host_, static_cast<uint64_t>(timeout.count()), &place, e); });
    if (code == MGE_DEADLINE_EXCEEDED) {
      return Fail(errors::kRankFailed, fmt::format("not all of {} processes have started", ranks),
                  {.what = fmt::format("this one has waited {:g} s for the others",
                                       std::chrono::duration<double>(timeout).count())});
    }
    MGE_RETURN_IF_ERROR(StatusOfTransport(code, error, "joining the other processes"));
    rank_ = place.rank;
    ranks_ = place.ranks;
    library_ = EscapeControl(CopyText(place.library));
    return absl::OkStatus();
  }

  uint32_t rank() const override { return rank_; }
  uint32_t ranks() const override { return ranks_; }
  std::string library() const override { return library_; }
  absl::StatusOr<std::unique_ptr<MessageExchange>> Start(uint32_t channel, std::span<mge_message> messages) override {
    mge_error error;
    mge_exchange* handle = nullptr;
    const mge_code code =
        CallBackend(error, [&](mge_error* e) { return api_.start(channel, messages.data(), messages.size(), &handle, e); });
    MGE_RETURN_IF_ERROR(StatusOfTransport(code, error, "starting messages between the processes"));
    return std::make_unique<PluginExchange>(api_, handle);
  }
  void Leave(std::chrono::nanoseconds limit) override { api_.leave(static_cast<uint64_t>(limit.count()), 1); }

 private:
  const mge_transport& api_;
  Logger logger_;
  mge_transport_host host_;
  uint32_t rank_ = 0, ranks_ = 1;
  std::string library_;
};

absl::Status RefusedTransport(const PluginFile& file) {
  return Fail(errors::kPluginRefused, fmt::format("the transport '{}' cannot be used", file.path),
              {.what = file.reason, .fix = file.fix});
}

// Opens a file and returns its table, which is valid until the process ends.
absl::StatusOr<const mge_transport*> OpenTransport(const FoundPlugin& found) {
  PluginFile file = found.file;
  std::string thrown;
  const boost::dll::shared_library library = OpenLibraryFile(file, thrown);
  if (!thrown.empty()) CheckThrown(file, thrown);
  if (!thrown.empty() || !library.is_loaded()) return RefusedTransport(file);
  // The library stays open: threads of MPI may outlive their last use.
  (void)dlopen(file.path.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  auto refuse = [&](VerdictCode code, std::string why) {
    SetVerdict(file, Verdict::kRefused, code, std::move(why), "build it again with the SDK of this host");
    return RefusedTransport(file);
  };
  if (IdentityOf(file.path) != found.identity)
    return refuse(VerdictCode::kUnreadable, "it has changed since it was checked");
  if (!library.has(MGE_TRANSPORT_QUERY_SYMBOL)) {
    return refuse(VerdictCode::kNoEntry, "it does not export " MGE_TRANSPORT_QUERY_SYMBOL);
  }
  auto* query = &library.get<std::remove_pointer_t<mge_transport_query_fn>>(MGE_TRANSPORT_QUERY_SYMBOL);
  const mge_transport* api = query(MGE_TRANSPORT_VERSION);
  if (!api || api->version != MGE_TRANSPORT_VERSION || api->struct_size < sizeof(*api)) {
    return refuse(VerdictCode::kAbiMismatch,
                  fmt::format("it does not support version {} of mge/transport.h", MGE_TRANSPORT_VERSION));
  }
  if (!api->join || !api->start || !api->wait || !api->release || !api->leave) {
    return refuse(VerdictCode::kBadTable, "a function of its table is missing");
  }
  return api;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Transport>> JoinTransport(const std::vector<FoundPlugin>& found, uint32_t ranks,
                                                         std::chrono::nanoseconds timeout, const Logger& logger) {
  if (found.empty()) {
    return Fail(errors::kUnsupportedFeature, "there is no transport that connects the processes of mpirun",
                {.what = "no file of a transport, such as mge_mpi.so, is in the directories of `mge plugins`",
                 .fix = "build MGE on a machine that has libopenmpi-dev"});
  }
  MGE_ASSIGN_OR_RETURN(const mge_transport* const api, OpenTransport(found.front()));
  auto out = std::make_shared<PluginTransport>(*api, logger);
  MGE_RETURN_IF_ERROR(out->Join(ranks, timeout));
  if (out->ranks() == ranks) return out;
  const uint32_t there = out->ranks();
  out->Leave(std::chrono::seconds(1));
  return Fail(errors::kRankFailed, fmt::format("{} processes have joined, not {}", there, ranks),
              {.what = "the launcher's MPI is another one than that of the transport",
               .fix = fmt::format("start the processes with the mpirun of {}", out->library())});
}

}  // namespace mge
