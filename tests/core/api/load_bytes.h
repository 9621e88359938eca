// SPDX-License-Identifier: Apache-2.0
// Loads a model from memory through the C API.
#pragma once

#include <string_view>

#include "mge/mge.h"

namespace mge {

// `model` must outlive the session.
[[nodiscard]] inline mge_status* LoadBytes(mge_runtime* runtime, std::string_view model, const mge_session_options* options,
                                           mge_session** out) {
  mge_model_source source;
  mge_model_source_init(&source);
  source.data = model.data();
  source.size = model.size();
  return mge_session_load_from(runtime, &source, options, out);
}

}  // namespace mge
