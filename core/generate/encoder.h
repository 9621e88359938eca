// SPDX-License-Identifier: Apache-2.0
// The encoder of a language model: computes what the decoder reads of a source, such as a text to translate or the features of speech.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/engine/session.h"
#include "core/generate/config.h"

namespace mge {

// A tensor for an input.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// Used by one thread at a time.
class Encoder {
 public:
  // `wanted` are the inputs of the decoder that the encoder computes. Fails with kUnsupportedFeature if it has no output for one of them.
  static absl::StatusOr<std::unique_ptr<Encoder>> Create(std::shared_ptr<Session> session, const EncoderConfig& config,
                                                         const std::vector<std::string>& wanted);

  // Returns the values of the wanted inputs, in their order. A mask that is not given is 1 for each token of the input for ids. Fails with
  // kBadInput if another input is missing or a name is not known, and with errors of the run. `control` may be null.
  absl::StatusOr<std::vector<Tensor>> Run(std::span<const NamedTensor> inputs, RunControl* control) const;

 private:
  static constexpr int kMask = -1;  // in place of an output: the mask
  Encoder(std::shared_ptr<Session> session, const EncoderConfig& config) : session_(std::move(session)), config_(config) {}
  absl::StatusOr<std::vector<HostValue>> InputsFrom(std::span<const NamedTensor> inputs) const;

  const std::shared_ptr<Session> session_;
  const EncoderConfig config_;
  std::vector<int> outputs_;  // for each wanted input
};

}  // namespace mge
