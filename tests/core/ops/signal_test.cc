// SPDX-License-Identifier: Apache-2.0
// DFT, STFT, HannWindow, HammingWindow, BlackmanWindow, MelWeightMatrix, and the Fourier transform that they use.
#include <cmath>
#include <numbers>

#include "core/ops/families/fft.h"
#include "tests/core/ops/both_ways.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

TEST(Fft, AgreesWithTheDefinitionForAnyLength) {
  for (int64_t n : {1, 2, 3, 4, 5, 7, 8, 12, 17, 64, 100, 127, 360}) {
    std::vector<Complex> data(n), want(n);
    for (int64_t i = 0; i < n; ++i)
      data[i] = {std::sin(1.0 + 3.0 * static_cast<double>(i * i)), std::cos(0.7 * static_cast<double>(i))};
    for (int64_t k = 0; k < n; ++k) {
      for (int64_t i = 0; i < n; ++i) {
        want[k] +=
            data[i] * std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(k * i % n) / static_cast<double>(n));
      }
    }
    auto fft = Fft::Create(n, UnlimitedHostAllocator());
    ASSERT_TRUE(fft.ok());
    std::vector<Complex> got = data;
    fft->Transform(got, false);
    for (int64_t k = 0; k < n; ++k) ASSERT_LT(std::abs(got[k] - want[k]), 1e-10 * static_cast<double>(n)) << n;
    fft->Transform(got, true);
    for (int64_t k = 0; k < n; ++k) ASSERT_LT(std::abs(got[k] - data[k]), 1e-12 * static_cast<double>(n)) << n;
  }
}

TEST(Dft, TransformsAlongAnAxis) {
  EXPECT_EQ(Both("DFT", {"float32[1,4,1]<1, 0, 0, 0>"}), "float32[1,4,2]<1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0>");
  EXPECT_EQ(Both("DFT", {"float32[2,1,1]<1, 2>", "_", "int64[]<0>"}), "float32[2,1,2]<3.0, 0.0, -1.0, 0.0>");
  EXPECT_EQ(Both("DFT@17", {"float32[2,1,1]<1, 2>"}, "{axis=0}"), "float32[2,1,2]<3.0, 0.0, -1.0, 0.0>");
  EXPECT_EQ(Both("DFT", {"float32[1,4,1]<1, 2, 3, 4>", "int64[]<2>"}), "float32[1,2,2]<3.0, 0.0, -1.0, 0.0>");
}

TEST(Dft, HasOneSidedForms) {
  EXPECT_EQ(Both("DFT", {"float32[1,4,1]<1, 0, 0, 0>"}, "{onesided=1}"), "float32[1,3,2]<1.0, 0.0, 1.0, 0.0, 1.0, 0.0>");
  EXPECT_EQ(Both("DFT", {"float32[1,3,2]<1, 0, 1, 0, 1, 0>"}, "{onesided=1, inverse=1}"),
            "float32[1,4,1]<1.0, 0.0, 0.0, 0.0>");
  EXPECT_THAT(Both("DFT", {"float32[1,4,2]<1>"}, "{onesided=1}"), HasSubstr("requires real input"));
  EXPECT_THAT(Both("DFT", {"float32[1,4,1]<1>"}, "{onesided=1, inverse=1}"), HasSubstr("requires complex input"));
}

TEST(Dft, RefusesInputsThatItCannotTransform) {
  EXPECT_THAT(Both("DFT", {"float32[4,3]<1>"}), HasSubstr("the last dimension is 3"));
  EXPECT_THAT(Both("DFT", {"float32[1,4,1]<1>", "int64[]<0>"}), HasSubstr("dft_length = 0"));
  EXPECT_THAT(Both("DFT", {"float32[1,4,1]<1>", "int64[2]<1>"}), HasSubstr("it must be one integer"));
  EXPECT_THAT(Both("DFT", {"float32[1,4,1]<1>", "_", "int64[]<-1>"}), HasSubstr("real and imaginary parts"));
  EXPECT_THAT(Both("DFT", {"float32[1,4,1]<1>", "_", "int64[]<3>"}), HasSubstr("axis 3 is outside"));
  EXPECT_EQ(Both("DFT", {"float32[0,2,1]<>"}), "float32[0,2,2]<>");
}

