// SPDX-License-Identifier: Apache-2.0
#include "core/text/post_processor.h"

#include "fmt/format.h"

namespace mge::text {
namespace {

// Reads ["[SEP]", 102].
int64_t ReadTokenAndId(const Part& part) {
  const std::vector<Part> both = part.Elements();
  if (both.size() == 2) return both[1].AsCount();
  part.Refuse("a token with its id");
  return 0;
}

// Reads a template for one text: special tokens, and once the sequence A.
AddedAround ReadTemplate(const Part& part) {
  AddedAround out;
  bool after = false;
  const Part special = part.Member("special_tokens");
  for (const Part& element : part.Elements("single")) {
    if (element.Has("Sequence")) {
      if (after) element.RefuseKind("a template that repeats the text");
      after = true;
      continue;
    }
    const std::string name = element.Member("SpecialToken").Text("id");
    if (!special.Has(name.c_str())) {
      element.Refuse("the sequence or one of the special_tokens");
      continue;
    }
    for (const Part& id : special.Member(name.c_str()).Elements("ids"))
      (after ? out.after : out.before).push_back(id.AsCount());
  }
  if (!after) part.Member("single").RefuseKind("a template without the text");
  return out;
}

}  // namespace

AddedAround ReadPostProcessor(const Part& part) {
  if (part.json().is_null()) return {};
  const std::string type = part.Text("type");
  if (type == "ByteLevel") return {};  // it changes places of tokens only
  if (type == "TemplateProcessing") return ReadTemplate(part);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    return {.before = {ReadTokenAndId(part.Member("cls"))}, .after = {ReadTokenAndId(part.Member("sep"))}};
  }
  if (type != "Sequence") {
    part.RefuseKind(fmt::format("a post-processor '{}'", type));
    return {};
  }
  AddedAround out;
  for (const Part& each : part.Elements("processors")) {
    const AddedAround outer = ReadPostProcessor(each);
    out.before.insert(out.before.begin(), outer.before.begin(), outer.before.end());
    out.after.insert(out.after.end(), outer.after.begin(), outer.after.end());
  }
  return out;
}

}  // namespace mge::text
