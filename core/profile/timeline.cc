// SPDX-License-Identifier: Apache-2.0
#include "core/profile/timeline.h"

#include <algorithm>
#include <map>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace mge {
namespace {

using TimelineJson = nlohmann::ordered_json;

// A piece of work in a row.
struct Piece {
  std::string row;
  const ProfiledStep* step;
  int64_t begin, end;
};

// Returns the run whose length is the median. Requires: there is a run.
const ProfiledRun& MedianRun(const Recording& recording) {
  std::vector<const ProfiledRun*> runs;
  for (const ProfiledRun& run : recording.runs) runs.push_back(&run);
  const auto middle = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  std::ranges::nth_element(runs, middle, {}, [](const ProfiledRun* run) { return run->end - run->begin; });
  return **middle;
}

std::vector<Piece> PiecesOf(const Recording& recording, const ProfiledRun& run) {
  std::vector<Piece> pieces;
  for (const ProfiledSpan& span : run.spans) {
    if (span.kind != ProfiledSpan::Kind::kStep) continue;
    const ProfiledStep& step = recording.plans[static_cast<size_t>(span.plan)].steps[static_cast<size_t>(span.step)];
    if (!step.queue.empty()) {
      // The host sees the end of a step a little later than the device.
      const int64_t begin =
          span.device_us < 0 ? span.begin : std::max(span.begin, span.end - static_cast<int64_t>(span.device_us * 1e3));
      pieces.push_back({fmt::format("{}, queue {}", step.device, step.queue), &step, begin, span.end});
      continue;
    }
    pieces.push_back({step.device, &step, span.begin, span.end});
    for (uint32_t i = span.first_share; i < span.first_share + span.share_count; ++i) {
      const ThreadShare& share = run.shares[i];
      if (share.thread == 0) continue;
      pieces.push_back({fmt::format("{}, worker {}", step.device, share.thread), &step, share.begin, share.end});
    }
  }
  std::ranges::stable_sort(
      pieces, [](const Piece& a, const Piece& b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
  return pieces;
}

}  // namespace

std::string TimelineText(const Recording& recording) {
  TimelineJson names = TimelineJson::array(), spans = TimelineJson::array();
  double wall_us = 0;
  if (!recording.runs.empty()) {
    const ProfiledRun& run = MedianRun(recording);
    wall_us = static_cast<double>(run.end - run.begin) * 1e-3;
    const std::vector<Piece> pieces = PiecesOf(recording, run);
    std::map<std::string, size_t> rows;
    for (const Piece& piece : pieces) rows.emplace(piece.row, 0);
    for (auto& [name, row] : rows) {
      row = names.size();
      names.push_back(name);
    }
    auto since_begin = [&](int64_t time) { return static_cast<double>(time - run.begin) * 1e-3; };
    for (const Piece& piece : pieces) {
      spans.push_back({{"row", rows[piece.row]},
                       {"label", piece.step->label},
                       {"operator", piece.step->main_op},
                       {"kernel", piece.step->kernel},
                       {"begin_us", since_begin(piece.begin)},
                       {"end_us", since_begin(piece.end)}});
    }
  }
  const TimelineJson report = {
      {"schema", "mge.timeline/1"}, {"wall_us", wall_us}, {"rows", std::move(names)}, {"spans", std::move(spans)}};
  return report.dump(-1, ' ', false, TimelineJson::error_handler_t::replace);
}

}  // namespace mge
