// SPDX-License-Identifier: Apache-2.0
// Backends: the backends that a runtime found. Each is opened and started when one of its device classes is requested.
//
// Why: opening a driver takes time and memory, starts threads, and makes fork() unsafe. A run on cpu0 must not pay for the
// other backends of the machine.
//
// The identity note names the classes, so no file is opened to decide. If several files have one name, the first that loads
// is used. A backend is started at most once per runtime; a failed start is not repeated.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/plugin/discovery.h"
#include "core/plugin/loader.h"
#include "core/plugin/verdict.h"

namespace mge {

// The accepted backends with their verdicts. Thread-safe. While one thread starts a backend, other threads can use and start
// the others; if they need the same one, they wait.
class Backends {
 public:
  Backends(Discovery discovery, StartContext context);
  ~Backends();  // releases the started backends, in reverse order of their start
  Backends(const Backends&) = delete;
  Backends& operator=(const Backends&) = delete;

  // Starts the backends that list the class and have not been started. "": starts all. Warns about those that exceed
  // StartContext::start_limit, as StartAll() does, and goes on without them.
  void Start(std::string_view cls);

  // Opens the libraries in this thread, then starts all backends at the same time, each in its own thread. Waits up to
  // `limit` for the starts (0: without a limit). A start that takes longer continues; the name of its backend is returned,
  // and the row of its file gets a warning.
  std::vector<std::string> StartAll(std::chrono::duration<double> limit);

  // Returns whether an accepted backend lists both classes.
  bool Shares(std::string_view cls, std::string_view other) const;

  // The functions below need RecordMutex().

  // Returns whether every backend that lists the class has been started or has failed.
  bool Settled(std::string_view cls) const;
  const std::vector<PluginFile>& files() const { return files_; }  // in order of precedence, rejected files last
  // The accepted transports, in order of precedence. They are never started here.
  const std::vector<FoundPlugin>& transports() const { return transports_; }
  std::vector<std::shared_ptr<Backend>> running() const;  // in order of files()

 private:
  // The files with one name, and their backend.
  struct Entry {
    std::string name;
    std::vector<FoundPlugin> found;  // in order of precedence
    std::vector<size_t> rows;        // of each file in files_
    std::vector<std::string> classes;
    bool settled = false;
    bool late = false;  // its start has exceeded a limit: other devices of its classes get their numbers without it
    std::shared_ptr<Backend> backend = {};
  };
  struct Attempt;
  static bool RunInThread(const std::shared_ptr<Attempt>& attempt);

  // Starts the backends of these entries at the same time, see StartAll().
  std::vector<std::string> StartWithin(const std::vector<Entry*>& wanted, std::chrono::duration<double> limit);

  void Commit(Entry& entry, std::vector<PluginFile> rows, std::shared_ptr<Backend> backend);

  const StartContext context_;
  std::vector<PluginFile> files_;
  std::vector<FoundPlugin> transports_;          // constant
  std::vector<std::unique_ptr<Entry>> entries_;  // constant, except for the last two members of each entry
  std::vector<Entry*> order_;                    // of their starts
};

}  // namespace mge
