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

absl::Status Described(BackendUnderTest& tested, const mge_layout& layout, DType dtype, const Shape& shape) {
  const mge_layout_api* api = tested.plugin().layout;
  if (!api) return Broken("a candidate names an opaque layout, and the backend has no table 'layout'");
  const std::string name = LayoutText(layout) + ShapeText(shape);
  auto info = Sized<mge_layout_info>();
  auto type = static_cast<mge_dtype>(dtype);
  auto rank = static_cast<int32_t>(shape.size());
  MGE_RETURN_IF_ERROR(Call("describing " + name, api->describe, tested.device(), &layout, type, rank, shape.data(), &info));
  if (info.bytes != layout.opaque_bytes) {
    return Broken("{} has {} bytes in its description, but {} in the candidate", name, info.bytes, layout.opaque_bytes);
  }
  if (CopyText(info.name).empty()) return Broken("{} is described without a name", name);
  mge_layout other = layout;
  other.opaque_id = ~layout.opaque_id;
  return MustFail(MGE_OK, fmt::format("the opaque layout {}, which no candidate names,", other.opaque_id), api->describe,
                  tested.device(), &other, type, rank, shape.data(), &info);
}

absl::StatusOr<Bytes> ToLayout(Bench& bench, const Tensor& plain, const mge_layout& layout) {
  if (layout.kind == MGE_LAYOUT_OPAQUE) {
    return Reorder(bench, BytesOf(plain), plain.dtype(), plain.shape(), PlainLayout(), layout);
  }
  MGE_ASSIGN_OR_RETURN(int64_t bytes, LayoutBytes(layout, ElementBytes(plain.dtype()), plain.shape()));
  Bytes out(static_cast<size_t>(bytes), 0);
  CopyToLayout(plain, layout, std::as_writable_bytes(std::span(out)));
  return out;
}

absl::StatusOr<Tensor> FromLayout(Bench& bench, const Bytes& laid, DType dtype, const Shape& shape,
                                  const mge_layout& layout) {
  if (layout.kind == MGE_LAYOUT_OPAQUE) {
    MGE_ASSIGN_OR_RETURN(Bytes plain, Reorder(bench, laid, dtype, shape, layout, PlainLayout()));
    return TensorOf(dtype, shape, plain.data());
  }
  MGE_ASSIGN_OR_RETURN(Tensor t, Tensor::Create(dtype, shape));
  CopyFromLayout(std::as_bytes(std::span(laid)), layout, t);
  return t;
}

absl::StatusOr<Bytes> Reorder(Bench& bench, const Bytes& from_bytes, DType dtype, const Shape& shape, const mge_layout& from,
                              const mge_layout& to, bool checked) {
  ReorderProblem problem({dtype, true, shape, {}}, from, to, 1);
  MGE_ASSIGN_OR_RETURN(Offers offers, Enumerate(bench.tested, *problem.problem()));
  if (offers.offered.empty()) {
    return Broken("no reorder of {}{} from {} to {} is offered{}", DTypeName(dtype), ShapeText(shape), LayoutText(from),
                  LayoutText(to), offers.refused.empty() ? "" : ": " + offers.refused.front());
  }
  Candidate candidate = offers.offered.front();
  int64_t element = ElementBytes(dtype);
  MGE_ASSIGN_OR_RETURN(int64_t in_bytes, LayoutBytes(from, element, shape));
  MGE_ASSIGN_OR_RETURN(int64_t out_bytes, LayoutBytes(to, element, shape));
  candidate.inputs = {from};
  candidate.outputs = {to};
  MGE_ASSIGN_OR_RETURN(Bench * aside, bench.Aside());
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<KernelRun> kernel_run,
                       KernelRun::Create(*aside, *problem.problem(), candidate, {{DType::kU8, {in_bytes}, {}}},
                                         {{DType::kU8, {out_bytes}, {}}}, {.raw = true}));
  const Tensor input = TensorOf(DType::kU8, {in_bytes}, from_bytes.data());
  MGE_ASSIGN_OR_RETURN(RunResult result, kernel_run->Run(0, {input}, 1, 0xff));
  MGE_RETURN_IF_ERROR(result.Sound(candidate.id));
  Bytes laid = BytesOf(result.outputs[0]);
  if (!checked) return laid;
  // An opaque layout may contain bytes that are no elements and that a reorder does not write. Compares only the elements.
  auto elements = [&](const Bytes& bytes) -> absl::StatusOr<Bytes> {
    if (to.kind != MGE_LAYOUT_OPAQUE) return bytes;
    return Reorder(*aside, bytes, dtype, shape, to, PlainLayout());
  };
  MGE_ASSIGN_OR_RETURN(Bytes want, elements(laid));
  const std::vector<Tensor> inputs[] = {{RandomTensor(DType::kU8, {in_bytes}, 0, 255, 1)}, {input}};
  absl::Status order = CheckQueueOrder(*kernel_run, inputs, [&](const RunResult& r) {
    absl::StatusOr<Bytes> got = elements(BytesOf(r.outputs[0]));
    return got.ok() ? Difference(*got, want) : std::string(got.status().message());
  });
  if (!order.ok() && !IsNotOffered(order)) return Broken("{}: {}", candidate.id, Std(order.message()));
  return laid;
}

}  // namespace mge::conform
