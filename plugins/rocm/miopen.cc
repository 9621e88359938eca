// SPDX-License-Identifier: Apache-2.0
#include "miopen.h"

#include <algorithm>
#include <string>

#include "plugins/gpu/runtime/memory.h"
#include "plugins/gpu/runtime/vendor_library.h"
#include "plugins/gpu/support/layout.h"
#include "vendor.h"

namespace mge::rocm {
namespace {

constexpr const char* kFiles[] = {"libMIOpen.so.1"};
constexpr gpu::LibraryFacts kFacts = {.name = "MIOpen",
                                      .setting = &kMiopen,
                                      .driver_setting = &kDriver,
                                      .files = kFiles,
                                      .install = "install miopen-hip",
                                      .without = "convolutions are slower"};

constexpr size_t kMaxOffers = 8;

}  // namespace

Result Miopen::Load() {
  gpu::VendorLibrary library(kFacts);
  if (Result r = library.Open(); !r.ok()) return r;
#define MGE_MIOPEN_FIND(member, function, parameters) \
  if (Result r = library.Find(#function, &member); !r.ok()) return r;
  MGE_MIOPEN_FUNCTIONS(MGE_MIOPEN_FIND)
#undef MGE_MIOPEN_FIND
  return library.Find("miopenGetErrorString", &status_text);
}

Result Miopen::ResultOf(int status, const char* function) const {
  if (status == kMiopenSuccess) return {};
  const std::string text = std::string(function) + " failed with " + status_text(status);
  if (status == kMiopenAllocFailed) return {MGE_RESOURCE_EXHAUSTED, text};
  return {status == kMiopenNotImplemented ? MGE_UNIMPLEMENTED : MGE_INTERNAL, text};
}

MiopenConvolution::~MiopenConvolution() {
  for (void* tensor : {x_, w_, y_}) {
    if (tensor) library_.tensor_destroy(tensor);
  }
  if (convolution_) library_.convolution_destroy(convolution_);
}

Result MiopenConvolution::Describe(const MiopenShape& shape, bool deterministic) {
  if (Result r = DescribeTensor(&x_, shape, shape.x); !r.ok()) return r;
  if (Result r = DescribeTensor(&w_, shape, shape.w); !r.ok()) return r;
  if (Result r = DescribeTensor(&y_, shape, shape.y); !r.ok()) return r;
  const auto result = [&](int status, const char* function) { return library_.ResultOf(status, function); };
  if (Result r = result(library_.convolution_create(&convolution_), "miopenCreateConvolutionDescriptor"); !r.ok()) {
    convolution_ = nullptr;
    return r;
  }
  if (Result r = result(library_.convolution_set(convolution_, static_cast<int>(shape.pads.size()), shape.pads.data(),
                                                 shape.strides.data(), shape.dilations.data(), shape.mode),
                        "miopenInitConvolutionNdDescriptor");
      !r.ok()) {
    return r;
  }
  if (Result r = result(library_.convolution_groups(convolution_, shape.groups), "miopenSetConvolutionGroupCount"); !r.ok())
    return r;
  return result(library_.convolution_attribute(convolution_, kMiopenDeterministicAttribute, deterministic),
                "miopenSetConvolutionAttribute");
}

Result MiopenConvolution::DescribeTensor(void** tensor, const MiopenShape& shape, const std::vector<int>& dims) {
  if (Result r = library_.ResultOf(library_.tensor_create(tensor), "miopenCreateTensorDescriptor"); !r.ok()) {
    *tensor = nullptr;
    return r;
  }
  const std::vector<int64_t> sizes(dims.begin(), dims.end()),
      wide = gpu::StridesIn(shape.channels_last ? gpu::Layout::kChannelsLast : gpu::Layout::kPlain, sizes);
  const std::vector<int> strides(wide.begin(), wide.end());
  return library_.ResultOf(
      library_.tensor_set(*tensor, shape.type, static_cast<int>(dims.size()), dims.data(), strides.data()),
      "miopenSetTensorDescriptor");
}

Result MiopenDevice::Open(gpu::Device& device) {
  if (tried_) return result_;
  tried_ = true;
  result_ = library_.Load();
  if (!result_.ok()) return result_;
  return result_ = gpu::CreateExternal(device, "miopenCreate", [&] {
           Result r = library_.ResultOf(library_.create(&handle_), "miopenCreate");
           if (!r.ok()) handle_ = nullptr;
           return r;
         });
}

Result MiopenDevice::Ask(const MiopenShape& shape, bool deterministic, std::vector<MiopenSolution>* solutions) {
  MiopenConvolution convolution(library_);
  if (Result r = convolution.Describe(shape, deterministic); !r.ok()) return r;
  size_t count = 0;
  if (Result r = library_.ResultOf(convolution.Call(library_.solution_count, handle_, &count),
                                   "miopenConvolutionForwardGetSolutionCount");
      !r.ok()) {
    return r;
  }
  solutions->resize(count);
  Result r = library_.ResultOf(convolution.Call(library_.solutions, handle_, count, &count, solutions->data()),
                               "miopenConvolutionForwardGetSolution");
  solutions->resize(std::min(count, solutions->size()));
  std::ranges::stable_sort(*solutions, {}, &MiopenSolution::time_ms);
  return r;
}

Result MiopenDevice::OffersOf(gpu::Device& device, const MiopenShape& shape, Offers* offers) {
  std::lock_guard lock(mutex_);
  if (Result r = Open(device); !r.ok()) return r;
  if (auto known = offers_.find(shape); known != offers_.end()) {
    *offers = known->second;
    return {};
  }
  std::vector<MiopenSolution> all, deterministic;
  Result r = device.With([&]() -> Result {
    Result asked = Ask(shape, /*deterministic=*/false, &all);
    return asked.ok() ? Ask(shape, /*deterministic=*/true, &deterministic) : asked;
  });
  if (!r.ok()) return r;
  auto found = std::make_shared<std::vector<Offer>>();
  for (const MiopenSolution& s : all) {
    const bool repeats = std::ranges::count(deterministic, s.id, &MiopenSolution::id) > 0;
    if (found->size() < kMaxOffers) found->push_back({s, repeats});
  }
  *offers = offers_[shape] = std::move(found);
  return {};
}

void MiopenDevice::Close(gpu::Device& device) {
  if (handle_) device.Always([&] { library_.destroy(handle_); });
}

}  // namespace mge::rocm
