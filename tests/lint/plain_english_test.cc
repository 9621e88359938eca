// SPDX-License-Identifier: Apache-2.0
// Wordings that make comments and names hard to read. Their list, with the better words, is tests/lint/plain_english.txt.
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/lint/tree.h"

namespace mge::lint {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kList[] = "tests/lint/plain_english.txt";
const std::set<std::string> kKinds = {"start", "sentence", "word", "verb", "name"};

// A row of the list.
struct Offence {
  std::string kind, text, instead;
};

std::string Trim(const std::string& text, const char* blanks = " ") {
  size_t begin = text.find_first_not_of(blanks);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

// Reads the rows of the list. Adds a violation to `out` for each row that lacks a part or has an unknown kind.
std::vector<Offence> ReadOffences(const Tree& tree, Violations& out) {
  const File* list = tree.Find(kList);
  if (list == nullptr) {
    out.push_back(std::string(kList) + ": not found");
    return {};
  }
  std::vector<Offence> offences;
  for (size_t i = 0; i < list->lines.size(); ++i) {
    const std::string& line = list->lines[i];
    if (line.empty() || line[0] == '#') continue;
    size_t end = line.find(" # ");
    std::string left = Trim(line.substr(0, end)), instead = end == std::string::npos ? "" : Trim(line.substr(end + 3));
    size_t space = std::min(left.find(' '), left.size());
    Offence row = {left.substr(0, space), Trim(left.substr(space)), instead};
    if (!kKinds.contains(row.kind)) {
      out.push_back(At(*list, i, "unknown kind: " + row.kind));
    } else if (row.text.empty() || row.instead.empty()) {
      out.push_back(At(*list, i, "expected KIND TEXT # write instead"));
    } else {
      offences.push_back(std::move(row));
    }
  }
  return offences;
}

// A paragraph of a comment.
struct Paragraph {
  std::string text;                               // without comment marks; lines are joined by a space
  std::vector<std::pair<size_t, size_t>> starts;  // of each line: its offset in `text`, its number in the file

  size_t LineOf(size_t offset) const {
    size_t line = 0;
    for (const auto& [start, number] : starts) {
      if (start <= offset) line = number;
    }
    return line;
  }
};

// Returns the column at which the comment of line `i` begins, or npos if the line has no comment.
size_t CommentColumn(const File& file, size_t i) {
  const std::string& line = file.lines[i];
  if (!IsCpp(file.path)) {  // CMake, shell, Python: comments that have a line of their own
    size_t begin = line.find_first_not_of(' ');
    return begin != std::string::npos && line[begin] == '#' && line.compare(begin, 2, "#!") != 0 ? begin : std::string::npos;
  }
  for (size_t c = 0; c < line.size(); ++c) {
    if (line[c] != file.code[i][c]) return c;
  }
  return std::string::npos;
}

// Returns the paragraphs of all comments. A paragraph ends at a line of code, at an empty comment line and at the licence.
// A comment behind code goes on in the next line if a comment begins there in the same column.
std::vector<Paragraph> Paragraphs(const File& file) {
  std::vector<Paragraph> out;
  size_t previous = std::string::npos;  // column of the paragraph that the next line may continue
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    size_t column = CommentColumn(file, i);
    if (column == std::string::npos || line.find("SPDX-") != std::string::npos) {
      previous = std::string::npos;
      continue;
    }
    size_t end = line.size();
    while (IsCpp(file.path) && end > column && line[end - 1] == file.code[i][end - 1]) --end;  // code behind a comment
    std::string text = Trim(line.substr(column, end - column), " \t/*!<#-");
    if (text.empty()) {
      previous = std::string::npos;
      continue;
    }
    bool inside_block = IsCpp(file.path) && line.compare(column, 2, "//") != 0 && line.compare(column, 2, "/*") != 0;
    bool own_line = line.find_first_not_of(' ') == column;
    bool continues = previous != std::string::npos && own_line && (inside_block || previous == column);
    if (continues) {
      out.back().text += " ";
    } else {
      out.emplace_back();
    }
    out.back().starts.emplace_back(out.back().text.size(), i);
    out.back().text += text;
    previous = column;
  }
  return out;
}

// Replaces what stands in backticks or double quotes by spaces.
std::string WithoutQuotes(std::string text) {
  for (char quote : {'`', '"'}) {
    for (size_t open = text.find(quote); open != std::string::npos;) {
      size_t close = text.find(quote, open + 1);
      if (close == std::string::npos) break;
      text.replace(open, close + 1 - open, close + 1 - open, ' ');
      open = text.find(quote, close);
    }
  }
  return text;
}

bool IsWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Returns the word in front of `offset`, with a possessive 's.
std::string WordBefore(const std::string& text, size_t offset) {
  size_t end = offset;
  while (end > 0 && text[end - 1] == ' ') --end;
  size_t begin = end;
  while (begin > 0 && (IsWordCharacter(text[begin - 1]) || text[begin - 1] == '\'')) --begin;
  return text.substr(begin, end - begin);
}

bool IsNounAfter(const std::string& word) {
  static const std::set<std::string> before_nouns = {"the",   "The",   "these", "those", "its",  "their",     "our",
                                                     "whose", "all",   "both",  "of",    "no",   "two",       "right",
                                                     "and",   "wrong", "known", "equal", "same", "different", "other"};
  return before_nouns.contains(word) || EndsWith(word, "'s") || EndsWith(word, "s'");
}

// Checks whether the words found at `offset` of `text` are an offence. `text` must not contain quotes.
bool Offends(const Offence& offence, const std::string& text, size_t offset) {
  size_t end = offset + offence.text.size();
  if (offset > 0 && IsWordCharacter(text[offset - 1])) return false;
  if (end < text.size() && IsWordCharacter(text[end])) return false;
  if (offence.kind == "word") return true;
  if (offence.kind == "verb") return !IsNounAfter(WordBefore(text, offset));
  if (offset == 0) return true;
  size_t before = text.find_last_not_of(' ', offset - 1);
  return offence.kind == "sentence" && before != std::string::npos && before + 1 < offset && text[before] == '.';
}

Violations CheckComments(const Tree& tree) {
  Violations out;
  std::vector<Offence> offences = ReadOffences(tree, out);
  std::erase_if(offences, [](const Offence& row) { return row.kind == "name"; });
  for (const File& file : tree.files()) {
    bool ours = false, comments = IsCpp(file.path);
    for (const char* folder : {"core/", "plugins/", "sdk/", "tests/"}) ours = ours || StartsWith(file.path, folder);
    for (const char* suffix : {"CMakeLists.txt", ".cmake", ".cmake.in", ".sh", ".py"}) {
      comments = comments || EndsWith(file.path, suffix);
    }
    if (!ours || !comments) continue;
    for (const Paragraph& paragraph : Paragraphs(file)) {
      std::string text = WithoutQuotes(paragraph.text);
      for (const Offence& offence : offences) {
        for (size_t at = text.find(offence.text); at != std::string::npos; at = text.find(offence.text, at + 1)) {
          if (!Offends(offence, text, at)) continue;
          out.push_back(At(file, paragraph.LineOf(at), "\"" + offence.text + "\": " + offence.instead));
        }
      }
    }
  }
  return out;
}

// Returns the names of a line of code. What stands in quotes is text.
std::vector<std::string> NamesIn(const std::string& line) {
  std::vector<std::string> names;
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (quote) {
      if (line[i] == '\\') {
        ++i;
      } else if (line[i] == quote) {
        quote = 0;
      }
    } else if (line[i] == '"') {
      quote = line[i];
    } else if (IsWordCharacter(line[i])) {
      const size_t begin = i;
      while (i + 1 < line.size() && IsWordCharacter(line[i + 1])) ++i;
      names.push_back(line.substr(begin, i + 1 - begin));
    }
  }
  return names;
}

