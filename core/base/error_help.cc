// SPDX-License-Identifier: Apache-2.0
#include "core/base/error_help.h"

#include <iterator>

namespace mge {
namespace {

using namespace errors;  // NOLINT: the rows

constexpr ErrorHelp kHelp[] = {
    {&kInternal, "Two parts of MGE disagree. This is a defect of MGE, not of your model.",
     "Report the whole text of the error and, if you can, the model. `mge plan MODEL --skip PASS` may avoid it: leave out one "
     "pass after another."},
    {&kUsage, "A command or an option is misspelt, an argument is missing, or a value is outside of an option's range.",
     "Run `mge COMMAND --help`: it lists the arguments and options of the command."},
    {&kBadSetting, "The value in a variable, an option or a configuration file is not one that this setting allows.",
     "Give an allowed value: `mge env NAME` lists them. An empty value leaves the setting unset."},
    {&kUnknownSetting, "The key or variable is misspelt, or it belongs to a backend that is not loaded.",
     "Run `mge env` to list all settings. The settings of a backend are known only while it is loaded: see `mge plugins`."},
    {&kSettingTooLate, "The setting is read once, when the runtime is created, and was changed afterwards.",
     "Set it before the runtime is created, or call the function that the message names. `mge env` lists such settings as "
     "first-set."},
    {&kLaterSetting, "The setting has no effect in this version of MGE, and MGE_STRICT_ENV makes that an error.",
     "Unset the variable, or unset MGE_STRICT_ENV. `mge env` marks these settings with (later)."},
    {&kConfigFile, "The TOML has a mistake, a key is written twice, no setting has the key, or the file exceeds its limit.",
     "Correct the line and column that the message gives. The file configs/mge.toml holds every key with its default."},
    {&kApiMisuse, "An argument is NULL or out of range, an object is used after a failed call, or calls are in the wrong order.",
     "Correct the argument that the message names; mge.h states what each function requires."},

    {&kNotOnnx,
     "The file has another format under the name .onnx, is empty, or is a download that holds an error page or a Git LFS pointer.",
     "Check the file's size and first bytes. Save the model in ONNX's binary format, not as text."},
    {&kMalformedModel, "The file is truncated or damaged, or its exporter writes fields in a wrong encoding.",
     "Compare the file's size or checksum with its source, then download or export it again."},
    {&kInvalidGraph, "A node reads a value that nothing computes, two nodes write one name, or nodes depend on each other in a ring.",
     "Correct the value that the message names where the model is exported, and check it there (in Python: "
     "onnx.checker.check_model)."},
    {&kInvalidNode, "An input is missing, an attribute has a value that the operator forbids, or shapes do not go together.",
     "Correct this node in the model; if an exporter wrote it, report it to the exporter. If the shape of an input causes it, "
     "give another one with --shape."},
    {&kInvalidTensor, "A weight has too few or too many bytes for its shape, or an element type that the format does not have.",
     "Export the model again. Editing a model by hand often causes this."},
    {&kExternalData, "The files of the weights were not copied with the model, were moved, or lie outside of its directory.",
     "Put the files of the weights beside the model, under the names that it gives. Links and paths that leave the directory are "
     "refused."},
    {&kBadInput, "The name is wrong, the element type differs, or the model fixes a size that differs.",
     "Run `mge inspect MODEL`: it shows names, types and shapes of the inputs."},
    {&kBadInputFile, "A .npy, .npz or .pb file is damaged, or holds Python objects, which are never read.",
     "Write the file again as a plain array: numpy.save(FILE, array, allow_pickle=False)."},
    {&kIndexOutOfRange, "Gather, Scatter, OneHot, Slice or another operator got an index beyond the size of the tensor it indexes.",
     "Check the data that becomes the index. Token numbers beyond the vocabulary are the usual cause."},
    {&kLimit, "The model nests or repeats far more than models do.",
     "Simplify the model where it is exported; if you wrote the program that reads it, raise the limit there."},

    {&kUnsupportedOp, "The operator is newer than this version of MGE, belongs to a vendor's domain, or is misspelt.",
     "Run `mge inspect MODEL` to list every unsupported operator. Export for an older operator set, or let the exporter use other "
     "operators."},
    {&kUnsupportedType, "The operator exists, but not for this element type.",
     "Cast to one of the allowed types, in the model or when it is exported."},
    {&kUnsupportedFeature, "The model uses a rare mode or attribute of an operator, or the program a call that is not offered.",
     "Use another mode of the operator, or export for an older operator set."},
    {&kUnsupportedVersion, "The model was written by an exporter that is newer than this version of MGE.",
     "Export the model for an operator set that the message allows."},

    {&kBadDeviceName, "The text does not follow the form of device names. Other engines write cuda:0.",
     "Write cpu0, gpu1 or cuda0. `mge devices` lists the devices of this machine."},
    {&kDeviceUnusable,
     "The machine has no such device, no backend for it is loaded, or a driver or library that the backend needs is missing.",
     "Run `mge devices` and `mge plugins`: they show what was found, and why the rest cannot be used. To allow another device, name "
     "it: MGE_DEFAULT_DEVICE=gpu0,cpu0."},
    {&kPluginRefused,
     "The file has the wrong owner or mode, a library is missing, the processor is unfit, or the backend breaks the interface.",
     "Run `mge plugins`: it gives reason and remedy for each file."},
    {&kDeviceLost, "The driver reset the device, the device was unplugged, or a kernel crashed it.",
     "Start the process again. If it happens again, read the driver's messages in the system's log."},
    {&kKernelFailed, "The backend, or a library that it calls, failed while it planned or ran.",
     "Run the model on another device to see whether the model is at fault: mge run --device host MODEL. Then report it to the "
     "author of the backend."},
    {&kForked, "A process used a device, forked, and the child went on using it.",
     "Create the runtime in the child, or start the child before the runtime is created (in Python: the spawn method)."},

    {&kOutOfMemory, "The model, its batch or its weights need more memory than is free. Another process may hold the rest.",
     "Run `mge memory MODEL` to see what takes how much. Use a smaller batch or another device."},
    {&kOverBudget, "The run needs more than MGE_MEMORY_LIMIT, the limit of one device, or all memory of a device.",
     "Run `mge memory MODEL` to see what is needed. Raise the limit, or use a smaller batch or another device."},
    {&kGrowthRequired, "A backend requested memory with MGE_POOL_NO_GROWTH and returned the pool's refusal.",
     "In the backend, request again without the flag. Or reserve more beforehand, for example with memory.reserve=bytes:64MiB."},
    {&kOverCap, "The reserve policy of the backend allows its pool less than the run needs.",
     "Choose another policy (memory.reserve), or use a smaller batch or another device."},

    {&kFileAccess, "The path is misspelt, this user may not read the file, or it is not a plain file.",
     "Check the path and its permissions. Paths are relative to the working directory."},
    {&kFileWrite, "The directory does not exist, this user may not write to it, or the disk is full.",
     "Give another path, or free space. A file is written beside its place and then renamed, so the old file is whole."},

    {&kMismatch, "Another device or library sums in another order, or a kernel is wrong.",
     "Look at the largest errors. If they are small, allow them with --rtol and --atol. If they are large, run `mge compare MODEL "
     "--layers`: it says at which node the results part."},

    {&kAbiMismatch, "The backend was built with the headers of another version of MGE.",
     "Build the backend again with the headers of this version, or install its build for this version."},

    {&kTimeout, "The run took longer than --timeout or the caller's limit allows, or a loop of the model does not end.",
     "Allow more time, or look for slow steps with `mge profile MODEL`."},
    {&kCancelled, "The user or the program cancelled the run.", "Nothing: the session can run again."},
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
