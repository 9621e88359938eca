// SPDX-License-Identifier: Apache-2.0
// Pages of HTML that a browser shows without a network: one file, without scripts. The parts that all pages have.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"

namespace mge::html {

using Json = nlohmann::ordered_json;

// The number of steps, buffers or rows that a page shows: a browser shows more only slowly.
inline constexpr size_t kMaxItems = 3000;
// The columns of a text of a report, and the texts of a list, that a page shows. A model's names have any length.
inline constexpr size_t kMaxColumns = 160;
inline constexpr size_t kMaxListed = 20;

// The number of colours; each has a class for areas behind text (f0, f1, ...), for bars and dots (s0) and for lines (l0).
inline constexpr int kColors = 6;

// Escapes a text for HTML and SVG, also within quotes. Control characters become visible. All texts of models and files must
// pass here, because they come from anybody.
std::string Text(std::string_view text);

// Returns a string without its quotes, any other value as JSON, cut to kMaxColumns. Not escaped for HTML, but control
// characters are visible: a name has no line breaks.
std::string Plain(const Json& value);
// Returns the texts of an array with a separator, at most kMaxListed of them. Not escaped.
std::string Listed(const Json& texts, std::string_view separator);

// Returns labels with their values, side by side.
std::string Facts(const std::vector<std::pair<std::string, std::string>>& facts);

struct Column {
  std::string title;
  bool is_number = false;  // its cells are aligned to the right
};
// Returns a table of plain texts, which it escapes and cuts.
std::string Table(const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& rows);

// Returns a paragraph of plain text, which it escapes.
std::string Paragraph(std::string_view text);
// Returns the title of a part of a page, from plain text.
std::string Heading(std::string_view text);
// Returns a paragraph that says how many of all items the page shows, or "" if it shows all of them.
std::string LeftOut(size_t shown, size_t all, std::string_view what);

// Returns a page with this body, which is HTML. Its style has light and dark colours. Its content policy forbids scripts and
// every other file. If `refresh_seconds` is above 0, a browser loads the page again after this time.
std::string Page(std::string_view title, std::string_view body, int refresh_seconds = 0);

}  // namespace mge::html
