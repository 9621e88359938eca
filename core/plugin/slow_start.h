// SPDX-License-Identifier: Apache-2.0
// Speaks up where the start of a backend takes long: it may never end, and then nobody else says why nothing happens.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/base/log.h"
#include "core/plugin/verdict.h"

namespace mge {

// Warns once if it lives for long. Where no thread can be started, it says nothing.
class SlowStart {
 public:
  SlowStart(const Logger& logger, const PluginFile& file);  // borrowed
  ~SlowStart();
  SlowStart(const SlowStart&) = delete;
  SlowStart& operator=(const SlowStart&) = delete;

 private:
  void Watch(const Logger& logger, const PluginFile& file);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace mge
