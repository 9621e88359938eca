// SPDX-License-Identifier: Apache-2.0
// Sequences, optionals, maps and strings that a program makes, as inputs and outputs of the public API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mge/mge.hpp"
#include "tests/core/api/api_models.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor Floats(std::initializer_list<float> values) {
  Tensor out;
  EXPECT_TRUE(Tensor::Of<float>({static_cast<int64_t>(values.size())}, values).MoveTo(out).ok());
  return out;
}

Tensor Ints(std::initializer_list<int64_t> values) {
  Tensor out;
  EXPECT_TRUE(Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, values).MoveTo(out).ok());
  return out;
}

class PublicValues : public testing::Test {
 protected:
  void SetUp() override {
    RuntimeOptions options;
    options.built_in_plugins = options.environment = false;
    ASSERT_TRUE(Runtime::Create(options).MoveTo(runtime_).ok());
  }
  Session Load(const std::string& model) {
    Session out;
    const Status s = Session::LoadBytes(runtime_, model.data(), model.size(), {.device = "host"}).MoveTo(out);
    EXPECT_TRUE(s.ok()) << s.text();
    return out;
  }

  Runtime runtime_;
};

TEST_F(PublicValues, AreMadeOfPartsAndReadBack) {
  const Tensor a = Floats({1, 2}), b = Floats({3}), keys = Ints({7, 8});
  Tensor sequence, optional, nothing, map, maps, part;
  ASSERT_TRUE(Tensor::OfParts(MGE_VALUE_SEQUENCE, {&a, &b}).MoveTo(sequence).ok());
  EXPECT_EQ(sequence.kind(), MGE_VALUE_SEQUENCE);
  ASSERT_EQ(sequence.part_count(), 2u);
  ASSERT_TRUE(sequence.Part(1).MoveTo(part).ok());
  EXPECT_THAT(part.data<float>(), ElementsAre(3));
  ASSERT_TRUE(Tensor::OfParts(MGE_VALUE_OPTIONAL, {&sequence}).MoveTo(optional).ok());
  ASSERT_TRUE(optional.Part(0).MoveTo(part).ok());
  EXPECT_EQ(part.part_count(), 2u);
  ASSERT_TRUE(Tensor::OfParts(MGE_VALUE_OPTIONAL, {}).MoveTo(nothing).ok());
  EXPECT_EQ(nothing.part_count(), 0u);
  ASSERT_TRUE(Tensor::OfParts(MGE_VALUE_MAP, {&keys, &a}).MoveTo(map).ok());
  ASSERT_TRUE(Tensor::OfParts(MGE_VALUE_SEQUENCE, {&map, &map}).MoveTo(maps).ok());
  ASSERT_EQ(maps.part_count(), 2u);
  ASSERT_TRUE(maps.Part(1).MoveTo(part).ok());
  EXPECT_EQ(part.kind(), MGE_VALUE_MAP);
}

TEST_F(PublicValues, OfPartsThatDoNotFitAreErrors) {
  const Tensor floats = Floats({1, 2}), ints = Ints({1}), long_keys = Ints({1, 2, 3});
  Tensor map, out;
  ASSERT_TRUE(Tensor::OfParts(MGE_VALUE_MAP, {&ints, &ints}).MoveTo(map).ok());
  const std::pair<Status, const char*> wrong[] = {
      {Tensor::OfParts(MGE_VALUE_SEQUENCE, {&floats, &ints}).MoveTo(out),
       "part 1 of a sequence is int64, and part 0 is float32"},
      {Tensor::OfParts(MGE_VALUE_SEQUENCE, {&map, &ints}).MoveTo(out), "differs in kind"},
      {Tensor::OfParts(MGE_VALUE_OPTIONAL, {&floats, &floats}).MoveTo(out), "an optional is made of no part"},
      {Tensor::OfParts(MGE_VALUE_MAP, {&floats}).MoveTo(out), "a map is made of 2 parts, not of 1"},
      {Tensor::OfParts(MGE_VALUE_MAP, {&floats, &floats}).MoveTo(out), "the keys of a map"},
      {Tensor::OfParts(MGE_VALUE_MAP, {&long_keys, &floats}).MoveTo(out), "the values of a map"},
      {Tensor::OfParts(MGE_VALUE_TENSOR, {&floats}).MoveTo(out), "the kind 0 has no parts"}};
  for (const auto& [status, text] : wrong) {
    EXPECT_EQ(status.id(), 207) << text;
    EXPECT_THAT(std::string(status.text()), HasSubstr(text));
  }
}

TEST_F(PublicValues, OfPartsThatMustNotBeWrittenMustNotBeWrittenEither) {
  const Tensor a = Floats({1, 2});
  Tensor sequence, part, text;
  mge_tensor_set_read_only(a.get());
  ASSERT_TRUE(Tensor::OfParts(MGE_VALUE_SEQUENCE, {&a}).MoveTo(sequence).ok());
  ASSERT_TRUE(sequence.Part(0).MoveTo(part).ok());
  EXPECT_TRUE(sequence.read_only());
  EXPECT_TRUE(part.read_only());
  ASSERT_TRUE(Tensor::Create(MGE_DTYPE_STRING, std::vector<int64_t>{1}).MoveTo(text).ok());
  mge_tensor_set_read_only(text.get());
  EXPECT_EQ(Status(mge_tensor_set_string(text.get(), 0, "x", 1)).id(), 207);
}

