// SPDX-License-Identifier: Apache-2.0
// GroupQueryAttention of a few new tokens over a cache, compared with the operator's body.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/cpu/under_test.h"

namespace mge::testing {
namespace {

struct Sizes {
  int64_t batch = 1, queries = 1, heads = 4, kv_heads = 2, size = 32;
  int64_t past = 5;   // rows of the past; 0: there is none
  int64_t total = 6;  // most valid keys
  bool packed = false;
  std::vector<double> last = {};  // seqlens_k; empty: total - 1 for all
  Attributes attrs = {};
  int64_t half = 0;  // rotated pairs
  std::vector<double> positions = {};
  bool sinks = false;
};

Case CaseOf(const Sizes& s) {
  auto floats = [](Shape shape, uint64_t seed) { return Random(DType::kF32, std::move(shape), -1, 1, seed); };
  const int64_t all = s.packed ? s.heads + 2 * s.kv_heads : s.heads;
  Tensor q = floats({s.batch, s.queries, all * s.size}, 1), k, v, past_key, past_value, cos, sin, positions;
  if (!s.packed) {
    k = floats({s.batch, s.queries, s.kv_heads * s.size}, 2);
    v = floats({s.batch, s.queries, s.kv_heads * s.size}, 3);
  }
  if (s.past) {
    past_key = floats({s.batch, s.kv_heads, s.past, s.size}, 4);
    past_value = floats({s.batch, s.kv_heads, s.past, s.size}, 5);
  }
  const std::vector<double> last =
      s.last.empty() ? std::vector<double>(static_cast<size_t>(s.batch), static_cast<double>(s.total - 1)) : s.last;
  Attributes attrs = s.attrs;
  attrs.Set("num_heads", s.heads);
  attrs.Set("kv_num_heads", s.kv_heads);
  if (s.half) {
    attrs.Set("do_rotary", int64_t{1});
    cos = floats({s.past + s.total + 3, s.half}, 6);
    sin = floats({s.past + s.total + 3, s.half}, 7);
  }
  if (!s.positions.empty()) positions = Fill(DType::kI64, {s.batch, s.queries}, s.positions);
  return OneNode("GroupQueryAttention",
                 {q, k, v, past_key, past_value, Fill(DType::kI32, {s.batch}, last),
                  Fill(DType::kI32, {1}, {static_cast<double>(s.total)}), cos, sin, positions, Tensor(),
                  s.sinks ? Random(DType::kF32, {s.heads}, -2, 3, 8) : Tensor()},
                 attrs, {6}, 3, "com.microsoft");
}

// Checks that the kernel is offered, and computes what the body does.
void ExpectEqualToTheBody(Backend& backend, const Sizes& sizes) {
  const Backend::Outcome outcome = backend.Check(CaseOf(sizes), Roughly);
  ASSERT_EQ(outcome.candidates.size(), 1u);
}

TEST(GroupQueryAttention, OfOneTokenReadsTheWholeCache) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t size : {2, 16, 31, 64, 80, 128, 256}) {
      for (int64_t past : {1, 3, 255, 256, 600}) {
        ExpectEqualToTheBody(backend, {.size = size, .past = past, .total = past + 1, .packed = size % 32 == 0});
      }
    }
  });
}

TEST(GroupQueryAttention, SharesKeysAmongAnyNumberOfHeads) {
  OnEveryMachine([](Backend& backend) {
    for (auto [heads, kv_heads] : {std::pair<int64_t, int64_t>{1, 1}, {7, 1}, {6, 6}, {6, 2}, {20, 4}, {12, 4}}) {
      ExpectEqualToTheBody(backend, {.heads = heads, .kv_heads = kv_heads, .past = 40, .total = 41});
      ExpectEqualToTheBody(backend,
                           {.batch = 3, .heads = heads, .kv_heads = kv_heads, .past = 9, .total = 10, .packed = true});
    }
  });
}

TEST(GroupQueryAttention, OfSeveralTokensIsCausalUnlessItSaysOtherwise) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t queries : {2, 5, 16}) {
      for (int64_t causal : {0, 1}) {
        const Attributes attrs = With({{"causal", causal}});
        ExpectEqualToTheBody(backend, {.queries = queries, .past = 12, .total = 12 + queries, .attrs = attrs});
        ExpectEqualToTheBody(backend, {.queries = queries, .past = 0, .total = queries, .packed = true, .attrs = attrs});
      }
    }
  });
}

TEST(GroupQueryAttention, RotatesPairsOfHalvesOrNeighbours) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t interleaved : {0, 1}) {
      const Attributes attrs = With({{"rotary_interleaved", interleaved}});
      for (int64_t half : {8, 16}) {  // a part of the head, and all of it
        ExpectEqualToTheBody(backend, {.past = 7, .total = 8, .attrs = attrs, .half = half});
        ExpectEqualToTheBody(backend, {.queries = 3, .past = 7, .total = 10, .packed = true, .attrs = attrs, .half = half});
      }
      ExpectEqualToTheBody(
          backend, {.batch = 2, .queries = 2, .past = 3, .total = 5, .attrs = attrs, .half = 16, .positions = {0, 4, 2, 1}});
    }
  });
}

