// SPDX-License-Identifier: Apache-2.0
// Suggestions for misspelt names ("Did you mean ...?").
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mge {

// Returns the number of edits between two texts, ignoring case. An edit is an insertion, a deletion, a replacement or
// a swap of two neighbours (optimal string alignment distance). Returns limit + 1 if there are more than `limit` edits.
int EditDistance(std::string_view a, std::string_view b, int limit);

// Returns the candidate with the fewest edits, the first one of several. Allows one edit per three characters of the
// wrong name, and one edit for two characters. Returns "" if no candidate is near. The result refers to `candidates`.
std::string_view Nearest(std::string_view wrong, std::span<const std::string_view> candidates);
std::string_view Nearest(std::string_view wrong, const std::vector<std::string>& candidates);

// Returns " Did you mean "NAME"?" to append to a sentence, or "" if `nearest` is empty.
std::string DidYouMean(std::string_view nearest);

// Returns "did you mean 'NAME'?" as the fix of an error, or `otherwise` if `nearest` is empty.
std::string DidYouMeanOr(std::string_view nearest, std::string_view otherwise);

}  // namespace mge
