// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/backends.h"

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/base/errors.h"
#include "core/base/thread.h"
#include "core/plugin/library_record.h"
#include "fmt/format.h"

namespace mge {

// The runtime's side of a start in another thread, which may take longer than the runtime exists.
struct StartGate {
  StartContext context = {};
  std::mutex mutex = {};
  bool closed = false;  // the runtime no longer waits; `context` must not be used

  static void Write(void* self, LogLevel level, std::string_view message) {
    auto& gate = *static_cast<StartGate*>(self);
    std::lock_guard lock(gate.mutex);
    if (!gate.closed) gate.context.logger.Log(level, "{}", message);
  }
};

namespace {

void SetDuplicate(PluginFile& file, const PluginFile& first) {
  SetVerdict(
      file, Verdict::kSkipped, VerdictCode::kDuplicateName,
      fmt::format("backend '{}' is taken from '{}' (version {}), which comes first", file.name, first.path, first.version),
      "remove one of the two, or name this one's directory first in MGE_PLUGIN_PATH");
}

// Loads the first of the files that can be loaded. Writes a row per file.
std::shared_ptr<Backend> LoadFirst(const std::vector<FoundPlugin>& found, const StartContext& context,
                                   std::vector<PluginFile>& rows) {
  std::shared_ptr<Backend> backend;
  size_t loaded = 0;
  for (const FoundPlugin& file : found) {
    PluginFile row = file.file;
    if (backend) {
      SetDuplicate(row, rows[loaded]);
    } else {
      backend = LoadBackend(file, context, row);
      if (backend) row.devices = static_cast<int>(backend->devices().size());
      loaded = rows.size();
    }
    rows.push_back(std::move(row));
  }
  return backend;
}

// Returns a context that passes calls on to the runtime until the gate is closed.
StartContext Through(const std::shared_ptr<StartGate>& gate) {
  StartContext out = gate->context;
  out.logger = Logger(gate->context.logger.level(), StartGate::Write, gate.get());
  out.settings = [gate](std::string_view backend,
                        std::span<const mge_setting* const> rows) -> absl::StatusOr<std::vector<std::string>> {
    std::lock_guard lock(gate->mutex);
    if (gate->closed) {
      return Fail(errors::kTimeout, "the runtime no longer waits for the start of this backend",
                  {.fix = "raise plugin.start_timeout_seconds"});
    }
    if (gate->context.settings) return gate->context.settings(backend, rows);
    std::vector<std::string> values;
    for (const mge_setting* row : rows) values.emplace_back(row->default_value.data, row->default_value.size);
    return values;
  };
  out.core = [gate](std::string_view key) -> std::optional<std::string> {
    std::lock_guard lock(gate->mutex);
    if (gate->closed || !gate->context.core) return std::nullopt;
    return gate->context.core(key);
  };
  return out;
}

}  // namespace

// A start in its own thread. The thread and the waiting caller share it.
struct Backends::Attempt {
  Entry* entry = nullptr;          // used only by the caller
  std::vector<FoundPlugin> found;  // a copy, because the thread may outlive the entry
  std::shared_ptr<StartGate> gate;
  std::mutex mutex = {};
  std::condition_variable ended = {};
  bool done = false;
  std::vector<PluginFile> rows = {};
  std::shared_ptr<Backend> backend = {};

