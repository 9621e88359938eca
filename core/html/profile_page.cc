// SPDX-License-Identifier: Apache-2.0
#include "core/html/profile_page.h"

#include <algorithm>
#include <map>

#include "core/base/duration_text.h"
#include "core/html/chart.h"
#include "fmt/format.h"

namespace mge::html {
namespace {

constexpr size_t kMaxRows = 64;       // of the timeline
constexpr size_t kMaxOperators = 15;  // bars
constexpr size_t kSlowest = 30;       // rows of the table
constexpr int kOther = kColors - 1;   // the colour of all operators without one of their own

// The colours of the operators that take the most time. The report has the longest operator first.
class OperatorColors {
 public:
  explicit OperatorColors(const Json& profile) {
    for (const Json& op : profile["operators"]) {
      if (colors_.size() == kOther) break;
      const std::string name = op["operator"];
      if (colors_.emplace(name, static_cast<int>(colors_.size())).second) names_.push_back(name);
    }
    others_ = profile["operators"].size() > kOther;
  }
  int Of(const Json& op) const {
    const auto color = colors_.find(op.get<std::string>());
    return color == colors_.end() ? kOther : color->second;
  }
  void AddTo(Chart& chart, Chart::Of of) const {
    for (const std::string& name : names_) chart.Legend(colors_.at(name), Plain(name), of);
    if (others_) chart.Legend(kOther, "others", of);
  }

