// SPDX-License-Identifier: Apache-2.0
#include "core/base/file_trust.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errno_text.h"
#include "core/base/file.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns whether `group` is the user-private group of `owner`. Debian creates for each user a group of the same name with
// no other member. With a umask of 0002, files are then writable by the group, but only their owner is in it.
bool IsPrivateGroup(uid_t owner, gid_t group) {
  std::vector<char> user_text(1 << 14), group_text(1 << 16);
  passwd user_row, *user = nullptr;
  ::group group_row, *row = nullptr;
  if (getpwuid_r(owner, &user_row, user_text.data(), user_text.size(), &user) != 0 || !user) return false;
  if (user->pw_gid != group) return false;
  if (getgrgid_r(group, &group_row, group_text.data(), group_text.size(), &row) != 0 || !row) return false;
  std::string_view name = user->pw_name;
  if (name != row->gr_name) return false;
  for (char** member = row->gr_mem; *member; ++member) {
    if (name != *member) return false;
  }
  // Another user may have `group` as primary group, which the list of members does not show. Only local users are checked:
  // a directory service may not list all its users.
  std::unique_ptr<FILE, int (*)(FILE*)> users(std::fopen("/etc/passwd", "re"), std::fclose);
  if (!users) return false;
  std::vector<char> text(1 << 14);
  passwd other_row, *other = nullptr;
  while (fgetpwent_r(users.get(), &other_row, text.data(), text.size(), &other) == 0 && other) {
    if (other->pw_gid == group && other->pw_uid != owner) return false;
  }
  return true;
}

// Returns whether the file has an access list. Then the group bits of its mode are the maximum that the list grants, not the
// rights of the group.
bool HasAccessList(const std::string& path) { return getxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) > 0; }

// The role of a path in the check. In a sticky directory others cannot replace existing files, but can create new ones.
// Therefore a sticky directory of root is accepted above the checked path, but not as that path.
enum class Place { kItself, kAbove };

std::string WhyNotTrusted(const struct stat& st, const std::string& path, Place place) {
  if (st.st_uid != 0 && st.st_uid != geteuid()) {
    return fmt::format("'{}' belongs to user {}, not to root or the current user", path, st.st_uid);
  }
  if (place == Place::kAbove && (st.st_mode & S_ISVTX) && st.st_uid == 0) return {};
  if (st.st_mode & S_IWOTH) return fmt::format("'{}' is writable by others (mode {:o})", path, st.st_mode & 07777);
  if ((st.st_mode & S_IWGRP) && (HasAccessList(path) || !IsPrivateGroup(st.st_uid, st.st_gid))) {
    return fmt::format("'{}' is writable by others (mode {:o}, group {})", path, st.st_mode & 07777, st.st_gid);
  }
  return {};
}

}  // namespace

std::string WhyNotTrusted(int fd) {
  struct stat st;
  if (fstat(fd, &st) != 0) return ErrnoText(errno);
  std::string path = PathOfOpenFile(fd);
  if (path.empty()) return "its path is not known";
  if (std::string why = WhyNotTrusted(st, path, Place::kItself); !why.empty()) return why;
  while (path.size() > 1) {
    path.resize(std::max<size_t>(path.rfind('/'), 1));
    if (stat(path.c_str(), &st) != 0) return fmt::format("'{}': {}", path, ErrnoText(errno));
    if (std::string why = WhyNotTrusted(st, path, Place::kAbove); !why.empty()) return why;
  }
  return {};
}

}  // namespace mge
