// SPDX-License-Identifier: Apache-2.0
// Sizes in bytes as text, as users write and read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mge {

// Parses "4096", "512K", "64MiB", "1.5GiB" or "64MB" into bytes. K, M, G and T, alone or followed by "iB", are powers of
// 1024; followed by "B", they are powers of 1000. Case is ignored.
// Returns nullopt for any other text, for a fraction of a byte, and for a size above 63 bits.
std::optional<int64_t> ParseByteSize(std::string_view text);

// Formats a size, for example as "12 B", "97.5 MiB" or "1.2 GiB".
std::string HumanBytes(uint64_t bytes);

}  // namespace mge
