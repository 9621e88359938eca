// SPDX-License-Identifier: Apache-2.0
// Layouts: conversion of tensors on the host, checks of the backend's own layouts and reorders, and packed constants: the
// backend writes only the packed form, and the same one on the host and on a queue.
#include <algorithm>

#include "core/conform/kernel_checks.h"
#include "core/conform/kernel_run.h"
#include "core/kernel/layout_copy.h"
#include "core/plugin/abi_call.h"
#include "fmt/format.h"

namespace mge::conform {
void Described(BackendUnderTest& tested, const mge_layout& layout, DType dtype, const Shape& shape) {
  const mge_layout_api* api = tested.plugin().layout;
  if (!api) Broken("a candidate names an opaque layout, and the backend has no table 'layout'");
  const std::string name = LayoutText(layout) + ShapeText(shape);
  auto info = Sized<mge_layout_info>();
  auto type = static_cast<mge_dtype>(dtype);
  auto rank = static_cast<int32_t>(shape.size());
  Call("describing " + name, api->describe, tested.device(), &layout, type, rank, shape.data(), &info);
  if (info.bytes != layout.opaque_bytes)
    Broken("{} has {} bytes in its description, but {} in the candidate", name, info.bytes, layout.opaque_bytes);
  if (CopyText(info.name).empty()) Broken("{} is described without a name", name);
  mge_layout other = layout;
  other.opaque_id = ~layout.opaque_id;
  MustFail(MGE_OK, fmt::format("the opaque layout {}, which no candidate names,", other.opaque_id), api->describe,
           tested.device(), &other, type, rank, shape.data(), &info);
}

Bytes ToLayout(Bench& bench, const Tensor& plain, const mge_layout& layout) {
  if (layout.kind == MGE_LAYOUT_OPAQUE)
    return Reorder(bench, BytesOf(plain), plain.dtype(), plain.shape(), PlainLayout(), layout);
  Bytes out(static_cast<size_t>(OrThrow(LayoutBytes(layout, ElementBytes(plain.dtype()), plain.shape()))), 0);
  CopyToLayout(plain, layout, std::as_writable_bytes(std::span(out)));
  return out;
}

Tensor FromLayout(Bench& bench, const Bytes& laid, DType dtype, const Shape& shape, const mge_layout& layout) {
  if (layout.kind == MGE_LAYOUT_OPAQUE)
    return TensorOf(dtype, shape, Reorder(bench, laid, dtype, shape, layout, PlainLayout()).data());
  Tensor t = OrThrow(Tensor::Create(dtype, shape));
  CopyFromLayout(std::as_bytes(std::span(laid)), layout, t);
  return t;
}

Bytes Reorder(Bench& bench, const Bytes& from_bytes, DType dtype, const Shape& shape, const mge_layout& from,
              const mge_layout& to, bool checked) {
  ReorderProblem problem({dtype, true, shape, {}}, from, to, 1);
  Offers offers = Enumerate(bench.tested, *problem.problem());
  if (offers.offered.empty())
    Broken("no reorder of {}{} from {} to {} is offered{}", DTypeName(dtype), ShapeText(shape), LayoutText(from),
           LayoutText(to), offers.refused.empty() ? "" : ": " + offers.refused.front());
  Candidate candidate = offers.offered.front();
  candidate.inputs = {from};
  candidate.outputs = {to};
  const int64_t in_bytes = OrThrow(LayoutBytes(from, ElementBytes(dtype), shape));
  const int64_t out_bytes = OrThrow(LayoutBytes(to, ElementBytes(dtype), shape));
  if (!bench.aside) bench.aside = std::make_unique<Bench>(bench.tested);
  Bench& aside = *bench.aside;
  KernelRun kernel_run(aside, *problem.problem(), candidate, in_bytes, out_bytes);
  const Tensor input = TensorOf(DType::kU8, {in_bytes}, from_bytes.data());
  const Bytes laid = BytesOf(kernel_run.Run(0, {input}, 1, 0xff)[0]);
  if (!checked || !aside.transfers[0].has_queue()) return laid;
  // An opaque layout may contain bytes that are no elements and that a reorder does not write. Compares only the elements.
  auto elements = [&](const Bytes& bytes) {
    return to.kind == MGE_LAYOUT_OPAQUE ? Reorder(aside, bytes, dtype, shape, to, PlainLayout()) : bytes;
  };
  const Bytes want = elements(laid);
  const std::vector<Tensor> inputs[] = {{RandomTensor(DType::kU8, {in_bytes}, 0, 255, 1)}, {input}};
  CheckQueueOrder(kernel_run, inputs,
                  [&](const std::vector<Tensor>& outputs) { return Difference(elements(BytesOf(outputs[0])), want); });
  return laid;
}

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
    BrokenAs(kPrepack, "prepack wrote outside of the {} bytes that it asked for input {}", bytes, input);
  if (!name.empty() && bench_.forms.try_emplace(key, form).first->second != form)
    BrokenAs(kPrepack, "two kernels name the form of equal constants '{}', but pack them to different bytes",
             EscapeControl(name));
  return form;
}

void KernelRun::PackOnQueue(uint32_t input, const Bytes& source, const Bytes& form) {
  const mge_kernel_api& api = *bench_.tested.plugin().kernel;
  Transfer& transfer = bench_.transfers[0];
  if (!api.prepack_on || !transfer.has_queue()) return;
  constexpr size_t kZone = 256;  // a multiple of the alignment
  const size_t at = (source.size() + 2 * kZone - 1) / kZone * kZone;
  Bytes image(at + form.size() + kZone, kCanary);
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
  if (now != image)
    BrokenAs(kPrepack,
             "prepack_on of input {} writes other bytes than prepack, or outside of the {} bytes of the "
             "packed form: {}",
             input, form.size(), Difference(now, image));
}

}  // namespace mge::conform