// Checks the names of functions, types, variables and constants. A row whose text ends in * forbids a beginning.
Violations CheckNames(const Tree& tree) {
  Violations out;
  std::vector<Offence> rows = ReadOffences(tree, out);
  std::erase_if(rows, [](const Offence& row) { return row.kind != "name"; });
  for (const File& file : tree.files()) {
    if (!IsCpp(file.path)) continue;
    for (size_t i = 0; i < file.code.size(); ++i) {
      for (const std::string& name : NamesIn(file.code[i])) {
        for (const Offence& row : rows) {
          const bool begins = EndsWith(row.text, "*") && StartsWith(name, row.text.substr(0, row.text.size() - 1));
          if (begins || name == row.text) out.push_back(At(file, i, name + ": " + row.instead));
        }
      }
    }
  }
  return out;
}

TEST(PlainEnglish, NoNameIsOneOfTheList) {
  Violations violations = CheckNames(Tree::Read(MGE_SOURCE_DIR));
  EXPECT_THAT(violations, IsEmpty()) << Join(violations);
}

TEST(PlainEnglishCheck, FindsNamesAndTheirBeginnings) {
  Tree tree = {{kList, "name kMost* # write kMax\nname Glance # write ShowSummary\nstart What # the thing\n"},
               {"core/a.cc",
                "constexpr int kMostRows = 4;  // kMostRows\nconst char* a = \"kMost \\\" Glance\";\n"
                "int Glances, AGlance, What = 0;\nvoid F() { Glance(kMost); }\n"},
               {"core/a.md", "Glance\n"}};
  EXPECT_THAT(CheckNames(tree), ElementsAre("core/a.cc:1: kMostRows: write kMax", "core/a.cc:4: Glance: write ShowSummary",
                                            "core/a.cc:4: kMost: write kMax"));
  EXPECT_THAT(CheckComments(tree), IsEmpty());
}

