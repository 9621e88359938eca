// SPDX-License-Identifier: Apache-2.0
// Memory for objects of one type that one thread makes and another one deletes.
//
// malloc() returns a freed block to the arena of the thread that allocated it, under that arena's lock. Here each thread
// has a list of free blocks. Lists of kBatch blocks move between threads by a shared stack: one lock for kBatch objects.
#pragma once

#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>

namespace mge {

// `T` only tells caches apart. Functions are [any].
template <class T, size_t kBytes>
class BlockCache {
 public:
  // Returns kBytes bytes, aligned for any type. Throws std::bad_alloc.
  static void* Allocate() {
    List& mine = Mine();
    if (!mine.first) mine = Shared().Pop();
    if (!mine.first) {
      if (void* block = std::malloc(kBytes)) return block;
      throw std::bad_alloc();
    }
    --mine.count;
    return std::exchange(mine.first, mine.first->next);
  }
  static void Free(void* block) noexcept {
    List& mine = Mine();
    if (mine.count == kBatch) Shared().Push(std::exchange(mine, {}));
    mine.first = new (block) Block{mine.first, nullptr};
    ++mine.count;
  }

 private:
  static constexpr int kBatch = 64;
  static constexpr int kMaxShared = 256;  // lists in the stack; more are freed

  struct Block {
    Block* next;       // in the list
    Block* next_list;  // of the first block of a list in the stack
  };
  static_assert(kBytes >= sizeof(Block));
  // Free blocks.
  struct List {
    Block* first = nullptr;
    int count = 0;
  };
  static void Release(List list) {
    while (Block* block = list.first) {
      list.first = block->next;
      std::free(block);
    }
  }

  // The stack of lists. If another thread works on it, there is nothing to take and no room. So nobody waits, and nobody
  // waits for ever in a forked child that lacks the other thread.
  class Stack {
   public:
    List Pop() {
      std::unique_lock lock(mutex_, std::try_to_lock);
      if (!lock || !top_) return {};
      --lists_;
      return {std::exchange(top_, top_->next_list), kBatch};
    }
    void Push(List list) {
      {
        std::unique_lock lock(mutex_, std::try_to_lock);
        if (lock && lists_ < kMaxShared) {
          ++lists_;
          list.first->next_list = std::exchange(top_, list.first);
          return;
        }
      }
      Release(list);
    }

   private:
    std::mutex mutex_;
    Block* top_ = nullptr;
    int lists_ = 0;
  };
  static Stack& Shared() {
    static Stack* stack = new Stack;  // never destroyed: threads that end later use it
    return *stack;
  }
  // The list of this thread, whose end frees it.
  static List& Mine() {
    struct OfThread : List {
      ~OfThread() { Release(std::exchange(static_cast<List&>(*this), {})); }
    };
    thread_local OfThread mine;
    return mine;
  }
};

}  // namespace mge
