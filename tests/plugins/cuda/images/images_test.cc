// SPDX-License-Identifier: Apache-2.0
// The images that nvcc has written for the CUDA backend, compared with the table of kernels and with the emulation.
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/plugins/gpu/vendor/image_kernels.h"

namespace mge::gpu {
namespace {

// The rule of support/matrix_units.h: those for bfloat16, and for float32 rounded to TF32, need capability 8.0; those for
// float16 and for bytes do not.
bool Has(std::string_view target, std::string_view kernel) {
  const bool needs_80 =
      kernel.find("_mma") != std::string_view::npos && !kernel.ends_with("_f16") && !kernel.ends_with("_i8");
  return !needs_80 || std::atoi(target.data() + target.find('_') + 1) >= 80;
}

TEST(CudaImages, HaveEveryKernelThatRowsMayLaunchAndNoneWithoutAnEmulatedTwin) {
  ExpectImagesHaveTheKernelsOfTheTable(CudaCodeIn, Has);
}

// The ordinary build of the backend may have no code for such devices.
TEST(CudaImages, OfCapability80HaveTheKernelsOfBfloat16AndTf32) {
  int narrow = 0;
  for (uint32_t i = 0; i < kImages.size(); ++i) {
    const std::string name = kImages[i].name;
    if (!name.ends_with("_mma")) continue;
    std::ifstream in(MGE_BINARY_DIR "/tests/cuda/" + name + "_80.fatbin", std::ios::binary);
    ASSERT_TRUE(in.good()) << name;
    const std::string image(std::istreambuf_iterator<char>(in), {});
    const std::vector<DeviceCode> codes = CudaCodeIn(image.data());
    ExpectCodesHaveTheKernelsOfTheTable(i, codes, Has);
    for (const std::string& kernel : codes[0].kernels) narrow += !Has("sm_75", kernel);
  }
  EXPECT_GT(narrow, 20);
}

}  // namespace
}  // namespace mge::gpu
