// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

// Returns the number of basic blocks that counted code has executed in this process.
uint64_t BlocksExecuted();

// Sets `flag` to `value` when the count reaches `blocks`. The flag must live until then, or until the next call.
void SetFlagAt(uint64_t blocks, std::atomic<int32_t>* flag, int32_t value);
