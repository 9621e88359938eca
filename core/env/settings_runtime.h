// SPDX-License-Identifier: Apache-2.0
// Settings of a runtime as a whole: devices, backends, threads, memory limits, files, messages.
#pragma once

#include "core/base/log.h"
#include "core/env/setting.h"
#include "core/env/setting_checks.h"

namespace mge {

// The value of `log.override` that does not override log.level.
inline constexpr int kNoLogOverride = -1;
enum class LogOverride : int {
  kNone = kNoLogOverride,
  kDebug = 0,
  kInfo = 1,
  kWarning = 2,
  kError = 3,
  kSilent = 4,
};

namespace setting_choices {
inline constexpr Choice kLogLevels[] = {
    {LogLevel::kDebug, "debug", "0"},
    {LogLevel::kInfo, "info", "1"},
    {LogLevel::kWarning, "warning", "warn 2"},
    {LogLevel::kError, "error", "3"},
    {LogLevel::kSilent, "silent", "no_log off 4"},
};
inline constexpr Choice kLogOverrides[] = {
    {LogOverride::kNone, "none"},        {LogOverride::kDebug, "debug", "0"},
    {LogOverride::kInfo, "info", "1"},   {LogOverride::kWarning, "warning", "warn 2"},
    {LogOverride::kError, "error", "3"}, {LogOverride::kSilent, "silent", "no_log off 4"},
};
}  // namespace setting_choices

inline constexpr Setting<Text> kDefaultDevice = {
    .key = "default_device",
    .default_value = "xpux",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Device that runs a model if neither the call nor a scope names one: xpux is the best device present, \"a,b\" an "
        "order of preference, and \"a+b\" splits the model over both.",
    .instead = "set_default_device",
};
inline constexpr Setting<PathList> kPluginPath = {
    .key = "plugin.path",
    .check = IsAbsolutePath,
    .allowed = "absolute directories separated by colons",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Directories that are searched for backends before the built-in one; an entry may also be a single file.",
};
inline constexpr Setting<Path> kPluginAllow = {
    .key = "plugin.allow",
    .check = IsAbsolutePath,
    .allowed = "an absolute path",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Allow-list of backends, a file written by sha256sum; a backend's file whose hash is not in it is not opened.",
};
inline constexpr Setting<TextList> kPluginSkip = {
    .key = "plugin.skip",
    .check = IsIdentifierWord,
    .allowed = "names of backends separated by commas",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Backends that are not loaded, wherever they are found; their settings have no effect.",
};
inline constexpr Setting<Seconds> kPluginStartTimeout = {
    .key = "plugin.start_timeout_seconds",
    .default_value = Seconds(10),
    .range = Range<Seconds>{Seconds(1e-9), Seconds(1e9)},
    .word = {"unlimited", Seconds(0)},
    .unit = "seconds",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Time limit for the start of a backend; a slower one is reported and not used.",
};
inline constexpr Setting<Path> kCacheDir = {
    .key = "cache.dir",
    .check = IsAbsolutePath,
    .allowed = "an absolute path",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Directory in which backends keep compiled kernels and the like; if empty, mge/blobs in the user's cache "
        "directory. Other users must not be able to write it.",
};
inline constexpr Setting<ByteCount> kCacheBytes = {
    .key = "cache.bytes",
    .default_value = ByteCount{1 << 30},
    .range = Range<ByteCount>{ByteCount{0}, ByteCount{int64_t{1} << 46}},
    .unit = "bytes",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Size limit of the files in cache.dir; those not used for the longest time are removed first. 0 keeps nothing.",
};
inline constexpr Setting<int64_t> kThreads = {
    .key = "threads",
    .default_value = 0,
    .range = Range<int64_t>{0, 1024},
    .unit = "threads",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Number of threads of the compute pool; 0 means the number that the CPU affinity and cgroup quota allow.",
};
inline constexpr Setting<MemoryLimits> kMemoryLimit = {
    .key = "memory.limit",
    .allowed = "a size such as 256MiB for every device, or one per device such as cpu0=1GiB,gpu0=2GiB",
    .unit = "bytes",
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Hard limit of the memory that MGE allocates on a device; if empty, the device's own size "
        "is the limit.",
};
inline constexpr Setting<int64_t> kSeed = {
    .key = "seed",
    .default_value = 0,
    .range = Range<int64_t>{0, INT64_MAX},
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Seed of the random numbers of operators and of generated inputs.",
};
inline constexpr Setting<Seconds> kRunTimeout = {
    .key = "run.timeout_seconds",
    .default_value = Seconds(0),
    .range = Range<Seconds>{Seconds(1e-9), Seconds(1e9)},
    .word = {"unlimited", Seconds(0)},
    .unit = "seconds",
    .lifecycle = Lifecycle::kDynamic,
    .doc = "Time limit per run, planning included; a longer run fails.",
};
inline constexpr Setting<PathList> kConfigFiles = {
    .key = "config",
    .allowed = "paths of TOML files separated by colons",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Configuration files, read in order; a later file wins.",
};
inline constexpr Setting<bool> kStrictEnv = {
    .key = "env.strict",
    .default_value = false,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Makes unknown variables, and settings without effect in this version, an error.",
};
inline constexpr Setting<LogLevel> kLogLevel = {
    .key = "log.level",
    .default_value = LogLevel::kWarning,
    .choices = setting_choices::kLogLevels,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Lowest level of messages that are written.",
    .aliases = "MEGENGINE_LOGGING_LEVEL",
};
inline constexpr Setting<LogOverride> kLogOverride = {
    .key = "log.override",
    .default_value = LogOverride::kNone,
    .choices = setting_choices::kLogOverrides,
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Level of messages that replaces log.level, whatever its source.",
    .aliases = "RUNTIME_OVERRIDE_LOG_LEVEL",
};
inline constexpr Setting<bool> kLogStorageFallback = {
    .key = "log.storage_fallback",
    .default_value = true,
    .lifecycle = Lifecycle::kFirstSet,
    .doc =
        "Warns, each message once per runtime, that a sparse tensor was made dense. If it is set to true, warns also that "
        "an operator runs on another device than the first one, by the reference evaluator or on a converted layout; else "
        "such messages have the level info.",
    .aliases = "MXNET_STORAGE_FALLBACK_LOG_VERBOSE",
    .unset = "true, for operators at the level info",
};
inline constexpr Setting<Path> kLibraryPath = {
    .key = "library.path",
    .lifecycle = Lifecycle::kFirstSet,
    .doc = "Absolute path of the libmge that the Python package loads. It ignores any other path, with a warning.",
    .aliases = "MXNET_LIBRARY_PATH",
};

inline constexpr auto kRuntimeRows = SettingRows(
    kDefaultDevice, kPluginPath, kPluginAllow, kPluginSkip, kPluginStartTimeout, kCacheDir, kCacheBytes, kThreads,
    kMemoryLimit, kSeed, kRunTimeout, kConfigFiles, kStrictEnv, kLogLevel, kLogOverride, kLogStorageFallback, kLibraryPath);

}  // namespace mge
