// SPDX-License-Identifier: Apache-2.0
// Watches which files of a directory are opened, by any process.
#pragma once

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <set>
#include <string>

namespace mge {

class Watch {
 public:
  explicit Watch(const std::string& directory) : fd_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    EXPECT_GE(inotify_add_watch(fd_, directory.c_str(), IN_OPEN), 0);
  }
  ~Watch() { close(fd_); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  bool Opened(const std::string& name) {
    alignas(inotify_event) char buffer[65536];
    for (ssize_t n; (n = read(fd_, buffer, sizeof(buffer))) > 0;) {
      for (char* at = buffer; at < buffer + n;) {
        auto* event = reinterpret_cast<inotify_event*>(at);
        if (event->len > 0) opened_.insert(event->name);
        at += sizeof(inotify_event) + event->len;
      }
    }
    return opened_.count(name) > 0;
  }

 private:
  int fd_;
  std::set<std::string> opened_;
};

}  // namespace mge
