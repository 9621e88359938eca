// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "core/base/errors.h"
#include "core/base/input_file.h"
#include "core/base/npy.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int64_t kDeflateRatio = 1032;       // the best ratio that deflate can reach
constexpr std::string_view kSuffix = ".npy";  // of a member that is an array
constexpr size_t kEndBytes = 22, kCentralBytes = 46, kLocalBytes = 30, kEnd64LocatorBytes = 20, kEnd64Bytes = 56;

absl::Status BadNpz(std::string_view place, std::string what, std::string fix = {}) {
  return Fail(errors::kBadInputFile, "the npz archive is malformed",
              {.what = std::move(what), .where = std::string(place), .fix = std::move(fix)});
}

// Returns the little-endian number of `size` bytes at `at`. The caller checks that the bytes exist.
uint64_t Number(Bytes bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= std::to_integer<uint64_t>(bytes[at + i]) << (8 * i);
  return value;
}

bool HasSignature(Bytes bytes, size_t at, size_t size, std::string_view signature) {
  return at <= bytes.size() && size <= bytes.size() - at && AsText(bytes.subspan(at, 4)) == signature;
}

struct Member {
  std::string name;
  uint64_t method = 0, crc = 0, packed = 0, unpacked = 0, offset = 0;
};

struct Directory {
  uint64_t count = 0, offset = 0;
};

absl::StatusOr<Directory> FindDirectory(Bytes file, std::string_view place) {
  // Only a comment of at most 64 KiB may follow the end record.
  size_t at = file.size();
  if (file.size() >= kEndBytes) {
    size_t lowest = file.size() > kEndBytes + 0xffff ? file.size() - kEndBytes - 0xffff : 0;
    for (at = file.size() - kEndBytes; at > lowest && !HasSignature(file, at, kEndBytes, "PK\x05\x06");) --at;
  }
  if (!HasSignature(file, at, kEndBytes, "PK\x05\x06")) return BadNpz(place, "it has no directory at its end");
  Directory out{Number(file, at + 10, 2), Number(file, at + 16, 4)};
  if (out.count != 0xffff && out.offset != 0xffffffff) return out;
  if (at < kEnd64LocatorBytes || !HasSignature(file, at - kEnd64LocatorBytes, kEnd64LocatorBytes, "PK\x06\x07")) {
    return out;
  }
  uint64_t end64 = Number(file, at - kEnd64LocatorBytes + 8, 8);
  if (!HasSignature(file, end64, kEnd64Bytes, "PK\x06\x06")) return BadNpz(place, "its 64-bit directory is missing");
  return Directory{Number(file, end64 + 32, 8), Number(file, end64 + 48, 8)};
}

// Reads sizes and offsets of 4 GiB and above from the extra field with id 1. The field holds, in this order, only the
// values whose 32-bit form is 0xffffffff. Returns false if the field is cut off.
bool ReadZip64(Bytes extra, Member& member) {
  uint64_t* wide[] = {&member.unpacked, &member.packed, &member.offset};
  bool needed = std::any_of(std::begin(wide), std::end(wide), [](uint64_t* v) { return *v == 0xffffffff; });
  while (needed && extra.size() >= 4) {
    size_t id = Number(extra, 0, 2), size = Number(extra, 2, 2);
    extra = extra.subspan(4);
    if (size > extra.size()) return false;
    if (id == 1) {
      Bytes field = extra.first(size);
      for (uint64_t* value : wide) {
        if (*value != 0xffffffff) continue;
        if (field.size() < 8) return false;
        *value = Number(field, 0, 8);
        field = field.subspan(8);
      }
      return true;
    }
    extra = extra.subspan(size);
  }
  return true;
}

