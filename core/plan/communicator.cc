// SPDX-License-Identifier: Apache-2.0
#include "core/plan/communicator.h"

#include "core/base/errors.h"
#include "core/plugin/ask.h"
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

}  // namespace

absl::StatusOr<CollectiveId> NewCollectiveId(Device& device) {
  MGE_RETURN_IF_ERROR(OpenForCollectives(device));
  CollectiveId id = {};
  MGE_RETURN_IF_ERROR(AskDevice(device, "creating the id of a group of ranks", [&](mge_error* e) {
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

absl::StatusOr<std::shared_ptr<Communicator>> Communicator::Join(Device& device, const CollectiveGroup& group) {
  MGE_RETURN_IF_ERROR(OpenForCollectives(device));
  std::shared_ptr<Communicator> out(new Communicator(device));
  const std::string what = fmt::format("joining the group as rank {} of {}", group.rank, group.ranks);
  MGE_RETURN_IF_ERROR(AskDevice(device, what, [&](mge_error* e) {
    return out->api().create(device.handle(), group.id.data(), group.rank, group.ranks,
                             static_cast<uint64_t>(group.timeout.count()), &out->handle_, e);
  }));
  if (out->handle_) return out;
  return Fail(errors::kKernelFailed, fmt::format("device {}: {} failed", device.name(), what),
              {.what = "create returned MGE_OK, but no communicator"});
}

Communicator::~Communicator() {
  if (handle_ && !device_.Orphaned()) api().destroy(handle_);
}

void Communicator::Abort() noexcept {
  if (!aborted_.exchange(true)) api().abort(handle_);
}

absl::StatusOr<std::shared_ptr<Communicator>> Communicators::On(Device& device) {
  std::lock_guard lock(mutex_);
  if (!communicator_) {
    MGE_ASSIGN_OR_RETURN(communicator_, Communicator::Join(device, group_));
  }
  MGE_CHECK(&communicator_->device() == &device);
  return communicator_;
}

}  // namespace mge
