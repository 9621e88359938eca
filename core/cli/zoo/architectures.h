// SPDX-License-Identifier: Apache-2.0
// The architectures of `mge zoo`. Each is one row of the table in architectures.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace mge::cli {

struct Architecture {
  const char* name;
  const char* doc;
  std::string (*write)(uint64_t seed);  // the model's bytes
};

std::span<const Architecture> Architectures();

std::string WriteResNet50(uint64_t seed);
std::string WriteMobileNetV2(uint64_t seed);
std::string WriteBertBase(uint64_t seed);
std::string WriteBertTiny(uint64_t seed);

}  // namespace mge::cli