absl::StatusOr<std::vector<Member>> ReadDirectory(Bytes file, std::string_view place, const NpzLimits& limits) {
  MGE_ASSIGN_OR_RETURN(Directory directory, FindDirectory(file, place));
  if (directory.count > static_cast<uint64_t>(limits.max_members)) {
    return Fail(
        errors::kLimit, "the npz archive has too many members",
        {.what = fmt::format("{}; the limit is {}", directory.count, limits.max_members), .where = std::string(place)});
  }
  std::vector<Member> members;
  uint64_t at = directory.offset, packed = 0, unpacked = 0;
  for (uint64_t i = 0; i < directory.count; ++i) {
    if (!HasSignature(file, at, kCentralBytes, "PK\x01\x02")) {
      return BadNpz(place, fmt::format("byte offset {}: entry {} of its directory is missing", at, i));
    }
    size_t name = Number(file, at + 28, 2), extra = Number(file, at + 30, 2), comment = Number(file, at + 32, 2);
    size_t rest = file.size() - at - kCentralBytes;
    if (name + extra + comment > rest) return BadNpz(place, fmt::format("byte offset {}: entry {} is cut off", at, i));
    Member member;
    member.name = std::string(AsText(file.subspan(at + kCentralBytes, name)));
    member.method = Number(file, at + 10, 2);
    member.crc = Number(file, at + 16, 4);
    member.packed = Number(file, at + 20, 4);
    member.unpacked = Number(file, at + 24, 4);
    member.offset = Number(file, at + 42, 4);
    if (Number(file, at + 8, 2) & 1) return BadNpz(place, fmt::format("member '{}' is encrypted", member.name));
    if (!ReadZip64(file.subspan(at + kCentralBytes + name, extra), member)) {
      return BadNpz(place, fmt::format("member '{}' has a broken 64-bit size", member.name));
    }
    // A member that shares bytes with another, or exceeds deflate's best ratio, is an attack (zip bomb).
    if (member.packed > file.size() - packed || member.unpacked / kDeflateRatio > member.packed) {
      return BadNpz(
          place, fmt::format("member '{}' claims to unpack {} bytes from {}", member.name, member.unpacked, member.packed));
    }
    packed += member.packed;
    if (member.unpacked > static_cast<uint64_t>(limits.max_total_bytes) - unpacked) {
      return Fail(errors::kLimit, "the npz archive is too large when unpacked",
                  {.what = fmt::format("the limit is {} bytes", limits.max_total_bytes), .where = std::string(place)});
    }
    unpacked += member.unpacked;
    members.push_back(std::move(member));
    at += kCentralBytes + name + extra + comment;
  }
  return members;
}

// Unpacks exactly out.size() bytes. Returns false if there are more or fewer bytes, or the stream is malformed.
bool Inflate(Bytes packed, std::span<std::byte> out) {
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
  constexpr size_t kChunk = std::numeric_limits<uInt>::max();
  int result = Z_OK;
  std::byte spare;  // receives output beyond `out`, to detect that there is more
  size_t in_at = 0, out_at = 0;
  while (result == Z_OK) {
    size_t in_now = std::min(packed.size() - in_at, kChunk);
    size_t out_now = std::min(out.size() - out_at, kChunk);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + in_at));
    stream.avail_in = static_cast<uInt>(in_now);
    stream.next_out = reinterpret_cast<Bytef*>(out_now ? out.data() + out_at : &spare);
    stream.avail_out = out_now ? static_cast<uInt>(out_now) : 1;
    uInt out_before = stream.avail_out;
    result = inflate(&stream, Z_NO_FLUSH);
    size_t written = out_before - stream.avail_out;
    if (!out_now && written > 0) result = Z_DATA_ERROR;
    in_at += in_now - stream.avail_in;
    out_at += out_now ? written : 0;
  }
  inflateEnd(&stream);
  return result == Z_STREAM_END && out_at == out.size();
}

