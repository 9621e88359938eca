// SPDX-License-Identifier: Apache-2.0
#include "core/base/error_help.h"

#include <iterator>

namespace mge {
namespace {

using namespace errors;  // NOLINT: the rows

constexpr ErrorHelp kHelp[] = {
    {&kInternal, "This is a defect of MGE, not of your model.",
     "Report the whole text of the error and, if you can, the model. `mge plan MODEL --skip PASS` may avoid the error: skip "
     "one pass at a time."},
    {&kUsage, "A command or an option is misspelt, an argument is missing, or a value is outside of an option's range.",
     "Run `mge COMMAND --help`: it lists the arguments and options of the command."},
    {&kBadSetting, "A variable, an option or a configuration file has a value that this setting does not allow.",
     "Use an allowed value: `mge env NAME` lists them. An empty value leaves the setting unset."},
    {&kUnknownSetting, "The key or variable is misspelt, or it belongs to a backend that is not loaded.",
     "Run `mge env` to list all settings. The settings of a backend are known only while it is loaded: see `mge plugins`."},
    {&kSettingTooLate, "The setting is read once, when the runtime is created, and was changed afterwards.",
     "Set it before the runtime is created, or call the function that the message names. `mge env` lists such settings as "
     "first-set."},
    {&kLaterSetting, "The setting has no effect in this version of MGE, and MGE_STRICT_ENV makes that an error.",
     "Unset the variable, or unset MGE_STRICT_ENV. `mge env` marks these settings with (later)."},
    {&kConfigFile, "The file is not valid TOML, has a duplicate or unknown key, or exceeds the size limit.",
     "Correct the line that the message names. The file configs/mge.toml has every key with its default."},
    {&kApiMisuse,
     "An argument is NULL or out of range, an object is used after a failed call, or calls are in the wrong order.",
     "Correct the argument that the message names; mge.h states what each function requires."},

    {&kNotOnnx, "The file is empty or has another format. A failed download may be an error page or a Git LFS pointer.",
     "Check the file's size and first bytes. Save the model in ONNX's binary format, not as text."},
    {&kMalformedModel, "The file is truncated or damaged, or its exporter writes fields in a wrong encoding.",
     "Compare the file's size or checksum with its source, then download or export it again."},
    {&kInvalidGraph, "A node reads an undefined value, two nodes write the same value, or nodes form a cycle.",
     "In the program that exports the model, correct the value that the message names. Check the model in Python with "
     "onnx.checker.check_model."},
    {&kInvalidNode, "An input is missing, an attribute has a value that the operator forbids, or shapes do not match.",
     "Correct this node in the model. If an exporter wrote it, report it to the author of the exporter. If the shape of an "
     "input causes it, give another one with --shape."},
    {&kInvalidTensor,
     "A weight has too few or too many bytes for its shape, or an element type that the format does not have.",
     "Export the model again. Editing a model by hand often causes this."},
    {&kExternalData, "The files of the weights were not copied with the model, were moved, or are outside of its directory.",
     "Put the files of the weights into the model's directory, under the names in the model. Links and paths out of the "
     "directory are not allowed."},
    {&kBadInput, "The name is wrong, or the element type or a size differs from the model's.",
     "Run `mge inspect MODEL`: it shows names, types and shapes of the inputs."},
    {&kBadInputFile, "A .npy, .npz or .pb file is damaged, or has Python objects, which MGE never reads.",
     "Write the file again as a plain array: numpy.save(FILE, array, allow_pickle=False)."},
    {&kIndexOutOfRange,
     "Gather, Scatter, OneHot, Slice or another operator got an index beyond the size of the tensor it indexes.",
     "Check the data that becomes the index. Token numbers beyond the vocabulary are the usual cause."},
    {&kLimit, "The model has unusually deep nesting, unusually many nodes, or very large data.",
     "Simplify the model when it is exported. A program that uses the API can raise the limit."},

    {&kUnsupportedOp, "The operator is newer than this version of MGE, belongs to a vendor's domain, or is misspelt.",
     "Run `mge inspect MODEL` to list every unsupported operator. Export for an older operator set, or let the exporter use "
     "other "
     "operators."},
    {&kUnsupportedType, "The operator exists, but not for this element type.",
     "Cast to one of the allowed types, in the model or when it is exported."},
    {&kUnsupportedFeature, "The model uses a rare mode or attribute of an operator, or a program uses a missing feature.",
     "Use another mode of the operator, or export for an older operator set."},
    {&kUnsupportedVersion, "The model was written by an exporter that is newer than this version of MGE.",
     "Export the model for an operator set that the message allows."},

    {&kBadDeviceName, "The text is not a device name; the form cuda:0 of other engines is not allowed.",
     "Use a name such as cpu0, gpu1 or cuda0. `mge devices` lists the devices of this machine."},
    {&kDeviceUnusable,
     "The machine has no such device, no backend for it is loaded, or a driver or library that the backend needs is "
     "missing.",
     "Run `mge devices` and `mge plugins`: they list the devices and backends, with the reason if one cannot be used. To "
     "allow another device, name it: MGE_DEFAULT_DEVICE=gpu0,cpu0."},
    {&kPluginRefused,
     "The file has a wrong owner or mode, a library is missing, the processor is not supported, or the backend violates the "
     "plugin interface.",
     "Run `mge plugins`: it shows the reason and the remedy for each file."},
    {&kDeviceLost, "The driver reset the device, the device was unplugged, or a kernel crashed it.",
     "Start the process again. If it happens again, read the driver's messages in the system's log."},
    {&kKernelFailed, "The backend, or a library that it uses, failed during planning or a run.",
     "Run the model on the reference device to check the model: mge run --device host MODEL. If that works, report the "
     "error to the author of the backend."},
    {&kForked, "A process used a device and forked, and the child process used the device again.",
     "Create the runtime in the child, or start the child before the runtime is created (in Python: the spawn method)."},

    {&kOutOfMemory, "The model, its batch or its weights need more memory than is free. Other processes may use the rest.",
     "Run `mge memory MODEL` to see the memory of each part. Use a smaller batch or another device."},
    {&kOverBudget, "The run needs more memory than MGE_MEMORY_LIMIT allows, or than the device has.",
     "Run `mge memory MODEL` to see the needed memory. Raise the limit, or use a smaller batch or another device."},
    {&kGrowthRequired, "A backend requested memory with MGE_POOL_NO_GROWTH and returned the pool's error.",
     "In the backend, request again without the flag. Or reserve more memory before, for example with "
     "memory.reserve=bytes:64MiB."},
    {&kOverCap, "The reserve policy of the backend allows its pool less than the run needs.",
     "Choose another policy (memory.reserve), or use a smaller batch or another device."},

    {&kFileAccess, "The path is misspelt, this user may not read the file, or it is not a plain file.",
     "Check the path and its permissions. Paths are relative to the working directory."},
    {&kFileWrite, "The directory does not exist, this user may not write to it, or the disk is full.",
     "Use another path, or free space. An existing file is unchanged, because MGE writes a temporary file first."},

    {&kMismatch, "Another device or library adds numbers in another order, or a kernel is wrong.",
     "Look at the largest errors. If they are small, allow them with --rtol and --atol. If they are large, run `mge compare "
     "MODEL "
     "--layers`: it shows the first node that differs."},

    {&kAbiMismatch, "The backend was built with the headers of another version of MGE.",
     "Build the backend again with the headers of this version, or install its build for this version."},

    {&kTimeout, "The run exceeded --timeout or the caller's time limit, or a loop of the model does not end.",
     "Allow more time, or look for slow steps with `mge profile MODEL`."},
    {&kCancelled, "The user or the program cancelled the run.", "No action is needed: the session can run again."},
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
