// SPDX-License-Identifier: Apache-2.0
// The input of the checks of this folder: the files of a source tree, or an in-memory tree that proves that a check can
// fail.
//
// A check takes a Tree and returns one line per violation: "core/base/a.cc:2: base may not use plan".
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace mge::lint {

using Violations = std::vector<std::string>;

struct File {
  std::string path;                // relative to the root, with '/'
  std::vector<std::string> lines;  // unchanged
  std::vector<std::string> code;   // C and C++ only: the same lines, with comments replaced by spaces
};

inline bool StartsWith(const std::string& text, const std::string& prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}
inline bool EndsWith(const std::string& text, const std::string& suffix) {
  return text.size() >= suffix.size() && text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

inline bool IsCpp(const std::string& path) {
  for (const char* suffix : {".h", ".hpp", ".c", ".cc", ".cu", ".cuh", ".cc.in", ".h.in"}) {
    if (EndsWith(path, suffix)) return true;
  }
  return false;
}

inline std::vector<std::string> SplitLines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Replaces comments by spaces. Everything else, raw strings included, and the positions of all characters stay.
inline std::string WithoutComments(const std::string& text) {
  std::string out = text;
  auto blank = [&](size_t from, size_t to) {
    for (size_t k = from; k < to && k < out.size(); ++k) {
      if (out[k] != '\n') out[k] = ' ';
    }
  };
  size_t i = 0;
  while (i < text.size()) {
    if (text.compare(i, 2, "//") == 0) {
      size_t end = std::min(text.find('\n', i), text.size());
      blank(i, end);
      i = end;
    } else if (text.compare(i, 2, "/*") == 0) {
      size_t end = text.find("*/", i + 2);
      end = end == std::string::npos ? text.size() : end + 2;
      blank(i, end);
      i = end;
    } else if (text.compare(i, 2, "R\"") == 0) {
      size_t open = text.find('(', i);
      if (open == std::string::npos) break;
      std::string close(1, ')');
      close.append(text, i + 2, open - i - 2).push_back('"');
      size_t end = text.find(close, open);
      i = end == std::string::npos ? text.size() : end + close.size();
    } else if (text[i] == '\'' && i > 0 && std::isalnum(static_cast<unsigned char>(text[i - 1]))) {
      ++i;  // a digit separator: 1'000
    } else if (text[i] == '"' || text[i] == '\'') {
      char quote = text[i++];
      while (i < text.size() && text[i] != quote && text[i] != '\n') i += text[i] == '\\' ? 2 : 1;
      ++i;
    } else {
      ++i;
    }
  }
  return out;
}

class Tree {
 public:
  // Reads every text file below `root` except those of build trees, packages and version control.
  static Tree Read(const std::filesystem::path& root) {
    namespace fs = std::filesystem;
    std::map<std::string, std::string> texts;
    Tree tree;
    auto options = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator it(root, options), end; it != end; ++it) {
      std::string name = it->path().filename().string();
      if (name == "build" || name == "dist" || name == ".git" || name == "__pycache__") {
        it.disable_recursion_pending();
        continue;
      }
      std::string path = it->path().lexically_relative(root).generic_string();
      tree.all_.push_back(path);
      if (!it->is_regular_file() || IsData(path)) continue;
      std::ifstream in(it->path(), std::ios::binary);
      texts[path] = std::string(std::istreambuf_iterator<char>(in), {});
    }
    tree.Add(texts);
    return tree;
  }

  // Creates an in-memory tree from pairs of path and content.
  Tree(std::initializer_list<std::pair<const std::string, std::string>> texts) { Add(texts); }

  const std::vector<File>& files() const { return files_; }
  const File* Find(const std::string& path) const {
    for (const File& file : files_) {
      if (file.path == path) return &file;
    }
    return nullptr;
  }
  // Checks whether a file or folder exists, data files included.
  bool Exists(const std::string& path) const {
    for (const std::string& entry : all_) {
      if (entry == path || StartsWith(entry, path + "/")) return true;
    }
    return path.empty() || path == ".";
  }

 private:
  Tree() = default;

  static bool IsData(const std::string& path) {
    for (const char* suffix : {".onnx", ".npy", ".npz", ".pb", ".bin", ".so", ".pyc", ".png"}) {
      if (EndsWith(path, suffix)) return true;
    }
    return path.find("corpus/") != std::string::npos;
  }

  void Add(const std::map<std::string, std::string>& texts) {
    for (const auto& [path, text] : texts) {
      all_.push_back(path);
      File file{path, SplitLines(text), {}};
      if (IsCpp(path)) file.code = SplitLines(WithoutComments(text));
      files_.push_back(std::move(file));
    }
  }

  std::vector<File> files_;  // sorted by path
  std::vector<std::string> all_;
};

inline std::string At(const File& file, size_t line, const std::string& what) {
  return file.path + ":" + std::to_string(line + 1) + ": " + what;
}

// Adds a violation to `out` for each of the `lines` that contains `pattern`.
inline void Search(const File& file, const std::vector<std::string>& lines, const std::regex& pattern,
                   const std::string& what, Violations& out) {
  for (size_t i = 0; i < lines.size(); ++i) {
    if (std::regex_search(lines[i], pattern)) out.push_back(At(file, i, what));
  }
}

struct Include {
  size_t line;
  std::string path;
};

inline std::vector<Include> Includes(const File& file) {
  static const std::regex pattern(R"re(^\s*#\s*include\s*["<]([^">]+)[">])re");
  std::vector<Include> out;
  std::smatch match;
  for (size_t i = 0; i < file.code.size(); ++i) {
    if (std::regex_search(file.code[i], match, pattern)) out.push_back({i, match[1]});
  }
  return out;
}

inline std::string Join(const Violations& violations) {
  std::string out;
  for (const std::string& line : violations) out += "\n" + line;
  return out;
}

}  // namespace mge::lint
