// SPDX-License-Identifier: Apache-2.0
// The images that nvcc has written for the CUDA backend, compared with the table of kernels and with the emulation.
#include <algorithm>
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

// Calls f(image, codes) for the kernels that use matrix units, compiled for capability 8.0. The ordinary build of the backend
// may have no code for such devices.
template <typename F>
void ForMatrixUnits(F&& f) {
  for (uint32_t i = 0; i < kImages.size(); ++i) {
    const std::string name = kImages[i].name;
    if (!name.ends_with("_mma")) continue;
    std::ifstream in(MGE_BINARY_DIR "/tests/cuda/" + name + "_80.fatbin", std::ios::binary);
    ASSERT_TRUE(in.good()) << name;
    const std::string image(std::istreambuf_iterator<char>(in), {});
    const std::vector<DeviceCode> codes = CudaCodeIn(image.data());
    ASSERT_EQ(codes.size(), 1u) << name;
    f(i, codes);
  }
}

TEST(CudaImages, OfCapability80HaveTheKernelsOfBfloat16AndTf32) {
  int narrow = 0;
  ForMatrixUnits([&](uint32_t i, const std::vector<DeviceCode>& codes) {
    ExpectCodesHaveTheKernelsOfTheTable(i, codes, Has);
    for (const std::string& kernel : codes[0].kernels) narrow += !Has("sm_75", kernel);
  });
  EXPECT_GT(narrow, 20);
}

// An instruction of capability 7.0 and later has 16 bytes: the kind in bits 0 to 8, the form of its operands in bits 9 to 11,
// then the registers of the result, of a and of b with 8 bits each from bit 16 on. Kinds as nvdisasm of CUDA 13 names them.
struct Instruction {
  uint32_t kind, a, b;

  bool Multiplies() const { return kind == 0x3c || kind == 0x37; }  // HMMA, IMMA
  bool LoadsMatrices() const { return kind == 0x3b; }               // LDSM
  // MOV, and IMAD of the register that is always 0.
  bool Moves() const { return kind == 0x02 || (kind == 0x24 && a == 0xff && b == 0xff); }
};
std::vector<Instruction> InstructionsOf(const std::string& text) {
  std::vector<Instruction> out;
  for (size_t at = 0; at + 16 <= text.size(); at += 16) {
    const auto word = ReadAt<uint64_t>(text.data(), at);
    out.push_back({static_cast<uint32_t>(word & 0x1ff), static_cast<uint32_t>(word >> 24 & 0xff),
                   static_cast<uint32_t>(word >> 32 & 0xff)});
  }
  return out;
}

// Registers that only change their place keep matrix units waiting: fragments must be loaded in the order in which the units
// read them.
TEST(CudaImages, MatrixUnitsAreNotKeptWaitingByMoves) {
  int kernels = 0;
  ForMatrixUnits([&](uint32_t, const std::vector<DeviceCode>& codes) {
    for (const auto& [name, text] : codes[0].text) {
      const std::vector<Instruction> all = InstructionsOf(text);
      const auto multiplies = [](const Instruction& i) { return i.Multiplies(); };
      const auto first = std::ranges::find_if(all, multiplies);
      const auto last = std::find_if(all.rbegin(), all.rend(), multiplies).base();
      ASSERT_LT(first, last) << name << " does not use matrix units";
      if (name.starts_with("attention")) continue;  // between its two products is the softmax
      const auto moves = std::count_if(first, last, [](const Instruction& i) { return i.Moves(); });
      EXPECT_LE(10 * moves, last - first) << name << ": " << moves << " of " << last - first << " instructions are moves";
      ++kernels;
    }
  });
  EXPECT_GT(kernels, 30);
}

// A step of a tile multiplies fragments that LDSM loads by four: for 128 x 128, two times four of a and two of b, in each of the
// four combinations of layouts.
TEST(CudaImages, ProductsLoadEachFragmentOnce) {
  ForMatrixUnits([&](uint32_t i, const std::vector<DeviceCode>& codes) {
    if (std::string_view(kImages[i].name) != "matmul_mma") return;
    for (const char* type : {"f16", "bf16"}) {
      for (const auto& [size, loads] : {std::pair<const char*, int>{"128", 4 * 12}, {"64", 4 * 8}}) {
        const auto text = codes[0].text.find(std::string("matmul_mma") + size + "_" + type);
        ASSERT_NE(text, codes[0].text.end());
        EXPECT_EQ(std::ranges::count_if(InstructionsOf(text->second), &Instruction::LoadsMatrices), loads) << text->first;
      }
    }
  });
}

// A division of 64 bits is a call of more than a hundred instructions, for each element and dimension.
TEST(CudaImages, KernelsThatMoveElementsDoNotDivide) {
  int kernels = 0;
  for (const auto& image : kImages) {
    for (const DeviceCode& code : CudaCodeIn(static_cast<const char*>(image.data))) {
      for (const auto& [name, functions] : code.functions) {
        const auto is = [&](std::string_view prefix) { return name.starts_with(prefix); };
        if (!is("copy_") && !is("fill_") && !is("pad_") && !is("transpose_") && !is("gather") && !is("one_hot_") &&
            !is("trilu_") && !is("batch_norm_")) {
          continue;
        }
        ++kernels;
        for (const std::string& function : functions) {
          EXPECT_TRUE(function.find("_s64") == std::string::npos && function.find("_u64") == std::string::npos)
              << name << " for " << code.target << " calls " << function;
        }
      }
    }
  }
  EXPECT_GE(kernels, 30);
}

}  // namespace
}  // namespace mge::gpu
