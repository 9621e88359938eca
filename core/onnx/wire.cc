// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/wire.h"

#include <cstring>
#include <protozero/types.hpp>
#include <protozero/varint.hpp>

#include "fmt/format.h"

namespace mge::onnx {
namespace {

// protozero's pbf_reader silently truncates lengths and tags to 32 bits. Therefore this file reads the fields itself and
// uses only protozero's varints.
constexpr uint32_t kVarint = static_cast<uint32_t>(protozero::pbf_wire_type::varint);
constexpr uint32_t kFixed64 = static_cast<uint32_t>(protozero::pbf_wire_type::fixed64);
constexpr uint32_t kDelimited = static_cast<uint32_t>(protozero::pbf_wire_type::length_delimited);
constexpr uint32_t kFixed32 = static_cast<uint32_t>(protozero::pbf_wire_type::fixed32);

constexpr uint64_t kLargestTag = (uint64_t{1} << 32) - 1;

}  // namespace

bool TakeVarint(Bytes* run, uint64_t* value) {
  const char* begin = reinterpret_cast<const char*>(run->data());
  const char* at = begin;
  try {
    *value = protozero::decode_varint(&at, begin + run->size());
  } catch (const protozero::exception&) {
    return false;
  }
  *run = run->subspan(static_cast<size_t>(at - begin));
  return true;
}

WireReader::WireReader(const WireSource& source, const char* type, Bytes message)
    : source_(source), type_(type), message_(message), rest_(message) {}

void WireReader::SetError(std::string what) {
  if (!status_.ok()) return;
  status_ = Fail(*source_.error, fmt::format("{} is malformed", type_),
                 {.what = fmt::format("byte offset {}: {}", source_.OffsetOf(rest_), what), .where = source_.place});
  rest_ = {};
}

absl::Status WireReader::Error(std::string title, std::string what) const {
  std::string place = fmt::format("{} at byte offset {}", type_, source_.OffsetOf(message_));
  return Fail(
      *source_.error, std::move(title),
      {.what = std::move(what), .where = source_.place.empty() ? place : fmt::format("{}: {}", source_.place, place)});
}

uint64_t WireReader::Varint() {
  uint64_t value = 0;
  if (status_.ok() && !TakeVarint(&rest_, &value)) {
    SetError(rest_.size() < 10 ? "the bytes end inside of a number" : "a number is longer than ten bytes");
  }
  return value;
}

Bytes WireReader::Take(uint64_t size) {
  if (!status_.ok()) return {};
  if (size > rest_.size()) {
    SetError(fmt::format("field {} needs {} bytes, {} are left", field_, size, rest_.size()));
    return {};
  }
  Bytes out = rest_.first(static_cast<size_t>(size));
  rest_ = rest_.subspan(static_cast<size_t>(size));
  return out;
}

Bytes WireReader::Delimited() { return Take(Varint()); }

bool WireReader::Next() {
  if (!status_.ok() || rest_.empty()) return false;
  Bytes at = rest_;
  field_begin_ = at.data();
  uint64_t tag = Varint();
  if (!status_.ok()) return false;
  field_ = static_cast<uint32_t>(tag >> 3);
  wire_type_ = static_cast<uint32_t>(tag & 7);
  bool known = wire_type_ == kVarint || wire_type_ == kFixed64 || wire_type_ == kDelimited || wire_type_ == kFixed32;
  if (tag > kLargestTag || field_ == 0 || !known) {
    rest_ = at;
    SetError(fmt::format("{} is not the tag of a field", tag));
    return false;
  }
  return true;
}

bool WireReader::Expect(uint32_t wire_type) {
  if (wire_type_ == wire_type) return true;
  SetError(fmt::format("field {} has wire type {}, expected {}", field_, wire_type_, wire_type));
  return false;
}

int64_t WireReader::Int() { return Expect(kVarint) ? static_cast<int64_t>(Varint()) : 0; }

float WireReader::Float() {
  float value = 0;
  if (Expect(kFixed32)) {
    if (Bytes bytes = Take(4); bytes.size() == 4) std::memcpy(&value, bytes.data(), 4);
  }
  return value;
}

Bytes WireReader::Message() { return Expect(kDelimited) ? Delimited() : Bytes{}; }

std::string_view WireReader::Text() { return AsText(Message()); }

void WireReader::Skip() {
  switch (wire_type_) {
    case kVarint: Varint(); break;
    case kFixed64: Take(8); break;
    case kFixed32: Take(4); break;
    default: Delimited(); break;
  }
}

Bytes WireReader::Whole() {
  Skip();
  return status_.ok() ? Bytes(field_begin_, static_cast<size_t>(rest_.data() - field_begin_)) : Bytes();
}

Bytes WireReader::Run(Packed element) {
  uint32_t unpacked = element == Packed::kVarint ? kVarint : element == Packed::kFixed32 ? kFixed32 : kFixed64;
  size_t width = element == Packed::kVarint ? 1 : element == Packed::kFixed32 ? 4 : 8;
  if (wire_type_ == unpacked && unpacked != kVarint) return Take(width);
  if (wire_type_ == unpacked) {
    Bytes before = rest_;
    Varint();
    return status_.ok() ? before.first(before.size() - rest_.size()) : Bytes{};
  }
  Bytes at = rest_;
  Bytes run = Message();
  if (run.size() % width != 0) {
    rest_ = at;
    SetError(fmt::format("field {} has {} bytes, not a multiple of {}", field_, run.size(), width));
    return {};
  }
  return run;
}

void WireReader::AppendInts(Ints& out) {
  Bytes run = Run(Packed::kVarint);
  if (run.empty()) return;
  bool whole = ForEachVarint(run, [&](uint64_t value) {
    out.push_back(static_cast<int64_t>(value));
    return true;
  });
  if (!whole) SetError(fmt::format("field {} holds a broken number", field_));
}

void WireReader::AppendFloats(Floats& out) {
  Bytes run = Run(Packed::kFixed32);
  if (run.empty()) return;
  size_t before = out.size();
  out.resize(before + run.size() / 4);
  std::memcpy(out.data() + before, run.data(), run.size());
}

}  // namespace mge::onnx
