// SPDX-License-Identifier: Apache-2.0
// Streams that users name, such as stream 1 of gpu0:1. Asynchronous runs on one stream follow one another; runs on two
// streams may overlap.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/engine/dependency_engine.h"

namespace mge {

class RunFence;

// The order of the runs of one stream: an operation waits for the run that was enqueued last, and enqueuing waits for the
// operations that were pushed before. The mutex is recursive, because the naive engine runs an operation while it is pushed,
// and the callback of the run may start other runs on the stream.
struct RunStream {
  explicit RunStream(std::string n) : name(std::move(n)) {}
  const std::string name;                                  // "gpu0:1"
  const Variable order = DependencyEngine::NewVariable();  // written by each run that is an operation of the engine
  std::recursive_mutex mutex;                              // held while a run is enqueued; guards `last`
  std::weak_ptr<RunFence> last;                            // the run that was enqueued last; empty: it has ended
};

// The streams of one runtime. Thread-safe.
class RunStreams {
 public:
  // Returns the stream with this number on the device with this name. Creates it at the first call.
  std::shared_ptr<RunStream> Get(const std::string& device, int stream) {
    std::lock_guard lock(mutex_);
    std::shared_ptr<RunStream>& out = streams_[{device, stream}];
    if (!out) out = std::make_shared<RunStream>(device + ":" + std::to_string(stream));
    return out;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::shared_ptr<RunStream>> streams_;  // guarded by mutex_
};

}  // namespace mge
