// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/reader.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/base/input_file.h"
#include "core/onnx/fields.h"
#include "core/onnx/graph_reader.h"
#include "core/onnx/model_parts.h"
#include "core/onnx/structure.h"
#include "fmt/format.h"

namespace mge::onnx {
namespace {

// A file format that users pass by mistake, recognised by its first bytes.
struct Magic {
  std::string_view bytes;
  std::string_view what;
  std::string_view fix = {};
};
constexpr Magic kMagics[] = {
    {"\x7f"
     "ELF",
     "an ELF program or library"},
    {"PK\x03\x04", "a zip archive (npz, or a PyTorch file)", "export the model to ONNX"},
    {"version https://git-lfs", "a Git LFS pointer, not the file itself", "run 'git lfs pull'"},
    {"\x89HDF", "an HDF5 file (Keras)", "convert the model to ONNX"},
    {"GGUF", "a GGUF file", "convert the model to ONNX"},
    {"\x93NUMPY", "a NumPy array"},
    {"\x1f\x8b", "a gzip archive", "unpack it"},
    {"{", "JSON text", "save the model in the binary format"},
    {"<", "XML or HTML text"},
    {"ir_version:", "an ONNX model in text form", "save the model in the binary format"},
    {"#!", "a script"},
};

absl::Status NotOnnx(const WireSource& source, const absl::Status& cause) {
  std::string_view text = AsText(source.bytes);
  std::string what = PartsOf(cause).what, fix;
  for (const Magic& magic : kMagics) {
    if (!text.starts_with(magic.bytes)) continue;
    what = fmt::format("it looks like {}; {}", magic.what, what);
    fix = magic.fix;
    break;
  }
  return Fail(errors::kNotOnnx, "this is not an ONNX model",
              {.what = std::move(what), .where = source.place, .fix = std::move(fix)});
}

absl::Status ReadMetadata(const WireSource& source, Bytes message, ModelInfo& info) {
  WireReader reader(source, "StringStringEntryProto", message);
  auto& [key, value] = info.metadata.emplace_back();
  while (reader.Next()) {
    switch (reader.field()) {
      case field::entry::kKey: key = std::string(reader.Text()); break;
      case field::entry::kValue: value = std::string(reader.Text()); break;
      default: reader.Skip();
    }
  }
  return reader.status();
}

}  // namespace

absl::StatusOr<ModelParts> SplitModel(const WireSource& source, ModelInfo& info) {
  ModelParts parts;
  WireReader reader(source, "ModelProto", source.bytes);
  while (reader.Next()) {
    switch (reader.field()) {
      case field::model::kIrVersion: info.ir_version = reader.Int(); break;
      case field::model::kProducerName: info.producer_name = std::string(reader.Text()); break;
      case field::model::kProducerVersion: info.producer_version = std::string(reader.Text()); break;
      case field::model::kDomain: info.domain = std::string(reader.Text()); break;
      case field::model::kModelVersion: info.model_version = reader.Int(); break;
      case field::model::kDoc: info.doc = std::string(reader.Text()); break;
      case field::model::kGraph:
        if (parts.has_graph) return reader.Error("the model holds two graphs");
        parts.graph = reader.Message();
        parts.has_graph = true;
        break;
      case field::model::kOpsetImport: parts.opsets.push_back(reader.Message()); break;
      case field::model::kMetadata: MGE_RETURN_IF_ERROR(ReadMetadata(source, reader.Message(), info)); break;
      case field::model::kFunctions: parts.functions.push_back(reader.Message()); break;
      default: reader.Skip();
    }
  }
  if (!reader.status().ok()) {
    // If the error came before a valid version, the file is probably not an ONNX model.
    bool looks_like_one = info.ir_version >= 1 && info.ir_version <= 1000;
    return looks_like_one ? reader.status() : NotOnnx(source, reader.status());
  }
  std::string end = fmt::format("byte offset {}: the file ends", source.bytes.size());
  if (info.ir_version == 0 && !parts.has_graph) {
    return NotOnnx(source, Fail(errors::kNotOnnx, "", {.what = end + " without a version and without a graph"}));
  }
  const bool needs_opset = parts.opsets.empty() && info.ir_version >= kFirstIrWithOpsets;
  if (!parts.has_graph || info.ir_version == 0 || needs_opset) {
    std::string_view missing = !parts.has_graph ? "a graph" : info.ir_version == 0 ? "an IR version" : "an operator set";
    return Fail(errors::kMalformedModel, fmt::format("the model lacks {}", missing), {.what = end, .where = source.place});
  }
  return parts;
}

namespace {

absl::StatusOr<Model> Read(const WireSource& source, DataFolders folders, const ReadOptions& options) {
  Model model;
  MGE_ASSIGN_OR_RETURN(ModelParts parts, SplitModel(source, model.info));
  if (model.info.ir_version < kOldestIrVersion || model.info.ir_version > kNewestIrVersion) {
    return Fail(errors::kUnsupportedVersion, fmt::format("IR version {} is not supported", model.info.ir_version),
                {.what = fmt::format("supported are versions {} to {}", kOldestIrVersion, kNewestIrVersion),
                 .where = source.place,
                 .fix = "export the model again with another version of its exporter"});
  }
  Opsets opsets;
  for (Bytes message : parts.opsets) MGE_RETURN_IF_ERROR(ReadOpsetImport(source, message, opsets));
  if (opsets.empty()) {
    opsets.emplace("", 1);  // the only version before IR version 3
  } else if (model.info.ir_version < kFirstIrWithOpsets) {
    model.info.deviations.push_back(
        fmt::format("IR version {} has no operator sets: those that the model imports are used", model.info.ir_version));
  }
  for (const auto& [domain, version] : opsets) model.info.opsets.push_back({domain, version});
  std::sort(model.info.opsets.begin(), model.info.opsets.end(),
            [](const OpsetImport& a, const OpsetImport& b) { return a.domain < b.domain; });
  Functions functions;
  for (Bytes message : parts.functions) {
    MGE_ASSIGN_OR_RETURN(Function function, ReadFunction(source, message));
    std::string title = function.Title();
    std::string key = Function::Key(function.domain, function.name, function.overload);
    if (!functions.emplace(std::move(key), std::move(function)).second) {
      return Fail(errors::kInvalidGraph, fmt::format("function '{}' is defined twice", title), {.where = source.place});
    }
  }
  ExternalFiles external(std::move(folders), options.files);
  HostAllocator& allocator = options.allocator ? *options.allocator : UnlimitedHostAllocator();
  TensorDecoder tensors(source, &external, allocator, true);
  ModelContext context{source, tensors, functions, opsets, options};
  GraphReader reader(context, model.info);
  MGE_ASSIGN_OR_RETURN(model.graph, reader.ReadMain(parts.graph));
  if (external.has_checksums()) model.info.deviations.push_back("the checksums of its external data are not checked");
  model.file = source.file;
  return model;
}

// Returns the folders of external data that the options name, or `own`.
absl::StatusOr<DataFolders> FoldersFor(const ReadOptions& options, DataFolders own) {
  if (options.data_folder.empty()) return own;
  return FoldersAt(options.data_folder);
}

}  // namespace

absl::StatusOr<Model> ReadModelBytes(Bytes bytes, std::shared_ptr<const void> owner, const ReadOptions& options) {
  WireSource source;
  source.bytes = bytes;
  source.owner = std::move(owner);
  MGE_ASSIGN_OR_RETURN(DataFolders folders, FoldersFor(options, {}));
  return Read(source, std::move(folders), options);
}

absl::StatusOr<OpenedModel> OpenModel(const std::string& path, const ReadOptions& options) {
  MGE_ASSIGN_OR_RETURN(RegularFile file, OpenInput(path, options.max_file_bytes,
                                                   "a model of more than 2 GiB keeps its weights in external data"));
  OpenedModel out;
  MGE_ASSIGN_OR_RETURN(out.folders, FoldersFor(options, FoldersOf(path, file.fd.get())));
  out.source.place = InputName(path, file.fd.get());
  out.source.file = std::make_shared<SourceFile>(std::move(file), out.source.place);
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<const std::byte> bytes, ReadStructure(*out.source.file));
  out.source.bytes = {bytes.get(), static_cast<size_t>(out.source.file->size())};
  out.source.owner = std::move(bytes);
  return out;
}

absl::StatusOr<Model> ReadModel(const std::string& path, const ReadOptions& options) {
  MGE_ASSIGN_OR_RETURN(OpenedModel opened, OpenModel(path, options));
  return Read(opened.source, std::move(opened.folders), options);
}

}  // namespace mge::onnx
