// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/wire.h"

#include "tests/core/onnx/onnx_test_util.h"

namespace mge::onnx {
namespace {

struct Seen {
  std::vector<uint32_t> fields;
  absl::Status status;
};

Seen Walk(const std::string& bytes) {
  WireSource source;
  source.bytes = AsBytes(bytes);
  WireReader reader(source, "ModelProto", source.bytes);
  Seen seen;
  while (reader.Next()) {
    seen.fields.push_back(reader.field());
    reader.Skip();
  }
  seen.status = reader.status();
  return seen;
}

TEST(Wire, WalksEveryWireType) {
  std::string bytes =
      "\x08\x05"
      "\x11"
      "12345678"
      "\x1a\x02"
      "ab"
      "\x25"
      "1234";
  Seen seen = Walk(bytes);
  EXPECT_TRUE(seen.status.ok());
  EXPECT_THAT(seen.fields, ::testing::ElementsAre(1, 2, 3, 4));
}

TEST(Wire, NamesTheOffsetWhereTheBytesEnd) {
  ExpectError(Walk("\x08\x05\x1a\x7f"
                   "ab")
                  .status,
              errors::kMalformedModel, "byte offset 4: field 3 needs 127 bytes, 2 are left");
  ExpectError(Walk("\x08\x05\x08").status, errors::kMalformedModel, "byte offset 3: the bytes end inside of a number");
  ExpectError(Walk("\x25"
                   "12")
                  .status,
              errors::kMalformedModel, "needs 4 bytes, 2 are left");
}

TEST(Wire, RefusesLengthsBeyond32Bits) {
  // The length is 2^32 + 1. A reader that truncates lengths to 32 bits would read a length of 1.
  ExpectError(Walk(std::string("\x1a\x81\x80\x80\x80\x10", 6) + "a").status, errors::kMalformedModel,
              "needs 4294967297 bytes");
  ExpectError(Walk("\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                   "a")
                  .status,
              errors::kMalformedModel, "needs 18446744073709551615 bytes");
}

TEST(Wire, RefusesOverlongNumbers) {
  ExpectError(Walk("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01").status, errors::kMalformedModel,
              "longer than ten bytes");
}

TEST(Wire, RefusesInvalidTags) {
  ExpectError(Walk(std::string("\x00\x00", 2)).status, errors::kMalformedModel, "byte offset 0: 0 is not the tag");
  ExpectError(Walk("\x0b\x0c").status, errors::kMalformedModel, "11 is not the tag");  // the tag of a group
  ExpectError(Walk("\x88\x80\x80\x80\x80\x01\x01").status, errors::kMalformedModel,
              "is not the tag");  // a tag beyond 32 bits
}

TEST(Wire, RefusesKnownFieldsOfAnotherWireType) {
  ExpectError(Read(TextField(field::model::kIrVersion, "8")).status(), errors::kNotOnnx, "wire type 2, expected 0");
  ExpectError(Read(IntField(field::model::kIrVersion, 8) + IntField(field::model::kGraph, 1)).status(),
              errors::kMalformedModel, "wire type 0, expected 2");
}

TEST(Wire, SkipsUnknownFieldsWhateverTheyHold) {
  Proto unknown = TextField(1000, std::string(500, '\xff')) + IntField(1001, -1);
  auto read = Read(unknown + ReluModel() + unknown);
  EXPECT_TRUE(read.ok()) << FormatError(read.status());
}

TEST(Wire, ReadsPackedAndUnpackedNumbers) {
  WireSource source;
  std::string bytes = IntField(8, 3) + PackedIntField(8, {4, -5}) + IntField(8, 6);
  source.bytes = AsBytes(bytes);
  WireReader reader(source, "AttributeProto", source.bytes);
  Ints out;
  while (reader.Next()) reader.AppendInts(out);
  EXPECT_TRUE(reader.status().ok());
  EXPECT_THAT(out, ::testing::ElementsAre(3, 4, -5, 6));
}

TEST(Wire, RefusesTruncatedPackedNumbers) {
  Proto attr = TextField(1, "perm") + TextField(8, "\x01\x80") + IntField(20, 7);
  Proto model = ModelProto({.graph = GraphProto({.nodes = {NodeProto("Transpose", {"x"}, {"y"}, {.attributes = {attr}})},
                                                 .inputs = {ValueInfo("x", DType::kF32, {2})},
                                                 .outputs = {ValueInfo("y", DType::kF32, {2})}})});
  ExpectError(Read(model).status(), errors::kMalformedModel, "broken number");
}

}  // namespace
}  // namespace mge::onnx
