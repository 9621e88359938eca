// SPDX-License-Identifier: Apache-2.0
#include "core/conform/calls.h"

#include <sys/mman.h>

#include <atomic>
#include <set>

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge::conform {
namespace {

constexpr int kPlaces = 16;       // largest number of recorded calls at a time
constexpr size_t kLongest = 100;  // longest recorded name in bytes

}  // namespace

struct CallBoard::Places {
  struct Place {
    std::atomic<bool> taken;
    char call[kLongest + 1];
  } places[kPlaces];
};

CallBoard::Places* CallBoard::served_ = nullptr;

CallBoard::CallBoard() {
  void* memory = mmap(nullptr, sizeof(Places), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  places_ = memory == MAP_FAILED ? nullptr : static_cast<Places*>(memory);
}

CallBoard::~CallBoard() {
  if (places_) munmap(places_, sizeof(Places));
}

void CallBoard::Serve() const { served_ = places_; }

std::string CallBoard::Calls() const {
  std::set<std::string> calls;
  for (int i = 0; places_ && i < kPlaces; ++i) {
    if (places_->places[i].taken) calls.insert(places_->places[i].call);
  }
  return fmt::format("{}", fmt::join(calls, ", "));
}

int CallBoard::Enter(std::string_view call) {
  for (int i = 0; served_ && i < kPlaces; ++i) {
    auto& [taken, name] = served_->places[i];
    if (taken.exchange(true)) continue;
    name[call.copy(name, kLongest)] = 0;
    return i;
  }
  return -1;
}

void CallBoard::Leave(int place) {
  if (place >= 0) served_->places[place].taken = false;
}

}  // namespace mge::conform
