// SPDX-License-Identifier: Apache-2.0
// Functions that all JSON reports use.
#pragma once

#include <string>
#include <vector>

#include "core/onnx/reader.h"
#include "nlohmann/json.hpp"

namespace mge::api {

using Json = nlohmann::ordered_json;

// Returns the text of a report. Names read from files may not be valid UTF-8; invalid bytes are replaced.
inline std::string Dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace); }

Json TypesJson(const std::vector<onnx::NamedType>& types);  // rows with name, kind, dtype and shape
Json OpsetsJson(const onnx::ModelInfo& info);

}  // namespace mge::api
