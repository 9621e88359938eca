// SPDX-License-Identifier: Apache-2.0
// Sizes and offsets of the plugin interface, derived from its headers when the tests are built.
#pragma once

#include <cstddef>
#include <vector>

// A struct's size (member "") or a member's offset, in the order of the headers.
struct AbiRow {
  const char* type;
  const char* member;
  size_t bytes;
};

const std::vector<AbiRow>& AbiRows();
