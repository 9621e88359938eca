// SPDX-License-Identifier: Apache-2.0
// Packs constants by prepack and prepack_on, and checks that the backend writes only the packed form, and the same one.
#include <algorithm>
#include <functional>
#include <string_view>

#include "core/conform/kernel_run.h"
#include "core/plugin/abi_call.h"
#include "fmt/format.h"

namespace mge::conform {

Bytes KernelRun::Pack(uint32_t input, uint64_t bytes) {
  const mge_kernel_api& api = *bench_.tested.plugin().kernel;
  Bytes source = BytesOf(inputs_[input].constant);
  Bytes memory(bytes + 2 * kRedZone + kAlignment, kCanary);
  unsigned char* const zone = memory.data() + kRedZone;
  unsigned char* const at = zone + (kAlignment - reinterpret_cast<uintptr_t>(zone) % kAlignment) % kAlignment;
  Call(fmt::format("packing input {}", input), api.prepack, prepared_.kernel, input, source.data(), at);
  Bytes form(at, at + bytes);
  PackOnQueue(input, source, form);
  const std::string name = prepared_.prepack_forms ? CopyText(prepared_.prepack_forms[input]) : std::string();
  const std::string key = name + '\0' + std::string(source.begin(), source.end());
  std::ranges::fill(source, 0x7f);  // a kernel must not read the source later
  std::fill_n(at, bytes, kCanary);
  if (std::ranges::count(memory, kCanary) != std::ssize(memory))
    BrokenAs(kPrepack, fmt::format("prepack wrote outside of the {} bytes that it asked for input {}", bytes, input));
  const size_t hash = std::hash<std::string_view>()({reinterpret_cast<const char*>(form.data()), form.size()});
  if (!name.empty() && bench_.forms.try_emplace(key, hash).first->second != hash)
    BrokenAs(kPrepack, fmt::format("two kernels name the form of equal constants '{}', but pack them to different bytes",
                                   EscapeControl(name)));
  return form;
}

void KernelRun::PackOnQueue(uint32_t input, const Bytes& source, const Bytes& form) {
  const mge_kernel_api& api = *bench_.tested.plugin().kernel;
  Transfer& transfer = bench_.transfers[0];
  if (!api.prepack_on || !transfer.has_queue()) return;
  constexpr size_t kZone = 256;  // a multiple of the alignment
  const size_t at = (source.size() + 2 * kZone - 1) / kZone * kZone, end = at + form.size();
  Bytes image(end + kZone, kCanary);
  std::ranges::copy(source, image.begin());
  bench_.Reserve(image.size());
  unsigned char* const memory = bench_.lane(0);
  transfer.Put(memory, image);
  const std::string what = fmt::format("packing input {} on a queue", input);
  const mge_error result = Try(what, api.prepack_on, prepared_.kernel, input, transfer.queue(), memory, memory + at);
  if (result.code == MGE_UNIMPLEMENTED) return;
  Answer(result, what);
  std::ranges::copy(form, image.begin() + static_cast<ptrdiff_t>(at));
  transfer.Drain(transfer.queue());
  const Bytes now = transfer.Get(memory, image.size());
  const auto byte = static_cast<size_t>(std::ranges::mismatch(now, image).in1 - now.begin());
  if (byte == now.size()) return;
  if (byte < at || byte >= end)
    BrokenAs(kPrepack,
             fmt::format("prepack_on wrote outside of the {} bytes of the packed form of input {}", form.size(), input));
  BrokenAs(kPrepack, fmt::format("prepack_on packs input {} to other bytes than prepack: byte {} is {}, not {}", input,
                                 byte - at, now[byte], image[byte]));
}

}  // namespace mge::conform
