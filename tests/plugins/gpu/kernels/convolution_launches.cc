// SPDX-License-Identifier: Apache-2.0
#include "tests/plugins/gpu/kernels/convolution_launches.h"

#include "plugins/gpu/kernels/conv_gradient.h"
#include "plugins/gpu/kernels/pool_gradient.h"

namespace mge::gpu {

void Convolutions(Memory& m, const Check& check) {
  ConvArgs conv = {};
  conv.x = m.Floats(5 * 81);
  conv.w = m.Floats(70 * 5 * 9);
  conv.bias = m.Floats(70);
  conv.y = m.Floats(70 * 81);
  conv.images = 1;
  conv.groups = 1;
  conv.channels = 5;
  conv.outputs = 70;
  conv.axis[0] = {1, 1, 1, 1, 1, 0, 0};
  conv.axis[1] = conv.axis[2] = {9, 9, 3, 1, 1, 1, 1};
  check("product", LaunchOf("conv_product_f32", conv, 256, 4));
  conv.residual = conv.y;  // overwrites the residual
  check("product with a residual", LaunchOf("conv_product_f32", conv, 256, 4));

  conv.images = conv.groups = 2;
  conv.channels = conv.outputs = 4;
  conv.x = m.Floats(2 * 4 * 81);
  conv.w = m.Floats(4 * 2 * 9);
  conv.bias = m.Floats(4);
  conv.residual = conv.y = m.Floats(2 * 4 * 81);
  check("direct", LaunchOf("conv_direct_f32", conv, 64, 4));

  conv.residual = nullptr;
  conv.axis[1] = conv.axis[2] = {5, 9, 3, 2, 1, 1, 1};
  conv.x = m.Floats(2 * 4 * 25);
  conv.w = m.Floats(4 * 2 * 9);
  conv.y = m.Floats(2 * 4 * 81);
  check("transposed", LaunchOf("conv_transposed_f32", conv, 64, 4));
  check("transposed, channels last", LaunchOf("conv_nhwc_transposed_f32", conv, 64, 4));
}

void GradientsOfConvolutions(Memory& m, const Check& check) {
  ConvGradientArgs gradient = {};
  gradient.images = gradient.groups = 2;
  gradient.channels = 20;
  gradient.outputs = 4;
  gradient.axis[0] = {1, 1, 1, 1, 1, 0, 0};
  gradient.axis[1] = gradient.axis[2] = {9, 5, 3, 2, 1, 1, 1};
  gradient.splits = 3;
  gradient.x = m.Floats(2 * 20 * 81);
  gradient.y = m.Floats(2 * 4 * 25);
  gradient.w = m.Floats(3 * 4 * 10 * 9);
  check("parts of a gradient", LaunchOf("conv_weight_gradient_part_f32", gradient, 256, 4));
  check("gradient", LaunchOf("conv_weight_gradient_f32", gradient, 256, 4));
}

void DepthwiseConvolutions(Memory& m, const Check& check) {
  ConvArgs conv = {};
  conv.images = 2;
  conv.channels = conv.outputs = conv.groups = 3;
  conv.axis[0] = {1, 1, 1, 1, 1, 0, 0};
  conv.axis[1] = {8, 4, 2, 2, 1, 0, 0};
  conv.axis[2] = {9, 9, 3, 1, 1, 1, 1};
  conv.x = m.Floats(2 * 3 * 72);
  conv.w = m.Floats(3 * 6);
  conv.bias = m.Floats(3);
  conv.y = m.Floats(2 * 3 * 36);
  check("of three columns", LaunchOf("conv_depthwise_f32", conv, 64, 2));
  conv.axis[2] = {11, 9, 5, 1, 1, 1, 1};
  conv.x = m.Floats(2 * 3 * 88);
  conv.w = m.Floats(3 * 10);
  check("of five columns", LaunchOf("conv_depthwise_f32", conv, 64, 2));
}

void ConvolutionsWithChannelsLast(Memory& m, const Check& check) {
  ConvArgs conv = {};
  conv.images = 2;
  conv.groups = 1;
  conv.outputs = 70;
  conv.axis[0] = {1, 1, 1, 1, 1, 0, 0};
  conv.axis[1] = conv.axis[2] = {5, 5, 3, 1, 1, 1, 1};
  conv.bias = m.Floats(70);
  for (const int64_t channels : {8, 5}) {
    const auto c = static_cast<size_t>(channels);
    conv.channels = channels;
    conv.x = m.Floats(50 * c);
    conv.w = m.Floats(70 * 9 * c);
    conv.y = m.Floats(50 * 70);
    conv.packed = 1;
    check("product", LaunchOf("conv_nhwc_product_f32", conv, 256, 4));
    ConvArgs parts = conv;
    parts.splits = 3;
    parts.y = m.Floats(3 * 50 * 70);
    check("parts of a product", LaunchOf("conv_nhwc_product_part_f32", parts, 256, 4));
    conv.packed = 0;
    conv.residual = conv.y;  // overwrites the residual
    check("product with a residual", LaunchOf("conv_nhwc_product_f32", conv, 256, 4));
    check("direct", LaunchOf("conv_nhwc_direct_f32", conv, 64, 4));
    conv.residual = nullptr;
  }
  for (const int64_t channels : {8, 5}) {
    const auto c = static_cast<size_t>(channels);
    conv.groups = conv.channels = conv.outputs = channels;
    conv.x = m.Floats(50 * c);
    conv.w = m.Floats(9 * c);
    conv.bias = m.Floats(c);
    conv.residual = conv.y = m.Floats(50 * c);
    for (conv.packed = 0; conv.packed < 2; ++conv.packed) {
      check("depthwise", LaunchOf("conv_nhwc_depthwise_f32", conv, 64, 4));
    }
  }
}

void MatrixUnitsOfConvolutions(Memory& m, const Check& check) {
  ConvArgs conv = {};
  conv.x = m.Floats(2 * 6 * 9 * 7 / 2);
  conv.w = m.Floats(70 * 3 * 9 / 2);
  conv.y = m.Floats(2 * 70 * 5 * 4 / 2);
  conv.images = 2;
  conv.channels = 6;
  conv.outputs = 70;
  conv.groups = 2;
  conv.axis[0] = {1, 1, 1, 1, 1, 0, 0};
  conv.axis[1] = {9, 5, 3, 2, 1, 1, 1};
  conv.axis[2] = {7, 4, 3, 2, 1, 1, 1};
  check("64 x 64", LaunchOf("conv_mma64_f16", conv, 128, 4));
  check("128 x 128", LaunchOf("conv_mma128_bf16", conv, 256, 2));
}

void MatrixUnitsWithChannelsLast(Memory& m, const Check& check) {
  ConvArgs conv = {};
  conv.x = m.Floats(2 * 6 * 9 * 7 / 2);
  conv.w = m.Floats(70 * 3 * 9 / 2);
  conv.y = m.Floats(2 * 70 * 5 * 4 / 2);
  conv.images = 2;
  conv.channels = 6;
  conv.outputs = 70;
  conv.groups = 2;
  conv.axis[0] = {1, 1, 1, 1, 1, 0, 0};
  conv.axis[1] = {9, 5, 3, 2, 1, 1, 1};
  conv.axis[2] = {7, 4, 3, 2, 1, 1, 1};
  check("64 x 64", LaunchOf("conv_nhwc_mma64_f16", conv, 128, 4));
  conv.channels = 32;
  conv.x = m.Floats(2 * 32 * 9 * 7 / 2);
  conv.w = m.Floats(70 * 16 * 9 / 2);
  conv.packed = 1;
  check("128 x 128", LaunchOf("conv_nhwc_mma128_bf16", conv, 256, 2));
}

void GradientsOfPools(Memory& m, const Check& check) {
  PoolGradientArgs pool = {};
  pool.dy = m.Floats(2 * 25);
  pool.indices = m.Longs(2 * 25, [](size_t) { return int64_t{161}; });
  pool.dx = m.Floats(2 * 81);
  pool.n = 2 * 81;
  pool.axis[0] = {1, 1, 1, 1, 1, 0, 0};
  pool.axis[1] = pool.axis[2] = {9, 5, 3, 2, 1, 1, 1};
  check("gradient of a pool", LaunchOf("max_pool_gradient_f32", pool, 64, 2));
}

void Pools(Memory& m, const Check& check) {
  PoolArgs pool = {};
  pool.n = 3 * 9 * 9;
  pool.x = m.Floats(3 * 9 * 9);
  pool.y = m.Floats(3 * 9 * 9);
  pool.indices = m.Longs(3 * 9 * 9);
  pool.axis[0] = {1, 1, 1, 1, 1, 0, 0};
  pool.axis[1] = pool.axis[2] = {9, 9, 3, 1, 1, 1, 1};
  check("largest", LaunchOf("max_pool_f32", pool, 64, 3));
  check("average", LaunchOf("average_pool_f32", pool, 64, 3));
  for (const int64_t channels : {8, 3}) {
    const auto n = static_cast<size_t>(channels) * 81;
    pool.n = channels * 81;
    pool.channels = channels;
    pool.x = m.Floats(n);
    pool.y = m.Floats(n);
    check("largest, channels last", LaunchOf("max_pool_nhwc_f32", pool, 64, 3));
    check("average, channels last", LaunchOf("average_pool_nhwc_f32", pool, 64, 3));
  }
}

}  // namespace mge::gpu
