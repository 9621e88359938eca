// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/layout.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/base/lines.h"
#include "core/base/shape.h"
#include "core/plugin/abi_call.h"
#include "core/plugin/host_services.h"
#include "fmt/format.h"

namespace mge {

mge_layout PlainLayout() {
  mge_layout l = {};
  l.struct_size = sizeof(l);
  l.kind = MGE_LAYOUT_PLAIN;
  return l;
}

bool SameLayout(const mge_layout& a, const mge_layout& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == MGE_LAYOUT_PLAIN || a.kind == MGE_LAYOUT_ANY) return true;
  if (a.kind == MGE_LAYOUT_OPAQUE) return a.opaque_id == b.opaque_id && a.opaque_bytes == b.opaque_bytes;
  return a.rank == b.rank && a.block_count == b.block_count && std::equal(a.perm, a.perm + a.rank, b.perm) &&
         std::equal(a.block_axis, a.block_axis + a.block_count, b.block_axis) &&
         std::equal(a.block_size, a.block_size + a.block_count, b.block_size);
}

std::string LayoutText(const mge_layout& l) {
  switch (l.kind) {
    case MGE_LAYOUT_PLAIN: return "plain";
    case MGE_LAYOUT_ANY: return "any";
    case MGE_LAYOUT_OPAQUE: return fmt::format("opaque({})", l.opaque_id);
    default: break;
  }
  std::string out = "perm(";
  for (int i = 0; i < l.rank && i < 8; ++i) out += fmt::format("{}{}", i ? "," : "", l.perm[i]);
  for (int i = 0; i < l.block_count && i < 2; ++i) out += fmt::format(" {}x{}", l.block_size[i], l.block_axis[i]);
  return out + ")";
}

std::string LayoutText(Device& device, const mge_layout& layout, DType dtype, std::span<const int64_t> dims) {
  mge_layout_info info = {};
  if (layout.kind != MGE_LAYOUT_OPAQUE || !device.layout_api() || !DescribeLayout(device, layout, dtype, dims, info).ok()) {
    return LayoutText(layout);
  }
  return EscapeControl(CopyText(info.name, 64));
}

absl::Status DescribeLayout(Device& device, const mge_layout& layout, DType dtype, std::span<const int64_t> dims,
                            mge_layout_info& out) {
  out.struct_size = sizeof(out);
  mge_error error;
  mge_code code = CallBackend(error, [&](mge_error* e) {
    return device.layout_api()->describe(device.handle(), &layout, static_cast<mge_dtype>(dtype),
                                         static_cast<int32_t>(dims.size()), dims.data(), &out, e);
  });
  return StatusOfBackend(code, error, "describing it");
}

mge_layout Canonical(const mge_layout& layout, std::span<const int64_t> dims) {
  if (layout.kind != MGE_LAYOUT_PERMUTED || layout.block_count > 0) return layout;
  int32_t last = -1;
  for (int32_t i = 0; i < layout.rank; ++i) {
    int32_t axis = layout.perm[i];
    if (dims[axis] == 1) continue;
    if (axis < last) return layout;
    last = axis;
  }
  return PlainLayout();
}

absl::StatusOr<int64_t> LayoutBytes(const mge_layout& layout, int64_t element_bytes, std::span<const int64_t> dims) {
  auto misfit = [&](std::string_view why) {
    return Fail(errors::kKernelFailed, fmt::format("the layout {} does not fit a tensor of shape {}: {}", LayoutText(layout),
                                                   ShapeText(dims), why));
  };
  if (layout.kind < MGE_LAYOUT_PLAIN || layout.kind > MGE_LAYOUT_OPAQUE) {
    return misfit(fmt::format("its kind {} is unknown", layout.kind));
  }
  if (layout.kind == MGE_LAYOUT_OPAQUE) {
    if (layout.opaque_bytes <= kMaxAskedBytes) return static_cast<int64_t>(layout.opaque_bytes);
    return misfit(fmt::format("it takes {} bytes; the limit is {}", layout.opaque_bytes, kMaxAskedBytes));
  }
  Shape padded(dims.begin(), dims.end());
  if (layout.kind == MGE_LAYOUT_PERMUTED) {
    const int32_t rank = layout.rank;
    if (rank != static_cast<int32_t>(dims.size()) || rank > 8) return misfit(fmt::format("its rank is {}", rank));
    uint32_t seen = 0;
    for (int32_t i = 0; i < rank; ++i) {
      if (layout.perm[i] >= 0 && layout.perm[i] < rank) seen |= 1u << layout.perm[i];
    }
    if (seen != (1u << rank) - 1) return misfit("it does not name each dimension once");
    if (layout.block_count < 0 || layout.block_count > 2) return misfit(fmt::format("it has {} blocks", layout.block_count));
    Shape block_of(dims.size(), 1);
    for (int32_t i = 0; i < layout.block_count; ++i) {
      if (layout.block_axis[i] < 0 || layout.block_axis[i] >= rank || layout.block_size[i] < 1) {
        return misfit(fmt::format("its block {} is invalid", i));
      }
      block_of[layout.block_axis[i]] *= layout.block_size[i];
    }
    for (size_t d = 0; d < padded.size(); ++d) {
      const int64_t blocks = padded[d] / block_of[d] + (padded[d] % block_of[d] != 0);
      if (!CheckedMul(blocks, block_of[d], &padded[d])) {
        return Fail(errors::kInvalidTensor, fmt::format("size overflow: {} in {}", ShapeText(dims), LayoutText(layout)));
      }
    }
  }
  MGE_ASSIGN_OR_RETURN(int64_t elements, NumElements(padded));
  int64_t bytes;
  if (!CheckedMul(elements, element_bytes, &bytes)) {
    return Fail(errors::kInvalidTensor, fmt::format("size overflow: shape {}", ShapeText(padded)));
  }
  return bytes;
}

}  // namespace mge
