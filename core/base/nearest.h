// SPDX-License-Identifier: Apache-2.0
// "Did you mean": the known name that is nearest to a wrong one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mge {

// Edits between two texts, compared without case: insertions, deletions, replacements and swaps of
// neighbours. Stops counting beyond `limit` and returns limit + 1.
int EditDistance(std::string_view a, std::string_view b, int limit);

// The candidate with the fewest edits, at most one per three characters of the wrong name (one for two characters); the
// first of several. Empty if none is near. The result views into `candidates`.
std::string_view Nearest(std::string_view wrong, std::span<const std::string_view> candidates);
std::string_view Nearest(std::string_view wrong, const std::vector<std::string>& candidates);

// " Did you mean "NAME"?", or nothing: to be put behind a sentence.
std::string DidYouMean(std::string_view nearest);

}  // namespace mge
