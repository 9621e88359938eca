// SPDX-License-Identifier: Apache-2.0
// Estimates of products of 8-bit integers.
#pragma once

namespace mge::gpu {

// A dot product of four bytes takes somewhat longer than an operation of floats, and counts as eight operations, not two.
inline constexpr double kGainOfBytes = 3;

}  // namespace mge::gpu
