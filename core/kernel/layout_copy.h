// SPDX-License-Identifier: Apache-2.0
// Copies of tensors between the plain layout and other layouts, on the host.
#pragma once

#include <span>

#include "core/base/tensor.h"
#include "mge/plugin.h"

namespace mge {

// Copies a plain tensor to `laid`, which must have LayoutBytes() bytes. Sets the padding of blocks to zero. `layout` must be
// PLAIN or PERMUTED.
void CopyToLayout(const Tensor& plain, const mge_layout& layout, std::span<std::byte> laid);
// Copies `laid` back to a plain tensor. The same conditions apply.
void CopyFromLayout(std::span<const std::byte> laid, const mge_layout& layout, Tensor& plain);

}  // namespace mge