 private:
  std::map<std::string, int> colors_;
  std::vector<std::string> names_;
  bool others_ = false;
};

std::string Rate(const Json& value) {
  return value.is_number() && value != 0 ? fmt::format("{:.1f}", value.get<double>()) : "-";
}

std::string Percent(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string NameOf(const Json& step) {
  const std::string body = Plain(step["body"]);
  return body.empty() ? Plain(step["label"]) : body + ": " + Plain(step["label"]);
}

std::string Timeline(const Json& timeline, const OperatorColors& colors) {
  std::vector<const Json*> spans;
  for (const Json& span : timeline["spans"]) {
    if (span["row"].get<size_t>() < kMaxRows) spans.push_back(&span);
  }
  if (spans.empty()) return {};
  const size_t all = timeline["spans"].size();
  auto length = [](const Json* s) { return (*s)["end_us"].get<double>() - (*s)["begin_us"].get<double>(); };
  // The longest ones are shown, in their order: a step of a body lies on the step that runs the body.
  std::ranges::stable_sort(spans, [&](const Json* a, const Json* b) { return length(a) > length(b); });
  if (spans.size() > kMaxItems) spans.resize(kMaxItems);
  Axis time = AxisOf("time in the run", {0, timeline["wall_us"].get<double>()}, Unit::kMicroseconds, true);
  time.high = std::max(timeline["wall_us"].get<double>(), 1e-3);
  Axis rows = {.title = "queue or thread"};
  for (size_t i = 0; i < std::min(timeline["rows"].size(), kMaxRows); ++i) rows.lanes.push_back(Plain(timeline["rows"][i]));
  Chart chart(time, rows, 30);
  colors.AddTo(chart, Chart::Of::kAreas);
  for (const Json* s : spans) {
    const double row = (*s)["row"].get<double>();
    const std::string details =
        fmt::format("{}\n{} by {}\n{} from {} on", Plain((*s)["label"]), Plain((*s)["operator"]), Plain((*s)["kernel"]),
                    DurationText(length(s)), DurationText((*s)["begin_us"].get<double>()));
    chart.Area(colors.Of((*s)["operator"]), {(*s)["begin_us"].get<double>(), row + 0.08},
               {(*s)["end_us"].get<double>(), row + 0.92}, details, Plain((*s)["operator"]));
  }
  return Heading(fmt::format("Timeline of one run ({})", DurationText(timeline["wall_us"].get<double>()))) +
         LeftOut(spans.size(), all, "pieces of steps, the longest ones") + chart.Html();
}

std::string Operators(const Json& profile, const OperatorColors& colors) {
  const Json& all = profile["operators"];
  Axis names = {.title = "operator"};
  std::vector<double> times;
  const size_t shown = std::min(all.size(), kMaxOperators);
  for (size_t i = 0; i < shown; ++i) {
    names.lanes.push_back(Plain(all[i]["operator"]));
    times.push_back(all[i]["time_us"]);
  }
  if (times.empty()) return {};
  Axis time = AxisOf("time per run", times, Unit::kMicroseconds, true);
  time.high *= 1.25;  // for the texts beside the bars
  Chart chart(time, names, 24);
  for (size_t i = 0; i < shown; ++i) {
    const std::string text = fmt::format("{}, {}", DurationText(times[i]), Percent(all[i]["share"]));
    chart.Bar(colors.Of(all[i]["operator"]), 0, times[i], i,
              fmt::format("{}\n{} in {} steps", names.lanes[i], text, Plain(all[i]["steps"])), text);
  }
  return Heading("Operators") + LeftOut(shown, all.size(), "operators") + chart.Html();
}

// Draws the rate of each step over its work per byte, in logarithmic axes, below the lines of what the device can do.
std::string Roofline(const Json& profile, const Roofs& given, const OperatorColors& colors) {
  struct Dot {
    const Json* step;
    double intensity, rate;  // FLOP per byte, GFLOP/s
  };
  std::vector<Dot> dots;
  Roofs best;
  for (const Json& s : profile["steps"]) {
    const Json &flops = s["flops"], &bytes = s["bytes"], &rate = s["gflops_per_s"];
    if (s["gb_per_s"].is_number()) best.gb_per_s = std::max(best.gb_per_s, s["gb_per_s"].get<double>());
    if (!flops.is_number() || !bytes.is_number() || !rate.is_number()) continue;
    if (flops <= 0 || bytes <= 0 || rate <= 0) continue;
    best.gflops_per_s = std::max(best.gflops_per_s, rate.get<double>());
    dots.push_back({&s, flops.get<double>() / bytes.get<double>(), rate});
  }
  if (dots.empty()) return {};
  const bool measured = given.gflops_per_s > 0 && given.gb_per_s > 0;
  const Roofs roofs = {std::max(given.gflops_per_s, best.gflops_per_s), measured ? given.gb_per_s : best.gb_per_s};
  const double ridge = roofs.gflops_per_s / roofs.gb_per_s;
  std::ranges::stable_sort(dots, [](const Dot& a, const Dot& b) { return (*a.step)["time_us"] > (*b.step)["time_us"]; });
  const size_t all = dots.size();
  if (dots.size() > kMaxItems) dots.resize(kMaxItems);
  Axis work = {.title = "work per byte of memory traffic (FLOP/byte)", .logarithmic = true};
  Axis rate = {.title = "rate (GFLOP/s)", .logarithmic = true};
  work.low = ridge / 4, work.high = ridge * 4;
  rate.low = rate.high = roofs.gflops_per_s;
  for (const Dot& dot : dots) {
    work.low = std::min(work.low, dot.intensity), work.high = std::max(work.high, dot.intensity);
    rate.low = std::min(rate.low, dot.rate), rate.high = std::max(rate.high, dot.rate);
  }
  work.low /= 2, work.high *= 2;
  rate.low /= 2, rate.high *= 2;
  Chart chart(work, rate, Chart::Size{.height = 380});
  colors.AddTo(chart, Chart::Of::kLines);
  const double first = std::max(work.low, rate.low / roofs.gb_per_s);
  chart.Guide({first, first * roofs.gb_per_s}, {ridge, roofs.gflops_per_s}, fmt::format("{:.4g} GB/s", roofs.gb_per_s));
  chart.Guide({ridge, roofs.gflops_per_s}, {work.high, roofs.gflops_per_s},
              fmt::format("{:.4g} GFLOP/s", roofs.gflops_per_s));
  const double total = profile["wall_us"];
  for (const Dot& dot : dots) {
    const double share = total > 0 ? (*dot.step)["time_us"].get<double>() / total : 0;
    chart.Dot(
        colors.Of((*dot.step)["operator"]), {dot.intensity, dot.rate}, 3 + 14 * std::min(1.0, share),
        fmt::format("{}\n{} by {}\n{:.4g} GFLOP/s, {} GB/s, {:.3g} FLOP/byte\n{}, {} of the run", NameOf(*dot.step),
                    Plain((*dot.step)["operator"]), Plain((*dot.step)["kernel"]), dot.rate, Rate((*dot.step)["gb_per_s"]),
                    dot.intensity, DurationText((*dot.step)["time_us"].get<double>()), Percent(share)));
  }
  const std::string from = measured ? "best rates of a large product or of a step, and of a large Relu on this device"
                                    : "rates of the fastest steps";
  return Heading("Roofline") +
         Paragraph(
             fmt::format("The dashed lines are the {}: {:.4g} GFLOP/s and {:.4g} GB/s. A dot near the sloped line waits "
                         "for memory, one near the level line for arithmetic. Larger dots take more time. Data in "
                         "caches can be faster than the sloped line.",
                         from, roofs.gflops_per_s, roofs.gb_per_s)) +
         LeftOut(dots.size(), all, "steps with known work, the slowest ones") + chart.Html();
}

std::string SlowestSteps(const Json& profile) {
  std::vector<const Json*> steps;
  for (const Json& s : profile["steps"]) steps.push_back(&s);
  std::ranges::stable_sort(steps, [](const Json* a, const Json* b) { return (*a)["time_us"] > (*b)["time_us"]; });
  std::vector<std::vector<std::string>> rows;
  for (const Json* s : steps) {
    if (rows.size() == kSlowest) break;
    const Json& estimate = (*s)["estimated_us"];
    rows.push_back({NameOf(*s), Listed((*s)["operators"], "+"), Plain((*s)["kernel"]), Plain((*s)["device"]),
                    DurationText((*s)["time_us"].get<double>()), Percent((*s)["share"]),
                    estimate.is_number() ? DurationText(estimate.get<double>() * (*s)["calls"].get<double>()) : "-",
                    Rate((*s)["gflops_per_s"]), Rate((*s)["gb_per_s"])});
  }
  return Heading("Slowest steps") +
         Table({{"step"},
                {"operators"},
                {"kernel"},
                {"device"},
                {"time", true},
                {"share", true},
                {"estimate", true},
                {"GFLOP/s", true},
                {"GB/s", true}},
               rows) +
         LeftOut(rows.size(), steps.size(), "steps");
}

}  // namespace

std::string ProfileBody(const Json& profile, const Json& timeline, const Roofs& roofs) {
  auto time = [&](const char* key) { return DurationText(profile[key].get<double>()); };
  std::string out = Facts({{"device", Plain(profile["device"])},
                           {"threads", Plain(profile["threads"])},
                           {"runs, of which the faster half counts", Plain(profile["runs"])},
                           {"time of a run", time("wall_us")},
                           {"planning in it", time("planning_us")},
                           {"between steps", time("between_steps_us")}});
  if (profile["runs"] == 0) return out + Paragraph("No run has been recorded.");
  const OperatorColors colors(profile);
  return out + Timeline(timeline, colors) + Operators(profile, colors) + Roofline(profile, roofs, colors) +
         SlowestSteps(profile);
}

}  // namespace mge::html
