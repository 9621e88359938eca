// SPDX-License-Identifier: Apache-2.0
#include "core/base/npy_header.h"

#include <charconv>

#include "core/base/errors.h"
#include "core/base/utf8.h"
#include "fmt/format.h"

namespace mge {
namespace {

struct DescrRow {
  std::string_view code;  // kind of type and size in bytes
  DType dtype;
};
constexpr DescrRow kDescrs[] = {
    {"f4", DType::kF32}, {"f8", DType::kF64},  {"f2", DType::kF16}, {"i1", DType::kI8},    {"i2", DType::kI16},
    {"i4", DType::kI32}, {"i8", DType::kI64},  {"u1", DType::kU8},  {"u2", DType::kU16},   {"u4", DType::kU32},
    {"u8", DType::kU64}, {"b1", DType::kBool}, {"c8", DType::kC64}, {"c16", DType::kC128},
};

// A parser of the literal. Every Take function skips blanks and returns false if the text does not match; the caller
// reports the error.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  bool Take(char c) {
    SkipSpace();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool TakeWord(std::string_view word) {
    SkipSpace();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  bool TakeString(std::string* out) {
    SkipSpace();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return false;
    size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return false;
    *out = std::string(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return true;
  }
  bool TakeNumber(int64_t* out) {
    SkipSpace();
    auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), *out);
    if (error != std::errc()) return false;
    at_ = static_cast<size_t>(end - text_.data());
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // suffix of Python 2's long integers
    return true;
  }
  bool AtEnd() {
    SkipSpace();
    return at_ == text_.size();
  }
  size_t position() const { return at_; }

 private:
  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  std::string_view text_;
  size_t at_ = 0;
};

absl::Status BadHeader(std::string what) {
  return Fail(errors::kBadInputFile, "the npy file is malformed", {.what = "its header: " + std::move(what)});
}

absl::Status Unsupported(std::string_view descr, std::string what, std::string fix) {
  return Fail(errors::kUnsupportedType, fmt::format("npy element type '{}' is not supported", descr),
              {.what = std::move(what), .fix = std::move(fix)});
}

bool TakeShape(Cursor& cursor, Shape* shape) {
  if (!cursor.Take('(')) return false;
  while (!cursor.Take(')')) {
    int64_t d;
    if (!cursor.TakeNumber(&d) || d < 0 || static_cast<int>(shape->size()) >= kMaxRank) return false;
    shape->push_back(d);
    if (!cursor.Take(',')) return cursor.Take(')');
  }
  return true;
}

absl::Status ReadDescr(NpyHeader& header) {
  std::string_view code = header.descr;
  if (code.find('O') != std::string_view::npos) {
    return Unsupported(header.descr, "object arrays are pickles, which can run code when they are read",
                       "save a plain numeric array");
  }
  if (code == "<V2" || code == "|V2" || code == ">V2") {
    return Unsupported(header.descr, "NumPy saves bfloat16 as these two raw bytes, without naming the type",
                       "save the array as float32: x.astype('float32')");
  }
  char order = code.empty() ? '\0' : code[0];
  if (order == '<' || order == '>' || order == '|' || order == '=') code.remove_prefix(1);
  header.big_endian = order == '>';
  for (const DescrRow& row : kDescrs) {
    if (row.code != code) continue;
    header.dtype = row.dtype;
    header.element_bytes = ElementBytes(row.dtype);
    return absl::OkStatus();
  }
  int64_t characters = 0;
  if (code.starts_with('U')) {
    auto [end, error] = std::from_chars(code.data() + 1, code.data() + code.size(), characters);
    if (error == std::errc() && end == code.data() + code.size() && CheckedMul(characters, 4, &header.element_bytes)) {
      header.dtype = DType::kString;
      return absl::OkStatus();
    }
  }
  return Unsupported(header.descr,
                     "supported are bool, integers, floats, complex numbers of up to 8 bytes per part, and "
                     "unicode text",
                     "convert the array with x.astype");
}

}  // namespace

absl::StatusOr<NpyHeader> ParseNpyHeader(std::string_view text) {
  NpyHeader header;
  Cursor cursor(text);
  bool has_descr = false, has_order = false, has_shape = false;
  if (!cursor.Take('{')) return BadHeader("it is not a dictionary");
  while (!cursor.Take('}')) {
    std::string key;
    bool ok = cursor.TakeString(&key) && cursor.Take(':');
    if (ok && key == "descr" && !has_descr) {
      if (cursor.Take('[')) return Unsupported("structured", "records of several fields are not a tensor", "save one field");
      ok = has_descr = cursor.TakeString(&header.descr);
    } else if (ok && key == "fortran_order" && !has_order) {
      header.fortran_order = cursor.TakeWord("True");
      ok = has_order = header.fortran_order || cursor.TakeWord("False");
    } else if (ok && key == "shape" && !has_shape) {
      ok = has_shape = TakeShape(cursor, &header.shape);
    } else {
      ok = false;
    }
    if (!ok)
      return BadHeader(fmt::format("key '{}' at character {} is unknown, duplicate or malformed", key, cursor.position()));
    if (!cursor.Take(',')) {
      if (!cursor.Take('}')) return BadHeader(fmt::format("',' or '}}' is missing at character {}", cursor.position()));
      break;
    }
  }
  if (!cursor.AtEnd()) return BadHeader(fmt::format("unexpected text at character {}", cursor.position()));
  if (!has_descr || !has_order || !has_shape) return BadHeader("descr, fortran_order and shape are required");
  MGE_RETURN_IF_ERROR(ReadDescr(header));
  return header;
}

std::string NpyDescr(DType dtype) {
  for (const DescrRow& row : kDescrs) {
    if (row.dtype == dtype) return fmt::format("{}{}", ElementBytes(dtype) == 1 ? '|' : '<', row.code);
  }
  return {};
}

std::optional<std::u32string> Utf8ToUtf32(std::string_view text) {
  std::u32string out;
  while (!text.empty()) {
    uint32_t c;
    if (!TakeUtf8(&text, &c)) return std::nullopt;
    out.push_back(c);
  }
  return out;
}

}  // namespace mge
