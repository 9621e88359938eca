// SPDX-License-Identifier: Apache-2.0
// What a registry keeps: every setting with all that was said of it, and what the sources say that
// nobody has taken yet. Private to the registry, which guards it with its mutex.
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
inline constexpr std::string_view kCoreOwner = "core";  // where no backend owns the setting

// What one source says of a setting.
struct Assigned {
  SettingValue value;
  Origin origin;
};

// A setting of the core or of a backend, and all that was said of it.
struct Entry {
  SettingRow row;
  std::string owner = {};
  std::string variable = {};
  std::vector<std::string> aliases = {};
  SettingValue fallback = {};
  std::array<std::optional<Assigned>, kSourceCount> assigned = {};  // by Source
  bool read = false;  // a first-set setting that the runtime has read
  bool warned_later = false;

  const Assigned* Highest() const {
    for (size_t i = kSourceCount; i-- > 0;) {
      if (assigned[i]) return &*assigned[i];
    }
    return nullptr;
  }
  SettingSlot Slot() const {
    const Assigned* highest = Highest();
    return highest ? SettingSlot{highest->value, highest->origin} : SettingSlot{fallback, {}};
  }
  bool HasName(std::string_view name) const {
    return name == row.key || name == variable ||
           std::find(aliases.begin(), aliases.end(), name) != aliases.end();
  }
};

// The texts that a backend's row views into.
struct BackendText {
  BackendSetting setting;
  std::vector<Choice> choices;
};

// Something that a source says, and whether anybody took it.
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

  std::vector<Statement<Assignment>> call;
  std::vector<Statement<Assignment>> command_line;
  std::vector<Statement<std::pair<std::string, std::string>>> environment;
  std::vector<Statement<ConfigItem>> config;

  bool strict = false;
  bool marked_read = false;
  std::shared_ptr<const Snapshot> current;  // shared with its readers

  Entry* Find(const std::string& name) const;  // nullptr if nothing has the name
  Entry& Core(std::string_view key) { return *Find(std::string(key)); }
  void Add(Entry entry);
  void Remove(std::string_view owner);  // what a backend declared that did not start: another of its name may be tried
  void LetGo(const Entry& entry);       // what the sources say of it is for whoever declares it next

  // Reads what each source says of the setting.
  absl::Status TakeAll(Entry& entry, const Logger& logger);

  // Which files to read is itself a setting, of every source but a file.
  absl::Status ReadConfigFiles(std::vector<std::string> files_of_command_line,
                               const Logger& logger);

  // A value whose setting has no effect yet is said so once, or refused.
  absl::Status JudgeLater(Entry& entry, const Logger& logger);

  // Makes the snapshot of all present values the current one.
  void Publish();

  // Sets (or with an empty text takes back) the value of a call and publishes it. On error nothing
  // changes.
  absl::Status SetByCall(Entry& entry, std::string_view name, std::string_view text,
                         std::string_view function, const Logger& logger);

  // A wrong name's nearest known one: among keys, among variables and aliases, or both.
  enum class Names { kKeys, kVariables, kAll };
  std::string_view NearestName(std::string_view wrong, Names among) const;

 private:
  absl::Status TakeAssignments(Entry& entry, std::vector<Statement<Assignment>>& statements,
                               Source source);
  absl::Status TakeEnvironment(Entry& entry, const Logger& logger);
  absl::Status TakeConfig(Entry& entry);
};

}  // namespace mge