absl::StatusOr<Tensor> ReadMember(Bytes file, std::string_view place, const Member& member, HostAllocator& allocator) {
  if (!HasSignature(file, member.offset, kLocalBytes, "PK\x03\x04")) {
    return BadNpz(place, fmt::format("member '{}' is not at byte offset {}", member.name, member.offset));
  }
  uint64_t skip = kLocalBytes + Number(file, member.offset + 26, 2) + Number(file, member.offset + 28, 2);
  uint64_t left = file.size() - member.offset;
  if (skip > left || member.packed > left - skip) return BadNpz(place, fmt::format("member '{}' is cut off", member.name));
  Bytes data = file.subspan(member.offset + skip, member.packed);
  std::shared_ptr<std::byte> memory;
  if (member.method == 8) {
    MGE_ASSIGN_OR_RETURN(memory, allocator.Allocate(static_cast<int64_t>(member.unpacked)));
    std::span<std::byte> out(memory.get(), member.unpacked);
    if (!Inflate(data, out)) return BadNpz(place, fmt::format("member '{}' does not unpack to its size", member.name));
    data = out;
  } else if (member.method != 0 || member.packed != member.unpacked) {
    return BadNpz(place, fmt::format("member '{}' is packed by method {}; supported are 0 (stored) and 8 (deflated)",
                                     member.name, member.method));
  }
  if (crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()) != member.crc) {
    return BadNpz(place, fmt::format("member '{}' has a wrong checksum", member.name));
  }
  return ReadNpyBytes(data, fmt::format("{}: {}", place, member.name), allocator);
}

std::string ArrayName(const Member& member) { return member.name.substr(0, member.name.size() - kSuffix.size()); }

// Reads the directory and checks that its members are arrays with different names.
absl::StatusOr<std::vector<Member>> ReadArrayNames(Bytes file, std::string_view place, const NpzLimits& limits) {
  MGE_ASSIGN_OR_RETURN(std::vector<Member> members, ReadDirectory(file, place, limits));
  std::set<std::string_view> names;
  for (const Member& member : members) {
    if (!member.name.ends_with(kSuffix)) {
      return BadNpz(place, fmt::format("member '{}' is not a .npy file", member.name), "save arrays only: numpy.savez");
    }
    if (!names.insert(member.name).second) {
      return BadNpz(place, fmt::format("member '{}' is in it twice", member.name));
    }
  }
  return members;
}

}  // namespace

absl::StatusOr<NamedTensors> ReadNpzBytes(Bytes bytes, std::string_view place, const NpzLimits& limits,
                                          HostAllocator& allocator) {
  MGE_ASSIGN_OR_RETURN(const std::vector<Member> members, ReadArrayNames(bytes, place, limits));
  NamedTensors out;
  for (const Member& member : members) {
    MGE_ASSIGN_OR_RETURN(Tensor tensor, ReadMember(bytes, place, member, allocator));
    out.emplace_back(ArrayName(member), std::move(tensor));
  }
  return out;
}

absl::StatusOr<std::vector<std::string>> NpzNames(Bytes bytes, std::string_view place) {
  MGE_ASSIGN_OR_RETURN(const std::vector<Member> members, ReadArrayNames(bytes, place, {}));
  std::vector<std::string> names;
  for (const Member& member : members) names.push_back(ArrayName(member));
  return names;
}

absl::StatusOr<Tensor> ReadNpzArray(Bytes bytes, std::string_view place, const std::string& name, const NpzLimits& limits,
                                    HostAllocator& allocator) {
  MGE_ASSIGN_OR_RETURN(const std::vector<Member> members, ReadArrayNames(bytes, place, limits));
  std::vector<std::string> names;
  for (const Member& member : members) {
    names.push_back(ArrayName(member));
    if (names.back() == name || (name.empty() && members.size() == 1)) return ReadMember(bytes, place, member, allocator);
  }
  return Fail(errors::kBadInputFile,
              name.empty() ? fmt::format("'{}' holds {} arrays", place, members.size())
                           : fmt::format("'{}' holds no array '{}'", place, name),
              {.what = fmt::format("it holds: {}", fmt::join(names, ", ")),
               .fix = fmt::format("name one, as in '{}:{}'", place.ends_with(".npz") ? place : "FILE.npz",
                                  names.empty() ? "NAME" : names.front())});
}

absl::StatusOr<NamedTensors> ReadNpz(const std::string& path, const NpzLimits& limits, HostAllocator& allocator) {
  MGE_ASSIGN_OR_RETURN(const InputBytes file, ReadInput(path, kMaxArrayFileBytes));
  return ReadNpzBytes(file.bytes, file.name, limits, allocator);
}

}  // namespace mge
