// SPDX-License-Identifier: Apache-2.0
#include "core/conform/recipes.h"

namespace mge::conform {
namespace {

constexpr const char* kRecipes[] = {
    // Elementwise with more to say than a shape.
    "Acosh(T[3,7]@1:4)", "Log(T[37]@0.1:4)", "Sqrt(T[2,19]@0:9)", "Reciprocal(T[3,7]@0.5:4)",
    "Div(T[2,3,7], T[7]@1:5)", "Div(T[3,1], T[1,5]@1:5)", "Div(T[67]@-9:9, T[]@2:3)",
    "Mod(T[2,3,7], T[7]@1:5) {fmod=1}", "Mod(T[31], T[31]@1:5)",
    "Pow(T[2,3,7]@0.5:3, T[7]@0:3)", "Pow(T[35]@1:3, T[]@2:2)",
    "BitShift(T[3,5], T[5]@0:3) {direction=\"LEFT\"}", "BitShift(T[11], T[11]@0:3) {direction=\"RIGHT\"}",
    "Cast(T[3,37]@0:3) {to=1}", "Cast(T[41]) {to=7}", "Cast(T[41]@0:4) {to=10}", "Cast(T[5,3]) {to=9}", "Cast(T[19]@0:9) {to=2}",
    "CastLike(T[3,37]@0:3, float32[1])", "CastLike(T[9]@0:4, int32[1])",
    "Clip(T[3,37], T[]<-1>, T[]<1>)", "Clip(T[17], T[]<1>, T[]<3>)",
    "Where(bool[3,7], T[3,7], T[7])", "Where(bool[5,1], T[3], T[5,3])",
    "PRelu(T[2,3,7], T[7])", "PRelu(T[1,5,3,3], T[5,1,1])", "Dropout(T[3,7])", "Elu(T[3,7]) {alpha=0.5}",
    "Max(T[3,7], T[7], T[3,1])", "Max(T[37])", "Min(T[3,7], T[7], T[3,1])", "Min(T[37], T[37])",
    "Mean(T[3,7], T[7], T[3,1])", "Sum(T[3,7], T[7], T[3,1])", "Sum(T[37], T[37])",
    "Gelu(T[3,37])", "Gelu(T[41]) {approximate=\"tanh\"}", "QuickGelu(T[3,7])",
    "IsInf(T[3,7])", "Shrink(T[3,7]) {lambd=0.5, bias=0.1}",
    // Linear algebra.
    "MatMul(T[3,5], T[5,7])", "MatMul(T[1,1], T[1,1])", "MatMul(T[2,3,17], T[17,9])", "MatMul(T[2,1,5,3], T[4,3,6])",
    "MatMul(T[19], T[19,3])", "MatMul(T[33,65], T[65,31])", "MatMul(T[97,130], T[130,67])", "MatMul(T[1,257], T[257,129])",
    "Gemm(T[3,5], T[5,7])", "Gemm(T[5,3], T[7,5], T[7]) {transA=1, transB=1, alpha=0.5, beta=2.0}",
    "Gemm(T[33,17], T[17,65], T[33,1])",
    "MatMulInteger(T[3,5]@0:9, T[5,7]@0:9)",
    "QLinearMatMul(T[3,5]@0:9, float32[]<0.1>, T[]<1>, T[5,7]@0:9, float32[]<0.2>, T[]<2>, float32[]<0.5>, T[]<3>)",
    "Einsum(T[3,5], T[5,7]) {equation=\"ij,jk->ik\"}", "Einsum(T[2,3,5]) {equation=\"bij->bji\"}", "Det(T[2,3,3])",
    // Convolution and windows.
    "Conv(T[2,3,7,5], T[4,3,3,3])", "Conv(T[1,4,9,7], T[6,2,3,3], T[6]) {group=2, pads=[1,1,1,1], strides=[2,2]}",
    "Conv(T[1,5,6,6], T[5,1,3,3]) {group=5, pads=[1,1,1,1]}", "Conv(T[1,16,5,5], T[24,16,1,1], T[24])",
    "Conv(T[1,16,17,19], T[32,16,3,3], T[32]) {pads=[1,1,1,1]}", "Conv(T[2,24,9,11], T[8,24,5,5]) {pads=[2,2,2,2], strides=[2,1]}",
    "Conv(T[1,32,11,9], T[32,1,5,5], T[32]) {group=32, pads=[2,2,2,2]}",
    "Conv(T[2,3,11], T[4,3,3]) {dilations=[2]}", "Conv(T[1,2,4,5,3], T[3,2,2,2,2])",
    "ConvInteger(T[1,2,5,5]@0:9, T[3,2,3,3]@0:9)",
    "QLinearConv(T[1,2,5,5]@0:9, float32[]<0.1>, T[]<1>, T[3,2,3,3]@0:9, float32[]<0.2>, T[]<2>, float32[]<0.5>, T[]<3>)",
    "ConvTranspose(T[1,3,5,4], T[3,2,3,3])", "ConvTranspose(T[1,4,3,3], T[4,2,2,2]) {group=2, strides=[2,2]}",
    "MaxPool(T[2,3,7,5]) {kernel_shape=[3,2]}", "MaxPool(T[1,2,9,9]) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]}",
    "MaxPool(T[1,1,4,4]) {kernel_shape=[2,2]} -> 2", "MaxPool(T[1,2,13]) {kernel_shape=[4], ceil_mode=1, strides=[3]}",
    "AveragePool(T[2,3,7,5]) {kernel_shape=[3,2]}",
    "AveragePool(T[1,2,9,9]) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1], count_include_pad=1}",
    "LpPool(T[1,2,7,5]) {kernel_shape=[3,2]}", "GlobalAveragePool(T[2,5,7,3])", "GlobalMaxPool(T[2,5,7,3])",
    "GlobalLpPool(T[2,5,7,3])", "LRN(T[2,7,3,5]) {size=3}",
    "MaxUnpool(T[1,1,2,2], int64[1,1,2,2]<5,7,13,15>) {kernel_shape=[2,2], strides=[2,2]}",
    "MaxRoiPool(T[1,2,6,6], T[2,5]<0,0,0,3,3,0,1,1,5,5>) {pooled_shape=[2,2]}",
    "RoiAlign(T[1,2,6,6], T[2,4]<0,0,3,3,1,1,5,5>, int64[2]<0,0>) {output_height=2, output_width=2}",
    "Col2Im(T[1,5,5], int64[2]<5,5>, int64[2]<1,5>)", "DeformConv(T[1,1,3,3], T[1,1,2,2], T[1,8,2,2])",
    // Normalization.
    "BatchNormalization(T[2,5,3,3], T[5], T[5], T[5], T[5]@0.5:2)", "InstanceNormalization(T[2,3,5,5], T[3], T[3])",
    "GroupNormalization(T[2,4,3,3], T[4], T[4]) {num_groups=2}", "LayerNormalization(T[3,37], T[37], T[37])",
    "LayerNormalization(T[2,3,5], T[3,5]) {axis=1}", "RMSNormalization(T[3,37], T[37])",
    "LpNormalization(T[3,7])", "MeanVarianceNormalization(T[2,3,5,5])",
    "Softmax(T[3,37])", "Softmax(T[2,5,3]) {axis=1}", "Softmax(T[1,1])", "LogSoftmax(T[3,37])", "LogSoftmax(T[2,5,3]) {axis=1}",
    "Hardmax(T[3,7])", "CumSum(T[3,7], int64[]<1>)", "CumSum(T[3,7], int64[]<0>) {exclusive=1, reverse=1}",
    // Reductions.
    "ReduceSum(T[3,5,7], int64[1]<1>)", "ReduceSum(T[3,37], int64[1]<-1>) {keepdims=0}", "ReduceSum(T[2,3,5,7])",
    "ReduceSum(T[5,1,3], int64[2]<0,2>)", "ReduceMean(T[3,5,7], int64[1]<1>)", "ReduceMean(T[3,37], int64[1]<-1>) {keepdims=0}",
    "ReduceMax(T[3,5,7], int64[1]<1>)", "ReduceMax(T[2,3,5,7])", "ReduceMin(T[3,5,7], int64[1]<1>)", "ReduceMin(T[3,37], int64[1]<-1>)",
    "ReduceProd(T[3,5,3]@0.5:1.5, int64[1]<1>)", "ReduceL1(T[3,5,7], int64[1]<1>)", "ReduceL2(T[3,5,7], int64[1]<1>)",
    "ReduceLogSum(T[3,5,7]@0.5:2, int64[1]<1>)", "ReduceLogSumExp(T[3,5,7], int64[1]<1>)", "ReduceSumSquare(T[3,5,7], int64[1]<1>)",
    "ArgMax(T[3,5,7]) {axis=1}", "ArgMax(T[3,37]) {axis=-1, keepdims=0}", "ArgMin(T[3,5,7]) {axis=1}",
    "TopK(T[3,17], int64[1]<4>) -> 2", "TopK(T[5,3], int64[1]<2>) {axis=0, largest=0} -> 2",
    // Movement.
    "Transpose(T[3,5,7]) {perm=[2,0,1]}", "Transpose(T[2,3,4,5]) {perm=[0,2,3,1]}", "Transpose(T[33,17])",
    "Reshape(T[3,5,7], int64[2]<7,-1>)", "Flatten(T[2,3,5])", "Squeeze(T[3,1,5], int64[1]<1>)", "Unsqueeze(T[3,5], int64[1]<1>)",
    "Concat(T[3,5], T[3,2]) {axis=1}", "Concat(T[1,3], T[4,3], T[2,3]) {axis=0}", "Split(T[7,6]) {axis=1, num_outputs=3} -> 3",
    "Split(T[7,3], int64[2]<2,5>) -> 2", "Slice(T[7,9], int64[2]<1,2>, int64[2]<6,9>)",
    "Slice(T[7,9], int64[2]<6,8>, int64[2]<0,-99>, int64[2]<0,1>, int64[2]<-2,-3>)",
    "Gather(T[7,5], int64[3]<6,0,-2>)", "Gather(T[3,7,2], int64[2,2]<1,5,0,6>) {axis=1}",
    "GatherElements(T[3,4], int64[2,4]<0,1,2,0,2,1,0,1>)", "GatherND(T[3,4,5], int64[2,2]<0,3,2,1>)",
    "ScatterElements(T[3,4], int64[1,4]<0,2,1,0>, T[1,4])", "ScatterND(T[4,5], int64[2,1]<3,0>, T[2,5])",
    "Scatter(T[3,4], int64[1,4]<0,2,1,0>, T[1,4])",
    "Expand(T[3,1], int64[3]<2,3,5>)", "Tile(T[3,5], int64[2]<2,3>)", "Pad(T[3,5], int64[4]<1,0,2,3>, T[]<1>)",
    "Pad(T[4,5], int64[4]<1,2,2,1>) {mode=\"reflect\"}", "Pad(T[4,5], int64[4]<1,2,2,1>) {mode=\"edge\"}",
    "DepthToSpace(T[2,8,3,5]) {blocksize=2}", "DepthToSpace(T[1,8,3,3]) {blocksize=2, mode=\"CRD\"}",
    "SpaceToDepth(T[2,3,4,6]) {blocksize=2}", "Trilu(T[2,5,7])", "Trilu(T[5,5], int64[]<1>) {upper=0}",
    "ReverseSequence(T[4,3], int64[3]<1,4,2>)", "CenterCropPad(T[5,7], int64[2]<7,3>)", "EyeLike(T[4,5]) {k=1}",
    "OneHot(int64[3,2]<0,1,4,2,3,-1>, int64[]<5>, T[2])", "ConstantOfShape(int64[2]<3,5>)", "Range(T[]<1>, T[]<9>, T[]<2>)",
    "Identity(T[3,7])",
    // Images and signals.
    "Resize(T[1,2,3,4], _, float32[4]<1,1,2,2>)", "Resize(T[1,2,5,7], _, _, int64[4]<1,2,9,4>) {mode=\"linear\"}",
    "Resize(T[1,1,4,4], _, float32[4]<1,1,1.5,0.5>) {mode=\"cubic\"}", "Upsample(T[1,2,3,4], float32[4]<1,1,2,3>)",
    "GridSample(T[1,2,4,5], T[1,3,3,2])", "AffineGrid(T[1,2,3], int64[4]<1,2,3,5>)", "DFT(T[1,8,1], _, int64[]<1>)",
    "STFT(T[1,16,1], int64[]<4>, T[8])", "HannWindow(int64[]<8>)", "HammingWindow(int64[]<8>)", "BlackmanWindow(int64[]<8>)",
    "MelWeightMatrix(int64[]<4>, int64[]<16>, int64[]<8000>, float32[]<20>, float32[]<4000>)",
    // Quantization.
    "QuantizeLinear(T[3,7], T[]<0.1>)", "QuantizeLinear(T[3,5], T[5]<0.1,0.2,0.3,0.4,0.5>, uint8[5]<0,1,2,3,4>) {axis=1}",
    "DequantizeLinear(T[3,7]@0:9, float32[]<0.1>)", "DequantizeLinear(T[3,5]@0:9, float32[5]<0.1,0.2,0.3,0.4,0.5>) {axis=1}",
    "DynamicQuantizeLinear(T[3,7]) -> 3",
    // Recurrent, losses, optimizers.
    "RNN(T[3,2,4], T[1,5,4], T[1,5,5]) {hidden_size=5} -> 2", "GRU(T[3,2,4], T[1,15,4], T[1,15,5]) {hidden_size=5} -> 2",
    "LSTM(T[3,2,4], T[1,20,4], T[1,20,5]) {hidden_size=5} -> 3",
    "NegativeLogLikelihoodLoss(T[3,5], int64[3]<1,0,4>)", "SoftmaxCrossEntropyLoss(T[3,5], int64[3]<1,0,4>)",
    "Adagrad(T[]<0.1>, int64[]<1>, T[3,5], T[3,5], T[3,5]@0:1) {norm_coefficient=0.1, epsilon=0.001, decay_factor=0.1} -> 2",
    "Adam(T[]<0.1>, int64[]<1>, T[3,5], T[3,5], T[3,5], T[3,5]@0:1) {norm_coefficient=0.1} -> 3",
    "Momentum(T[]<0.1>, int64[]<1>, T[3,5], T[3,5], T[3,5]) {alpha=0.9, beta=0.5, mode=\"standard\", norm_coefficient=0.1} -> 2",
};

}  // namespace

std::span<const char* const> Recipes() { return kRecipes; }

}  // namespace mge::conform
