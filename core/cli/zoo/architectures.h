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
  std::string (*write)(uint64_t seed, int64_t batch);  // returns the model's bytes
  bool batched;                                        // `batch` may be above 1
};

std::span<const Architecture> Architectures();

std::string WriteResNet50(uint64_t seed, int64_t batch);
std::string WriteMobileNetV2(uint64_t seed, int64_t batch);
std::string WriteBertBase(uint64_t seed, int64_t batch);
std::string WriteBertBaseF16(uint64_t seed, int64_t batch);
std::string WriteBertTiny(uint64_t seed, int64_t batch);

}  // namespace mge::cli