TEST(PlainEnglish, NoCommentUsesAWordingOfTheList) {
  Violations violations = CheckComments(Tree::Read(MGE_SOURCE_DIR));
  EXPECT_THAT(violations, IsEmpty()) << Join(violations);
}

TEST(PlainEnglishCheck, FindsWordsAtTheStartOfACommentAndOfASentence) {
  Tree tree = {{kList, "# a list\nstart What # the thing\nsentence Of # the subject\n"},
               {"core/a.h",
                "// SPDX-License-Identifier: Apache-2.0\n// What this file is.\n"      // line 2, below the licence
                "int a;  // What a is\nint b;  // a value\n        // What goes on\n"  // line 3; line 5 continues line 4
                "// Sizes. What they are is\n// said below. Of these, one counts.\n"   // line 7
                "/// Of all.\n//\n// What is left.\n"                                  // line 8; line 10, a new paragraph
                "/*\n * What is in a block.\n * What goes on. */ int c;\n"             // line 12
                "// Whatever fits; Often so. Office.\n// \"What\" and `Of` are words. `Of it. Of it`\n"},
               {"core/b.txt", "What\n"},
               {"packaging/a.cc", "// What is not searched\n"},
               {"sdk/a.cmake", "#!/usr/bin/cmake -P\n# Of CMake.\nset(a \"# What\")\n"},  // line 2
               {"tests/a.cc", "const char* a = \"// What\";\n"}};
  EXPECT_THAT(CheckComments(tree), ElementsAre("core/a.h:2: \"What\": the thing", "core/a.h:3: \"What\": the thing",
                                               "core/a.h:7: \"Of\": the subject", "core/a.h:8: \"Of\": the subject",
                                               "core/a.h:10: \"What\": the thing", "core/a.h:12: \"What\": the thing",
                                               "sdk/a.cmake:2: \"Of\": the subject"));
}

TEST(PlainEnglishCheck, FindsWordsAndDistinguishesVerbsFromNouns) {
  Tree tree = {{kList, "verb answers # returns\nword takes the help of # uses\n"},
               {"plugins/a.cc",
                "// It answers false.\n\n// The backend's answers and the answers of all.\n\n"
                "// It takes the\n// help of others.\n\n// Mistakes the help of others; answers_test.cc; `f` answers.\n"}};
  EXPECT_THAT(CheckComments(tree),
              ElementsAre("plugins/a.cc:1: \"answers\": returns", "plugins/a.cc:5: \"takes the help of\": uses",
                          "plugins/a.cc:8: \"answers\": returns"));
}

TEST(PlainEnglishCheck, RefusesRowsWithoutAKindATextOrABetterWord) {
  Tree tree = {{kList, "begin What # the thing\nstart What\nstart # the thing\n\nstart What # the thing\n"}};
  EXPECT_THAT(CheckComments(tree), ElementsAre("tests/lint/plain_english.txt:1: unknown kind: begin",
                                               "tests/lint/plain_english.txt:2: expected KIND TEXT # write instead",
                                               "tests/lint/plain_english.txt:3: expected KIND TEXT # write instead"));
  Tree without_list = {{"core/a.cc", ""}};
  EXPECT_THAT(CheckComments(without_list), ElementsAre("tests/lint/plain_english.txt: not found"));
}

}  // namespace
}  // namespace mge::lint