TEST(Stft, TransformsFrames) {
  EXPECT_EQ(Both("STFT", {"float32[1,4,1]<1, 2, 3, 4>", "int64[]<2>", "_", "int64[]<2>"}),
            "float32[1,2,2,2]<3.0, 0.0, -1.0, 0.0, 7.0, 0.0, -1.0, 0.0>");
  EXPECT_EQ(Both("STFT", {"float32[1,3,1]<1, 2, 3>", "int32[]<1>", "float32[2]<1, 2>"}, "{onesided=0}"),
            "float32[1,2,2,2]<5.0, 0.0, -3.0, 0.0, 8.0, 0.0, -4.0, 0.0>");
}

TEST(Stft, RefusesInputsThatDoNotFit) {
  const char* x = "float32[1,4,1]<1>";
  EXPECT_THAT(Both("STFT", {x, "int64[]<0>", "_", "int64[]<2>"}), HasSubstr("frame_step = 0"));
  EXPECT_THAT(Both("STFT", {x, "int64[]<1>", "_", "int64[]<5>"}), HasSubstr("frame_length = 5 is outside of 1..4"));
  EXPECT_THAT(Both("STFT", {x, "int64[]<1>", "float32[3]<1>", "int64[]<2>"}), HasSubstr("the window has shape [3]"));
  EXPECT_THAT(Both("STFT", {"float32[1,4,2]<1>", "int64[]<1>", "_", "int64[]<2>"}), HasSubstr("requires a real signal"));
}

TEST(WindowFunctions, ArePeriodicOrSymmetric) {
  EXPECT_EQ(Both("HannWindow", {"int64[]<2>"}), "float32[2]<0.0, 1.0>");
  EXPECT_EQ(Both("HannWindow", {"int32[]<3>"}, "{periodic=0, output_datatype=11}"), "float64[3]<0.0, 1.0, 0.0>");
  EXPECT_EQ(Both("HammingWindow", {"int32[]<1>"}, "{periodic=0}"), "float32[1]<1.0>");
  EXPECT_EQ(Both("HannWindow", {"int64[]<2>"}, "{output_datatype=2}"), "uint8[2]<0, 1>");
  EXPECT_EQ(Both("HannWindow", {"int64[]<0>"}), "float32[0]<>");
  EXPECT_THAT(Both("HannWindow", {"int64[]<-1>"}), HasSubstr("the size -1 is negative"));
  EXPECT_THAT(Both("HannWindow", {"int64[2]<1>"}), HasSubstr("it must be one integer"));
  EXPECT_THAT(Both("HannWindow", {"int64[]<1>"}, "{output_datatype=8}"), HasSubstr("is not an element type that"));
}

TEST(MelWeightMatrix, HasTriangularFilters) {
  EXPECT_THAT(Both("MelWeightMatrix", {"int64[]<2>", "int64[]<4>", "int64[]<8>", "float32[]<0>", "float32[]<4>"}),
              HasSubstr("float32[3,2]"));
  EXPECT_THAT(Both("MelWeightMatrix", {"int64[]<0>", "int64[]<4>", "int64[]<8>", "float32[]<0>", "float32[]<4>"}),
              HasSubstr("num_mel_bins = 0"));
  EXPECT_THAT(Both("MelWeightMatrix", {"int64[]<2>", "int64[]<4>", "int64[]<8>", "float32[]<0>", "float32[]<4000>"}),
              HasSubstr("is not valid"));
  EXPECT_THAT(Both("MelWeightMatrix", {"int64[]<2>", "int64[]<4>", "int64[]<8>", "float32[]<-9000>", "float32[]<4>"}),
              HasSubstr("is not valid"));
}

}  // namespace
}  // namespace mge
