// SPDX-License-Identifier: Apache-2.0
#include "tests/plugins/gpu/kernels/quantized_launches.h"

#include "mge/types.h"
#include "plugins/gpu/kernels/integer_conv.h"
#include "plugins/gpu/kernels/integer_matmul.h"
#include "plugins/gpu/kernels/quantize.h"

namespace mge::gpu {

void IntegerConvolutions(Memory& m, const Check& check) {
  IntegerConvArgs conv = {};
  conv.shape.images = conv.shape.groups = conv.shape.packed = 1;
  conv.shape.axis[0] = {1, 1, 1, 1, 1, 0, 0};
  conv.shape.axis[1] = conv.shape.axis[2] = {9, 9, 3, 1, 1, 1, 1};
  conv.w_zero_step = conv.w_scale_step = 1;
  for (const size_t channels : {5, 16}) {
    conv.shape.channels = static_cast<int64_t>(channels);
    conv.shape.outputs = 70;
    conv.x = m.Bytes(channels * 81);
    conv.w = m.Bytes(70 * channels * 9);
    conv.w_zero = m.Bytes(70);
    conv.y = m.Floats(70 * 81);
    check("product", LaunchOf("integer_conv_product", conv, 256, 4));
    check("product, channels last", LaunchOf("integer_conv_nhwc_product", conv, 256, 4));
    check("direct", LaunchOf("integer_conv_nhwc_direct", conv, 64, 4));
    conv.x_scale = m.Floats(1);
    conv.w_scale = m.Floats(70);
    conv.y_scale = m.Floats(1);
    conv.y_zero = conv.w_zero;
    conv.bias = reinterpret_cast<const int32_t*>(m.Floats(70));
    conv.y = m.Bytes(70 * 81);
    check("rescaled product", LaunchOf("qlinear_conv_product", conv, 256, 4));
    check("rescaled product, channels last", LaunchOf("qlinear_conv_nhwc_product", conv, 256, 4));
    check("rescaled", LaunchOf("qlinear_conv_direct", conv, 64, 4));
  }
  conv.shape.channels = conv.shape.outputs = conv.shape.groups = 8;
  conv.x = m.Bytes(8 * 81);
  conv.w = m.Bytes(8 * 9);
  conv.y = m.Bytes(8 * 81);
  check("depthwise", LaunchOf("qlinear_conv_nhwc_depthwise", conv, 64, 2));
}

void MatrixUnitsOfIntegerConvolutions(Memory& m, const Check& check) {
  IntegerConvArgs conv = {};
  conv.shape.images = conv.shape.groups = conv.shape.packed = 1;
  conv.shape.axis[0] = {1, 1, 1, 1, 1, 0, 0};
  conv.shape.axis[1] = conv.shape.axis[2] = {9, 9, 3, 1, 1, 1, 1};
  conv.shape.outputs = 70;
  conv.w_zero_step = 1;
  conv.w_zero = m.Bytes(70);
  conv.y = m.Floats(70 * 81);
  conv.shape.channels = 5;
  conv.x = m.Bytes(5 * 81);
  conv.w = m.Bytes(70 * 5 * 9);
  check("small tiles", LaunchOf("integer_conv_nhwc_mma64_i8", conv, 128, 4));
  conv.shape.channels = 16;
  conv.x = m.Bytes(16 * 81);
  conv.w = m.Bytes(70 * 16 * 9);
  check("large tiles", LaunchOf("integer_conv_nhwc_mma128_i8", conv, 256, 1));
}

// Operands of a product with parameters of each row and column.
IntegerMatMulArgs IntegerProduct(Memory& m, bool quantizes) {
  IntegerMatMulArgs args = {};
  args.a = m.Bytes(70 * 133);
  args.b = m.Bytes(133 * 67);
  args.a_zero = m.Bytes(70);
  args.b_zero = m.Bytes(67);
  args.m = 70;
  args.n = 67;
  args.k = 133;
  args.batch = 1;
  args.a_zero_of.line = args.b_zero_of.line = args.a_scale_of.line = args.b_scale_of.line = 1;
  args.scale_type = MGE_DTYPE_F32;
  if (!quantizes) {
    args.y = m.Floats(70 * 67);
    return args;
  }
  args.a_scale = m.Floats(70);
  args.b_scale = m.Floats(67);
  args.y_scale = m.Floats(1);
  args.y_zero = args.b_zero;
  args.y = m.Bytes(70 * 67);
  return args;
}

void IntegerProducts(Memory& m, const Check& check) {
  IntegerMatMulArgs args = IntegerProduct(m, false);
  check("of rows and columns", LaunchOf("integer_matmul", args, 256, 3));
  args.packed = 1;
  check("of rows and packed columns", LaunchOf("integer_matmul_packed", args, 256, 3));
  args = IntegerProduct(m, true);
  args.packed = 1;
  check("with rescaled sums", LaunchOf("qlinear_matmul_packed", args, 256, 3));
  args.bias = m.Floats(67);
  args.bias_step = 1;
  args.y = m.Floats(70 * 67);
  check("with scaled sums", LaunchOf("scaled_matmul_packed", args, 256, 3));
}

void MatrixUnitsOfIntegers(Memory& m, const Check& check) {
  IntegerMatMulArgs args = IntegerProduct(m, false);
  args.packed = 1;
  check("small tiles", LaunchOf("integer_matmul_mma64_i8", args, 128, 3));
  args = IntegerProduct(m, true);
  args.packed = 1;
  check("large tiles, with rescaled sums", LaunchOf("qlinear_matmul_mma128_i8", args, 256, 1));
}

void Quantizations(Memory& m, const Check& check) {
  QuantizeArgs args = {};
  args.x = m.Floats(301);
  args.scale = m.Floats(1);
  args.y = m.Bytes(301);
  args.n = 301;
  args.dim = args.inner = 1;
  args.type = args.scale_type = args.division = MGE_DTYPE_F32;
  check("with one scale", LaunchOf("quantize_to_u8", args, 64, 2));
  args.scale = m.Floats(43);
  args.zero = m.Bytes(43);
  args.dim = 43;
  args.inner = 7;
  check("with scales of an axis", LaunchOf("quantize_to_i8", args, 64, 2));
  args.x = m.Bytes(301);
  args.y = m.Floats(301);
  args.type = MGE_DTYPE_I8;
  args.scale = m.Floats(5 * 7);
  args.zero = nullptr;
  args.block = 10;
  check("with scales of blocks", LaunchOf("dequantize_to_f32", args, 64, 2));
  const DynamicQuantizeArgs dynamic = {m.Floats(301), m.Floats(4), m.Bytes(301), m.Floats(1), nullptr, 301, 2};
  check("ranges", LaunchOf("quantize_ranges", dynamic, 128, 2));
  check("in a range", LaunchOf("quantize_in_range", dynamic, 128, 2));
}

}  // namespace mge::gpu
