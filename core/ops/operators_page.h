// SPDX-License-Identifier: Apache-2.0
// The page for authors of backends that is generated from the schemas and checked in under sdk/.
#pragma once

#include <string>

namespace mge {

std::string OperatorsMarkdown();  // sdk/OPERATORS.md: each operator that a backend may be offered

}  // namespace mge
