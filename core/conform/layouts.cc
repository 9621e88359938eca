// SPDX-License-Identifier: Apache-2.0
// Layouts: conversion of tensors on the host, and checks of the backend's own layouts and reorders.

#include "core/conform/kernel_checks.h"
#include "core/conform/kernel_run.h"
#include "core/kernel/layout_copy.h"
#include "core/plugin/abi_call.h"
#include "fmt/format.h"

namespace mge::conform {
Bytes BytesOf(const Tensor& t) {
  auto* data = static_cast<const unsigned char*>(t.data());
  return Bytes(data, data + t.bytes());
}

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
  Bench& aside = bench.Aside();
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

}  // namespace mge::conform
