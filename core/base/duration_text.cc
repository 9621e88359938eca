// SPDX-License-Identifier: Apache-2.0
#include "core/base/duration_text.h"

#include "fmt/format.h"

namespace mge {

std::string DurationText(double us) {
  if (us < 10) return fmt::format("{:.2f} us", us);
  if (us < 1000) return fmt::format("{:.1f} us", us);
  if (us < 1e6) return fmt::format("{:.2f} ms", us / 1000);
  return fmt::format("{:.2f} s", us / 1e6);
}

}  // namespace mge
