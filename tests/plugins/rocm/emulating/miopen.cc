// SPDX-License-Identifier: Apache-2.0
// A library with the interface of MIOpen that computes convolutions with emulated kernels of the driver in software. It has
// three solutions. One needs a workspace, and one does not repeat its results. A solution must be compiled before it runs.
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "plugins/gpu/kernels/conv.h"
#include "tests/plugins/gpu/vendor/emulated_kernel.h"
#include "tests/plugins/gpu/vendor/strides.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kSuccess = 0, kBadParameter = 3, kNotImplemented = 6;
constexpr int kHalf = 0, kFloat = 1, kBfloat16 = 5;
constexpr int kGemm = 0, kDirect = 1, kWinograd = 3;
constexpr int kDeterministic = 1;  // an attribute

struct Solution {
  float time_ms;
  size_t workspace_bytes;
  uint64_t id;
  int algorithm;
};
// The list is not in the order of the times.
constexpr Solution kSolutions[] = {{0.5f, 4096, 91, kGemm}, {0.2f, 0, 11, kDirect}, {0.3f, 0, 53, kWinograd}};
constexpr uint64_t kVaries = 11;  // its results may differ from run to run

struct Handle {
  void* stream = nullptr;
};
struct Tensor {
  int type = -1;
  std::vector<int> dims, strides;
};
struct Convolution {
  std::vector<int> pads, strides, dilations;
  int groups = 1;
  bool deterministic = false, transposed = false;
};

// The solutions that a process has compiled.
std::mutex mutex;
std::set<uint64_t> compiled;

const Tensor& T(const void* tensor) { return *static_cast<const Tensor*>(tensor); }
const Convolution& C(const void* convolution) { return *static_cast<const Convolution*>(convolution); }

mge::LayoutsOfTensors LayoutsOf(const void* w, const void* x, const void* y) {
  mge::LayoutsOfTensors layouts;
  for (const void* t : {w, x, y}) {
    layouts.Add({T(t).dims.begin(), T(t).dims.end()}, {T(t).strides.begin(), T(t).strides.end()});
  }
  return layouts;
}

// Returns whether the descriptors fit together.
bool IsValid(const void* w, const void* x, const void* convolution, const void* y) {
  const Convolution& c = C(convolution);
  const size_t axes = c.pads.size();
  const std::vector<int>&wide = T(c.transposed ? y : x).dims, &narrow = T(c.transposed ? x : y).dims;
  if (T(w).type != T(x).type || T(y).type != T(x).type || wide.size() != axes + 2 || T(w).dims.size() != axes + 2 ||
      narrow.size() != axes + 2 || wide[1] != T(w).dims[1] * c.groups || narrow[0] != wide[0] || narrow[1] != T(w).dims[0] ||
      !LayoutsOf(w, x, y).Agree()) {
    return false;
  }
  for (size_t d = 0; d < axes; ++d) {
    const int window = (T(w).dims[d + 2] - 1) * c.dilations[d] + 1;
    if ((wide[d + 2] + 2 * c.pads[d] - window) / c.strides[d] + 1 != narrow[d + 2]) return false;
  }
  return true;
}

bool Applies(const Solution& s, const void* w, const void* convolution) {
  if (s.id == kVaries && C(convolution).deterministic) return false;
  if (s.algorithm == kWinograd) {
    for (size_t d = 2; d < T(w).dims.size(); ++d) {
      if (T(w).dims[d] != 3) return false;
    }
  }
  return true;
}

const Solution* Find(uint64_t id) {
  for (const Solution& s : kSolutions) {
    if (s.id == id) return &s;
  }
  return nullptr;
}

}  // namespace

EXPORT const char* miopenGetErrorString(int status) {
  return status == kNotImplemented ? "miopenStatusNotImplemented" : "miopenStatusBadParm";
}
EXPORT int miopenCreate(void** handle) { return *handle = new Handle, kSuccess; }
EXPORT int miopenDestroy(void* handle) { return delete static_cast<Handle*>(handle), kSuccess; }
EXPORT int miopenSetStream(void* handle, void* stream) { return static_cast<Handle*>(handle)->stream = stream, kSuccess; }

EXPORT int miopenCreateTensorDescriptor(void** tensor) { return *tensor = new Tensor, kSuccess; }
EXPORT int miopenDestroyTensorDescriptor(void* tensor) { return delete static_cast<Tensor*>(tensor), kSuccess; }
EXPORT int miopenSetTensorDescriptor(void* tensor, int type, int rank, const int* dims, const int* strides) {
  *static_cast<Tensor*>(tensor) = {type, {dims, dims + rank}, {strides, strides + rank}};
  return kSuccess;
}

