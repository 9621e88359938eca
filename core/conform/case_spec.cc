// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "core/base/status.h"
#include "core/conform/cases.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge::conform {
namespace {

// Splits a list at the commas outside of brackets and quotes.
std::vector<std::string> SplitList(std::string_view list) {
  std::vector<std::string> out;
  int depth = 0;
  bool quoted = false;
  for (size_t begin = 0, i = 0; i <= list.size() && !list.empty(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    if (c == '"') quoted = !quoted;
    if (c == '[' || c == '<') ++depth;
    if (c == ']' || c == '>') --depth;
    if (i < list.size() && (c != ',' || depth > 0 || quoted)) continue;
    out.emplace_back(absl::StripAsciiWhitespace(Absl(list.substr(begin, i - begin))));
    begin = i + 1;
  }
  return out;
}

}  // namespace

std::string CaseSpec::AttributesText() const {
  std::string out;
  for (const auto& [name, value] : attributes) out += fmt::format("{}{}={}", out.empty() ? "{" : ", ", name, value);
  return out.empty() ? out : out + "}";
}

std::string CaseSpec::Text() const {
  std::string text = version ? fmt::format("{}@{}", op, version) : op;
  text += fmt::format("({})", fmt::join(operands, ", "));
  if (!attributes.empty()) text += fmt::format(" {}", AttributesText());
  return outputs == 1 ? text : text + fmt::format(" -> {}", outputs);
}

CaseSpec ParseSpec(std::string_view text) {
  CaseSpec spec;
  const size_t open = text.find('('), close = text.find(')');
  spec.op = text.substr(0, open);
  if (size_t at = spec.op.find('@'); at != std::string::npos) {
    spec.version = std::atoi(spec.op.c_str() + at + 1);
    spec.op.resize(at);
  }
  spec.operands = SplitList(text.substr(open + 1, close - open - 1));
  std::string_view rest = text.substr(close + 1);
  if (size_t begin = rest.find('{'), end = rest.rfind('}'); begin != std::string_view::npos) {
    for (const std::string& part : SplitList(rest.substr(begin + 1, end - begin - 1))) {
      const size_t equals = part.find('=');
      spec.attributes.emplace_back(part.substr(0, equals), part.substr(equals + 1));
    }
    rest = rest.substr(end + 1);
  }
  if (size_t arrow = rest.find(" -> "); arrow != std::string_view::npos)
    spec.outputs = std::atoi(std::string(rest.substr(arrow + 4)).c_str());
  return spec;
}

SpecOperand ParseOperand(std::string_view text) {
  SpecOperand o;
  o.absent = text == "_";
  if (text.starts_with('=')) o.same_as = std::atoi(std::string(text.substr(1)).c_str());
  if (size_t at = text.find('@'); at != std::string_view::npos) {
    const std::string range(text.substr(at + 1));
    o.special = range == "special";
    o.ranged = !o.special;
    if (o.ranged) std::sscanf(range.c_str(), "%lf:%lf", &o.low, &o.high);
    text = text.substr(0, at);
  }
  if (size_t at = text.find('<'); at != std::string_view::npos) {
    o.constant = true;
    o.values = text.substr(at + 1, text.size() - at - 2);
    text = text.substr(0, at);
  }
  o.type = text;
  return o;
}

}  // namespace mge::conform
