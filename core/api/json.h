// SPDX-License-Identifier: Apache-2.0
// What the reports share: documents, and the types of a model in them.
#pragma once

#include <string>
#include <vector>

#include "core/onnx/reader.h"
#include "nlohmann/json.hpp"

namespace mge::api {

using Json = nlohmann::ordered_json;

// Names come from files: bytes that are not UTF-8 are replaced.
inline std::string Dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace); }

Json TypesJson(const std::vector<onnx::NamedType>& types);  // name, kind, dtype, shape
Json OpsetsJson(const onnx::ModelInfo& info);

}  // namespace mge::api
