// SPDX-License-Identifier: Apache-2.0
#include "core/generate/encoder.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/generate/layer_names.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge {
namespace {

// Returns the name of the encoder's output for an input of the decoder, or "".
std::string OutputFor(const std::string& input, const EncoderConfig& config) {
  for (const EncoderLink& link : config.links) {
    if (input == link.input) return link.output;
    const std::string layer = LayerOf(input, link.input);
    if (!layer.empty()) return WithLayer(link.output, layer);
  }
  return "";
}

// Returns a mask of ones for these ids.
absl::StatusOr<Tensor> MaskOf(const Tensor& ids, DType dtype) {
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(dtype, ids.shape()));
  switch (dtype) {
    case DType::kI64: std::ranges::fill(out.MutableData<int64_t>(), 1); return out;
    case DType::kI32: std::ranges::fill(out.MutableData<int32_t>(), 1); return out;
    case DType::kF32: std::ranges::fill(out.MutableData<float>(), 1.0f); return out;
    default: break;
  }
  return Fail(errors::kBadInput, fmt::format("the encoder's mask of type {} is not given", DTypeName(dtype)),
              {.fix = "give it beside the other inputs"});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Encoder>> Encoder::Create(std::shared_ptr<Session> session, const EncoderConfig& config,
                                                         const std::vector<std::string>& wanted) {
  std::unique_ptr<Encoder> out(new Encoder(std::move(session), config));
  for (const std::string& input : wanted) {
    if (input == config.mask_of_decoder) {
      MGE_RETURN_IF_ERROR(out->session_->InputIndex(config.attention_mask).status());
      out->outputs_.push_back(kMask);
      continue;
    }
    const absl::StatusOr<int> output = out->session_->OutputIndex(OutputFor(input, config));
    if (!output.ok()) {
      return Fail(errors::kUnsupportedFeature, fmt::format("the encoder does not compute the decoder's input '{}'", input),
                  {.what = fmt::format("it has no output '{}'", OutputFor(input, config)),
                   .fix = "name the output in model.encoder.outputs of genai_config.json"});
    }
    out->outputs_.push_back(*output);
  }
  return out;
}

absl::StatusOr<std::vector<HostValue>> Encoder::InputsFrom(std::span<const NamedTensor> given) const {
  const Graph& graph = session_->graph();
  std::vector<HostValue> out(graph.inputs().size());
  std::vector<std::string> names;
  for (const ValueId v : graph.inputs()) names.push_back(graph.value(v).name);
  const auto index = [&](const std::string& name) { return std::ranges::find(names, name) - names.begin(); };
  for (const NamedTensor& each : given) {
    const auto i = static_cast<size_t>(index(each.name));
    if (i < names.size()) {
      out[i].tensor = each.tensor;
      continue;
    }
    return Fail(errors::kBadInput, fmt::format("the encoder has no input '{}'", each.name),
                {.what = fmt::format("its inputs are {}", fmt::join(names, ", "))});
  }
  const auto mask = static_cast<size_t>(index(config_.attention_mask)), ids = static_cast<size_t>(index(config_.input_ids));
  if (mask < names.size() && ids < names.size() && !out[mask].tensor.defined() && out[ids].tensor.defined()) {
    MGE_ASSIGN_OR_RETURN(out[mask].tensor, MaskOf(out[ids].tensor, graph.value(graph.inputs()[mask]).type.dtype));
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].tensor.defined()) continue;
    return Fail(errors::kBadInput, fmt::format("the encoder's input '{}' is not given", names[i]),
                {.what = fmt::format("its inputs are {}", fmt::join(names, ", "))});
  }
  return out;
}

absl::StatusOr<std::vector<Tensor>> Encoder::Run(std::span<const NamedTensor> given, RunControl* control) const {
  MGE_ASSIGN_OR_RETURN(const std::vector<HostValue> inputs, InputsFrom(given));
  std::vector<int> places;
  for (const int output : outputs_) {
    if (output != kMask && std::ranges::find(places, output) == places.end()) places.push_back(output);
  }
  std::ranges::sort(places);
  std::vector<HostValue> outputs(places.size());
  RunState state(control);
  MGE_RETURN_IF_ERROR(
      AddWhere(session_->Submit({.inputs = inputs, .outputs = outputs, .places = places}, state).status(), "the encoder"));
  std::vector<Tensor> out;
  for (const int output : outputs_) {
    if (output == kMask) {
      MGE_ASSIGN_OR_RETURN(const int mask, session_->InputIndex(config_.attention_mask));
      out.push_back(inputs[static_cast<size_t>(mask)].tensor);
    } else {
      out.push_back(outputs[static_cast<size_t>(std::ranges::find(places, output) - places.begin())].tensor);
    }
  }
  return out;
}

}  // namespace mge
