// SPDX-License-Identifier: Apache-2.0
#include "core/plan/lanes.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/plan/color_paths.h"

namespace mge {
namespace {

class Spreader {
 public:
  explicit Spreader(Schedule& schedule)
      : schedule_(schedule), end_(schedule.units.size(), 0), producer_(schedule.items.size(), -1) {
    for (size_t u = 0; u < schedule.units.size(); ++u) {
      const PlannedUnit& unit = schedule.units[u];
      for (int32_t item : unit.outputs) {
        producer_[item] = unit.kind == Unit::Kind::kAlias ? ProducerOf(unit.inputs[0]) : static_cast<int32_t>(u);
      }
    }
  }

  void Run() {
    for (size_t u = 0; u < schedule_.units.size(); ++u) {
      PlannedUnit& unit = schedule_.units[u];
      if (unit.HasKernel() && unit.OnQueue() && unit.device->description().compute_queues > 1) Move(unit);
      double& free_at = free_at_[unit.queue];
      end_[u] = StartOn(unit, unit.queue) + CostOf(unit);
      free_at = std::max(free_at, end_[u]);
    }
  }

  // Puts the kernels of each device on at most `lanes` queues, by their longest paths.
  void Color(int32_t lanes) {
    ForEachColor(true, lanes, [&](PlannedUnit& unit, int32_t color) { unit.queue = QueueOf(*unit.device, color); });
  }

  // Puts the kernels of each device that run without queues in at most `lanes` lanes, by their longest paths.
  void ColorLanes(int32_t lanes) {
    ForEachColor(false, lanes, [](PlannedUnit& unit, int32_t color) { unit.lane = color; });
  }

 private:
  // Calls set(unit, color) for each kernel on a queue, or for each one without a queue. Colours each device on its own.
  void ForEachColor(bool on_queue, int32_t lanes, absl::FunctionRef<void(PlannedUnit&, int32_t)> set) {
    std::vector<std::vector<int32_t>> before(schedule_.units.size());
    for (size_t u = 0; u < before.size(); ++u) {
      for (int32_t item : schedule_.units[u].inputs) {
        if (const int32_t p = ProducerOf(item); p >= 0) before[u].push_back(p);
      }
    }
    auto is_in = [&](const PlannedUnit& unit, const Device* device) {
      return unit.device == device && unit.HasKernel() && unit.OnQueue() == on_queue;
    };
    std::vector<Device*> devices;
    for (const PlannedUnit& unit : schedule_.units) {
      const bool is_new = std::find(devices.begin(), devices.end(), unit.device) == devices.end();
      if (is_in(unit, unit.device) && is_new) devices.push_back(unit.device);
    }
    for (Device* device : devices) {
      std::vector<int64_t> importance;
      for (const PlannedUnit& unit : schedule_.units) importance.push_back(is_in(unit, device) ? 1 : 0);
      const auto queues = static_cast<int32_t>(std::max<uint32_t>(device->description().compute_queues, 1));
      const std::vector<int32_t> colors =
          ColorPaths(before, std::move(importance), on_queue ? std::min(lanes, queues) : lanes);
      for (size_t u = 0; u < colors.size(); ++u) {
        if (is_in(schedule_.units[u], device)) set(schedule_.units[u], colors[u]);
      }
    }
  }

  static double CostOf(const PlannedUnit& unit) {
    const double us = unit.candidate.measured_us >= 0 ? unit.candidate.measured_us : unit.candidate.cost_us;
    return std::max(unit.HasKernel() ? us : unit.copy_us, 0.0);
  }

  // Returns the unit that writes the item, or -1 for an input of the graph. Looks through aliases, which take no time.
  int32_t ProducerOf(int32_t item) const { return item >= 0 ? producer_[item] : -1; }

