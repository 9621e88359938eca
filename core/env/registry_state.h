// SPDX-License-Identifier: Apache-2.0
// The state of a registry: every setting with its values from all sources, and the statements of the sources that no setting
// has used yet. Private to the registry, whose mutex guards it.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/env/config_file.h"
#include "core/env/registry.h"

namespace mge {

inline constexpr size_t kSourceCount = 5;
inline constexpr std::string_view kCoreOwner = "core";  // the owner of settings that no backend declares

// The value of a setting from one source.
struct Assigned {
  SettingValue value;
  Origin origin;
};

// A setting of the core or of a backend, with its values from all sources.
struct Entry {
  SettingRow row;
  std::string owner = {};
  std::string variable = {};
  std::vector<std::string> aliases = {};
  SettingValue default_value = {};
  std::array<std::optional<Assigned>, kSourceCount> assigned = {};  // indexed by Source
  bool read = false;                                                // fixed: a first-set setting that the runtime has read

  const Assigned* Highest() const {
    for (size_t i = kSourceCount; i-- > 0;) {
      if (assigned[i]) return &*assigned[i];
    }
    return nullptr;
  }
  SettingSlot Slot() const {
    const Assigned* highest = Highest();
    return highest ? SettingSlot{highest->value, highest->origin} : SettingSlot{default_value, {}};
  }
  bool HasName(std::string_view name) const {
    return name == row.key || name == variable || std::find(aliases.begin(), aliases.end(), name) != aliases.end();
  }
};

// Owns the texts to which a backend's row refers.
struct BackendText {
  BackendSetting setting;
  std::vector<Choice> choices;
};

// An assignment from a source, and whether a setting has used it.
template <typename T>
struct Statement {
  T what;
  bool taken = false;
};

Entry MakeEntry(const SettingRow& row, std::string_view owner);

struct Registry::State {
  std::deque<Entry> entries;  // the core's in the table's order, then each backend's
  std::unordered_map<std::string, Entry*> by_name;
  std::vector<std::unique_ptr<BackendText>> backend_texts;
  std::vector<std::string> backends;  // registered, in order
  std::vector<std::string> waiting;   // found, but not opened: their settings are not known yet

  std::vector<Statement<Assignment>> call;
  std::vector<Statement<Assignment>> command_line;
  std::vector<Statement<std::pair<std::string, std::string>>> environment;
  std::vector<Statement<ConfigItem>> config;

  std::optional<EnvironmentWatch> watch;  // present if the settings follow the process's variables

  std::string home;  // for `~` in paths; empty if unknown
  bool strict = false;
  bool marked_read = false;
  std::shared_ptr<const Snapshot> current;  // shared with its readers

  Entry* Find(const std::string& name) const;  // by key, variable or alias; nullptr if there is none
  Entry& Core(std::string_view key) { return *Find(std::string(key)); }
  void Add(Entry entry);

  // Removes the settings of a backend that failed to start. Another file of the same backend may then declare them.
  void Remove(std::string_view owner);

  // Marks the statements about the setting as unused, for the next entry with its name.
  void LetGo(const Entry& entry);

  // Reads the setting's values from all sources.
  absl::Status TakeAll(Entry& entry, const Logger& logger);

  // Takes the settings that are not fixed from the process's variables as they are now. On error nothing changes.
  absl::Status TakeNewEnvironment(Environment now, const Logger& logger);

  // Gives a backend's setting the values of the core's setting that names it (Setting::sets), if there is one. Values that
  // the backend's setting has from a source stay.
  void TakeFromCore(Entry& entry);

  // Reads the configuration files that the setting `config` names. A file cannot set `config`.
  absl::Status ReadConfigFiles(std::vector<std::string> files_of_command_line, const Logger& logger);

  // Fails with kBadSetting if the setting takes its value from one source (Setting::one_source), and a variable and the
  // option `option` give it different values. `name` and `text` are those of the option.
  absl::Status CheckOneSource(const Entry& entry, const Assigned& option, std::string_view name,
                              std::string_view text) const;

  // Creates a snapshot of all values and makes it the current one.
  void Publish();

  // Sets the value of a call, or removes it if the text is empty, and publishes a snapshot. On error nothing
  // changes.
  absl::Status SetByCall(Entry& entry, std::string_view name, std::string_view text, std::string_view function);

  // Returns the known name nearest to a wrong one, or "" if none is near. kVariables includes the aliases.
  enum class Names { kKeys, kVariables, kAll };
  std::string_view NearestName(std::string_view wrong, Names among) const;

 private:
  absl::Status TakeAssignments(Entry& entry, std::vector<Statement<Assignment>>& statements, Source source);
  absl::Status TakeEnvironment(Entry& entry, const Logger& logger);
  absl::Status TakeConfig(Entry& entry);
};

}  // namespace mge
