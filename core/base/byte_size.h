// SPDX-License-Identifier: Apache-2.0
// Sizes in bytes as users write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace mge {

// "4096", "512K", "64MiB", "1.5GiB": K, M, G and T alone or with iB are powers of 1024. "64MB": with B they are powers of
// 1000. Case does not matter. Nothing for other texts, for fractions of bytes and for sizes beyond 63 bits.
std::optional<int64_t> ParseByteSize(std::string_view text);

}  // namespace mge
