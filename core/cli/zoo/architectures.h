// SPDX-License-Identifier: Apache-2.0
// The architectures of `mge zoo`. Each is one row of the table in architectures.cc.
#pragma once

#include <span>
#include <string>

#include "core/cli/zoo/model_writer.h"

namespace mge::cli {

struct Architecture {
  const char* name;
  const char* doc;
  std::string (*write)(const ModelRequest& request);  // returns the model's bytes
  bool batched;                                       // `batch` may be above 1
};

std::span<const Architecture> Architectures();

std::string WriteResNet50(const ModelRequest& r);
std::string WriteMobileNetV2(const ModelRequest& r);
std::string WriteBertBase(const ModelRequest& r);
std::string WriteBertTiny(const ModelRequest& r);

}  // namespace mge::cli
