// SPDX-License-Identifier: Apache-2.0
// Lists of kernel rows, one struct for several operators, and rows that receive every problem.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "mge/plugin.hpp"
#include "tests/sdk/test_graph.h"

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Args {
  mge::Slot x;
};
mge_code Launch(const Args&, const mge_run*) { return MGE_OK; }

// Computes two operators, and creates its kernel itself.
struct Rounding {
  static void Offer(const mge::Problem& p, mge::Offers& offers) {
    if (p.adds(0)) return offers.Refuse("it does not add");
    offers.Add({.id = "test.rounding"});
  }
  static mge::KernelPtr Make(const mge::Problem&, const mge::Candidate& c) {
    if (c.id != "test.rounding") return nullptr;
    return mge::MakeSimple<Args, Launch>([](const mge::Binding& b) { return Args{b.input(0)}; });
  }
};
constexpr mge::KernelRow kRounding[] = {mge::Row<Rounding>("Floor"), mge::Row<Rounding>("Ceil", "test.domain")};
MGE_KERNELS(rounding) = kRounding;

// Adds a candidate to those of other rows.
struct Second {
  static constexpr const char* kOp = mge::kAnyOp;
  static void Offer(const mge::Problem&, mge::Offers& offers) {
    if (offers.count() > 0) offers.Add({.id = "test.second"});
  }
  static mge::KernelPtr Make(const mge::Problem&, const mge::Candidate&) { return nullptr; }
};
constexpr mge::KernelRow kSecond = mge::Row<Second>();

using Families = mge::KernelFamilies<mge_kernels_rounding>;
using Joined = mge::JoinedKernels<Families, mge::Kernels<kSecond>>;

struct Answers {
  std::vector<std::string> offers, refusals;
  std::vector<uint64_t> tokens;
  mge_candidate_sink sink = {sizeof(sink), 0, this,
                             [](void* self, const mge_candidate* c) {
                               static_cast<Answers*>(self)->offers.emplace_back(mge::View(c->id));
                               static_cast<Answers*>(self)->tokens.push_back(c->token);
                             },
                             [](void* self, const mge_text* kernel, const mge_text* why) {
                               static_cast<Answers*>(self)->refusals.push_back(std::string(mge::View(*kernel)) + ": " +
                                                                               std::string(mge::View(*why)));
                             }};
};

Answers OffersFor(const char* op, int32_t mode = MGE_WRITE) {
  TestGraph graph({{op, {0}, 1}}, 2, {1});
  graph.mode = mode;
  Answers answers;
  EXPECT_EQ(mge::KernelTable<Joined::Rows>::Enumerate(nullptr, &graph.problem, nullptr, &answers.sink, nullptr), MGE_OK);
  return answers;
}

TEST(Rows, OfSeveralListsKeepTheirOrder) {
  uint64_t count = 0;
  const mge::KernelRow* const* rows = Joined::Rows(&count);
  ASSERT_EQ(count, 3u);
  EXPECT_EQ(std::string(rows[0]->op), "Floor");
  EXPECT_EQ(std::string(rows[1]->op), "Ceil");
  EXPECT_EQ(std::string(rows[1]->domain), "test.domain");
  EXPECT_EQ(rows[2], &kSecond);
}

TEST(Rows, ForAnyOperatorSeeHowManyCandidatesTheOthersOffered) {
  EXPECT_THAT(OffersFor("Floor").offers, ElementsAre("test.rounding", "test.second"));
  EXPECT_THAT(OffersFor("Ceil").offers, IsEmpty());  // of another domain
  EXPECT_THAT(OffersFor("Unknown").offers, IsEmpty());
}

TEST(Rows, RefuseInTheNameOfTheOperator) {
  Answers answers = OffersFor("Floor", MGE_WRITE_ADD);
  EXPECT_THAT(answers.offers, IsEmpty());
  EXPECT_THAT(answers.refusals, ElementsAre("Floor: it does not add"));
}

TEST(Rows, MayCreateTheirKernelsThemselves) {
  TestGraph graph({{"Floor", {0}, 1}}, 2, {1});
  Answers answers = OffersFor("Floor");
  ASSERT_EQ(answers.tokens.size(), 2u);
  using Table = mge::KernelTable<Joined::Rows>;
  for (size_t i : {0, 1}) {
    mge_candidate candidate = {};
    candidate.struct_size = sizeof(candidate);
    candidate.id = mge::Text(answers.offers[i]);
    candidate.token = answers.tokens[i];
    mge_prepared prepared = {};
    prepared.struct_size = sizeof(prepared);
    mge_code code = Table::Prepare(nullptr, &graph.problem, &candidate, &prepared, nullptr);
    EXPECT_EQ(code, i == 0 ? MGE_OK : MGE_UNIMPLEMENTED);  // the second row returned nullptr
    if (code != MGE_OK) continue;
    EXPECT_EQ(prepared.args_bytes, sizeof(Args));
    Table::Destroy(prepared.kernel);
  }
}

TEST(Rows, HandlesOfTheHostReferToTheBackendsObjects) {
  struct Device {
  } device;
  struct Queue {
  } queue;
  EXPECT_EQ(&mge::DeviceOf<Device>(mge::internal::HandleOf<mge_device>(&device)), &device);
  EXPECT_EQ(&mge::QueueOf<Queue>(mge::internal::HandleOf<mge_queue>(&queue)), &queue);
}

}  // namespace
