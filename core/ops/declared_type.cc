// SPDX-License-Identifier: Apache-2.0
#include "core/ops/declared_type.h"

#include <utility>

#include "core/base/errors.h"
#include "core/base/shape.h"
#include "core/base/status.h"
#include "fmt/format.h"

namespace mge {

absl::Status InputMismatch(const Value& declared, std::string what) {
  return Fail(errors::kBadInput, fmt::format("input '{}' does not fit the model", declared.name),
              {.what = std::move(what), .fix = "`mge inspect MODEL` lists the inputs"});
}

absl::Status RequireDeclaredType(const Value& declared, DType dtype, const Shape& shape) {
  const TensorType& type = declared.type;
  auto differs = [&](std::string how) {
    return InputMismatch(declared,
                         fmt::format("expected {}, got {}{}{}", type.ToString(), DTypeName(dtype), ShapeText(shape), how));
  };
  if (type.dtype != DType::kUndefined && type.dtype != dtype) return differs("");
  if (!type.has_rank) return absl::OkStatus();
  if (type.dims.size() != shape.size()) {
    return differs(fmt::format(": rank {} instead of {}", shape.size(), type.dims.size()));
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (type.dims[d] < 0 || type.dims[d] == shape[d]) continue;
    return differs(fmt::format(": dimension {} is {} instead of {}", d, shape[d], type.dims[d]));
  }
  return absl::OkStatus();
}

}  // namespace mge
