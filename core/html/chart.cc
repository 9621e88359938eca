// SPDX-License-Identifier: Apache-2.0
#include "core/html/chart.h"

#include <algorithm>
#include <cmath>

#include "core/base/lines.h"
#include "core/html/page.h"
#include "fmt/format.h"

namespace mge::html {
namespace {

constexpr double kLetter = 6.8;             // the mean width of a letter of 12 pixels
constexpr size_t kMaxNameColumns = 48;      // of the name of a lane
constexpr int kBelow = 44, kAbove = 26;     // pixels for the texts of the axes
constexpr double kTickX = 95, kTickY = 42;  // pixels between ticks, at least

size_t Columns(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

// Returns the beginning of a text that fits into so many pixels, or "" if too little of it would remain.
std::string Fitting(std::string_view text, double pixels) {
  const double columns = std::floor(pixels / kLetter);
  return columns < 4 ? std::string() : CutLine(text, static_cast<size_t>(columns));
}

// Returns the texts that appear under the pointer. The line breaks of `details` are ours; names have none after EscapeControl.
std::string Title(std::string_view details) {
  std::string out;
  while (!details.empty()) {
    if (!out.empty()) out += "\n";
    out += Text(TakeUntil(details, '\n'));
  }
  return out.empty() ? out : "<title>" + out + "</title>";
}

}  // namespace

Chart::Chart(Axis x, Axis y, Size size) : x_(std::move(x)), y_(std::move(y)), size_(size) {
  top_ = kAbove;
  bottom_ = size_.height - kBelow;
  size_t columns = 0;
  if (y_.lanes.empty()) {
    y_ticks_ = TicksOf(y_, static_cast<int>((bottom_ - top_) / kTickY));
    for (const Tick& tick : y_ticks_) columns = std::max(columns, Columns(tick.text));
  } else {
    for (const std::string& lane : y_.lanes) columns = std::max(columns, std::min(Columns(lane), kMaxNameColumns));
  }
  left_ = 14 + kLetter * static_cast<double>(columns);
  right_ = size_.width - 30;
  x_ticks_ = TicksOf(x_, static_cast<int>((right_ - left_) / kTickX));
}

Chart::Chart(Axis x, Axis lanes, int lane_height)
    : Chart(std::move(x), lanes,
            Size{.height = kAbove + kBelow + lane_height * static_cast<int>(std::max<size_t>(lanes.lanes.size(), 1))}) {}

double Chart::X(double value) const { return left_ + PlaceOf(x_, value) * (right_ - left_); }

double Chart::Y(double value) const {
  if (y_.lanes.empty()) return bottom_ - PlaceOf(y_, value) * (bottom_ - top_);
  return top_ + value / static_cast<double>(y_.lanes.size()) * (bottom_ - top_);
}

std::string Chart::PathOf(const std::vector<Point>& points) const {
  std::string out;
  bool pen_down = false;
  for (const Point& p : points) {
    const bool drawn = std::isfinite(p.x) && std::isfinite(p.y);
    if (drawn) out += fmt::format("{}{:.1f} {:.1f}", pen_down ? 'L' : 'M', X(p.x), Y(p.y));
    pen_down = drawn;
  }
  return out;
}

void Chart::Line(int color, const std::vector<Point>& points) {
  body_ += fmt::format("<path class=\"curve l{}\" d=\"{}\"/>\n", color, PathOf(points));
}

void Chart::Band(int color, const std::vector<Point>& low, const std::vector<Point>& high) {
  std::string path;
  auto add = [&](const Point& p) {
    if (std::isfinite(p.y)) path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? 'M' : 'L', X(p.x), Y(p.y));
  };
  for (const Point& p : low) add(p);
  for (size_t i = high.size(); i-- > 0;) add(high[i]);
  if (!path.empty()) body_ += fmt::format("<path class=\"band s{}\" d=\"{}Z\"/>\n", color, path);
}

void Chart::Area(int color, Point from, Point to, std::string_view details, std::string_view label) {
  const double x = X(from.x), width = std::max(1.0, X(to.x) - x), y = std::min(Y(from.y), Y(to.y)),
               height = std::max(0.7, std::abs(Y(to.y) - Y(from.y)));
  body_ += fmt::format("<g>{}<rect class=\"area f{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>",
                       Title(details), color, x, y, width, height);
  if (const std::string text = height < 13 ? "" : Fitting(label, width - 8); !text.empty()) {
    body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x + 4, y + height / 2 + 4, Text(text));
  }
  body_ += "</g>\n";
}

