// SPDX-License-Identifier: Apache-2.0
#include "core/cli/html.h"

#include "core/base/file.h"
#include "fmt/format.h"

namespace mge::cli::html {
namespace {

constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<style>
:root { --back: #fff; --text: #1c1c1c; --soft: #666; --line: #bbb; --a: #cfe2f7; --b: #d8f0d3; --c: #fbe3c4; --d: #ecd9f5; }
@media (prefers-color-scheme: dark) {
  :root { --back: #1b1c1e; --text: #e8e8e8; --soft: #a0a0a0; --line: #555; --a: #24496d; --b: #2d5428; --c: #6b4a1d; --d: #553066; }
}
body { background: var(--back); color: var(--text); font: 14px system-ui, sans-serif; margin: 1.5em; }
svg { display: block; } svg text { fill: var(--text); font-size: 12px; } svg .soft { fill: var(--soft); }
rect { stroke: var(--line); } path { stroke: var(--line); fill: none; } rect:hover { stroke: var(--text); stroke-width: 2; }
.a { fill: var(--a); } .b { fill: var(--b); } .c { fill: var(--c); } .d { fill: var(--d); }
</style>
)";

}  // namespace

std::string Text(std::string_view text) {
  std::string out;
  for (char c : Escape(text)) {
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

int WritePage(const Globals& globals, const std::string& path, std::string_view title, std::string_view body) {
  const std::string page = fmt::format("{}<title>{}</title>\n</head>\n<body>\n<h1>{}</h1>\n{}</body>\n</html>\n", kHead,
                                       Text(title), Text(title), body);
  if (absl::Status s = WriteFileAtomically(path, AsBytes(page)); !s.ok()) return Report(globals, s);
  PrintMessage(globals, fmt::format("wrote {}", Escape(path)));
  return kExitOk;
}

std::string LeftOut(size_t items, std::string_view what) {
  if (items <= kMaxItems) return {};
  return fmt::format("<p>The page shows {} of {} {}; --json has all.</p>\n", kMaxItems, items, what);
}

}  // namespace mge::cli::html
