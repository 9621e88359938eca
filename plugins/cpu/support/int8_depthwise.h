// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of 8-bit integers, channels last: each channel has a filter of its own.
#pragma once

#include "support/int8_product.h"

namespace mge::cpu {

// Returns whether the kernel computes the convolution.
bool IsInt8Depthwise(const Int8Product& product);
// Creates the kernel. `serial_us` (nullable) receives an estimate of the time with one thread.
KernelPtr MakeInt8Depthwise(const Problem& p, const Int8Product& product, Isa isa, /*nullable*/ double* serial_us = nullptr);

}  // namespace mge::cpu
