// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/verdict.h"

#include <iterator>
#include <utility>

namespace mge {
namespace {

constexpr std::string_view kCodeNames[] = {
    "ok",
    "directory_not_absolute",
    "directory_missing",
    "untrusted",
    "link_outside",
    "not_allowed",
    "quarantined",
    "left_out",
    "unreadable",
    "not_elf",
    "damaged",
    "wrong_machine",
    "no_note",
    "bad_note",
    "abi_mismatch",
    "isa_missing",
    "search_path",
    "duplicate_name",
    "duplicate_file",
    "missing_library",
    "missing_symbol",
    "not_opened",
    "open_threw",
    "older_in_use",
    "no_entry",
    "query_refused",
    "bad_table",
    "bad_setting",
    "start_failed",
    "unavailable",
    "out_of_memory",
    "bad_device",
};
static_assert(std::size(kCodeNames) == static_cast<size_t>(VerdictCode::kBadDevice) + 1);

}  // namespace

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kAccepted: return "accepted";
    case Verdict::kLoaded: return "loaded";
    case Verdict::kSkipped: return "skipped";
    case Verdict::kRefused: return "refused";
  }
  return "refused";
}

std::string_view VerdictCodeName(VerdictCode code) { return kCodeNames[static_cast<size_t>(code)]; }

void SetVerdict(PluginFile& file, Verdict verdict, VerdictCode code, std::string reason, std::string fix) {
  file.verdict = verdict;
  file.code = code;
  file.reason = std::move(reason);
  file.fix = std::move(fix);
}

}  // namespace mge