TEST_F(PublicValues, AreInputsOfTheDeclaredKind) {
  const std::string model = api_models::SequenceLength();
  Session session = Load(model);
  EXPECT_EQ(session.input(0).kind(), MGE_VALUE_SEQUENCE);
  EXPECT_EQ(session.input(0).part_kind(), MGE_VALUE_TENSOR);
  const Tensor a = Floats({1, 2}), i = Ints({1});
  Tensor two, none, wrong;
  ASSERT_TRUE(Tensor::OfParts(MGE_VALUE_SEQUENCE, {&a, &a}).MoveTo(two).ok());
  ASSERT_TRUE(Tensor::OfParts(MGE_VALUE_SEQUENCE, {}).MoveTo(none).ok());
  ASSERT_TRUE(Tensor::OfParts(MGE_VALUE_SEQUENCE, {&i}).MoveTo(wrong).ok());
  std::vector<Tensor> out;
  for (const auto& [given, length] : {std::pair{&two, 2}, std::pair{&none, 0}}) {
    out.clear();
    const Status s = session.Run({given}, out);
    ASSERT_TRUE(s.ok()) << s.text();
    EXPECT_THAT(out[0].data<int64_t>(), ElementsAre(length));
  }
  EXPECT_THAT(std::string(session.Run({&wrong}, out).text()), HasSubstr("expected float32, got int64"));
  EXPECT_EQ(session.Run({&a}, out).exit_code(), 3);
}

TEST_F(PublicValues, OfMapsWithTheSameKeysAreATable) {
  const std::string model = api_models::LabelledScores();
  Session session = Load(model);
  EXPECT_EQ(session.output(0).part_kind(), MGE_VALUE_MAP);
  Tensor scores;
  ASSERT_TRUE(Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6}).MoveTo(scores).ok());
  std::vector<Tensor> out;
  ASSERT_TRUE(session.Run({&scores}, out).ok());
  mge_tensor *keys = nullptr, *values = nullptr;
  ASSERT_EQ(mge_value_table(out[0].get(), &keys, &values), nullptr);
  const Tensor k(keys), v(values);
  EXPECT_EQ(k.string(1), "yes");
  EXPECT_THAT(v.dims(), ElementsAre(3, 2));
  EXPECT_THAT(v.data<float>(), ElementsAre(1, 2, 3, 4, 5, 6));

  const Tensor a = Ints({1}), b = Ints({2});
  Tensor first, second, maps;
  ASSERT_TRUE(Tensor::OfParts(MGE_VALUE_MAP, {&a, &a}).MoveTo(first).ok());
  ASSERT_TRUE(Tensor::OfParts(MGE_VALUE_MAP, {&b, &a}).MoveTo(second).ok());
  ASSERT_TRUE(Tensor::OfParts(MGE_VALUE_SEQUENCE, {&first, &second}).MoveTo(maps).ok());
  EXPECT_THAT(std::string(Status(mge_value_table(maps.get(), &keys, &values)).text()), HasSubstr("map 1 has other keys"));
  EXPECT_FALSE(Status(mge_value_table(a.get(), &keys, &values)).ok());
}

TEST_F(PublicValues, OfStringsAreOneBlockOfBytes) {
  const int64_t dims[] = {2, 2};
  const uint64_t ends[] = {3, 3, 5, 8};
  mge_tensor* made = nullptr;
  ASSERT_EQ(mge_tensor_create_strings(dims, 2, "abcdefgh", ends, &made), nullptr);
  const Tensor t(made);
  EXPECT_EQ(t.string(0), "abc");
  EXPECT_EQ(t.string(1), "");
  EXPECT_EQ(t.string(3), "fgh");
  uint64_t read[4] = {};
  char bytes[8] = {};
  ASSERT_EQ(mge_tensor_read_strings(t.get(), read, nullptr, 0), nullptr);
  EXPECT_THAT(read, ElementsAre(3, 3, 5, 8));
  ASSERT_EQ(mge_tensor_read_strings(t.get(), read, bytes, sizeof(bytes)), nullptr);
  EXPECT_EQ(std::string(bytes, 8), "abcdefgh");
  EXPECT_THAT(std::string(Status(mge_tensor_read_strings(t.get(), read, bytes, 7)).text()), HasSubstr("string 3"));
  const uint64_t backwards[] = {3, 2, 5, 8};
  EXPECT_THAT(std::string(Status(mge_tensor_create_strings(dims, 2, "abcdefgh", backwards, &made)).text()),
              HasSubstr("string 1 ends before it begins"));
  EXPECT_FALSE(Status(mge_tensor_read_strings(Floats({1}).get(), read, bytes, 8)).ok());
}

}  // namespace
}  // namespace mge
