// SPDX-License-Identifier: Apache-2.0
// Sizes, offsets, constants and functions of the interfaces, derived from the headers when the tests are built.
#pragma once

#include <cstddef>
#include <vector>

// One value of an interface: a struct's size (member ""), a member's offset, or a constant's value (member "=").
struct AbiRow {
  const char* type;
  const char* member;
  size_t value;
};

struct Abi {
  std::vector<AbiRow> rows;
  std::vector<const char*> functions;  // their declarations
};

const Abi& PluginAbi();
const Abi& ApplicationAbi();