TEST(GroupQueryAttention, LimitsScoresAndWhatAQuerySees) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t window : {1, 2, 100, 300, 1000}) {
      const Attributes attrs = With({{"local_window_size", window}, {"softcap", 1.5f}, {"scale", 0.7f}});
      ExpectEqualToTheBody(backend, {.queries = 4, .past = 700, .total = 704, .attrs = attrs});
    }
  });
}

TEST(GroupQueryAttention, AddsSinksToTheSumOfTheSoftmax) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t queries : {1, 3}) {
      const int64_t total = 300 + queries;
      ExpectEqualToTheBody(backend, {.queries = queries, .past = 300, .total = total, .half = 16, .sinks = true});
      ExpectEqualToTheBody(
          backend, {.queries = queries, .past = 300, .total = total, .attrs = With({{"smooth_softmax", int64_t{1}}})});
      ExpectEqualToTheBody(backend, {.queries = queries,
                                     .past = 300,
                                     .total = total,
                                     .attrs = With({{"local_window_size", int64_t{20}}}),
                                     .sinks = true});
    }
  });
}

TEST(GroupQueryAttention, KeepsTheLatestTokensInAWindowCache) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t rows : {8, 11}) {
      for (int64_t total : {1, 5, 8, 9, 11, 12, 13, 14, 15, 16, 40}) {
        const Attributes attrs = With({{"local_window_size", int64_t{8}}, {"sliding_window_cache", int64_t{1}}});
        Sizes s = {.past = rows, .total = total, .packed = true, .attrs = attrs, .half = 16, .sinks = rows == 8};
        ExpectEqualToTheBody(backend, s);
      }
    }
  });
}

TEST(GroupQueryAttention, WritesIntoACacheWithRoom) {
  OnEveryMachine([](Backend& backend) {
    ExpectEqualToTheBody(backend, {.past = 20, .total = 9, .half = 16});  // rows 9 .. 19 stay as they are
    ExpectEqualToTheBody(backend, {.queries = 3, .past = 20, .total = 20, .packed = true});
    ExpectEqualToTheBody(backend, {.batch = 3, .past = 20, .total = 12, .last = {11, 4, 0}, .half = 16});
    ExpectEqualToTheBody(backend,
                         {.batch = 2, .queries = 2, .past = 6, .total = 8, .last = {7, 3}});  // without room: padded
  });
}

TEST(GroupQueryAttention, ChecksLengthsAndPositionsWhenItRuns) {
  const std::vector<Tensor> expected = {Random(DType::kF32, {2, 1, 128}), Random(DType::kF32, {2, 2, 20, 32}),
                                        Random(DType::kF32, {2, 2, 20, 32})};
  for (const std::vector<double>& last : {std::vector<double>{11, 20}, {11, -1}, {11, -2000000000}}) {
    std::vector<Tensor> outputs = expected;
    const auto outcome = UnderTest().Check(CaseOf({.batch = 2, .past = 20, .total = 12, .last = last}), Exactly, &outputs);
    ASSERT_FALSE(outcome.codes.empty());
    EXPECT_EQ(outcome.codes[0], MGE_OUT_OF_RANGE);
    EXPECT_THAT(outcome.errors[0], ::testing::HasSubstr("GroupQueryAttention"));
  }
  std::vector<Tensor> outputs = expected;
  const auto outcome =
      UnderTest().Check(CaseOf({.batch = 2, .past = 20, .total = 12, .half = 16, .positions = {1, 99}}), Exactly, &outputs);
  ASSERT_FALSE(outcome.codes.empty());
  EXPECT_EQ(outcome.codes[0], MGE_OUT_OF_RANGE);
}

TEST(GroupQueryAttention, RefusesOperandsOfOtherTypes) {
  const std::vector<Tensor> expected = {Random(DType::kF32, {1, 1, 128}), Random(DType::kF32, {1, 2, 6, 32}),
                                        Random(DType::kF32, {1, 2, 6, 32})};
  for (size_t input : {1, 2, 3, 4}) {
    Case c = CaseOf({});
    c.inputs[input] = Random(DType::kF16, c.inputs[input].shape(), -1, 1);
    const auto outcome = UnderTest().Offers(c, &expected);
    for (const std::string& id : outcome.candidates) {  // a kernel between conversions has another name
      EXPECT_FALSE(id.starts_with("cpu.group_query_attention")) << "input " << input;
    }
  }
}

TEST(GroupQueryAttention, OfManyTokensIsLeftToTheBody) {
  const auto outcome = UnderTest().Offers(CaseOf({.queries = 64, .past = 0, .total = 64}));
  EXPECT_TRUE(outcome.candidates.empty());
  EXPECT_THAT(outcome.refusals, ::testing::Contains(::testing::HasSubstr("the products of the body are faster")));
}

}  // namespace
}  // namespace mge::testing
