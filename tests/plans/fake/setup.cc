// SPDX-License-Identifier: Apache-2.0
#include "setup.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>

namespace plans {
namespace {

std::vector<std::string> Split(std::string_view text, char at) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(at, begin), text.size());
    out.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

// Splits a line at spaces. Spaces in parentheses separate nothing, and commas at the ends of words are dropped.
std::vector<std::string> WordsOf(std::string_view line) {
  std::vector<std::string> words(1);
  int depth = 0;
  for (char c : line) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (std::isspace(static_cast<unsigned char>(c)) && depth == 0) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  for (std::string& word : words) {
    if (word.size() > 1 && word.back() == ',') word.pop_back();
  }
  std::erase(words, "");
  return words;
}

uint64_t BytesOf(std::string_view text) {
  char* end = nullptr;
  const std::string copy(text);
  uint64_t bytes = std::strtoull(copy.c_str(), &end, 10);
  const std::string_view unit = end;
  return unit == "KiB" ? bytes << 10 : unit == "MiB" ? bytes << 20 : unit == "GiB" ? bytes << 30 : bytes;
}

double NumberOf(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

struct Attribute {
  std::string_view name;
  uint64_t bit;
};
constexpr Attribute kAttributes[] = {
    {"deterministic", MGE_KERNEL_DETERMINISTIC}, {"batch_invariant", MGE_KERNEL_BATCH_INVARIANT},
    {"reference", MGE_KERNEL_REFERENCE},         {"reduced_precision", MGE_KERNEL_REDUCED_PRECISION},
    {"capture_safe", MGE_KERNEL_CAPTURE_SAFE},   {"uses_atomics", MGE_KERNEL_USES_ATOMICS},
    {"allocates", MGE_KERNEL_ALLOCATES},         {"tensor_core", MGE_KERNEL_TENSOR_CORE},
    {"winograd", MGE_KERNEL_WINOGRAD},           {"fft", MGE_KERNEL_FFT},
    {"compiles", MGE_KERNEL_COMPILES},
};

// A reader of one line.
class Line {
 public:
  explicit Line(std::string_view text) : words_(WordsOf(text)) {}

  std::string Read(Setup& out) {
    const std::string& kind = words_[0];
    if (kind == "device") return Device(out.devices.emplace_back());
    if (kind == "link") return Link(out.links.emplace_back());
    if (kind == "kernel" || kind == "refuse") return Kernel(out.kernels.emplace_back());
    if (kind == "claim") return Claim(out.claims.emplace_back());
    if (kind == "plan") return Plan(out.plans.emplace_back());
    if (kind == "use") return Rest(out.uses);
    if (kind == "show") return Rest(out.shown);
    if (kind == "set" && words_.size() >= 3) {
      std::string value = words_[2];
      for (size_t i = 3; i < words_.size(); ++i) value += "," + words_[i];
      out.settings.emplace_back(words_[1], value);
      return {};
    }
    return "the first word is unknown";
  }

 private:
  std::string Rest(std::vector<std::string>& out) const {
    out.insert(out.end(), words_.begin() + 1, words_.end());
    return {};
  }

  // Calls use(key, value) for every word from number `first` on. A word without '=' has no value.
  template <typename F>
  std::string Options(size_t first, F use) const {
    for (size_t i = first; i < words_.size(); ++i) {
      size_t equals = words_[i].find('=');
      std::string key = words_[i].substr(0, equals);
      std::string value = equals == std::string::npos ? "" : words_[i].substr(equals + 1);
      if (!use(key, value)) return "'" + words_[i] + "' is unknown";
    }
    return {};
  }

  std::string Device(DeviceLine& d) const {
    if (words_.size() < 2) return "it names no device";
    d.name = words_[1];
    return Options(2, [&](const std::string& key, const std::string& value) {
      if (key == "memory") return d.memory = BytesOf(value), true;
      if (key == "largest") return d.largest = BytesOf(value), true;
      if (key == "alignment") return d.alignment = static_cast<uint32_t>(BytesOf(value)), true;
      if (key == "compute_queues") return d.compute_queues = static_cast<uint32_t>(NumberOf(value)), true;
      if (key == "cannot_open") return d.cannot_open = true;
      return false;
    });
  }

  std::string Link(LinkLine& l) const {
    if (words_.size() < 3) return "it must name two devices";
    l.from = words_[1];
    l.to = words_[2];
    return Options(3, [&](const std::string& key, const std::string& value) {
      if (key == "gb_s") return l.gb_s = NumberOf(value), true;
      if (key == "latency_us") return l.latency_us = NumberOf(value), true;
      if (key == "name") return l.name = value, true;
      return false;
    });
  }

  std::string Kernel(KernelLine& k) const {
    if (words_.size() < 5 || words_[3] != "=") return "expected: kernel DEVICE ID = OPERATOR";
    k.on = words_[1];
    k.id = words_[2];
    k.ops = words_[4];
    if (words_[0] == "refuse") {
      for (size_t i = 5; i < words_.size(); ++i) k.refusal += (i == 5 ? "" : " ") + words_[i];
      return k.refusal.empty() ? "it gives no reason" : "";
    }
    std::string fault = Options(5, [&](const std::string& key, const std::string& value) { return Option(k, key, value); });
    if (k.workspace_bound == 0) k.workspace_bound = k.workspace;
    return fault;
  }

  static bool Option(KernelLine& k, const std::string& key, const std::string& value) {
    if (const uint64_t bit = AttributeOf(key)) return k.attributes |= bit, true;
    if (key == "nondeterministic") return k.attributes &= ~MGE_KERNEL_DETERMINISTIC, true;
    if (key == "adds") return k.adds = true;
    if (key == "unable") return k.unable = true;
    if (key == "broken") return k.broken = true;
    if (key == "cost") return k.cost_us = NumberOf(value), true;
    if (key == "rank") return k.rank = std::atoi(value.c_str()), true;
    if (key == "workspace") return k.workspace = BytesOf(value), true;
    if (key == "workspace_bound") return k.workspace_bound = BytesOf(value), true;
    if (key == "writes") return k.writes = value, true;
    if (key == "from") return k.from = value, true;
    if (key == "to") return k.to = value, true;
    if (key == "layout") return k.all = value, true;
    if (key == "in") return k.inputs = Split(value, '/'), true;
    if (key == "out") return k.outputs = Split(value, '/'), true;
    if (key == "in_place") {
      for (const std::string& pair : Split(value.empty() ? "0:0" : value, '/')) {
        std::vector<std::string> sides = Split(pair, ':');
        if (sides.size() != 2) return false;
        k.in_place.push_back({static_cast<uint32_t>(BytesOf(sides[0])), static_cast<uint32_t>(BytesOf(sides[1]))});
      }
      return true;
    }
    if (key == "pack") {
      std::vector<std::string> parts = Split(value, ':');
      if (parts.size() < 2) return false;
      k.packed.push_back({static_cast<uint32_t>(BytesOf(parts[0])), BytesOf(parts[1]), parts.size() > 2 ? parts[2] : ""});
      return true;
    }
    return false;
  }

  std::string Claim(ClaimLine& c) const {
    if (words_.size() < 4 || words_[3] != "=") return "expected: claim DEVICE NAME = VALUE, VALUE";
    c.on = words_[1];
    c.name = words_[2];
    for (size_t i = 4; i < words_.size(); ++i) {
      if (words_[i].starts_with("benefit=")) {
        c.benefit_us = NumberOf(words_[i].substr(8));
      } else if (words_[i].starts_with("also=")) {
        c.extra = Split(words_[i].substr(5), '/');
      } else {
        c.values.push_back(words_[i]);
      }
    }
    return {};
  }

  // Reads "x=2x4", the shape of an input.
  std::string Plan(std::vector<std::pair<std::string, std::vector<int64_t>>>& shapes) const {
    return Options(1, [&](const std::string& key, const std::string& value) {
      std::vector<int64_t> dims;
      for (const std::string& dim : Split(value, 'x')) dims.push_back(static_cast<int64_t>(BytesOf(dim)));
      shapes.emplace_back(key, std::move(dims));
      return !value.empty();
    });
  }

  std::vector<std::string> words_;
};

}  // namespace

std::string ReadSetup(std::string_view text, Setup& out) {
  for (const std::string& whole : Split(text, '\n')) {
    const std::string line = whole.substr(0, whole.find('#') == 0 ? 0 : whole.find(" # "));
    if (WordsOf(line).empty()) continue;
    if (std::string fault = Line(line).Read(out); !fault.empty()) return "set-up line '" + line + "': " + fault;
  }
  return {};
}

bool IsOn(std::string_view on, std::string_view device) {
  if (!device.starts_with(on)) return false;
  std::string_view rest = device.substr(on.size());
  return std::isalpha(static_cast<unsigned char>(on.back())) || rest.empty();
}

uint64_t AttributeOf(std::string_view name) {
  for (const Attribute& a : kAttributes) {
    if (a.name == name) return a.bit;
  }
  return 0;
}

mge_layout LayoutOf(std::string_view text, int32_t rank, uint64_t plain_bytes) {
  mge_layout l = {};
  l.struct_size = sizeof(l);
  if (text == "any") l.kind = MGE_LAYOUT_ANY;
  if (text == "nhwc") text = "perm(0,2,3,1)";
  if (text.starts_with("sealed(")) {
    l.kind = MGE_LAYOUT_OPAQUE;
    l.opaque_id = BytesOf(text.substr(7));
    l.opaque_bytes = plain_bytes + 64;
  }
  if (!text.starts_with("perm(")) return l;
  std::istringstream inner{std::string(text.substr(5, text.size() - 6))};
  std::string perm, block;
  inner >> perm;
  const std::vector<std::string> axes = Split(perm, ',');
  if (static_cast<int32_t>(axes.size()) != rank || rank > 8) return l;
  l.kind = MGE_LAYOUT_PERMUTED;
  l.rank = rank;
  for (int32_t i = 0; i < rank; ++i) l.perm[i] = static_cast<int32_t>(BytesOf(axes[static_cast<size_t>(i)]));
  while (inner >> block && l.block_count < 2) {
    const std::vector<std::string> sides = Split(block, 'x');  // "8x1": blocks of 8 elements of axis 1
    l.block_size[l.block_count] = static_cast<int32_t>(BytesOf(sides.front()));
    l.block_axis[l.block_count++] = static_cast<int32_t>(BytesOf(sides.back()));
  }
  return l;
}

}  // namespace plans
