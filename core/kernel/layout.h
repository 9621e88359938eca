// SPDX-License-Identifier: Apache-2.0
// Layouts of tensors: comparison, size and text of mge_layout.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/base/dtype.h"
#include "core/base/status.h"
#include "core/plugin/device.h"
#include "mge/plugin.h"

namespace mge {

// Size limit, in bytes, of a packed constant, a workspace, or a tensor in an opaque layout. No model needs more; a larger
// number is a fault of the backend.
inline constexpr uint64_t kMaxAskedBytes = uint64_t{1} << 40;

mge_layout PlainLayout();
inline bool IsPlain(const mge_layout& layout) { return layout.kind == MGE_LAYOUT_PLAIN; }
bool SameLayout(const mge_layout& a, const mge_layout& b);

// Returns an equal layout such that equal orders of bytes compare equal: a permutation that moves only dimensions of size 1
// becomes plain. `dims` has the layout's rank.
mge_layout Canonical(const mge_layout& layout, std::span<const int64_t> dims);

// Returns the layout as text for messages: "plain", "perm(0,2,3,1)", "any", "opaque(3)".
std::string LayoutText(const mge_layout& layout);
// Returns the same, but an opaque layout by the name that its backend gives it.
std::string LayoutText(Device& device, const mge_layout& layout, DType dtype, std::span<const int64_t> dims);

// Asks the device's backend for the name and size of an opaque layout. The device must have the table `layout`. Fails if the
// backend fails.
absl::Status DescribeLayout(Device& device, const mge_layout& layout, DType dtype, std::span<const int64_t> dims,
                            mge_layout_info& out);

// Returns the bytes of a tensor in that layout. A blocked dimension is padded to a multiple of its block size, or of the
// product of its block sizes if two blocks divide it. Fails with kKernelFailed if the layout does not fit the rank or takes
// more than kMaxAskedBytes, and with kInvalidTensor if the size overflows.
absl::StatusOr<int64_t> LayoutBytes(const mge_layout& layout, int64_t element_bytes, std::span<const int64_t> dims);

}  // namespace mge
