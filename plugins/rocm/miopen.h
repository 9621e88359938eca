// SPDX-License-Identifier: Apache-2.0
// MIOpen, AMD's library of convolutions: opened when the first convolution of a model is planned. Debian has no headers of it,
// so its functions are declared here, with the numbers of miopen.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "plugins/gpu/runtime/device.h"

namespace mge::rocm {

enum MiopenType : int { kMiopenHalf = 0, kMiopenFloat = 1, kMiopenBfloat16 = 5 };
enum MiopenStatus : int { kMiopenSuccess = 0, kMiopenAllocFailed = 4, kMiopenNotImplemented = 6 };
enum MiopenAlgorithm : int { kMiopenGemm = 0, kMiopenDirect = 1, kMiopenFft = 2, kMiopenWinograd = 3 };
enum MiopenMode : int { kMiopenCrossCorrelation = 0, kMiopenTransposed = 1 };
inline constexpr int kMiopenDeterministicAttribute = 1;  // of a convolution

// A way to compute a convolution.
struct MiopenSolution {
  float time_ms;  // estimated, or measured by an earlier search of the library
  size_t workspace_bytes;
  uint64_t id;
  int algorithm;
};

// F(member, function, parameters)
#define MGE_MIOPEN_FUNCTIONS(F)                                                                                          \
  F(create, miopenCreate, (void** handle))                                                                               \
  F(destroy, miopenDestroy, (void* handle))                                                                              \
  F(set_stream, miopenSetStream, (void* handle, void* stream))                                                           \
  F(tensor_create, miopenCreateTensorDescriptor, (void** tensor))                                                        \
  F(tensor_set, miopenSetTensorDescriptor, (void* tensor, int type, int rank, const int* dims, const int* strides))      \
  F(tensor_destroy, miopenDestroyTensorDescriptor, (void* tensor))                                                       \
  F(convolution_create, miopenCreateConvolutionDescriptor, (void** convolution))                                         \
  F(convolution_set, miopenInitConvolutionNdDescriptor,                                                                  \
    (void* convolution, int axes, const int* pads, const int* strides, const int* dilations, int mode))                  \
  F(convolution_groups, miopenSetConvolutionGroupCount, (void* convolution, int groups))                                 \
  F(convolution_attribute, miopenSetConvolutionAttribute, (void* convolution, int attribute, int value))                 \
  F(convolution_destroy, miopenDestroyConvolutionDescriptor, (void* convolution))                                        \
  F(solution_count, miopenConvolutionForwardGetSolutionCount,                                                            \
    (void* handle, void* w, void* x, void* convolution, void* y, size_t* count))                                         \
  F(solutions, miopenConvolutionForwardGetSolution,                                                                      \
    (void* handle, void* w, void* x, void* convolution, void* y, size_t most, size_t* count, MiopenSolution* solutions)) \
  F(compile, miopenConvolutionForwardCompileSolution,                                                                    \
    (void* handle, void* w, void* x, void* convolution, void* y, uint64_t solution))                                     \
  F(run, miopenConvolutionForwardImmediate,                                                                              \
    (void* handle, void* w, const void* w_data, void* x, const void* x_data, void* convolution, void* y, void* y_data,   \
     void* workspace, size_t workspace_bytes, uint64_t solution))

// The functions of the opened library.
struct Miopen {
#define MGE_MIOPEN_MEMBER(member, function, parameters) int(*member) parameters = nullptr;
  MGE_MIOPEN_FUNCTIONS(MGE_MIOPEN_MEMBER)
#undef MGE_MIOPEN_MEMBER
  const char* (*status_text)(int status) = nullptr;

  // Opens the library of the setting rocm.miopen, or else that of the system. Fails with MGE_UNAVAILABLE and what to do.
  Result Load();
  // Returns an error with the library's text of the status, unless it is kMiopenSuccess.
  Result ResultOf(int status, const char* function) const;
};

// A convolution in the library's terms, or a transposed one: y is then its gradient by the input. The tensors are dense,
// (images, channels, axes), or (images, axes, channels).
struct MiopenShape {
  int type = kMiopenFloat;
  int mode = kMiopenCrossCorrelation;
  int groups = 1;
  std::vector<int> x, w, y;                   // sizes
  std::vector<int> pads, strides, dilations;  // of each axis; the pads of both ends are equal
  bool channels_last = false;
  auto operator<=>(const MiopenShape&) const = default;
};

// The library's descriptors of a convolution.
class MiopenConvolution {
 public:
  // `library` must outlive the object.
  explicit MiopenConvolution(const Miopen& library) : library_(library) {}
  ~MiopenConvolution();
  MiopenConvolution(const MiopenConvolution&) = delete;
  MiopenConvolution& operator=(const MiopenConvolution&) = delete;
  // Creates the descriptors, once. `deterministic`: only for solutions whose results are equal in each run.
  Result Describe(const MiopenShape& shape, bool deterministic);

  // Calls a function of the library with the handle, the descriptors w, x, convolution and y, and further arguments.
  template <typename F, typename... Arguments>
  int Call(F function, void* handle, Arguments... arguments) const {
    return function(handle, w_, x_, convolution_, y_, arguments...);
  }
  int Run(void* handle, const void* x, const void* w, void* y, void* workspace, size_t bytes, uint64_t solution) const {
    return library_.run(handle, w_, w, x_, x, convolution_, y_, y, workspace, bytes, solution);
  }

 private:
  Result DescribeTensor(void** tensor, const MiopenShape& shape, const std::vector<int>& dims);

  const Miopen& library_;
  void *x_ = nullptr, *w_ = nullptr, *y_ = nullptr, *convolution_ = nullptr;
};

// The library's state of one device, created at its first use. Thread-safe.
class MiopenDevice {
 public:
  // A solution, and whether its results are equal in each run.
  struct Offer {
    MiopenSolution solution;
    bool deterministic;
  };
  using Offers = std::shared_ptr<const std::vector<Offer>>;

  // Sets `*offers` to the best solutions, best first. Asks the library once for each shape. Fails like Miopen::Load().
  Result OffersOf(gpu::Device& device, const MiopenShape& shape, Offers* offers);
  // Calls f(library, handle), which returns a Result. A handle has one stream, so one thread at a time calls the library.
  template <typename F>
  Result Use(void* stream, F&& f) {
    std::lock_guard lock(mutex_);
    Result r = library_.ResultOf(library_.set_stream(handle_, stream), "miopenSetStream");
    return r.ok() ? f(library_, handle_) : r;
  }
  // Returns the library. It must have been opened by OffersOf().
  const Miopen& library() const { return library_; }
  // Destroys the handle, if there is one.
  void Close(gpu::Device& device);

 private:
  Result Open(gpu::Device& device);
  Result Ask(const MiopenShape& shape, bool deterministic, std::vector<MiopenSolution>* solutions);

  std::mutex mutex_;
  bool tried_ = false;
  Result result_;
  Miopen library_;
  void* handle_ = nullptr;
  std::map<MiopenShape, Offers> offers_;
};

}  // namespace mge::rocm
