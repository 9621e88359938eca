// SPDX-License-Identifier: Apache-2.0
#include "core/cli/train_lists.h"

#include <cmath>
#include <cstdlib>
#include <string_view>

#include "fmt/format.h"

namespace mge::cli {
namespace {

// Returns the parts of a text between separators.
std::vector<std::string> Parts(std::string_view text, char separator) {
  std::vector<std::string> out(1);
  for (const char c : text) {
    if (c == separator) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

// Sets *out to the number that is the whole text, at least 0. Returns false if there is none.
bool ReadNumber(const std::string& text, double* out) {
  char* end = nullptr;
  *out = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' && std::isfinite(*out) && *out >= 0;
}

int BadList(const Globals& globals, std::string_view option, std::string_view text, std::string_view wrong,
            std::string fix) {
  return ReportUsage(globals, fmt::format("{} {}: '{}' is not valid", option, text, wrong), std::move(fix));
}

// Reads "PATTERN:rate=0.1,decay=0".
int ReadGroup(const Globals& globals, const std::string& text, ParameterGroup* out) {
  const std::string fix = "give PATTERN:rate=NUMBER,decay=NUMBER, such as 'head.*:rate=10' or '*.bias:decay=0'";
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return BadList(globals, "--group", text, text, fix);
  out->pattern = text.substr(0, colon);
  for (const std::string& part : Parts(std::string_view(text).substr(colon + 1), ',')) {
    const size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    double* to = name == "rate" ? &out->rate : name == "decay" ? &out->weight_decay : nullptr;
    if (!to || equals == std::string::npos || !ReadNumber(part.substr(equals + 1), to)) {
      return BadList(globals, "--group", text, part, fix);
    }
  }
  return kExitOk;
}

}  // namespace

int ReadTrainLists(const Globals& globals, const TrainLists& texts, TrainingOptions* options,
                   std::vector<SchedulePoint>* points) {
  if (!texts.class_weights.empty()) {
    for (const std::string& part : Parts(texts.class_weights, ',')) {
      if (!ReadNumber(part, &options->class_weights.emplace_back())) {
        return BadList(globals, "--class-weights", texts.class_weights, part, "give numbers, such as 1,2.5,1");
      }
    }
  }
  if (!texts.points.empty()) {
    for (const std::string& part : Parts(texts.points, ',')) {
      const size_t colon = part.find(':');
      SchedulePoint& point = points->emplace_back();
      const bool good = colon != std::string::npos && ReadNumber(part.substr(0, colon), &point.part) &&
                        ReadNumber(part.substr(colon + 1), &point.factor);
      const bool rises = points->size() < 2 || points->end()[-2].part <= point.part;
      if (!good || !rises || point.part > 1) {
        return BadList(globals, "--schedule-points", texts.points, part,
                       "give PART:FACTOR with parts of the training that rise from 0 to 1, such as 0:1,0.5:1,1:0.1");
      }
    }
  }
  for (const std::string& text : texts.groups) {
    if (const int code = ReadGroup(globals, text, &options->groups.emplace_back())) return code;
  }
  return kExitOk;
}

}  // namespace mge::cli
