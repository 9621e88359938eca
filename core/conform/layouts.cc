// SPDX-License-Identifier: Apache-2.0
// Layouts of tensors on the host, independent of the backend's own reorders.
#include <cstring>

#include "core/conform/trial.h"
#include "core/plan/candidate.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

// Moves every element between the plain and the permuted form.
void Relayout(unsigned char* plain, unsigned char* laid, const Shape& dims, int64_t element, const mge_layout& l,
              bool to_plain) {
  Shape blocks(dims.begin(), dims.end()), index(dims.size(), 0);
  for (int b = 0; b < l.block_count; ++b) {
    blocks[l.block_axis[b]] = (dims[l.block_axis[b]] + l.block_size[b] - 1) / l.block_size[b];
  }
  int64_t n = Elements(dims);
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i, position = 0;
    for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) index[d] = rest % dims[d];
    for (int k = 0; k < l.rank; ++k) {
      int64_t at = index[l.perm[k]];
      for (int b = 0; b < l.block_count; ++b) {
        if (l.block_axis[b] == l.perm[k]) at /= l.block_size[b];
      }
      position = position * blocks[l.perm[k]] + at;
    }
    for (int b = 0; b < l.block_count; ++b) position = position * l.block_size[b] + index[l.block_axis[b]] % l.block_size[b];
    unsigned char *a = plain + i * element, *b = laid + position * element;
    to_plain ? std::memcpy(a, b, static_cast<size_t>(element)) : std::memcpy(b, a, static_cast<size_t>(element));
  }
}

bool IsPlainOrAny(const mge_layout& l) { return l.kind == MGE_LAYOUT_PLAIN || l.kind == MGE_LAYOUT_ANY; }

Bytes BytesOf(const Tensor& t) {
  auto* data = static_cast<const unsigned char*>(t.data());
  return Bytes(data, data + t.bytes());
}

absl::StatusOr<Tensor> TensorOf(const Bytes& bytes, DType dtype, const Shape& shape) {
  MGE_ASSIGN_OR_RETURN(Tensor t, Tensor::Create(dtype, shape));
  if (t.bytes()) std::memcpy(t.mutable_data(), bytes.data(), static_cast<size_t>(t.bytes()));
  return t;
}

}  // namespace

absl::StatusOr<Bytes> ToLayout(Bench& bench, const Tensor& plain, const mge_layout& layout) {
  if (IsPlainOrAny(layout)) return BytesOf(plain);
  if (layout.kind == MGE_LAYOUT_OPAQUE)
    return Reorder(bench, BytesOf(plain), plain.dtype(), plain.shape(), PlainLayout(), layout);
  MGE_ASSIGN_OR_RETURN(int64_t bytes, LayoutBytes(layout, ElementBytes(plain.dtype()), plain.shape()));
  Bytes out(static_cast<size_t>(bytes), 0);
  Relayout(static_cast<unsigned char*>(const_cast<void*>(plain.data())), out.data(), plain.shape(),
           ElementBytes(plain.dtype()), layout, false);
  return out;
}

absl::StatusOr<Tensor> FromLayout(Bench& bench, const Bytes& laid, DType dtype, const Shape& shape,
                                  const mge_layout& layout) {
  if (IsPlainOrAny(layout)) return TensorOf(laid, dtype, shape);
  if (layout.kind == MGE_LAYOUT_OPAQUE) {
    MGE_ASSIGN_OR_RETURN(Bytes plain, Reorder(bench, laid, dtype, shape, layout, PlainLayout()));
    return TensorOf(plain, dtype, shape);
  }
  MGE_ASSIGN_OR_RETURN(Tensor t, Tensor::Create(dtype, shape));
  Relayout(static_cast<unsigned char*>(t.mutable_data()), const_cast<unsigned char*>(laid.data()), shape,
           ElementBytes(dtype), layout, true);
  return t;
}

absl::StatusOr<Bytes> Reorder(Bench& bench, const Bytes& from_bytes, DType dtype, const Shape& shape, const mge_layout& from,
                              const mge_layout& to) {
  ReorderProblem problem({dtype, true, shape, {}}, from, to, 1);
  MGE_ASSIGN_OR_RETURN(Offers offers, Enumerate(bench.subject, *problem.problem()));
  if (offers.offered.empty()) {
    return Broken(fmt::format("no reorder of {}{} from {} to {} is offered{}", DTypeName(dtype), ShapeText(shape),
                              LayoutText(from), LayoutText(to),
                              offers.refused.empty() ? "" : ": " + offers.refused.front()));
  }
  Candidate candidate = offers.offered.front();
  int64_t element = ElementBytes(dtype);
  MGE_ASSIGN_OR_RETURN(int64_t in_bytes, LayoutBytes(from, element, shape));
  MGE_ASSIGN_OR_RETURN(int64_t out_bytes, LayoutBytes(to, element, shape));
  candidate.inputs = {from};
  candidate.outputs = {to};
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Trial> trial,
                       Trial::Create(bench, *problem.problem(), candidate, {{DType::kU8, {in_bytes}, {}}},
                                     {{DType::kU8, {out_bytes}, {}}}, {.raw = true}));
  MGE_ASSIGN_OR_RETURN(Tensor input, TensorOf(from_bytes, DType::kU8, {in_bytes}));
  MGE_ASSIGN_OR_RETURN(RunResult result, trial->Run(0, {input}, 1, 0xff));
  if (result.code != MGE_OK) return Broken(fmt::format("{} failed: {}", candidate.id, result.text));
  for (const std::string& fault : {result.outside, result.changed_input, result.beyond_workspace}) {
    if (!fault.empty()) return Broken(fmt::format("{}: {}", candidate.id, fault));
  }
  return BytesOf(result.outputs[0]);
}

}  // namespace mge::conform
