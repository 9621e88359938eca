// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

namespace mge::cpu {
namespace {

constexpr mge_setting Row(int32_t type, std::string_view key, std::string_view default_value, std::string_view choices,
                          std::string_view doc, int32_t lifecycle) {
  return {sizeof(mge_setting), type, Text(key), Text(default_value), Text(choices), Text(""), Text(doc), 0, 0, lifecycle, 0};
}

constexpr mge_setting kRows[kSettingCount] = {
    Row(MGE_SETTING_CHOICE, "cpu.isa", "auto", "auto|portable|avx2|avx512",
        "Highest instruction set that kernels use; never more than the processor has.", MGE_LIFECYCLE_DYNAMIC),
    Row(MGE_SETTING_BOOL, "cpu.onednn", "true", "", "Offer oneDNN's kernels beside our own.", MGE_LIFECYCLE_DYNAMIC),
    Row(MGE_SETTING_BOOL, "cpu.openblas", "true", "", "Offer OpenBLAS's kernels beside our own.", MGE_LIFECYCLE_DYNAMIC),
    Row(MGE_SETTING_BOOL, "cpu.huge_pages", "true", "", "Advise the system to back large slabs of memory with huge pages.",
        MGE_LIFECYCLE_FIRST_SET),
};

}  // namespace

constexpr const mge_setting* const kSettingRows[kSettingCount] = {&kRows[kSettingIsa], &kRows[kSettingOnednn],
                                                                  &kRows[kSettingOpenblas], &kRows[kSettingHugePages]};

std::string_view Setting(SettingIndex index) {
  mge_text value = {};
  const mge_host* host = Host();
  if (host && host->setting(host->self, index, &value) == MGE_OK && value.size) return View(value);
  return View(kRows[index].default_value);
}

bool SettingIsOn(SettingIndex index) {
  std::string_view v = Setting(index);
  return v == "true" || v == "1" || v == "on" || v == "yes";
}

}  // namespace mge::cpu