  void Run() {
    std::vector<PluginFile> loaded;
    std::shared_ptr<Backend> started;
    try {
      started = LoadFirst(found, Through(gate), loaded);
    } catch (const std::bad_alloc&) {
      started.reset();
      loaded.clear();
      for (const FoundPlugin& file : found) {
        SetVerdict(loaded.emplace_back(file.file), Verdict::kSkipped, VerdictCode::kOutOfMemory,
                   "there is not enough memory to start it", "end other programs, or raise the limit of this one");
      }
    }
    std::lock_guard lock(mutex);
    rows = std::move(loaded);
    backend = std::move(started);
    done = true;
    ended.notify_all();
  }
};

// Returns false if no thread can be started.
bool Backends::RunInThread(const std::shared_ptr<Attempt>& attempt) {
  try {
    Thread([attempt] { attempt->Run(); }).detach();
    return true;
  } catch (const std::system_error&) {  // a limit on threads
    return false;
  }
}

Backends::Backends(Discovery discovery, StartContext context) : context_(std::move(context)) {
  for (FoundPlugin& found : discovery.accepted) {
    if (found.note.is_transport) {
      files_.push_back(found.file);
      transports_.push_back(std::move(found));
      continue;
    }
    auto at = std::find_if(entries_.begin(), entries_.end(), [&](const auto& e) { return e->name == found.file.name; });
    PluginFile& row = files_.emplace_back(found.file);
    if (at == entries_.end()) {
      at = entries_.insert(at,
                           std::make_unique<Entry>(Entry{.name = found.file.name, .found = {}, .rows = {}, .classes = {}}));
    } else {
      SetDuplicate(row, (*at)->found[0].file);
    }
    Entry& entry = **at;
    for (const std::string& cls : found.file.classes) {
      if (!absl::c_linear_search(entry.classes, cls)) entry.classes.push_back(cls);
    }
    entry.rows.push_back(files_.size() - 1);
    entry.found.push_back(std::move(found));
  }
  std::move(discovery.rejected.begin(), discovery.rejected.end(), std::back_inserter(files_));
}

Backends::~Backends() {
  while (!order_.empty()) {
    Entry& last = *order_.back();
    order_.pop_back();
    if (last.backend) last.backend->services().Detach(this);
    last.backend.reset();
  }
}

void Backends::Commit(Entry& entry, std::vector<PluginFile> rows, std::shared_ptr<Backend> backend) {
  if (backend) backend->services().Attach(this, context_.logger, context_.core);
  {
    std::lock_guard lock(RecordMutex());
    if (!entry.settled) {
      for (size_t i = 0; i < rows.size(); ++i) files_[entry.rows[i]] = std::move(rows[i]);
      entry.settled = true;
      entry.backend = std::move(backend);
      order_.push_back(&entry);
      return;
    }
  }
  if (backend) backend->services().Detach(this);  // another thread was faster
}

void Backends::Start(std::string_view cls) {
  std::vector<Entry*> wanted;
  {
    std::lock_guard lock(RecordMutex());
    for (const auto& entry : entries_) {
      if (!entry->settled && !entry->late && (cls.empty() || absl::c_linear_search(entry->classes, cls)))
        wanted.push_back(entry.get());
    }
  }
  if (wanted.empty()) return;
  if (context_.start_limit.count() > 0) {
    for (const std::string& name : StartWithin(wanted, context_.start_limit)) {
      context_.logger.Warning(
          "backend '{0}' has not started within {1:g} s and is not used: run `mge doctor` to put it into quarantine, raise "
          "plugin.start_timeout_seconds, or set MGE_PLUGIN_SKIP={0} to leave it out",
          name, context_.start_limit.count());
    }
    return;
  }
  for (Entry* entry : wanted) {
    std::vector<PluginFile> rows;
    std::shared_ptr<Backend> backend = LoadFirst(entry->found, context_, rows);
    Commit(*entry, std::move(rows), std::move(backend));
  }
}

std::vector<std::string> Backends::StartAll(std::chrono::duration<double> limit) {
  std::vector<Entry*> wanted;
  {
    std::lock_guard lock(RecordMutex());
    for (const auto& entry : entries_) {
      if (!entry->settled) wanted.push_back(entry.get());
    }
  }
  return StartWithin(wanted, limit);
}

std::vector<std::string> Backends::StartWithin(const std::vector<Entry*>& wanted, std::chrono::duration<double> limit) {
  std::vector<std::shared_ptr<Attempt>> attempts;
  auto gate = std::make_shared<StartGate>();
  gate->context = context_;
  for (Entry* entry : wanted) {
    auto attempt = std::make_shared<Attempt>();
    attempt->entry = entry;
    attempt->found = entry->found;
    attempt->gate = gate;
    attempts.push_back(std::move(attempt));
  }
  bool parallel = true;
  for (const auto& attempt : attempts) parallel &= OpenLibrary(attempt->found[0], context_);
  for (const auto& attempt : attempts) {
    if (!parallel || !RunInThread(attempt)) attempt->Run();
  }
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::string> late;
  for (const auto& attempt : attempts) {
    std::vector<PluginFile> rows;
    std::shared_ptr<Backend> backend;
    {
      std::unique_lock lock(attempt->mutex);
      auto done = [&] { return attempt->done; };
      if (limit.count() <= 0) {
        attempt->ended.wait(lock, done);
      } else {
        const auto end = start + std::chrono::duration_cast<std::chrono::steady_clock::duration>(limit);
        if (!attempt->ended.wait_until(lock, end, done)) late.push_back(attempt->entry->name);
      }
      rows = std::move(attempt->rows);
      backend = std::move(attempt->backend);
    }
    if (!rows.empty()) {
      Commit(*attempt->entry, std::move(rows), std::move(backend));
      continue;
    }
    std::lock_guard lock(RecordMutex());
    attempt->entry->late = true;
    files_[attempt->entry->rows[0]].warning = fmt::format(
        "it has not started within {:g} s: run `mge doctor` to put it into quarantine, raise "
        "plugin.start_timeout_seconds, or set MGE_PLUGIN_SKIP={} to leave it out",
        limit.count(), attempt->entry->name);
  }
  std::lock_guard lock(gate->mutex);
  gate->closed = true;
  return late;
}

bool Backends::Settled(std::string_view cls) const {
  return std::all_of(entries_.begin(), entries_.end(), [&](const auto& entry) {
    return entry->settled || entry->late || !absl::c_linear_search(entry->classes, cls);
  });
}

bool Backends::Shares(std::string_view cls, std::string_view other) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const auto& entry) {
    return absl::c_linear_search(entry->classes, cls) && absl::c_linear_search(entry->classes, other);
  });
}

std::vector<std::shared_ptr<Backend>> Backends::running() const {
  std::vector<std::shared_ptr<Backend>> out;
  for (const auto& entry : entries_) {
    if (entry->backend) out.push_back(entry->backend);
  }
  return out;
}

}  // namespace mge
