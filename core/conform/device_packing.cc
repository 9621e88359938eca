// SPDX-License-Identifier: Apache-2.0
#include "core/conform/device_packing.h"

#include <algorithm>

#include "core/plugin/abi_call.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

constexpr unsigned char kCanary = 0xc9;
constexpr size_t kAlignment = 256, kRedZone = 256;

size_t Aligned(size_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

absl::StatusOr<std::string> FaultOfDevicePacking(Bench& bench, mge_kernel* kernel, uint32_t input, const Bytes& source,
                                                 const Bytes& form) {
  const mge_kernel_api& api = *bench.tested.plugin().kernel;
  if (!api.prepack_on || !bench.transfers[0].has_queue()) return std::string();
  const size_t at = Aligned(source.size()) + kRedZone, end = at + form.size();
  Bytes image(end + kRedZone, kCanary);
  std::copy(source.begin(), source.end(), image.begin());
  MGE_RETURN_IF_ERROR(bench.Reserve(image.size()));
  Transfer& transfer = bench.transfers[0];
  unsigned char* const memory = bench.lane(0);
  MGE_RETURN_IF_ERROR(transfer.ToDevice(memory, image.data(), image.size()));
  bool offered = true;
  MGE_RETURN_IF_ERROR(Call(fmt::format("packing input {} on a queue", input), [&](mge_error* e) {
    const mge_code code = api.prepack_on(kernel, input, transfer.queue(), memory, memory + at, e);
    offered = code != MGE_UNIMPLEMENTED;
    return offered ? code : MGE_OK;
  }));
  if (!offered) return std::string();
  MGE_RETURN_IF_ERROR(transfer.Drain(transfer.queue()));
  Bytes result(image.size());
  MGE_RETURN_IF_ERROR(transfer.ToHost(result.data(), memory, result.size()));
  std::copy(form.begin(), form.end(), image.begin() + static_cast<ptrdiff_t>(at));
  const auto [got, want] = std::mismatch(result.begin(), result.end(), image.begin());
  if (got == result.end()) return std::string();
  const auto byte = static_cast<size_t>(got - result.begin());
  if (byte < at || byte >= end) {
    return fmt::format("prepack_on wrote outside of the {} bytes of the packed form of input {}", form.size(), input);
  }
  return fmt::format("prepack_on packs input {} to other bytes than prepack: byte {} is {}, not {}", input, byte - at,
                     static_cast<int>(*got), static_cast<int>(*want));
}

}  // namespace mge::conform
