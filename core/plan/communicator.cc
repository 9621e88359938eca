// SPDX-License-Identifier: Apache-2.0
#include "core/plan/communicator.h"

#include <atomic>

#include "core/base/dtype.h"
#include "core/base/element_range.h"
#include "core/base/errors.h"
#include "core/plan/collective_step.h"
#include "core/plan/plan.h"
#include "core/plugin/ask.h"
#include "core/plugin/host_services.h"
#include "fmt/format.h"

namespace mge {
namespace {

absl::Status OpenForCollectives(Device& device) {
  if (!device.backend().plugin().collective) {
    return Fail(errors::kUnsupportedFeature, fmt::format("device {} has no collective operations", device.name()),
                {.what = fmt::format("backend {} has no table 'collective'", device.backend().name()),
                 .fix = "name a device whose backend has them, or run with one rank (collective.ranks = 1)"});
  }
  return device.Open();
}

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// A communicator of a backend.
class BackendCommunicator final : public Communicator {
 public:
  // Joins the group.
  static absl::StatusOr<std::shared_ptr<Communicator>> Join(Device& device, const CollectiveGroup& group) {
    MGE_RETURN_IF_ERROR(OpenForCollectives(device));
    auto out = std::make_shared<BackendCommunicator>(device, group.rank, group.ranks);
    const std::string what = fmt::format("joining the group as rank {} of {}", group.rank, group.ranks);
    MGE_RETURN_IF_ERROR(QueryDevice(device, what, [&](mge_error* e) {
      return out->api().create(device.handle(), group.id.data(), group.rank, group.ranks,
                               static_cast<uint64_t>(group.timeout.count()), &out->handle_, e);
    }));
    if (out->handle_) return out;
    return Fail(errors::kKernelFailed, fmt::format("device {}: {} failed", device.name(), what),
                {.what = "create returned MGE_OK, but no communicator"});
  }

  using Communicator::Communicator;
  // Leaves the group. All operations must have ended.
  ~BackendCommunicator() override {
    if (handle_ && !device().Orphaned()) api().destroy(handle_);
  }
  void Abort() noexcept override {
    if (!aborted_.exchange(true)) api().abort(handle_);
  }

  mge_code Run(const CollectiveStepArgs& step, const mge_run* run) override {
    if (aborted_.load(std::memory_order_relaxed)) {
      return CodeForBackend(Fail(errors::kDeviceUnusable, "the session has left its group of ranks",
                                 {.what = "an earlier run with collective operators was stopped or has failed",
                                  .fix = "create the sessions of all ranks again, with a new id (collective.id)"}),
                            run->error);
    }
    if (step.kind != CollectiveKind::kAllReduce && step.kind != CollectiveKind::kBroadcast &&
        step.kind != CollectiveKind::kAllGather) {
      return CodeForBackend(Fail(errors::kUnsupportedFeature,
                                 "operators Exchange, StartSum and EndSum are only for sessions that train on replicas"),
                            run->error);
    }
    mge_code code = api().group_begin(run->error);
    if (code != MGE_OK) return code;
    for (uint32_t i = 0; i < step.operands && code == MGE_OK; ++i) code = Enqueue(step, step.list()[i], run);
    const mge_code ended = api().group_end(code == MGE_OK ? run->error : nullptr);
    return code == MGE_OK ? ended : code;
  }

 private:
  const mge_collective_api& api() const { return *device().backend().plugin().collective; }
  mge_code Enqueue(const CollectiveStepArgs& step, const CollectiveOperand& o, const mge_run* run) const {
    void *from = Address(run, o.from), *to = Address(run, o.to);
    if (step.kind == CollectiveKind::kAllReduce)
      return api().all_reduce(handle_, run->queue, from, to, o.count, o.dtype, step.reduction, run->error);
    if (step.kind == CollectiveKind::kAllGather) return EnqueueGather(o, from, static_cast<char*>(to), run);
    return api().broadcast(handle_, run->queue, from, to, o.count, o.dtype, step.root, run->error);
  }

  // Each rank sends its part to all others.
  mge_code EnqueueGather(const CollectiveOperand& o, void* own, char* to, const mge_run* run) const {
    const int64_t size = ElementBytes(static_cast<DType>(o.dtype));
    for (uint32_t r = 0; r < ranks(); ++r) {
      const ElementRange part = PartOfElements(static_cast<int64_t>(o.whole), r, ranks());
      if (part.count == 0) continue;
      char* const place = to + part.begin * size;
      const mge_code code = api().broadcast(handle_, run->queue, r == rank() ? own : place, place,
                                            static_cast<uint64_t>(part.count), o.dtype, r, run->error);
      if (code != MGE_OK) return code;
    }
    return MGE_OK;
  }

  mge_communicator* handle_ = nullptr;
  std::atomic<bool> aborted_{false};
};

}  // namespace

absl::StatusOr<CollectiveId> NewCollectiveId(Device& device) {
  MGE_RETURN_IF_ERROR(OpenForCollectives(device));
  CollectiveId id = {};
  MGE_RETURN_IF_ERROR(QueryDevice(device, "creating the id of a group of ranks", [&](mge_error* e) {
    return device.backend().plugin().collective->unique_id(id.data(), e);
  }));
  return id;
}

std::string CollectiveIdText(const CollectiveId& id) {
  std::string text;
  for (uint8_t byte : id) text += fmt::format("{:02x}", byte);
  return text;
}

absl::StatusOr<CollectiveId> ParseCollectiveId(std::string_view text) {
  CollectiveId id = {};
  bool good = text.size() == 2 * id.size();
  for (size_t i = 0; good && i < id.size(); ++i) {
    const int high = DigitOf(text[2 * i]), low = DigitOf(text[2 * i + 1]);
    good = high >= 0 && low >= 0;
    id[i] = static_cast<uint8_t>(16 * high + low);
  }
  if (good) return id;
  return Fail(errors::kBadSetting, "the setting collective.id is not the id of a group of ranks",
              {.what = fmt::format("it has {} characters; expected {} digits of 0-9 and a-f", text.size(), 2 * id.size()),
               .fix = "create an id in one process with mge_collective_id(), and set it in all of them"});
}

absl::StatusOr<std::shared_ptr<Communicator>> BackendCommunicators::On(Device& device) {
  std::lock_guard lock(mutex_);
  if (!communicator_) {
    MGE_ASSIGN_OR_RETURN(communicator_, BackendCommunicator::Join(device, group_));
  }
  MGE_CHECK(&communicator_->device() == &device);
  return communicator_;
}

}  // namespace mge
