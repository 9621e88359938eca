// SPDX-License-Identifier: Apache-2.0
#include "core/base/npy.h"

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <random>

#include "core/base/errors.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Npy(const std::string& header, const std::string& data, int version = 1) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) out += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return out + header + data;
}
std::string Header(const std::string& descr, const std::string& shape, const char* fortran = "False") {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}\n", descr, fortran, shape);
}
template <typename T>
std::string Raw(std::vector<T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
absl::StatusOr<Tensor> Read(const std::string& bytes) { return ReadNpyBytes(AsBytes(bytes), "x.npy"); }

void ExpectBad(const std::string& bytes, const ErrorRow& row, const std::string& text) {
  auto read = Read(bytes);
  EXPECT_EQ(ErrorId(read.status()), row.id) << FormatError(read.status());
  EXPECT_THAT(FormatError(read.status()), HasSubstr(text));
  EXPECT_THAT(FormatError(read.status()), HasSubstr("x.npy"));
}

TEST(Npy, WriteThenReadIsTheSame) {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  for (const Tensor& tensor : {Tensor::Of<float>({2, 3}, values), Tensor::Scalar<int64_t>(-7), Tensor::Scalar<bool>(true),
                               *Tensor::Create(DType::kF16, {0, 3}), Tensor::Of<float>({6}, values)}) {
    auto bytes = NpyBytes(tensor);
    ASSERT_TRUE(bytes.ok());
    auto back = Read(*bytes);
    ASSERT_TRUE(back.ok()) << FormatError(back.status());
    EXPECT_EQ(back->dtype(), tensor.dtype());
    EXPECT_EQ(back->shape(), tensor.shape());
    EXPECT_EQ(std::memcmp(back->data(), tensor.data(), static_cast<size_t>(tensor.bytes())), 0);
    EXPECT_EQ((bytes->size() - static_cast<size_t>(tensor.bytes())) % 64, 0u);
  }
}

TEST(Npy, WritesTheSameBytesAsNumpy) {
  std::string bytes = *NpyBytes(Tensor::Of<float>({2, 1}, std::vector<float>{1, 2}));
  EXPECT_THAT(bytes, HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }  "));
  EXPECT_THAT(*NpyBytes(Tensor::Scalar<uint8_t>(1)), HasSubstr("'descr': '|u1', 'fortran_order': False, 'shape': (), }"));
  EXPECT_THAT(*NpyBytes(Tensor::Vector<float>(std::vector<float>{1})), HasSubstr("'shape': (1,), }"));
}

TEST(Npy, ReadsEveryVersion) {
  for (int version : {1, 2, 3}) {
    auto t = Read(Npy(Header("<i4", "(2,)"), Raw<int32_t>({1, -2}), version));
    ASSERT_TRUE(t.ok()) << FormatError(t.status());
    EXPECT_THAT(t->Data<int32_t>(), ElementsAre(1, -2));
  }
  ExpectBad(Npy(Header("<i4", "(2,)"), Raw<int32_t>({1, -2}), 4), errors::kBadInputFile, "version 4.0");
}

TEST(Npy, ConvertsColumnMajorArrays) {
  auto t = Read(Npy(Header("<f4", "(2, 3)", "True"), Raw<float>({1, 4, 2, 5, 3, 6})));
  ASSERT_TRUE(t.ok());
  EXPECT_THAT(t->Data<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  auto cube = Read(Npy(Header("<i2", "(2, 2, 2)", "True"), Raw<int16_t>({0, 4, 2, 6, 1, 5, 3, 7})));
  EXPECT_THAT(cube->Data<int16_t>(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(Npy, ConvertsBigEndianArrays) {
  auto t = Read(Npy(Header(">i4", "(2,)"), std::string("\0\0\1\2\xff\xff\xff\xfe", 8)));
  ASSERT_TRUE(t.ok());
  EXPECT_THAT(t->Data<int32_t>(), ElementsAre(0x102, -2));
  auto c = Read(Npy(Header(">c8", "(1,)"), std::string("\x3f\x80\0\0\x40\0\0\0", 8)));
  ASSERT_TRUE(c.ok());
  const float* parts = static_cast<const float*>(c->data());
  EXPECT_EQ(parts[0], 1);
  EXPECT_EQ(parts[1], 2);
}

TEST(Npy, TextIsUtf8) {
  std::string units("a\0\0\0\xfc\0\0\0b\0\0\0\0\0\0\0", 16);
  auto t = Read(Npy(Header("<U2", "(2,)"), units));
  ASSERT_TRUE(t.ok()) << FormatError(t.status());
  EXPECT_THAT(t->Data<std::string>(), ElementsAre("a\xc3\xbc", "b"));
  auto back = Read(*NpyBytes(*t));
  EXPECT_THAT(back->Data<std::string>(), ElementsAre("a\xc3\xbc", "b"));
  ExpectBad(Npy(Header("<U1", "(1,)"), std::string("\0\xd8\0\0", 4)), errors::kBadInputFile, "invalid Unicode character");
  Tensor bad = Tensor::Scalar<std::string>("\xff");
  EXPECT_EQ(ErrorId(NpyBytes(bad).status()), errors::kUnsupportedType.id);
}

TEST(Npy, BFloat16WidensWhenWrittenAndIsRefusedWhenRead) {
  auto t = Tensor::Create(DType::kBF16, {2});
  t->MutableData<BFloat16>()[0] = BFloat16(1.5f);
  t->MutableData<BFloat16>()[1] = BFloat16(-2);
  auto back = Read(*NpyBytes(*t));
  ASSERT_TRUE(back.ok());
  EXPECT_THAT(back->Data<float>(), ElementsAre(1.5f, -2));
  ExpectBad(Npy(Header("<V2", "(1,)"), "ab"), errors::kUnsupportedType, "bfloat16");
}

TEST(Npy, ShortTypesWidenWhenWritten) {
  auto t = Tensor::Create(DType::kI4, {2});
  t->MutableData<uint8_t>()[0] = 0xf;
  t->MutableData<uint8_t>()[1] = 7;
  EXPECT_THAT(Read(*NpyBytes(*t))->Data<int8_t>(), ElementsAre(-1, 7));
  const Tensor real = t->Within(DType::kF4E2M1, {2}, t->data());
  EXPECT_THAT(Read(*NpyBytes(real))->Data<float>(), ElementsAre(-6, 6));
}

TEST(Npy, PicklesAreNeverRead) {
  ExpectBad(Npy(Header("|O", "(1,)"), "\x80\x03K\x01."), errors::kUnsupportedType, "pickles");
  ExpectBad("\x80\x04\x95", errors::kBadInputFile, "pickled objects are never read");
  ExpectBad(Npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }\n", "1234"), errors::kUnsupportedType,
            "records");
}

TEST(Npy, SizesAreCheckedBeforeAnythingIsAllocated) {
  ExpectBad(Npy(Header("<f4", "(1099511627776, 1024)"), "1234"), errors::kBadInputFile, "4 are there");
  ExpectBad(Npy(Header("<f4", "(4611686018427387904, 4)"), ""), errors::kBadInputFile, "size overflow");
  ExpectBad(Npy(Header("<f4", "(99999999999999999999,)"), ""), errors::kBadInputFile, "malformed");
  ExpectBad(Npy(Header("<f4", "(-1,)"), ""), errors::kBadInputFile, "malformed");
  ExpectBad(Npy(Header("<U9223372036854775807", "(2,)"), ""), errors::kUnsupportedType, "");
  ExpectBad(Npy(Header("<U0", "(1000000000000,)"), ""), errors::kBadInputFile, "empty strings");
}

TEST(Npy, TrailingBytesAreRefused) {
  ExpectBad(Npy(Header("<f4", "(1,)"), "12345"), errors::kBadInputFile, "needs 4 bytes of data, 5 are there");
}

TEST(Npy, WrongHeadersAreRefused) {
  ExpectBad("", errors::kBadInputFile, "signature");
  ExpectBad("PK\x03\x04", errors::kBadInputFile, ".npz");
  std::string lies = Npy(Header("<f4", "(1,)"), "1234");
  lies[8] = '\xff';
  lies[9] = '\xff';
  ExpectBad(lies, errors::kBadInputFile, "65535 bytes");
  for (std::string header : {"", "{}", "[]", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': 0, 'shape': ()}",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
                             "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (), }",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (), 'more': 1}",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': ()} x",
                             "{'descr': __import__('os'), 'fortran_order': False, 'shape': ()}"}) {
    ExpectBad(Npy(header, "1234"), errors::kBadInputFile, "its header");
  }
  ExpectBad(Npy(Header("<f3", "()"), "123"), errors::kUnsupportedType, "'<f3'");
  ExpectBad(Npy(Header("|b1", "(1,)"), "\x02"), errors::kBadInputFile, "not 0 or 1");
}

TEST(Npy, EveryPrefixIsAnError) {
  std::string bytes = *NpyBytes(Tensor::Of<float>({2}, std::vector<float>{1, 2}));
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(Read(bytes.substr(0, n)).ok()) << n;
}

TEST(Npy, MutationsAreErrorsOrArrays) {
  std::mt19937 random(1);
  std::string bytes = *NpyBytes(Tensor::Of<float>({2, 3}, std::vector<float>(6, 1)));
  for (int i = 0; i < 5000; ++i) {
    std::string changed = bytes;
    for (int n = 1 + static_cast<int>(random() % 4); n > 0; --n)
      changed[random() % changed.size()] = static_cast<char>(random());
    auto read = Read(changed);
    EXPECT_TRUE(read.ok() || ErrorId(read.status()) != 0);
  }
}

// --- npz

struct ZipMember {
  std::string name, data;
  bool deflate = false;
  int64_t declared = -1;  // unpacked size to declare; -1: the real size
};

std::string Little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

std::string Deflate(const std::string& data) {
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, data.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string Zip(const std::vector<ZipMember>& members) {
  std::string out, directory;
  for (const ZipMember& m : members) {
    std::string packed = m.deflate ? Deflate(m.data) : m.data;
    uint64_t unpacked = m.declared >= 0 ? static_cast<uint64_t>(m.declared) : m.data.size();
    std::string facts = Little(20, 2) + Little(0, 2) + Little(m.deflate ? 8 : 0, 2) + Little(0, 4) +
                        Little(crc32_z(0, reinterpret_cast<const Bytef*>(m.data.data()), m.data.size()), 4) +
                        Little(packed.size(), 4) + Little(unpacked, 4) + Little(m.name.size(), 2);
    directory += "PK\x01\x02" + Little(20, 2) + facts + Little(0, 2) + Little(0, 2) + Little(0, 2) + Little(0, 2) +
                 Little(0, 4) + Little(out.size(), 4) + m.name;
    out += "PK\x03\x04" + facts + Little(0, 2) + m.name + packed;
  }
  return out + directory + "PK\x05\x06" + Little(0, 4) + Little(members.size(), 2) + Little(members.size(), 2) +
         Little(directory.size(), 4) + Little(out.size(), 4) + Little(0, 2);
}

const std::string& OneArray() {
  static const std::string bytes = *NpyBytes(Tensor::Of<float>({2}, std::vector<float>{1, 2}));
  return bytes;
}
absl::StatusOr<NamedTensors> ReadZip(const std::string& bytes, const NpzLimits& limits = {}) {
  return ReadNpzBytes(AsBytes(bytes), "x.npz", limits);
}

TEST(Npz, ReadsStoredAndDeflatedMembers) {
  auto read = ReadZip(Zip({{"a.npy", OneArray()}, {"dir/b.npy", OneArray(), true}}));
  ASSERT_TRUE(read.ok()) << FormatError(read.status());
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].first, "a");
  EXPECT_EQ((*read)[1].first, "dir/b");
  EXPECT_THAT((*read)[1].second.Data<float>(), ElementsAre(1, 2));
  EXPECT_TRUE(ReadZip(Zip({})).ok());
}

TEST(Npz, HasNamesAndSingleArrays) {
  const std::string good = Zip({{"a.npy", OneArray()}, {"dir/b.npy", OneArray(), true}});
  const std::string broken = Zip({{"a.npy", OneArray()}, {"b.npy", "", true}});
  EXPECT_THAT(*NpzNames(AsBytes(good), "x.npz"), ElementsAre("a", "dir/b"));
  EXPECT_THAT(*NpzNames(AsBytes(broken), "x.npz"), ElementsAre("a", "b"));
  EXPECT_THAT(ReadNpzArray(AsBytes(good), "x.npz", "dir/b")->Data<float>(), ElementsAre(1, 2));
  EXPECT_TRUE(ReadNpzArray(AsBytes(broken), "x.npz", "a").ok()) << "other arrays are not read";
  EXPECT_TRUE(ReadNpzArray(AsBytes(Zip({{"a.npy", OneArray()}})), "x.npz", "").ok());
  const absl::Status unnamed = ReadNpzArray(AsBytes(good), "x.npz", "").status();
  EXPECT_THAT(FormatError(unnamed), HasSubstr("'x.npz' holds 2 arrays"));
  EXPECT_THAT(FormatError(unnamed), HasSubstr("name one, as in 'x.npz:a'"));
  EXPECT_THAT(FormatError(ReadNpzArray(AsBytes(good), "x.npz", "c").status()), HasSubstr("holds no array 'c'"));
  EXPECT_EQ(ErrorId(NpzNames(AsBytes(Zip({{"a.txt", "x"}})), "x.npz").status()), errors::kBadInputFile.id);
}

TEST(Npz, MembersThatUnpackBeyondTheLimitAreRefused) {
  // Deflate can pack a gigabyte of zeros into a megabyte. The size limit must refuse it.
  auto over = ReadZip(Zip({{"a.npy", OneArray(), true, int64_t{1} << 31}}));
  EXPECT_EQ(ErrorId(over.status()), errors::kBadInputFile.id);
  EXPECT_THAT(FormatError(over.status()), HasSubstr("claims to unpack 2147483648 bytes"));
  std::string zeros(1 << 20, '\0');
  std::string bomb = Zip({{"a.npy", Npy(Header("|u1", "(1048576,)"), zeros), true}});
  EXPECT_TRUE(ReadZip(bomb).ok());
  EXPECT_EQ(ErrorId(ReadZip(bomb, {.max_total_bytes = 1000}).status()), errors::kLimit.id);
  EXPECT_EQ(ErrorId(ReadZip(Zip({{"a.npy", ""}, {"b.npy", ""}}), {.max_members = 1}).status()), errors::kLimit.id);
}

TEST(Npz, WrongDeclaredSizesAreRefused) {
  for (int64_t wrong : {0, 1, 127, 129, 200}) {
    auto read = ReadZip(Zip({{"a.npy", OneArray(), true, wrong}}));
    EXPECT_EQ(ErrorId(read.status()), errors::kBadInputFile.id) << wrong << FormatError(read.status());
  }
}

TEST(Npz, ErrorsNameTheDamagedPart) {
  std::string good = Zip({{"a.npy", OneArray()}});
  std::string damaged = good;
  damaged[good.find("(2,)") + 1] = '3';
  EXPECT_THAT(FormatError(ReadZip(damaged).status()), HasSubstr("member 'a.npy' has a wrong checksum"));
  EXPECT_THAT(FormatError(ReadZip(Zip({{"a.txt", "x"}})).status()), HasSubstr("is not a .npy file"));
  EXPECT_THAT(FormatError(ReadZip(Zip({{"a.npy", OneArray()}, {"a.npy", OneArray()}})).status()), HasSubstr("twice"));
  for (size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(ReadZip(good.substr(0, n)).ok()) << n;
}

TEST(Npz, MutationsAreErrorsOrArrays) {
  std::mt19937 random(2);
  std::string good = Zip({{"a.npy", OneArray()}, {"b.npy", OneArray(), true}});
  for (int i = 0; i < 5000; ++i) {
    std::string changed = good;
    for (int n = 1 + static_cast<int>(random() % 4); n > 0; --n)
      changed[random() % changed.size()] = static_cast<char>(random());
    auto read = ReadZip(changed);
    EXPECT_TRUE(read.ok() || ErrorId(read.status()) != 0);
  }
}

}  // namespace
}  // namespace mge
