// SPDX-License-Identifier: Apache-2.0
// The images that nvcc has written for the CUDA backend, compared with the table of kernels and with the emulation.
#include <cstdlib>

#include "tests/plugins/gpu/vendor/image_kernels.h"

namespace mge::gpu {
namespace {

// The rule of support/matrix_units.h: those for bfloat16, and for float32 rounded to TF32, need capability 8.0.
bool Has(std::string_view target, std::string_view kernel) {
  const bool needs_80 = kernel.find("_mma") != std::string_view::npos && !kernel.ends_with("_f16");
  return !needs_80 || std::atoi(target.data() + target.find('_') + 1) >= 80;
}

TEST(CudaImages, HaveEveryKernelThatRowsMayLaunchAndNoneWithoutAnEmulatedTwin) {
  ExpectImagesHaveTheKernelsOfTheTable(CudaCodeIn, Has);
}

}  // namespace
}  // namespace mge::gpu