  // Returns the estimated time at which the unit can start on a queue.
  double StartOn(const PlannedUnit& unit, int32_t queue) {
    double start = free_at_[queue];
    for (int32_t item : unit.inputs) {
      const int32_t p = ProducerOf(item);
      if (p >= 0) start = std::max(start, end_[p] + (schedule_.units[p].queue == queue ? 0 : kQueueWaitUs));
    }
    return start;
  }

  // Returns compute queue number `index` of a device. Adds it if it is new.
  int32_t QueueOf(Device& device, int32_t index) {
    std::vector<PlanQueue>& queues = schedule_.queues;
    for (size_t q = 0; q < queues.size(); ++q) {
      const bool same = queues[q].device == &device && queues[q].kind == MGE_QUEUE_COMPUTE;
      if (same && queues[q].index == index) return static_cast<int32_t>(q);
    }
    queues.push_back({&device, MGE_QUEUE_COMPUTE, 0, index});
    return static_cast<int32_t>(queues.size()) - 1;
  }

  void Move(PlannedUnit& unit) {
    // The queue of the producer that ends last. Without one: the first queue.
    double latest = -1;
    for (int32_t item : unit.inputs) {
      const int32_t p = ProducerOf(item);
      if (p < 0 || end_[p] <= latest) continue;
      const PlannedUnit& producer = schedule_.units[p];
      if (!producer.HasKernel() || !producer.OnQueue() || producer.device != unit.device) continue;
      latest = end_[p];
      unit.queue = producer.queue;
    }
    const double stays = StartOn(unit, unit.queue);
    double best = stays - 2 * kQueueWaitUs;  // one wait to begin, one to join the results
    // Queues are used from the lowest number on, so the first unused one stands for all others.
    const auto most = static_cast<int32_t>(std::min<size_t>(unit.device->description().compute_queues, Used(unit) + 1));
    int32_t chosen = -1;
    for (int32_t i = 0; i < most; ++i) {
      const double start = i < static_cast<int32_t>(Used(unit)) ? StartOn(unit, QueueOf(*unit.device, i)) : StartOnNew(unit);
      if (start >= best) continue;
      best = start;
      chosen = i;
    }
    if (chosen >= 0) unit.queue = QueueOf(*unit.device, chosen);
  }

  // Returns the number of compute queues of the unit's device that are in use.
  size_t Used(const PlannedUnit& unit) const {
    return static_cast<size_t>(std::count_if(schedule_.queues.begin(), schedule_.queues.end(), [&](const PlanQueue& q) {
      return q.device == unit.device && q.kind == MGE_QUEUE_COMPUTE;
    }));
  }

  double StartOnNew(const PlannedUnit& unit) {
    constexpr int32_t kNew = -2;  // the number of no queue: it is free from the beginning
    free_at_[kNew] = 0;
    return StartOn(unit, kNew);
  }

  Schedule& schedule_;
  std::vector<double> end_;            // by unit
  std::vector<int32_t> producer_;      // by item
  std::map<int32_t, double> free_at_;  // by queue, and for the calling thread
};

}  // namespace

std::optional<int32_t> QueueLimit(const PlanContext& context) {
  if (!context.settings->IsSet<kPlanWorkspaces>()) return std::nullopt;
  return static_cast<int32_t>(std::min(context.settings->Get<kPlanWorkspaces>(), context.settings->Get<kGpuWorkers>()));
}

std::optional<int32_t> LaneLimit(const PlanContext& context) {
  if (!context.settings->IsSet<kPlanWorkspaces>() || StepsPerOperation(context) == kAllSteps) return std::nullopt;
  return static_cast<int32_t>(std::min<int64_t>(context.settings->Get<kPlanWorkspaces>(), context.engine_workers));
}

void SpreadKernels(Schedule& schedule, const PlanContext& context) {
  Spreader spreader(schedule);
  QueueLimit(context) ? spreader.Color(*QueueLimit(context)) : spreader.Run();
  if (const std::optional<int32_t> lanes = LaneLimit(context)) Spreader(schedule).ColorLanes(*lanes);
}

}  // namespace mge
