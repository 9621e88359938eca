// SPDX-License-Identifier: Apache-2.0
// Sizes, offsets and constants of the plugin interface, derived from its headers when the tests are built.
#pragma once

#include <cstddef>
#include <vector>

// One value of the interface: a struct's size (member ""), a member's offset, or a constant's value (member "=").
struct AbiRow {
  const char* type;
  const char* member;
  size_t value;
};

const std::vector<AbiRow>& AbiRows();
