// SPDX-License-Identifier: Apache-2.0
// A control of the API and the runs that it steers, one after another or at once.
#pragma once

#include <cstdint>
#include <mutex>

#include "core/engine/run_control.h"

namespace mge {

class SteeredRun;

class Steering {
 public:
  void SetTimeout(double seconds);  // none if it is not above 0, or above 1e9
  void SetSeed(uint64_t seed);
  void Cancel();
  void Reset();
  RunControl::Overdue LookAt() const;  // of the run that is furthest past its limit

 private:
  friend class SteeredRun;
  mutable std::mutex mutex_;
  double timeout_s_ = 0;
  uint64_t seed_ = 0;
  bool cancelled_ = false;
  SteeredRun* runs_ = nullptr;
};

// One run: begins with what is set now, and its time limit begins, too.
class SteeredRun {
 public:
  explicit SteeredRun(Steering* by);  // nullptr: nobody steers it
  ~SteeredRun() { Leave(); }
  SteeredRun(const SteeredRun&) = delete;
  SteeredRun& operator=(const SteeredRun&) = delete;
  void Leave();  // the control may go from now on
  RunControl& control() { return control_; }

 private:
  friend class Steering;
  Steering* by_;
  RunControl control_;
  SteeredRun *next_ = nullptr, *previous_ = nullptr;
};

}  // namespace mge
