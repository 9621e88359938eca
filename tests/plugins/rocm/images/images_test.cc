// SPDX-License-Identifier: Apache-2.0
// The images that hipcc has written for the ROCm backend, compared with the table of kernels and with the emulation.
#include "tests/plugins/gpu/vendor/image_kernels.h"

namespace mge::gpu {
namespace {

// AMD's matrix units are not used.
bool Has(std::string_view, std::string_view kernel) { return kernel.find("_mma") == std::string_view::npos; }

TEST(RocmImages, HaveEveryKernelThatRowsMayLaunchAndNoneWithoutAnEmulatedTwin) {
  ExpectImagesHaveTheKernelsOfTheTable(HipCodeIn, Has);
}

}  // namespace
}  // namespace mge::gpu
