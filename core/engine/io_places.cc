// SPDX-License-Identifier: Apache-2.0
#include "core/engine/io_places.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/plugin/device_tensor.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge {
namespace {

// Returns the place of a tensor. `what` and `name` are for the error: "input", "x".
absl::StatusOr<IoPlace> PlaceOf(const PlanContext& context, const Tensor& tensor, std::string_view what,
                                const std::string& name) {
  const DeviceMemory* memory = DeviceMemory::Of(tensor);
  if (!memory || !memory->device().queue_api()) return IoPlace();
  Device& device = memory->device();
  if (std::count(context.devices.begin(), context.devices.end(), &device)) return IoPlace{&device, memory->pinned()};
  if (memory->pinned()) {
    // The queues of all devices of one backend can access it. For other devices it is ordinary host memory.
    for (Device* known : context.devices) {
      if (HasQueues(*known) && &known->backend() == &device.backend()) return IoPlace{known, true};
    }
    return IoPlace();
  }
  std::vector<std::string> names;
  for (const Device* known : context.devices) names.push_back(known->name());
  if (std::count(names.begin(), names.end(), device.name())) {
    return Fail(errors::kBadInput,
                fmt::format("{} '{}' lies on another device {} than that of the session", what, name, device.name()),
                {.what = "it belongs to another runtime, or to the device before it was lost",
                 .fix = "create the tensor again, with the runtime of the session"});
  }
  return Fail(errors::kBadInput,
              fmt::format("{} '{}' lies on device {}, which the session does not use", what, name, device.name()),
              {.what = fmt::format("the session uses {}", fmt::join(names, ", ")),
               .fix = "copy the tensor to one of these devices or to host memory, or load the model on both devices"});
}

}  // namespace

absl::StatusOr<InputType> TypeWithPlace(const Graph& graph, const PlanContext& context, size_t i, const HostValue& input) {
  InputType type = TypeOfValue(input);
  auto name = [&]() -> const std::string& { return graph.value(graph.inputs()[i]).name; };
  if (DeviceMemory::Of(input.tensor)) [[unlikely]] {
    MGE_ASSIGN_OR_RETURN(type.place, PlaceOf(context, input.tensor, "input", name()));
  }
  for (const Tensor& part : input.sequence) {
    if (DeviceMemory::OnHost(part)) continue;
    return Fail(
        errors::kBadInput,
        fmt::format("input '{}' is a sequence with a tensor on device {}", name(), DeviceMemory::Of(part)->device().name()),
        {.fix = "copy the tensors of the sequence to host memory"});
  }
  return type;
}

absl::StatusOr<OutputPlaceList> OutputPlaces(const Graph& graph, const PlanContext& context,
                                             std::span<const HostValue> outputs, const IoPlace& created) {
  OutputPlaceList places;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& tensor = outputs[i].tensor;
    IoPlace place = created;
    if (tensor.defined()) {
      MGE_ASSIGN_OR_RETURN(place, PlaceOf(context, tensor, "output", graph.value(graph.outputs()[i]).name));
    }
    if (!place.device) continue;
    places.resize(outputs.size());
    places[i] = place;
  }
  return places;
}

IoPlace DevicePlace(const PlanContext& context) {
  for (Device* device : context.devices) {
    if (HasQueues(*device)) return {device, false};
  }
  return {};
}

}  // namespace mge
