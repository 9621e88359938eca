// SPDX-License-Identifier: Apache-2.0
// The documented errors, one row each. The id divided by 100 is the kind, which is also the exit code of the command.
#pragma once

#include "core/base/status.h"

namespace mge::errors {

using Kind = ErrorKind;
using Code = absl::StatusCode;

inline constexpr ErrorRow kInternal = {101, Kind::kOther, Code::kInternal,
                                       "Internal error in MGE. Please report it with the text of the error."};

inline constexpr ErrorRow kUsage = {201, Kind::kUsage, Code::kInvalidArgument, "The command line is not understood."};
inline constexpr ErrorRow kBadSetting = {202, Kind::kUsage, Code::kInvalidArgument,
                                         "The value of a setting is not allowed. MGE does not fall back to the default."};
inline constexpr ErrorRow kUnknownSetting = {203, Kind::kUsage, Code::kNotFound, "No setting has this name."};
inline constexpr ErrorRow kSettingTooLate = {204, Kind::kUsage, Code::kFailedPrecondition,
                                             "A first-set setting was changed after the runtime had read it."};
inline constexpr ErrorRow kLaterSetting = {
    205, Kind::kUsage, Code::kUnimplemented,
    "The setting is known but not implemented in this version; strict mode makes that an error."};
inline constexpr ErrorRow kConfigFile = {
    206, Kind::kUsage, Code::kInvalidArgument,
    "A configuration file cannot be used: wrong syntax, too large, or a duplicate or unknown key."};
inline constexpr ErrorRow kApiMisuse = {207, Kind::kUsage, Code::kFailedPrecondition,
                                        "An API function was called in a wrong state or with an invalid argument."};

inline constexpr ErrorRow kNotOnnx = {301, Kind::kInvalid, Code::kInvalidArgument, "The file is not an ONNX model."};
inline constexpr ErrorRow kMalformedModel = {302, Kind::kInvalid, Code::kInvalidArgument,
                                             "The model file violates the ONNX format; the message gives the byte offset."};
inline constexpr ErrorRow kInvalidGraph = {303, Kind::kInvalid, Code::kInvalidArgument,
                                           "The graph is invalid: it has a cycle, or a missing or duplicate value."};
inline constexpr ErrorRow kInvalidNode = {304, Kind::kInvalid, Code::kInvalidArgument,
                                          "A node's inputs, attributes or shapes violate the rules of its operator."};
inline constexpr ErrorRow kInvalidTensor = {305, Kind::kInvalid, Code::kInvalidArgument,
                                            "A tensor's shape, element type and number of bytes are inconsistent."};
inline constexpr ErrorRow kExternalData = {
    306, Kind::kInvalid, Code::kInvalidArgument,
    "External data of the model is missing, outside of the model's directory, or has a wrong size."};
inline constexpr ErrorRow kBadInput = {307, Kind::kInvalid, Code::kInvalidArgument,
                                       "An input of a run has a wrong name, type or shape."};
inline constexpr ErrorRow kBadInputFile = {308, Kind::kInvalid, Code::kInvalidArgument,
                                           "An input file (npy, npz, pb) is malformed."};
inline constexpr ErrorRow kIndexOutOfRange = {309, Kind::kInvalid, Code::kOutOfRange,
                                              "An index in the data is outside of the tensor that it indexes."};
inline constexpr ErrorRow kLimit = {310, Kind::kInvalid, Code::kInvalidArgument,
                                    "A documented limit of the reader is exceeded (nesting, expansions, sizes)."};

inline constexpr ErrorRow kUnsupportedOp = {401, Kind::kUnsupported, Code::kUnimplemented,
                                            "The operator, its domain or its version is not implemented."};
inline constexpr ErrorRow kUnsupportedType = {402, Kind::kUnsupported, Code::kUnimplemented,
                                              "The operator is not implemented for this element type."};
inline constexpr ErrorRow kUnsupportedFeature = {403, Kind::kUnsupported, Code::kUnimplemented,
                                                 "The model uses a feature that is not implemented."};
inline constexpr ErrorRow kUnsupportedVersion = {404, Kind::kUnsupported, Code::kUnimplemented,
                                                 "The model's IR version or operator set is newer than the supported ones."};

inline constexpr ErrorRow kBadDeviceName = {501, Kind::kDevice, Code::kInvalidArgument,
                                            "The text is not a valid device name."};
inline constexpr ErrorRow kDeviceUnusable = {
    502, Kind::kDevice, Code::kUnavailable,
    "The requested device cannot be used. MGE never uses another device without an error."};
inline constexpr ErrorRow kPluginRefused = {503, Kind::kDevice, Code::kUnavailable,
                                            "A backend's file was refused or could not be loaded."};
inline constexpr ErrorRow kDeviceLost = {504, Kind::kDevice, Code::kUnavailable,
                                         "The device failed and cannot be used again in this process."};
inline constexpr ErrorRow kKernelFailed = {505, Kind::kDevice, Code::kInternal, "A kernel of the backend failed."};
inline constexpr ErrorRow kForked = {506, Kind::kDevice, Code::kFailedPrecondition,
                                     "The device does not survive fork(); create the runtime in the child process."};

inline constexpr ErrorRow kOutOfMemory = {601, Kind::kMemory, Code::kResourceExhausted,
                                          "The device or the system has no memory left for this request."};
inline constexpr ErrorRow kOverBudget = {602, Kind::kMemory, Code::kResourceExhausted,
                                         "The request would exceed the memory limit that was set."};
inline constexpr ErrorRow kGrowthRequired = {
    603, Kind::kMemory, Code::kResourceExhausted,
    "A memory pool has no free block of the needed size, and the request does not allow the pool to grow."};
inline constexpr ErrorRow kOverCap = {604, Kind::kMemory, Code::kResourceExhausted,
                                      "The request would exceed the size that the reserve policy allows for a memory pool."};

inline constexpr ErrorRow kFileAccess = {701, Kind::kIo, Code::kNotFound, "A file cannot be opened or read."};
inline constexpr ErrorRow kFileWrite = {702, Kind::kIo, Code::kDataLoss,
                                        "A file cannot be written; an existing file is unchanged."};

inline constexpr ErrorRow kMismatch = {801, Kind::kMismatch, Code::kFailedPrecondition,
                                       "Results differ from the expected ones by more than the tolerance."};

inline constexpr ErrorRow kAbiMismatch = {1001, Kind::kAbi, Code::kFailedPrecondition,
                                          "A backend was built for another version of the plugin interface."};

inline constexpr ErrorRow kTimeout = {12401, Kind::kTimeout, Code::kDeadlineExceeded,
                                      "The time limit of the run has passed."};
inline constexpr ErrorRow kCancelled = {13001, Kind::kInterrupted, Code::kCancelled, "The run was cancelled."};

// All rows, in the order of their ids.
inline constexpr const ErrorRow* kAll[] = {&kInternal,
                                           &kUsage,
                                           &kBadSetting,
                                           &kUnknownSetting,
                                           &kSettingTooLate,
                                           &kLaterSetting,
                                           &kConfigFile,
                                           &kApiMisuse,
                                           &kNotOnnx,
                                           &kMalformedModel,
                                           &kInvalidGraph,
                                           &kInvalidNode,
                                           &kInvalidTensor,
                                           &kExternalData,
                                           &kBadInput,
                                           &kBadInputFile,
                                           &kIndexOutOfRange,
                                           &kLimit,
                                           &kUnsupportedOp,
                                           &kUnsupportedType,
                                           &kUnsupportedFeature,
                                           &kUnsupportedVersion,
                                           &kBadDeviceName,
                                           &kDeviceUnusable,
                                           &kPluginRefused,
                                           &kDeviceLost,
                                           &kKernelFailed,
                                           &kForked,
                                           &kOutOfMemory,
                                           &kOverBudget,
                                           &kGrowthRequired,
                                           &kOverCap,
                                           &kFileAccess,
                                           &kFileWrite,
                                           &kMismatch,
                                           &kAbiMismatch,
                                           &kTimeout,
                                           &kCancelled};

}  // namespace mge::errors
