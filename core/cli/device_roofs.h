// SPDX-License-Identifier: Apache-2.0
// The rates that a device reaches: the limits of a roofline.
#pragma once

#include "core/cli/common.h"
#include "core/html/profile_page.h"

namespace mge::cli {

// Measures a product of matrices of 1024x1024 and a Relu of 128 MiB, on the device and with the threads of the options. Takes
// about a second. A rate is 0 if its model cannot run in that time, such as without enough memory or by reference evaluators.
html::Roofs MeasureRoofs(const Globals& globals, Runtime& runtime);

}  // namespace mge::cli
