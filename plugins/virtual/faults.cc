// SPDX-License-Identifier: Apache-2.0
// Faults requested by the conformance kit. Faults requested by the user come from the setting virtual.fault.
#include "mge/faults.h"

#include <string>

#include "backend.h"

namespace mge::virtual_gpu {
namespace {

mge_code FailNext(mge_queue* queue, mge_code code, mge_text text, mge_error* error) noexcept {
  return WithoutExceptions(error, [&]() -> Result {
    QueueOf<Queue>(queue).stream().FailNext(code, std::string(View(text)));
    return {};
  });
}

mge_code MarkLost(mge_device* device, mge_error* error) noexcept {
  return WithoutExceptions(error, [&]() -> Result {
    DeviceOf<Device>(device).gpu().MarkLost("it was asked for");
    return {};
  });
}

constexpr uint32_t kFaultsVersion = 1;  // version of mge/faults.h
constexpr mge_faults_api kFaults = Table<mge_faults_api>([](auto& t) {
  t.fail_next = FailNext;
  t.lose = MarkLost;
});

}  // namespace

const void* FaultsExtension(std::string_view name, uint32_t min_version) {
  return name == MGE_FAULTS_EXTENSION && min_version <= kFaultsVersion ? &kFaults : nullptr;
}

}  // namespace mge::virtual_gpu
