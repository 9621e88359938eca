// SPDX-License-Identifier: Apache-2.0
#include "core/conform/host_state.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "fmt/format.h"

namespace mge::conform {
namespace {

std::string SignalName(int number) {
  const char* name = sigabbrev_np(number);
  return name ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

}  // namespace

HostState HostStateNow() {
  HostState parts;
  sigset_t blocked;
  sigemptyset(&blocked);
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  for (int i = 1; i < NSIG; ++i) {
    struct sigaction action = {};
    if (sigaction(i, nullptr, &action) != 0) continue;  // reserved by the C library
    const auto handler = action.sa_handler;
    parts["the handler of " + SignalName(i)] = handler == SIG_DFL   ? "the default"
                                               : handler == SIG_IGN ? "ignored"
                                                                    : fmt::format("{}", reinterpret_cast<void*>(handler));
    parts["the mask of " + SignalName(i)] = sigismember(&blocked, i) ? "blocked" : "not blocked";
  }
  parts["the locale"] = std::setlocale(LC_ALL, nullptr);
  std::error_code code;
  parts["the working folder"] = std::filesystem::current_path(code).string();
  for (char** at = environ; *at; ++at) {
    const std::string_view variable = *at;
    const size_t name = std::min(variable.find('='), variable.size());
    parts[fmt::format("the variable {}", variable.substr(0, name))] = variable.substr(std::min(name + 1, variable.size()));
  }
  for (int i = 0; i < static_cast<int>(RLIMIT_NLIMITS); ++i) {
    rlimit limit = {};
    getrlimit(static_cast<__rlimit_resource>(i), &limit);
    parts[fmt::format("limit {} of setrlimit", i)] = fmt::format("{} of {}", limit.rlim_cur, limit.rlim_max);
  }
  const mode_t mask = umask(0);
  umask(mask);
  parts["the umask"] = fmt::format("{:03o}", mask);
  return parts;
}

std::string Changes(const HostState& before, const HostState& now) {
  auto value = [](const HostState& state, const std::string& name) {
    auto at = state.find(name);
    return at == state.end() ? std::string("not set") : at->second;
  };
  HostState all = now;
  all.insert(before.begin(), before.end());
  std::string out;
  for (const auto& [name, ignored] : all) {
    std::string was = value(before, name), is = value(now, name);
    if (was != is) out += fmt::format("{}{} (was {}, is {})", out.empty() ? "" : ", ", name, was, is);
  }
  return out;
}

}  // namespace mge::conform
