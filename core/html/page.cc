// SPDX-License-Identifier: Apache-2.0
#include "core/html/page.h"

#include <algorithm>

#include "core/base/lines.h"
#include "core/base/status.h"
#include "fmt/format.h"

namespace mge::html {
namespace {

constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
)";

// The colours f0 to f5 fill areas behind text, s0 to s5 are those of lines, dots and bars.
constexpr char kStyle[] = R"(<style>
:root { --back: #fff; --card: #f4f5f7; --text: #1c1c1c; --soft: #5f6368; --line: #c4c7cc; --grid: #e6e8eb;
  --f0: #cfe2f7; --f1: #d8f0d3; --f2: #fbe3c4; --f3: #ecd9f5; --f4: #f9d2d0; --f5: #cdeef3;
  --s0: #2563eb; --s1: #16803c; --s2: #c2670a; --s3: #8b35d6; --s4: #cf2e2e; --s5: #0a7f97; }
@media (prefers-color-scheme: dark) {
  :root { --back: #17181a; --card: #222428; --text: #e8e8e8; --soft: #a2a6ad; --line: #4a4e55; --grid: #2d3035;
    --f0: #24496d; --f1: #2d5428; --f2: #6b4a1d; --f3: #553066; --f4: #6b2b2b; --f5: #1d5560;
    --s0: #7aa7ff; --s1: #5fd18b; --s2: #f5b04c; --s3: #c89bff; --s4: #ff7b72; --s5: #5cc8dd; }
}
body { background: var(--back); color: var(--text); font: 14px/1.45 system-ui, sans-serif; margin: 1.5em auto;
  max-width: 1080px; padding: 0 1em; }
h1 { font-size: 1.5em; margin: 0 0 .6em; overflow-wrap: anywhere; } h2 { font-size: 1.15em; margin: 1.8em 0 .5em; }
p { margin: .5em 0; } .soft { color: var(--soft); fill: var(--soft); } .wide { overflow-x: auto; }
.facts { display: flex; flex-wrap: wrap; gap: .6em; margin: .8em 0; }
.facts div { background: var(--card); border-radius: 6px; padding: .45em .8em; }
.facts b { display: block; font-size: 1.1em; font-weight: 600; overflow-wrap: anywhere; }
.facts span { color: var(--soft); font-size: .85em; }
table { border-collapse: collapse; font-size: .92em; } .wide > table { min-width: 100%; }
th { text-align: left; color: var(--soft); font-weight: 600; white-space: nowrap; }
th, td { padding: .28em .8em .28em 0; border-bottom: 1px solid var(--grid); vertical-align: top; }
td { overflow-wrap: anywhere; min-width: 3em; } .n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.legend { margin: .3em 0; color: var(--soft); } .legend span { margin-right: 1.4em; white-space: nowrap; }
.legend i { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 6px; vertical-align: -1px; }
svg { display: block; } svg text { fill: var(--text); font-size: 12px; } svg text.soft { fill: var(--soft); }
.grid { stroke: var(--grid); } .guide { stroke: var(--soft); stroke-dasharray: 5 4; fill: none; }
.flow { stroke: var(--line); fill: none; } g:hover > .area, .area:hover { stroke: var(--text); stroke-width: 2; }
.area { stroke: var(--back); stroke-width: 1; } .curve { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.band { opacity: .22; stroke: none; } .dot { stroke: var(--back); stroke-width: .7; } .dot:hover { stroke: var(--text); }
)";

// Returns the style with the classes of the colours: f0 for an area, s0 for a bar or dot, l0 for a line.
std::string StyleText() {
  std::string out = kStyle;
  for (int i = 0; i < kColors; ++i) {
    out += fmt::format(".f{0} {{ fill: var(--f{0}); background: var(--f{0}); }} ", i);
    out += fmt::format(".s{0} {{ fill: var(--s{0}); background: var(--s{0}); }} .l{0} {{ stroke: var(--s{0}); }}\n", i);
  }
  return out + "</style>\n";
}

}  // namespace

std::string Text(std::string_view text) {
  std::string out;
  for (char c : EscapeControl(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string Plain(const Json& value) {
  if (const auto* text = value.get_ptr<const std::string*>()) return EscapeControl(CutLine(*text, kMaxColumns));
  return CutLine(value.dump(-1, ' ', false, Json::error_handler_t::replace), kMaxColumns);
}

std::string Listed(const Json& texts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < std::min(texts.size(), kMaxListed); ++i) {
    if (i > 0) out += separator;
    out += Plain(texts[i]);
  }
  if (texts.size() > kMaxListed) out += fmt::format("{}and {} more", separator, texts.size() - kMaxListed);
  return out;
}

std::string Facts(const std::vector<std::pair<std::string, std::string>>& facts) {
  std::string out = "<div class=\"facts\">\n";
  for (const auto& [label, value] : facts) {
    out += fmt::format("<div><span>{}</span><b>{}</b></div>\n", Text(label), Text(CutLine(value, kMaxColumns)));
  }
  return out + "</div>\n";
}

std::string Table(const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& rows) {
  auto line = [&](const char* tag, const auto& text_of) {
    std::string out = "<tr>";
    for (size_t i = 0; i < columns.size(); ++i) {
      const char* style = columns[i].is_number ? " class=\"n\"" : "";
      out += fmt::format("<{}{}>{}</{}>", tag, style, Text(CutLine(text_of(i), kMaxColumns)), tag);
    }
    return out + "</tr>\n";
  };
  std::string out = "<div class=\"wide\"><table>\n" + line("th", [&](size_t i) { return columns[i].title; });
  for (const std::vector<std::string>& row : rows) out += line("td", [&](size_t i) { return row[i]; });
  return out + "</table></div>\n";
}

std::string Paragraph(std::string_view text) { return fmt::format("<p>{}</p>\n", Text(text)); }

std::string Heading(std::string_view text) { return fmt::format("<h2>{}</h2>\n", Text(CutLine(text, kMaxColumns))); }

std::string LeftOut(size_t shown, size_t all, std::string_view what) {
  if (shown >= all) return {};
  return Paragraph(fmt::format("The page shows {} of {} {}; --json has all.", shown, all, what));
}

std::string Page(std::string_view title, std::string_view body, int refresh_seconds) {
  const std::string name = Text(CutLine(title, kMaxColumns));
  const std::string refresh =
      refresh_seconds > 0 ? fmt::format("<meta http-equiv=\"refresh\" content=\"{}\">\n", refresh_seconds) : "";
  return fmt::format("{}{}{}<title>{}</title>\n</head>\n<body>\n<h1>{}</h1>\n{}</body>\n</html>\n", kHead, refresh,
                     StyleText(), name, name, body);
}

}  // namespace mge::html