EXPORT int miopenCreateConvolutionDescriptor(void** convolution) { return *convolution = new Convolution, kSuccess; }
EXPORT int miopenDestroyConvolutionDescriptor(void* convolution) {
  return delete static_cast<Convolution*>(convolution), kSuccess;
}
EXPORT int miopenInitConvolutionNdDescriptor(void* convolution, int axes, const int* pads, const int* strides,
                                             const int* dilations, int mode) {
  if (mode < 0 || mode > 1 || axes < 2 || axes > 3) return kNotImplemented;
  *static_cast<Convolution*>(convolution) = {
      {pads, pads + axes}, {strides, strides + axes}, {dilations, dilations + axes}, 1, false, mode == 1};
  return kSuccess;
}
EXPORT int miopenSetConvolutionGroupCount(void* convolution, int groups) {
  return static_cast<Convolution*>(convolution)->groups = groups, kSuccess;
}
EXPORT int miopenSetConvolutionAttribute(void* convolution, int attribute, int value) {
  if (attribute != kDeterministic) return kBadParameter;
  return static_cast<Convolution*>(convolution)->deterministic = value != 0, kSuccess;
}

EXPORT int miopenConvolutionForwardGetSolutionCount(void*, void* w, void* x, void* convolution, void* y, size_t* count) {
  if (!IsValid(w, x, convolution, y)) return kBadParameter;
  *count = std::size(kSolutions);  // the most that there can be
  return kSuccess;
}
EXPORT int miopenConvolutionForwardGetSolution(void*, void* w, void* x, void* convolution, void* y, size_t most,
                                               size_t* count, Solution* solutions) {
  if (!IsValid(w, x, convolution, y)) return kBadParameter;
  *count = 0;
  for (const Solution& s : kSolutions) {
    if (*count < most && Applies(s, w, convolution)) solutions[(*count)++] = s;
  }
  return kSuccess;
}
EXPORT int miopenConvolutionForwardCompileSolution(void*, void* w, void* x, void* convolution, void* y, uint64_t id) {
  const Solution* s = Find(id);
  if (!s || !IsValid(w, x, convolution, y) || !Applies(*s, w, convolution)) return kBadParameter;
  std::lock_guard lock(mutex);
  compiled.insert(id);
  return kSuccess;
}
EXPORT int miopenConvolutionForwardImmediate(void* handle, void* w, const void* w_data, void* x, const void* x_data,
                                             void* convolution, void* y, void* y_data, void* workspace,
                                             size_t workspace_bytes, uint64_t id) {
  const Solution* s = Find(id);
  if (!s || !IsValid(w, x, convolution, y) || !Applies(*s, w, convolution)) return kBadParameter;
  if (workspace_bytes < s->workspace_bytes || (s->workspace_bytes && !workspace)) return kBadParameter;
  {
    std::lock_guard lock(mutex);
    if (!compiled.contains(id)) return kBadParameter;
  }
  const Convolution& c = C(convolution);
  mge::gpu::ConvArgs args = {};
  args.x = x_data;
  args.w = w_data;
  args.y = y_data;
  args.images = T(x).dims[0];
  args.channels = T(x).dims[1];
  args.outputs = T(y).dims[1];
  args.groups = c.groups;
  args.activation = {mge::gpu::kNoActivation, 0, 0};
  const size_t axes = c.pads.size();
  args.axis[0] = {1, 1, 1, 1, 1, 0, 0};
  for (size_t d = 0; d < axes; ++d) {
    args.axis[3 - axes + d] = {T(x).dims[d + 2], T(y).dims[d + 2], T(w).dims[d + 2], c.strides[d],
                               c.dilations[d],   c.pads[d],        c.pads[d]};
  }
  const int type = T(x).type;
  const char* suffix = type == kFloat ? "_f32" : type == kHalf ? "_f16" : type == kBfloat16 ? "_bf16" : nullptr;
  if (!suffix) return kNotImplemented;
  // With one channel per group, the order of the filter is the same in both layouts, and tiles would be nearly empty.
  const bool last = LayoutsOf(w, x, y).ChannelsLast();
  if (last && c.transposed) return kNotImplemented;
  args.packed = last && args.channels != args.groups;
  const char* form = c.transposed  ? "conv_transposed"
                     : args.packed ? "conv_nhwc_product"
                     : last        ? "conv_nhwc_direct"
                                   : "conv_direct";
  const std::string kernel = form + std::string(suffix);
  static const mge::EmulatedKernels kernels(MGE_BINARY_DIR "/lib/mge/test/libamdhip64.so.5", /*is_hip=*/true);
  return kernels.Launch(kernel.c_str(), args, static_cast<Handle*>(handle)->stream) ? kSuccess : kNotImplemented;
}
