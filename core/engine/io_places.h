// SPDX-License-Identifier: Apache-2.0
// The places of the tensors that a caller gives to a run: plain host memory, page-locked memory, or the memory of a device.
#pragma once

#include <span>

#include "absl/container/inlined_vector.h"
#include "core/base/status.h"
#include "core/base/tensor.h"
#include "core/plan/plan_cache.h"
#include "core/plan/program.h"

namespace mge {

// Returns the type of input number `i` with its place. Memory that only the host uses, as on a CPU, is plain host memory.
// Fails with kBadInput if the input lies on a device that the context does not have, or is a sequence with tensors on a
// device.
absl::StatusOr<InputType> TypeWithPlace(const Graph& graph, const PlanContext& context, size_t i, const HostValue& input);

// The places of a run's outputs. Few of them need no allocation.
using OutputPlaceList = absl::InlinedVector<IoPlace, 8>;

// Returns the places of the outputs: those of the tensors that the caller provides, `created` for the others. Returns an
// empty list if all are plain host memory. Fails like TypeWithPlace().
absl::StatusOr<OutputPlaceList> OutputPlaces(const Graph& graph, const PlanContext& context,
                                             std::span<const HostValue> outputs, const IoPlace& created);

// Returns the place of outputs that a run creates on a device: the memory of the context's first device with queues. Returns
// plain host memory if there is none.
IoPlace DevicePlace(const PlanContext& context);

}  // namespace mge
