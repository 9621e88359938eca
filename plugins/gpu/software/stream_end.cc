// SPDX-License-Identifier: Apache-2.0
// Decides which waits a stream completes when it is destroyed: a wait that can end is completed, also if another stream must
// signal the event. A wait that can never end is cancelled.
//
// Algorithm: list the pending signals and waits of every stream of the process, and simulate all streams until none can
// advance. If this stream has not advanced, its wait can never end, because only streams signal events.
#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "plugins/gpu/software/stream.h"

namespace mge::software {
namespace {

// All streams of the process. An event may be signalled by a stream of any device.
constinit std::mutex g_streams_mutex;  // lock it before a stream's mutex
constinit Stream::Listing* g_streams = nullptr;

// The pending signals and waits of a stream, in order.
struct Step {
  bool raises;
  std::shared_ptr<Event> event;
  uint64_t value;
};
struct Line {
  const Stream* stream;
  std::vector<Step> steps;
  size_t done = 0;
};

// Returns whether `mine` takes its next step if all streams advance as far as they can. A stream that then stands still
// waits for an event that nobody signals, for a stream that hangs, or for one that waits for it.
bool Moves(std::vector<Line>& lines, const Line& mine) {
  std::map<const Event*, uint64_t> raised;
  auto can = [&](const Step& step) {
    uint64_t& value = raised[step.event.get()];
    if (step.raises) value = std::max(value, step.value);
    return value >= step.value || step.event->IsOver(step.value);
  };
  for (bool moved = true; moved && mine.done == 0;) {
    moved = false;
    for (Line& line : lines) {
      for (; line.done < line.steps.size() && can(line.steps[line.done]); ++line.done) moved = true;
    }
  }
  return mine.done > 0;
}

}  // namespace

Stream::Listing::Listing(Stream& listed) : stream(listed) {
  std::lock_guard lock(g_streams_mutex);
  next = std::exchange(g_streams, this);
}

Stream::Listing::~Listing() {
  std::lock_guard lock(g_streams_mutex);
  Listing** at = &g_streams;
  while (*at != this) at = &(*at)->next;
  *at = next;
}

bool Stream::CanGoOn() const {
  std::vector<Line> lines;
  {
    std::lock_guard lock(g_streams_mutex);
    for (Listing* at = g_streams; at; at = at->next) {
      const Stream& stream = at->stream;
      std::lock_guard stream_lock(stream.mutex_);
      if (stream.hangs_) continue;
      Line& line = lines.emplace_back(Line{&stream, {}});
      for (size_t i = 0; i < stream.count_; ++i) {
        const Task& task = *stream.ring_[(stream.head_ + i) % stream.ring_.size()];
        bool raises = task.kind == Task::Kind::kSignal;
        if (raises || task.kind == Task::Kind::kWait) line.steps.push_back({raises, task.event, task.value});
      }
    }
  }
  // A signal sent in the meantime is missing in the lists, but Moves() also checks the event, after the lists were created.
  return Moves(lines, *std::find_if(lines.begin(), lines.end(), [&](const Line& line) { return line.stream == this; }));
}

void Stream::Hang() {
  {
    std::lock_guard lock(mutex_);
    hangs_ = !stop_;
  }
  {
    std::lock_guard lock(g_streams_mutex);
    for (Listing* at = g_streams; at; at = at->next) {
      Stream& stream = at->stream;
      std::lock_guard stream_lock(stream.mutex_);
      if (!stream.stop_) continue;
      stream.look_again_ = true;
      if (stream.waits_for_) stream.waits_for_->Wake();
    }
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stop_.load(); });
  hangs_ = false;
}

}  // namespace mge::software
