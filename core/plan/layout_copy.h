// SPDX-License-Identifier: Apache-2.0
// A plain tensor's bytes in another layout and back, on the host.
#pragma once

#include <span>

#include "core/base/tensor.h"
#include "mge/plugin.h"

namespace mge {

// PLAIN and PERMUTED layouts only; the padding of blocks becomes zero. `laid` has LayoutBytes() bytes.
void CopyToLayout(const Tensor& plain, const mge_layout& layout, std::span<std::byte> laid);
void CopyFromLayout(std::span<const std::byte> laid, const mge_layout& layout, Tensor& plain);

}  // namespace mge
