// SPDX-License-Identifier: Apache-2.0
// The attributes of candidates as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mge/plugin.h"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// The name of an MGE_KERNEL_ bit.
struct AttributeName {
  uint64_t bit;
  std::string_view name;
};
inline constexpr AttributeName kAttributeNames[] = {{MGE_KERNEL_DETERMINISTIC, "deterministic"},
                                                    {MGE_KERNEL_BATCH_INVARIANT, "batch-invariant"},
                                                    {MGE_KERNEL_REFERENCE, "REFERENCE"},
                                                    {MGE_KERNEL_REDUCED_PRECISION, "reduced-precision"},
                                                    {MGE_KERNEL_CAPTURE_SAFE, "capture-safe"},
                                                    {MGE_KERNEL_USES_ATOMICS, "atomics"},
                                                    {MGE_KERNEL_ALLOCATES, "allocates"},
                                                    {MGE_KERNEL_TENSOR_CORE, "tensor-core"},
                                                    {MGE_KERNEL_WINOGRAD, "Winograd"},
                                                    {MGE_KERNEL_FFT, "FFT"},
                                                    {MGE_KERNEL_COMPILES, "compiles"},
                                                    {MGE_KERNEL_READS_ARGS_FIRST, "reads-args-first"},
                                                    {MGE_KERNEL_MODEL_PRECISION, "model-precision"}};

// The attributes of kernels whose results are compared with a wider tolerance.
inline constexpr uint64_t kLessPrecise = MGE_KERNEL_REDUCED_PRECISION | MGE_KERNEL_MODEL_PRECISION;

// Returns, for example, "deterministic capture-safe".
inline std::string AttributeText(uint64_t attributes) {
  std::string out;
  for (const AttributeName& a : kAttributeNames) {
    if (attributes & a.bit) out.append(out.empty() ? "" : " ").append(a.name);
  }
  return out;
}

// Returns why a candidate with these attributes violates the host's constraints; empty if it does not.
inline std::string WhyNotAllowed(uint64_t attributes, uint64_t require, uint64_t forbid) {
  if (uint64_t missing = require & ~attributes) return "required attributes are missing: " + AttributeText(missing);
  if (uint64_t unwanted = forbid & attributes) return "it has forbidden attributes: " + AttributeText(unwanted);
  return {};
}

}  // namespace MGE_HIDDEN
