// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/device_link.h"

#include "core/base/errors.h"
#include "core/plugin/abi_call.h"
#include "fmt/format.h"

namespace mge {

absl::StatusOr<bool> DirectLink(Device& from, Device& to, mge_link& link) {
  const mge_device_api& api = *from.backend().plugin().device;
  const mge_queue_api& queues = *to.queue_api();
  if (&from.backend() != &to.backend() || !api.link || !queues.copy_peer) return false;
  link.struct_size = sizeof(link);
  mge_error error;
  mge_code code = CallBackend(error, [&](mge_error* e) { return api.link(from.handle(), to.handle(), &link, e); });
  if (code != MGE_OK) return false;
  if (uint32_t unknown = link.flags & ~MGE_LINK_KNOWN_BITS) {
    return Fail(errors::kKernelFailed,
                fmt::format("backend {} sets flags of a link that this host does not know", from.backend().name()),
                {.what = fmt::format("{:#x}", unknown),
                 .where = fmt::format("from device {} to {}", from.name(), to.name()),
                 .fix = "use the version of the backend that belongs to this MGE, or only one of its devices"});
  }
  return (link.flags & MGE_LINK_PEER) != 0;
}

}  // namespace mge
