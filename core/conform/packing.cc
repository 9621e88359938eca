// SPDX-License-Identifier: Apache-2.0
// Packs constants by prepack and prepack_on, and checks that the backend writes only the packed form, and the same one.
#include <algorithm>
#include <functional>
#include <string_view>

#include "core/conform/kernel_run.h"
#include "core/plugin/abi_call.h"
#include "fmt/format.h"

namespace mge::conform {

absl::StatusOr<Bytes> KernelRun::Pack(uint32_t input, uint64_t bytes) {
  const mge_kernel_api& api = *bench_.tested.plugin().kernel;
  Bytes source = BytesOf(inputs_[input].constant);
  Bytes memory(bytes + 2 * kRedZone + kAlignment, kCanary);
  unsigned char* const zone = memory.data() + kRedZone;
  unsigned char* const at = zone + (kAlignment - reinterpret_cast<uintptr_t>(zone) % kAlignment) % kAlignment;
  MGE_RETURN_IF_ERROR(Call(fmt::format("packing input {}", input), api.prepack, prepared_.kernel, input, source.data(), at));
  Bytes form(at, at + bytes);
  MGE_RETURN_IF_ERROR(PackOnQueue(input, source, form));
  const std::string name = prepared_.prepack_forms ? CopyText(prepared_.prepack_forms[input]) : std::string();
  const std::string key = name + '\0' + std::string(source.begin(), source.end());
  std::fill(source.begin(), source.end(), 0x7f);  // a kernel must not read the source later
  auto kept = [](unsigned char c) { return c == kCanary; };
  if (!std::all_of(memory.data(), at, kept) || !std::all_of(at + bytes, memory.data() + memory.size(), kept)) {
    packing_fault_ = fmt::format("prepack wrote outside of the {} bytes that it asked for input {}", bytes, input);
  }
  const size_t hash = std::hash<std::string_view>()({reinterpret_cast<const char*>(form.data()), form.size()});
  if (!name.empty() && bench_.forms.try_emplace(key, hash).first->second != hash) {
    packing_fault_ = fmt::format("two kernels name the form of equal constants '{}', but pack them to different bytes",
                                 EscapeControl(name));
  }
  return form;
}

absl::Status KernelRun::PackOnQueue(uint32_t input, const Bytes& source, const Bytes& form) {
  const mge_kernel_api& api = *bench_.tested.plugin().kernel;
  Transfer& transfer = bench_.transfers[0];
  if (!api.prepack_on || !transfer.has_queue()) return absl::OkStatus();
  constexpr size_t kZone = 256;  // a multiple of the alignment
  const size_t at = (source.size() + 2 * kZone - 1) / kZone * kZone, end = at + form.size();
  Bytes image(end + kZone, kCanary);
  std::copy(source.begin(), source.end(), image.begin());
  MGE_RETURN_IF_ERROR(bench_.Reserve(image.size()));
  unsigned char* const memory = bench_.lane(0);
  MGE_RETURN_IF_ERROR(transfer.Put(memory, image));
  const std::string what = fmt::format("packing input {} on a queue", input);
  const mge_error result = Try(what, api.prepack_on, prepared_.kernel, input, transfer.queue(), memory, memory + at);
  if (result.code == MGE_UNIMPLEMENTED) return absl::OkStatus();
  MGE_RETURN_IF_ERROR(Answer(result, what));
  MGE_RETURN_IF_ERROR(transfer.Drain(transfer.queue()));
  MGE_ASSIGN_OR_RETURN(Bytes now, transfer.Get(memory, image.size()));
  std::copy(form.begin(), form.end(), image.begin() + static_cast<ptrdiff_t>(at));
  const auto byte = static_cast<size_t>(std::mismatch(now.begin(), now.end(), image.begin()).first - now.begin());
  if (byte == now.size()) return absl::OkStatus();
  if (byte < at || byte >= end) {
    packing_fault_ =
        fmt::format("prepack_on wrote outside of the {} bytes of the packed form of input {}", form.size(), input);
  } else {
    packing_fault_ = fmt::format("prepack_on packs input {} to other bytes than prepack: byte {} is {}, not {}", input,
                                 byte - at, now[byte], image[byte]);
  }
  return absl::OkStatus();
}

}  // namespace mge::conform
