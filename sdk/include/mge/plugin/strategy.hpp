// SPDX-License-Identifier: Apache-2.0
// Strategies: order several candidates. The host has filtered them, and timed them if requested. It rejects anything that is
// not a permutation of all candidates.
//
//   using Strategy = mge::strategy::Profile;  // the host's order, in this default mode; or Heuristic, Reproducible
//
//   struct MyStrategy {                       // or an own class; `order` is initially 0, 1, 2...
//     static mge::Result Order(Device&, const mge::Choice& choice, std::span<uint32_t> order);
//     static constexpr bool kByCost = true;   // optional: the order follows times
//     static constexpr int32_t kMode = MGE_SELECT_PROFILE;  // optional: default mode; else HEURISTIC
//   };
//
// The host uses the first candidate of the order. With kByCost it may use a later one that saves more in layout reorders.
//
// In the mode REPRODUCIBLE an order may depend only on the problem, the device class and the candidates: not on time, load
// or random numbers.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <string_view>

#include "mge/plugin/graph.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// The candidates to order.
class Choice {
 public:
  explicit Choice(const mge_choice* c) : c_(c) {}
  int32_t mode() const { return c_->mode; }  // MGE_SELECT_...
  Problem problem() const { return Problem(c_->problem); }
  size_t size() const { return static_cast<size_t>(c_->candidate_count); }
  const mge_candidate& candidate(uint32_t i) const { return *c_->candidates[i]; }
  std::string_view id(uint32_t i) const { return View(candidate(i).id); }
  bool has(uint32_t i, uint64_t attribute) const { return (candidate(i).attributes & attribute) != 0; }
  // Returns the measured time, or a negative number if the candidate was not measured.
  double measured_us(uint32_t i) const { return c_->measured_us ? c_->measured_us[i] : -1; }
  const mge_choice* raw() const { return c_; }

 private:
  const mge_choice* c_;
};

// Writes the host's own order, in the mode of `choice` or another. Without measurements, PROFILE becomes HEURISTIC.
inline Result ReadyOrder(const Choice& choice, int32_t mode, std::span<uint32_t> order) {
  const mge_ready_made* ready = ReadyMade();
  if (!ready) return {MGE_UNIMPLEMENTED, "this host has no strategy of its own"};
  mge_choice as = Whole(*choice.raw());
  as.mode = mode == MGE_SELECT_PROFILE && !as.measured_us ? MGE_SELECT_HEURISTIC : mode;
  mge_code code = ready->order(ready->self, &as, order.data(), nullptr);
  return code == MGE_OK ? Result() : Result(code, "the host's own strategy failed");
}
inline Result ReadyOrder(const Choice& choice, std::span<uint32_t> order) {
  return ReadyOrder(choice, choice.mode(), order);
}

namespace strategy {

// The host's order, with a default mode for users who set none.
template <int32_t mode>
struct HostOrder {
  static constexpr int32_t kMode = mode;
};
using Heuristic = HostOrder<MGE_SELECT_HEURISTIC>;
using Profile = HostOrder<MGE_SELECT_PROFILE>;
using Reproducible = HostOrder<MGE_SELECT_REPRODUCIBLE>;

}  // namespace strategy

namespace internal {

template <typename D, typename S>
struct StrategyTable {
  static mge_code Order(mge_device* device, const mge_choice* choice, uint32_t* out, mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> Result {
      if (!Covers(choice, &mge_choice::measured_us)) return {MGE_INVALID_ARGUMENT, "the choice's struct is too short"};
      if (choice->mode < MGE_SELECT_HEURISTIC || choice->mode > MGE_SELECT_REPRODUCIBLE) {
        return {MGE_UNIMPLEMENTED, "unknown selection mode"};
      }
      std::span<uint32_t> order(out, static_cast<size_t>(choice->candidate_count));
      std::iota(order.begin(), order.end(), 0u);
      return S::Order(As<D>(device), Choice(choice), order);
    });
  }
  static constexpr mge_strategy_api kApi = Table<mge_strategy_api>([](auto& t) {
    if constexpr (requires { &S::Order; }) t.order = Order;
    if constexpr (requires { S::kMode; }) {
      static_assert(S::kMode >= MGE_SELECT_HEURISTIC && S::kMode <= MGE_SELECT_REPRODUCIBLE, "kMode is MGE_SELECT_...");
      t.mode = S::kMode;
    }
    if constexpr (requires { S::kByCost; }) t.flags = S::kByCost ? MGE_STRATEGY_BY_COST : 0;
  });
};

}  // namespace internal
}  // namespace MGE_HIDDEN
