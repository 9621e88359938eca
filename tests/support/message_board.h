// SPDX-License-Identifier: Apache-2.0
// A transport between threads of one process, for tests of groups of processes.
#pragma once

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "core/plugin/transport.h"

namespace mge {

// The messages that were sent and not yet received.
class MessageBoard {
 public:
  explicit MessageBoard(uint32_t ranks) : ranks_(ranks) {}
  std::shared_ptr<Transport> RankOf(uint32_t rank) { return std::make_shared<Rank>(*this, rank); }
  int left() {
    std::lock_guard lock(mutex_);
    return left_;
  }

 private:
  using Path = std::tuple<uint32_t, uint32_t, uint32_t>;  // sender, receiver, channel

  class BoardExchange final : public MessageExchange {
   public:
    BoardExchange(MessageBoard& board, uint32_t rank, uint32_t channel, std::span<mge_message> messages)
        : board_(board), rank_(rank), channel_(channel), messages_(messages) {
      std::lock_guard lock(board_.mutex_);
      for (mge_message& m : messages_) {
        m.done = m.sends;
        if (!m.sends) continue;
        const auto* data = static_cast<const char*>(m.data);
        board_.sent_[{rank_, m.peer, channel_}].emplace_back(data, data + m.bytes);
      }
      board_.changed_.notify_all();
    }
    absl::StatusOr<bool> Wait(std::chrono::nanoseconds limit) override {
      std::unique_lock lock(board_.mutex_);
      return board_.changed_.wait_for(lock, limit, [&] { return Receive(); });
    }

   private:
    bool Receive() {
      bool all = true;
      for (mge_message& m : messages_) {
        auto& queue = board_.sent_[{m.peer, rank_, channel_}];
        if (!m.done && !queue.empty()) {
          if (queue.front().size() != m.bytes) std::abort();
          std::memcpy(m.data, queue.front().data(), m.bytes);
          queue.pop_front();
          m.done = 1;
        }
        all = all && m.done;
      }
      return all;
    }
    MessageBoard& board_;
    const uint32_t rank_, channel_;
    const std::span<mge_message> messages_;
  };

  class Rank final : public Transport {
   public:
    Rank(MessageBoard& board, uint32_t rank) : board_(board), rank_(rank) {}
    uint32_t rank() const override { return rank_; }
    uint32_t ranks() const override { return board_.ranks_; }
    std::string library() const override { return "a test"; }
    absl::StatusOr<std::unique_ptr<MessageExchange>> Start(uint32_t channel, std::span<mge_message> messages) override {
      return std::make_unique<BoardExchange>(board_, rank_, channel, messages);
    }
    void Leave(std::chrono::nanoseconds) override {
      std::lock_guard lock(board_.mutex_);
      ++board_.left_;
    }

   private:
    MessageBoard& board_;
    const uint32_t rank_;
  };

  const uint32_t ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Path, std::deque<std::string>> sent_;
  int left_ = 0;
};

}  // namespace mge
