// SPDX-License-Identifier: Apache-2.0
// mge sdk new: writes the project of a new backend from the embedded template (plugins/null).
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "core/cli/common.h"
#include "core/cli/sdk.h"
#include "core/cli/template.h"
#include "fmt/format.h"
#include "mge/plugin/names.hpp"

namespace mge::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemplate = "null";  // the backend's name in the template

struct SdkNewOptions {
  std::string name;
  std::string folder;
};

std::string Upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// Replaces the template's name where it is a word: null, null0, mge_null, MGE_NULL_DEVICES, but not nullptr.
std::string Renamed(std::string_view text, const std::string& name) {
  const std::string lower(kTemplate), variable = "MGE_" + Upper(lower) + "_";
  std::string out;
  for (size_t i = 0; i < text.size();) {
    auto letter = [&](size_t at) { return at < text.size() && std::isalpha(static_cast<unsigned char>(text[at])); };
    if (text.substr(i).starts_with(variable)) {
      out += "MGE_" + Upper(name) + "_";
      i += variable.size();
    } else if (text.substr(i).starts_with(lower) && (i == 0 || !letter(i - 1)) && !letter(i + lower.size())) {
      out += name;
      i += lower.size();
    } else {
      out += text[i++];
    }
  }
  return out;
}

// Checks that the folder is empty or does not exist. Returns kExitOk or the exit code of a reported error.
int CheckFolder(const Globals& globals, const std::string& folder) {
  std::error_code ec;
  fs::file_status status = fs::status(folder, ec);
  if (status.type() == fs::file_type::not_found) return kExitOk;
  std::string what = ec.message();
  if (!ec) {
    if (!fs::is_directory(status)) {
      what = "it exists and is not a folder";
    } else if (bool empty = fs::is_empty(folder, ec); ec) {
      what = ec.message();
    } else if (empty) {
      return kExitOk;
    } else {
      what = "the folder is not empty; nothing in it was changed";
    }
  }
  return Report(globals,
                Fail(errors::kFileWrite, fmt::format("cannot write a project to '{}'", folder),
                     {.what = what, .where = "DIR of mge sdk new", .fix = "give a folder that is empty or does not exist"}));
}

int Write(const Globals& globals, const SdkNewOptions& o) {
  std::vector<fs::path> written;
  const bool fresh = !fs::exists(o.folder);
  for (const TemplateFile& file : TemplateFiles()) {
    fs::path path = fs::path(o.folder) / file.path;
    std::error_code ec;
    fs::create_directories(path.parent_path(), ec);
    errno = 0;
    if (!ec) {
      std::ofstream out(path, std::ios::binary);
      out << Renamed(file.text, o.name);
      out.close();
      written.push_back(path);
      if (out) continue;
      ec = std::error_code(errno ? errno : EIO, std::generic_category());
    }
    std::error_code ignored;
    for (const fs::path& p : written) fs::remove(p, ignored);
    fs::remove(fs::path(o.folder) / "kernels", ignored);
    if (fresh) fs::remove(o.folder, ignored);
    return Report(globals, Fail(errors::kFileWrite, fmt::format("'{}' cannot be written", path.string()),
                                {.what = ec.message(),
                                 .where = "DIR of mge sdk new",
                                 .fix = "give a folder with write permission and free space"}));
  }
  return kExitOk;
}

// Returns the path of an existing backend with this name, or "". MGE loads only one of two backends with the same name.
std::string Namesake(const Globals& globals, const std::string& name) {
  std::string text;
  if (!Plugins::Verify(OptionsOf(globals), "").MoveTo(text).ok()) return {};
  const Json found = Json::parse(text);
  for (const Json& file : found["files"]) {
    if (file["name"] == name) return file["path"];
  }
  return {};
}

// Returns the prefix of the installation that contains this executable, for CMAKE_PREFIX_PATH, or "" if it is not installed.
std::string Prefix() {
  std::error_code ec;
  fs::path command = fs::read_symlink("/proc/self/exe", ec);
  if (ec) return {};
  fs::path prefix = command.parent_path().parent_path();
  return fs::exists(prefix / MGE_CMAKE_FOLDER / "mgeConfig.cmake", ec) ? prefix.string() : std::string();
}

int RunSdkNew(const Globals& globals, const SdkNewOptions& o) {
  std::string_view why = WhyNoBackendName(o.name);
  if (why.empty()) why = WhyNoClassList(o.name);  // in the template, the backend and its devices have the same name
  if (!why.empty()) {
    return Report(globals, Fail(errors::kUsage, fmt::format("'{}' is not a valid name for a backend", o.name),
                                {.what = std::string(why),
                                 .where = "NAME of mge sdk new",
                                 .fix = "use a word of a-z and _ that does not end in x, such as mydev"}));
  }
  if (std::string path = Namesake(globals, o.name); !path.empty()) {
    return Report(globals, Fail(errors::kUsage, fmt::format("a backend '{}' already exists", o.name),
                                {.what = fmt::format("it is {}; MGE loads only one backend of each name", path),
                                 .where = "NAME of mge sdk new",
                                 .fix = "use another name"}));
  }
  if (int code = CheckFolder(globals, o.folder)) return code;
  if (int code = Write(globals, o)) return code;
  std::string prefix = Prefix();
  std::string build = "cmake --workflow --preset release";
  if (!prefix.empty()) build = fmt::format("CMAKE_PREFIX_PATH='{}' {}", prefix, build);
  if (globals.json) {
    Json files = Json::array();
    for (const TemplateFile& file : TemplateFiles()) files.push_back(file.path);
    PrintJson({{"schema", "mge.sdk.new/1"},
               {"name", o.name},
               {"folder", o.folder},
               {"files", std::move(files)},
               {"build", build}});
    return kExitOk;
  }
  PrintMessage(globals, fmt::format("wrote the backend '{}' to {} ({} files)\n"
                                    "build it and run its tests:  cd '{}' && {}\n"
                                    "check that MGE loads it:     MGE_PLUGIN_PATH=\"$PWD/build\" mge plugins",
                                    o.name, o.folder, TemplateFiles().size(), o.folder, build));
  if (prefix.empty())
    PrintMessage(globals, "mge is not installed: set CMAKE_PREFIX_PATH to an installed MGE (cmake --install)");
  return kExitOk;
}

}  // namespace

Action DeclareSdkNew(Arguments app, const Globals& globals) {
  auto o = std::make_shared<SdkNewOptions>();
  app.Add("NAME", o->name, "The name of the backend and of its devices: a-z and _, not ending in x").Required();
  app.Add("DIR", o->folder, "The folder to write; it must be empty or not exist").ValueName("FOLDER").Required();
  return [&globals, o] { return RunSdkNew(globals, *o); };
}

}  // namespace mge::cli
