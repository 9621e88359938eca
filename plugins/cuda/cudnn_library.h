// SPDX-License-Identifier: Apache-2.0
// cuDNN, NVIDIA's library of convolutions: opened when the first convolution of a model is planned.
#pragma once

#include <cudnn_graph.h>

#include "mge/plugin.hpp"

namespace mge::cuda {

// F(member, function)
#define MGE_CUDNN_FUNCTIONS(F)                         \
  F(version, cudnnGetVersion)                          \
  F(error_text, cudnnGetErrorString)                   \
  F(last_error, cudnnGetLastErrorString)               \
  F(create, cudnnCreate)                               \
  F(destroy, cudnnDestroy)                             \
  F(set_stream, cudnnSetStream)                        \
  F(create_descriptor, cudnnBackendCreateDescriptor)   \
  F(destroy_descriptor, cudnnBackendDestroyDescriptor) \
  F(finalize, cudnnBackendFinalize)                    \
  F(set_attribute, cudnnBackendSetAttribute)           \
  F(get_attribute, cudnnBackendGetAttribute)           \
  F(execute, cudnnBackendExecute)

// The functions of the opened library.
struct Cudnn {
#define MGE_CUDNN_MEMBER(member, function) decltype(&::function) member = nullptr;
  MGE_CUDNN_FUNCTIONS(MGE_CUDNN_MEMBER)
#undef MGE_CUDNN_MEMBER

  // Opens the library with this path, or else that of the setting cuda.cudnn, or else that of the system. Fails with
  // MGE_UNAVAILABLE and what to do if there is none, or one of another version.
  Result Load(const char* path = nullptr);
  // Returns an error with the library's text of the status, unless it is CUDNN_STATUS_SUCCESS.
  Result ResultOf(cudnnStatus_t status, const char* function) const;
};

}  // namespace mge::cuda
