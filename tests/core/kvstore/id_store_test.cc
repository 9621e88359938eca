// SPDX-License-Identifier: Apache-2.0
// The store that hands the id of a group to its processes, with threads in their place: strangers, differences, limits of
// time.
#include "core/kvstore/id_store.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "tests/support/free_port.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Sends bytes to the store, and closes the connection. Tries again until it listens.
void SendTo(int64_t port, const std::string& bytes) {
  for (int i = 0; i < 200; ++i) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool connected = connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    if (connected) (void)!send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    close(socket);
    if (connected) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  FAIL() << "the store does not listen";
}

CollectiveId SomeId() {
  CollectiveId id = {};
  for (size_t i = 0; i < id.size(); ++i) id[i] = static_cast<uint8_t>(i * 7);
  return id;
}

class IdStore : public testing::Test {
 protected:
  IdStoreOptions Options(uint32_t rank, uint32_t ranks) const {
    IdStoreOptions out;
    out.rank = rank;
    out.ranks = ranks;
    out.address = "127.0.0.1";
    out.bind = "127.0.0.1";
    out.port = port_;
    out.token = "secret";
    out.host = "host" + std::to_string(rank);
    out.facts = "batch: 8\n";
    out.timeout = std::chrono::seconds(20);
    return out;
  }
  // Returns the results of all ranks, which run in threads of their own.
  static std::vector<absl::StatusOr<CollectiveId>> Run(const std::vector<IdStoreOptions>& all) {
    std::vector<absl::StatusOr<CollectiveId>> out(all.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < all.size(); ++i) {
      threads.emplace_back([&, i] { out[i] = ShareId(all[i], [] { return absl::StatusOr<CollectiveId>(SomeId()); }); });
    }
    for (std::thread& thread : threads) thread.join();
    return out;
  }
  const int64_t port_ = FreePort();
};

TEST_F(IdStore, GivesAllProcessesTheIdOfTheFirst) {
  for (const auto& id : Run({Options(0, 4), Options(1, 4), Options(2, 4), Options(3, 4)})) {
    ASSERT_TRUE(id.ok()) << FormatError(id.status());
    EXPECT_EQ(*id, SomeId());
  }
}

TEST_F(IdStore, IsNotDisturbedByStrangers) {
  std::thread strangers([&] {
    std::mt19937 random(1);
    for (int i = 0; i < 60; ++i) {
      std::string bytes(i % 3 == 0 ? sizeof(IdRequest) : random() % 9000, '\0');
      for (char& c : bytes) c = static_cast<char>(random());
      if (i % 4 == 0) bytes.replace(0, std::min<size_t>(bytes.size(), 14), "MGE group id 1");
      SendTo(port_, bytes);
    }
  });
  std::thread first([&] {
    const auto id = ShareId(Options(0, 2), [] { return absl::StatusOr<CollectiveId>(SomeId()); });
    EXPECT_TRUE(id.ok()) << FormatError(id.status());
  });
  strangers.join();
  EXPECT_TRUE(ShareId(Options(1, 2), nullptr).ok());
  first.join();
}

TEST_F(IdStore, RefusesAnotherToken) {
  IdStoreOptions first = Options(0, 2), second = Options(1, 2);
  second.token = "guess";
  first.timeout = second.timeout = std::chrono::seconds(1);
  const auto all = Run({first, second});
  EXPECT_THAT(FormatError(all[0].status()), HasSubstr("these have not come to rank 0"));
  EXPECT_THAT(FormatError(all[1].status()), HasSubstr("MGE_COLLECTIVE_TOKEN"));
}

TEST_F(IdStore, TellsAllProcessesWhatDiffers) {
  IdStoreOptions other = Options(2, 3);
  other.facts = "batch: 16\n";
  for (const auto& id : Run({Options(0, 3), Options(1, 3), other})) {
    EXPECT_EQ(ErrorId(id.status()), errors::kRankFailed.id);
    EXPECT_THAT(FormatError(id.status()),
                AllOf(HasSubstr("'batch' is '8' in rank 0 of 3"), HasSubstr("'16' in rank 2 of 3 (host host2)")));
  }
}

TEST_F(IdStore, NamesTheProcessesThatDoNotCome) {
  IdStoreOptions first = Options(0, 4), third = Options(2, 4);
  first.timeout = third.timeout = std::chrono::milliseconds(500);
  const auto all = Run({first, third});
  EXPECT_THAT(FormatError(all[0].status()), AllOf(HasSubstr("of 4 processes"), HasSubstr("rank 1, 3")));
  EXPECT_FALSE(all[1].ok());
  const auto alone = Run({third});
  EXPECT_THAT(FormatError(alone[0].status()), AllOf(HasSubstr("rank 2 of 4"), HasSubstr("cannot reach rank 0")));
}

TEST(ReadIdRequest, AcceptsNothingButRequestsOfTheGroup) {
  IdStoreOptions options;
  options.ranks = 3;
  options.token = "secret";
  IdRequest good = {}, read;
  std::memcpy(good.magic, "MGE group id 1", 15);
  std::memcpy(good.token, "secret", 7);
  good.rank = 2;
  good.ranks = 3;
  auto accepts = [&](const IdRequest& request) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&request);
    return ReadIdRequest(std::span<const std::byte, sizeof(IdRequest)>(bytes, sizeof(request)), options, &read);
  };
  EXPECT_TRUE(accepts(good));
  for (void (*damage)(IdRequest&) : {+[](IdRequest& r) { r.rank = 0; }, +[](IdRequest& r) { r.rank = 3; },
                                     +[](IdRequest& r) { r.ranks = 4; }, +[](IdRequest& r) { r.magic[0] = 'm'; },
                                     +[](IdRequest& r) { r.token[5] = 'T'; }, +[](IdRequest& r) { r.token[200] = 1; }}) {
    IdRequest bad = good;
    damage(bad);
    EXPECT_FALSE(accepts(bad));
  }
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    IdRequest noise = good;
    auto* bytes = reinterpret_cast<unsigned char*>(&noise);
    for (int k = 0; k < 4; ++k) bytes[random() % sizeof(noise)] = static_cast<unsigned char>(random());
    if (accepts(noise)) {
      EXPECT_TRUE(read.rank > 0 && read.rank < 3);
    }
  }
}

}  // namespace
}  // namespace mge
