// SPDX-License-Identifier: Apache-2.0
#include "core/cli/train_page.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "core/base/file.h"
#include "core/base/resident_memory.h"
#include "core/html/chart.h"
#include "core/html/page.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

constexpr auto kWriteEvery = std::chrono::seconds(1);
constexpr std::chrono::milliseconds kMeasureEvery(200), kMeasureEveryLater(2000);  // of the throughput and the memory
constexpr int kRefreshSeconds = 2;
constexpr size_t kMaxEpochs = 50;  // rows of the table

// A curve of a chart, with the area between its lowest and highest values if several share a point.
struct Curve {
  const html::Series* series;
  const char* name;
};

std::string CurvePicture(const char* title, const char* axis, html::Unit unit, bool from_zero, double last_step,
                         const std::vector<Curve>& curves, double guide = NAN, const std::string& guide_text = {}) {
  std::vector<double> values = {};
  for (const Curve& curve : curves) {
    for (const html::Point& p : curve.series->Lows()) values.push_back(p.y);
    for (const html::Point& p : curve.series->Highs()) values.push_back(p.y);
  }
  if (values.empty()) return {};
  if (std::isfinite(guide)) values.push_back(guide * 1.05);
  html::Chart chart({.title = "step", .low = 0, .high = std::max(last_step, 1.0), .unit = html::Unit::kCount},
                    html::AxisOf(axis, values, unit, from_zero), html::Chart::Size{.height = 250});
  int color = 0;
  for (const Curve& curve : curves) {
    if (curve.series->empty()) continue;
    if (curves.size() > 1) chart.Legend(color, curve.name);
    chart.Band(color, curve.series->Lows(), curve.series->Highs());
    chart.Line(color, curve.series->Means());
    ++color;
  }
  if (std::isfinite(guide)) chart.Guide({0, guide}, {last_step, guide}, guide_text);
  return html::Heading(title) + chart.Html();
}

std::string Now() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  char text[64];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local)};
}

}  // namespace

TrainPage::TrainPage(const Globals& globals, std::string path, Facts facts)
    : globals_(globals), path_(std::move(path)), facts_(std::move(facts)) {
  Write("the training begins", true);
}

TrainPage::~TrainPage() {
  if (!ended_) Write("stopped before the end", false);
}

void TrainPage::AddStep(int64_t step, double loss, double rate, int64_t examples) {
  if (path_.empty()) return;
  step_ = step;
  const auto x = static_cast<double>(step);
  loss_.Add(x, loss);
  rate_.Add(x, rate);
  window_examples_ += examples;
  const Clock::time_point now = Clock::now();
  window_time_ += now - step_begin_;
  step_begin_ = now;
  if (window_time_ >= std::clamp<Clock::duration>((now - begin_) / 100, kMeasureEvery, kMeasureEveryLater)) EndWindow();
  if (now - written_ >= kWriteEvery) Write("training", true);
}

void TrainPage::EndWindow() {
  const auto x = static_cast<double>(step_);
  speed_.Add(x, static_cast<double>(window_examples_) / std::chrono::duration<double>(window_time_).count());
  memory_.Add(x, static_cast<double>(ReadResidentMemory().total));
  window_examples_ = 0;
  window_time_ = {};
}

void TrainPage::AddEpoch(int64_t epoch, int64_t step, double loss, double validation, double accuracy) {
  if (path_.empty()) return;
  epoch_ = epoch;
  validation_.Add(static_cast<double>(step), validation);
  accuracy_.Add(static_cast<double>(step), accuracy);
  auto text = [](double value) { return std::isnan(value) ? std::string("-") : fmt::format("{:.6g}", value); };
  epochs_.push_back({std::to_string(epoch), std::to_string(step), text(loss), text(validation), text(accuracy)});
  if (epochs_.size() > kMaxEpochs) epochs_.erase(epochs_.begin());
  step_begin_ = Clock::now();  // the validation is not part of the throughput
}

void TrainPage::End() {
  ended_ = true;
  if (speed_.empty() && window_time_ > Clock::duration()) EndWindow();  // the training was short
  Write("complete", false);
}

void TrainPage::Write(std::string_view state, bool live) {
  if (path_.empty() || failed_) return;
  written_ = Clock::now();
  const std::string page = html::Page("Training of " + facts_.model, Body(state), live ? kRefreshSeconds : 0);
  const absl::Status written = WriteFileAtomically(path_, AsBytes(page));
  if (written.ok()) return;
  failed_ = true;
  (void)Report(globals_, written);
  PrintMessage(globals_, "the page is not written any more; the training goes on");
}

std::string TrainPage::Body(std::string_view state) const {
  const double last = static_cast<double>(step_);
  std::string out =
      html::Facts({{"state", std::string(state)},
                   {"written at", Now()},
                   {"running for", DurationText(std::chrono::duration<double, std::micro>(written_ - begin_).count())},
                   {"epochs done", fmt::format("{} of {}", epoch_, facts_.epochs)},
                   {"step", std::to_string(step_)},
                   {"device", facts_.devices},
                   {"optimizer", facts_.optimizer},
                   {"loss", facts_.loss},
                   {"parameter tensors", std::to_string(facts_.parameters)},
                   {"examples", std::to_string(facts_.examples)},
                   {"batch", std::to_string(facts_.batch)}});
  if (loss_.empty()) return out + html::Paragraph("No step has ended yet.");
  if (loss_.not_finite() > 0) {
    out += html::Paragraph(
        fmt::format("{} steps had a loss that is NaN or infinite; the curve leaves them out.", loss_.not_finite()));
  }
  using html::Unit;
  out += CurvePicture("Loss", "loss of a step", Unit::kNumber, false, last,
                      {{&loss_, "training"}, {&validation_, "validation"}});
  out += CurvePicture("Accuracy on the validation", "fraction of the labels", Unit::kNumber, false, last,
                      {{&accuracy_, "accuracy"}});
  out += CurvePicture("Learning rate", "", Unit::kNumber, true, last, {{&rate_, "rate"}});
  out += CurvePicture("Throughput", "examples per second", Unit::kNumber, true, last, {{&speed_, "examples/s"}});
  const auto planned = static_cast<double>(planned_peak_bytes_);
  out +=
      CurvePicture("Memory of the process", "pages in memory", Unit::kBytes, true, last, {{&memory_, "resident"}},
                   planned > 0 ? planned : NAN, "planned peak of a step on the device: " + HumanBytes(planned_peak_bytes_));
  if (epochs_.empty()) return out;
  std::vector<html::Column> columns = {{"epoch", true}, {"step", true}, {"loss", true}};
  if (!validation_.empty() || !accuracy_.empty()) columns.push_back({"loss on the validation", true});
  if (!accuracy_.empty()) columns.push_back({"accuracy on it", true});
  return out + html::Heading("Epochs, the newest first") +
         html::Table(columns, std::vector<std::vector<std::string>>(epochs_.rbegin(), epochs_.rend())) +
         html::LeftOut(epochs_.size(), static_cast<size_t>(epoch_), "epochs");
}

}  // namespace mge::cli