void Chart::Bar(int color, double from, double to, size_t lane, std::string_view details, std::string_view label) {
  const double x0 = std::min(X(from), X(to)), x1 = std::max({X(from), X(to), x0 + 1}), y = Y(static_cast<double>(lane)),
               height = Y(static_cast<double>(lane) + 1) - y;
  body_ += fmt::format("<g>{}<rect class=\"s{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"2\"/>",
                       Title(details), color, x0, y + height * 0.15, x1 - x0, height * 0.7);
  const double room = size_.width - x1 - 6;
  const bool beside = room >= kLetter * static_cast<double>(Columns(label));
  body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text></g>\n", beside ? x1 + 6 : x0 - 6, y + height / 2 + 4,
                       beside ? "" : " text-anchor=\"end\"", Text(label));
}

void Chart::Dot(int color, Point at, double radius, std::string_view details) {
  body_ += fmt::format("<circle class=\"dot s{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\">{}</circle>\n", color, X(at.x),
                       Y(at.y), radius, Title(details));
}

void Chart::Guide(Point from, Point to, std::string_view label) {
  body_ += fmt::format("<path class=\"guide\" d=\"{}\"/>", PathOf({from, to}));
  body_ += fmt::format("<text class=\"soft\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", X(to.x) - 4,
                       Y(to.y) - 5, Text(CutLine(label, kMaxColumns)));
}

void Chart::Legend(int color, std::string_view name, Of of) {
  legend_ += fmt::format("<span><i class=\"{}{}\"></i>{}</span>", of == Of::kAreas ? 'f' : 's', color,
                         Text(CutLine(name, kMaxColumns)));
}

std::string Chart::Grid() const {
  std::string out;
  for (const Tick& tick : x_ticks_) {
    out += fmt::format(
        "<path class=\"grid\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/><text class=\"soft\" x=\"{0:.1f}\" "
        "y=\"{3:.1f}\" text-anchor=\"middle\">{4}</text>\n",
        X(tick.value), top_, bottom_, bottom_ + 17, tick.text);
  }
  for (const Tick& tick : y_ticks_) {
    out += fmt::format(
        "<path class=\"grid\" d=\"M{0:.1f} {1:.1f}H{2:.1f}\"/><text class=\"soft\" x=\"{3:.1f}\" "
        "y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
        left_, Y(tick.value), right_, left_ - 7, Y(tick.value) + 4, tick.text);
  }
  for (size_t i = 0; i < y_.lanes.size(); ++i) {
    const double middle = Y(static_cast<double>(i) + 0.5);
    out += fmt::format("<text class=\"soft\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}{}</text>\n", left_ - 7,
                       middle + 4, Title(CutLine(y_.lanes[i], kMaxColumns)), Text(CutLine(y_.lanes[i], kMaxNameColumns)));
  }
  out += fmt::format("<text class=\"soft\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                     (left_ + right_) / 2, bottom_ + 36, Text(x_.title));
  return out + fmt::format("<text class=\"soft\" x=\"{}\" y=\"14\">{}</text>\n", 4, Text(y_.title));
}

std::string Chart::Html() const {
  std::string out = legend_.empty() ? "" : "<p class=\"legend\">" + legend_ + "</p>\n";
  return out + fmt::format("<div class=\"wide\"><svg width=\"{}\" height=\"{}\">\n{}{}</svg></div>\n", size_.width,
                           size_.height, Grid(), body_);
}

}  // namespace mge::html
