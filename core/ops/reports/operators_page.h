// SPDX-License-Identifier: Apache-2.0
// Generates the operator reference for backend authors. A test compares it with the checked-in sdk/OPERATORS.md.
#pragma once

#include <string>

namespace mge {

std::string OperatorsMarkdown();  // returns sdk/OPERATORS.md: every operator offered to backends

}  // namespace mge
