// SPDX-License-Identifier: Apache-2.0
#include "core/base/error_help.h"

#include <iterator>

namespace mge {
namespace {

using namespace errors;  // NOLINT: the rows

constexpr ErrorHelp kHelp[] = {
    {&kInternal, "A fault in MGE: two of its parts disagree about what was agreed between them.",
     "Report the whole text and, if you can, the model. `mge plan MODEL --skip PASS` may name the part that is at fault, "
     "and "
     "leaving that pass out may get you by."},
    {&kUsage, "A misspelt command or option, a missing argument, or a value outside of an option's range.",
     "The message names the nearest word that is known. `mge COMMAND --help` lists what the command takes."},
    {&kBadSetting,
     "A variable, an option or a configuration file holds text that is no number, size or choice of this setting.",
     "The message names the place and what is allowed; `mge env NAME` says more. An empty value means that it is not set."},
    {&kUnknownSetting, "A misspelt key or variable, or a setting of a backend that is not loaded.",
     "`mge env` lists all settings. Those of a backend are known only where it is loaded: see `mge plugins`."},
    {&kSettingTooLate, "The setting is read once, when the runtime is made, and was changed afterwards.",
     "Set it before the runtime is made, or call the function that the message names. `mge env` shows which settings are "
     "first-set."},
    {&kLaterSetting,
     "A variable that other engines know is set, and MGE_STRICT_ENV asks for an error where it has no effect.",
     "Leave the variable unset, or MGE_STRICT_ENV. `mge env` marks settings whose effect is not built."},
    {&kConfigFile,
     "A mistake in the TOML, a key written twice, a key that no setting has, or a file of more than its limit.",
     "The message names line and column. Begin with the file configs/mge.toml, which holds every key with its default."},
    {&kApiMisuse,
     "NULL or an index out of range, an object used after a failed call, or a call before the one it depends on.",
     "Look up the function's sentence in mge.h: it states what must hold before the call."},

    {&kNotOnnx,
     "Another format under the name .onnx, an empty file, or a download that brought an error page or a Git LFS pointer.",
     "Look at the file's first bytes and its size. ONNX files are what exporters write with `save`, not their text form."},
    {&kMalformedModel, "A truncated or damaged file, or an exporter that writes fields in a wrong encoding.",
     "Compare the file's size or checksum with its source and fetch or export it again."},
    {&kInvalidGraph,
     "A node reads a value that nothing computes, two nodes write one name, or nodes depend on each other in a ring.",
     "Check the model where it was exported (in Python: onnx.checker.check_model). The message names the value."},
    {&kInvalidNode, "An input is missing, an attribute has a value that the operator forbids, or shapes do not go together.",
     "The message names the node and the rule. If the shapes come from an input, give another one with --shape."},
    {&kInvalidTensor,
     "A weight whose bytes are too few or too many for its shape, or of an element type that the format does not know.",
     "Export the model again; a file that was edited by hand often ends like this."},
    {&kExternalData,
     "The weights were not copied along with the model, were moved, or lie outside of the model's directory.",
     "Put the files with the weights beside the model, under the names that it gives. Links and paths out of that directory "
     "are "
     "refused on purpose."},
    {&kBadInput, "A wrong name, an element type that differs, or a size that the model fixes.",
     "`mge inspect MODEL` shows names, types and shapes of the inputs."},
    {&kBadInputFile, "A damaged .npy, .npz or .pb file, or one that holds Python objects, which are never read.",
     "Write it again, as a plain array: numpy.save(FILE, array, allow_pickle=False)."},
    {&kIndexOutOfRange,
     "Gather, Scatter, OneHot, Slice or another operator met an index beyond the size of what it indexes.",
     "Look at the data that becomes the index: token numbers beyond the vocabulary are the usual case."},
    {&kLimit, "A model that nests or repeats far more than models do, by mistake or to do harm.",
     "The message names the limit. A program that trusts its models may raise it where it reads them."},

    {&kUnsupportedOp, "The operator is younger than this version of MGE, belongs to a vendor's domain, or is misspelt.",
     "Export for an older operator set, or let the exporter write it by other operators. The message names the nearest "
     "known one."},
    {&kUnsupportedType, "The operator exists, but not for this element type.",
     "Cast to a type that the message lists, in the model or when it is exported."},
    {&kUnsupportedFeature, "A rare mode or attribute of an operator, or a call of the API that this version does not offer.",
     "The message names the mode. Another mode or an older operator set often does the same."},
    {&kUnsupportedVersion, "The model was written by an exporter that is younger than this version of MGE.",
     "Export it for the operator set that the message names."},

    {&kBadDeviceName, "Text that is no device, such as cuda:0, which is the way of other engines.",
     "Devices are written cpu0, gpu1, cuda0. `mge devices` lists those that are here."},
    {&kDeviceUnusable,
     "No such device in this machine, no backend for it, or a driver or library that the backend needs is missing.",
     "`mge devices` and `mge plugins` say what was found and why the rest was not taken. To allow another device, name it: "
     "MGE_DEFAULT_DEVICE=gpu0,cpu0."},
    {&kPluginRefused,
     "Wrong owner or mode of the file, a missing library, an unfit processor, or a backend that breaks the interface.",
     "`mge plugins` gives the reason and the remedy for each file."},
    {&kDeviceLost, "The driver reset the device, it was unplugged, or a kernel brought it down.",
     "Start the process again. If it happens again, look at the system's log for the driver's words."},
    {&kKernelFailed, "The backend, or a library that it calls, reported a failure while it planned or ran.",
     "Run the model on another device to see whether the model is at fault: mge run --device host MODEL. Then report it to "
     "the "
     "backend's author."},
    {&kForked, "A process used a device, forked, and the child went on using it.",
     "Make the runtime in the child, or start the child before the runtime is made (in Python: the spawn method)."},

    {&kOutOfMemory,
     "The model, its batch or its weights are larger than what is left, often since another process holds memory.",
     "`mge memory MODEL` shows what takes how much. Use a smaller batch or another device."},
    {&kOverBudget, "MGE_MEMORY_LIMIT, or the limit of one device, or all that a device has, is smaller than what the run needs.",
     "`mge memory MODEL` shows what is needed. Raise the limit, or use a smaller batch or another device."},
    {&kGrowthRequired, "A backend asked a pool of the host's for memory with MGE_POOL_NO_GROWTH, and passed the answer on.",
     "Ask again without the flag, or reserve more beforehand: a reserve policy such as bytes:64MiB does that."},
    {&kOverCap, "The backend's reserve policy allows its pool less than the run needs.",
     "Choose another policy (memory.reserve), or use a smaller batch or another device."},

    {&kFileAccess, "A misspelt path, a file that this user may not read, or something that is no plain file.",
     "Check the path and the rights. Paths are relative to the working directory."},
    {&kFileWrite, "A directory that does not exist or may not be written to, or a full disk.",
     "Give another path, or make room. Files are written beside their place and then renamed, so the old one is whole."},

    {&kMismatch, "Another device or library sums in another order, or a kernel is wrong.",
     "Look at the worst element. Small relative errors: allow them by --rtol and --atol. Large ones: compare with --device "
     "host, "
     "and report what differs."},

    {&kAbiMismatch, "The backend was built against headers of another version of MGE.",
     "Build the backend again with the headers of this version, or install the backend's build for it."},

    {&kTimeout, "The run took longer than --timeout or the caller's limit allows, or a loop of the model does not end.",
     "Allow more time, or look at the slow steps with `mge plan MODEL --why`."},
    {&kCancelled, "The user or the program asked for it.", "Nothing: the session can run again."},
};

constexpr bool IsComplete() {
  if (std::size(kHelp) != std::size(kAll)) return false;
  for (size_t i = 0; i < std::size(kAll); ++i) {
    if (kHelp[i].row != kAll[i]) return false;
  }
  return true;
}
static_assert(IsComplete(), "each row of errors::kAll has its help here, in the same order");

}  // namespace

std::span<const ErrorHelp> AllErrorHelp() { return kHelp; }

std::string FixOf(const absl::Status& status) {
  std::string fix = PartsOf(status).fix;
  if (!fix.empty()) return fix;
  for (const ErrorHelp& help : kHelp) {
    if (help.row->id == ErrorId(status)) return std::string(help.remedy);
  }
  return fix;
}

}  // namespace mge
