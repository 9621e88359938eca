// SPDX-License-Identifier: Apache-2.0
// A warning for a backend whose start takes long. Without it, the user would not learn why a process hangs.
#pragma once

#include <condition_variable>
#include <mutex>

#include "core/base/log.h"
#include "core/base/thread.h"
#include "core/plugin/verdict.h"

namespace mge {

// Logs one warning if this object exists for longer than 6 s. Uses a thread. If no thread can be started, logs nothing.
class SlowStart {
 public:
  SlowStart(const Logger& logger, const PluginFile& file);  // both must outlive this object
  ~SlowStart();
  SlowStart(const SlowStart&) = delete;
  SlowStart& operator=(const SlowStart&) = delete;

 private:
  void Watch(const Logger& logger, const PluginFile& file);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  Thread thread_;  // last, because it uses the other members
};

}  // namespace mge
