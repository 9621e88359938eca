// SPDX-License-Identifier: Apache-2.0
// Charts as inline SVG: axes, lines, bands, rectangles, dots, a legend. All pages draw with this class.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/html/axis.h"

namespace mge::html {

struct Point {
  double x = 0, y = 0;
};

// A chart of two axes. All texts are plain; the chart escapes them. Colours are numbers below kColors (page.h). Coordinates are
// values of the axes.
class Chart {
 public:
  // The size of the whole picture in pixels.
  struct Size {
    int width = 1040, height = 300;
  };

  Chart(Axis x, Axis y, Size size);
  // Chooses the height for the lanes of `y`.
  Chart(Axis x, Axis lanes, int lane_height);

  // Connects the points. The line has a gap where a value is not finite.
  void Line(int color, const std::vector<Point>& points);
  // Fills the area between two values of each point. `low` and `high` have the same x.
  void Band(int color, const std::vector<Point>& low, const std::vector<Point>& high);
  // Draws an area with a text inside, as far as it fits. `details` appears under the pointer.
  void Area(int color, Point from, Point to, std::string_view details, std::string_view label = {});
  // Draws a bar from `from` to `to` in a lane, with a text beside it.
  void Bar(int color, double from, double to, size_t lane, std::string_view details, std::string_view label);
  void Dot(int color, Point at, double radius, std::string_view details);
  // Draws a dashed line, with a text at its end.
  void Guide(Point from, Point to, std::string_view label);
  enum class Of { kLines, kAreas };  // areas have paler colours than lines, bars and dots
  void Legend(int color, std::string_view name, Of of = Of::kLines);

  // Returns the legend and the picture.
  std::string Html() const;

 private:
  double X(double value) const;
  double Y(double value) const;
  std::string PathOf(const std::vector<Point>& points) const;
  std::string Grid() const;

  const Axis x_, y_;
  const Size size_;
  std::vector<Tick> x_ticks_, y_ticks_;
  double left_ = 0, right_ = 0, top_ = 0, bottom_ = 0;  // of the area between the axes, in pixels
  std::string body_, legend_;
};

}  // namespace mge::html
