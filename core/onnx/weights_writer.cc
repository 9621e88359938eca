// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/weights_writer.h"

#include <deque>
#include <filesystem>
#include <protozero/pbf_writer.hpp>
#include <vector>

#include "core/base/errors.h"
#include "core/onnx/fields.h"
#include "core/onnx/wire.h"
#include "fmt/format.h"

namespace mge::onnx {
namespace {

constexpr size_t kMaxBytes = (size_t{1} << 31) - 1;  // protobuf's limit for a message

// The bytes of a message, in pieces. Large pieces are views.
class Pieces {
 public:
  void AddView(Bytes bytes) {
    total_ += bytes.size();
    list_.push_back(bytes);
  }
  void Add(std::string bytes) { AddView(AsBytes(owned_.emplace_back(std::move(bytes)))); }
  // Adds the tag and the length of a field that the next `size` bytes are.
  void AddHead(uint32_t field, size_t size) {
    std::string head;
    protozero::pbf_writer(head).add_bytes(field, "", 0);
    head.pop_back();  // the length 0
    protozero::add_varint_to_buffer(&head, size);
    Add(std::move(head));
  }
  void AddAll(uint32_t field, Pieces message) {
    AddHead(field, message.total_);
    total_ += message.total_;
    list_.insert(list_.end(), message.list_.begin(), message.list_.end());
    kept_.push_back(std::move(message.owned_));  // the strings keep their addresses
    for (std::deque<std::string>& inner : message.kept_) kept_.push_back(std::move(inner));
  }
  size_t total() const { return total_; }
  const std::vector<Bytes>& list() const { return list_; }

 private:
  size_t total_ = 0;
  std::vector<Bytes> list_;
  std::deque<std::string> owned_;
  std::deque<std::deque<std::string>> kept_;
};

struct TensorFacts {
  std::string name;
  bool external = false;
};

absl::StatusOr<TensorFacts> Look(const WireSource& source, Bytes bytes) {
  TensorFacts out;
  WireReader reader(source, "TensorProto", bytes);
  while (reader.Next()) {
    switch (reader.field()) {
      case field::tensor::kName: out.name = reader.Text(); break;
      case field::tensor::kLocation: out.external = reader.Int() == kLocationExternal; break;
      default: reader.Skip();
    }
  }
  MGE_RETURN_IF_ERROR(reader.status());
  return out;
}

void AddTensor(const std::string& name, const Tensor& tensor, Pieces& out) {
  Pieces message;
  std::string head;
  protozero::pbf_writer writer(head);
  for (int64_t d : tensor.shape()) writer.add_int64(field::tensor::kDims, d);
  writer.add_int32(field::tensor::kDataType, static_cast<int32_t>(tensor.dtype()));
  writer.add_string(field::tensor::kName, name);
  message.Add(std::move(head));
  const Bytes elements(static_cast<const std::byte*>(tensor.data()), static_cast<size_t>(tensor.bytes()));
  message.AddHead(field::tensor::kRaw, elements.size());
  message.AddView(elements);
  out.AddAll(field::graph::kInitializer, std::move(message));
}

// Copies a graph. Removes the replaced names from `missing`.
absl::StatusOr<Pieces> CopyGraph(const WireSource& source, Bytes bytes, const std::map<std::string, Tensor>& weights,
                                 std::map<std::string, Tensor>& missing, bool other_folder) {
  Pieces out;
  WireReader reader(source, "GraphProto", bytes);
  while (reader.Next()) {
    if (reader.field() != field::graph::kInitializer) {
      out.AddView(reader.Whole());
      continue;
    }
    const Bytes whole = reader.Whole();
    WireReader again(source, "GraphProto", whole);
    again.Next();
    MGE_ASSIGN_OR_RETURN(const TensorFacts tensor, Look(source, again.Message()));
    if (auto at = weights.find(tensor.name); at != weights.end()) {
      AddTensor(at->first, at->second, out);
      missing.erase(tensor.name);
    } else if (tensor.external && other_folder) {
      return Fail(errors::kFileWrite, fmt::format("initializer '{}' lies in an external file beside the model", tensor.name),
                  {.fix = "write the new model into the folder of the old one"});
    } else {
      out.AddView(whole);
    }
  }
  MGE_RETURN_IF_ERROR(reader.status());
  return out;
}

}  // namespace

absl::Status WriteWithWeights(Bytes model, const std::map<std::string, Tensor>& weights, const std::string& path,
                              const std::string& model_directory) {
  std::error_code ignored;
  const std::filesystem::path target = std::filesystem::path(path).parent_path();
  const bool other_folder = !std::filesystem::equivalent(target.empty() ? "." : target, model_directory, ignored);
  WireSource source;
  source.bytes = model;
  std::map<std::string, Tensor> missing = weights;
  Pieces out;
  WireReader reader(source, "ModelProto", model);
  while (reader.Next()) {
    if (reader.field() != field::model::kGraph) {
      out.AddView(reader.Whole());
      continue;
    }
    MGE_ASSIGN_OR_RETURN(Pieces graph, CopyGraph(source, reader.Message(), weights, missing, other_folder));
    out.AddAll(field::model::kGraph, std::move(graph));
  }
  MGE_RETURN_IF_ERROR(reader.status());
  if (!missing.empty()) {
    return Fail(errors::kBadInput, fmt::format("the model has no initializer '{}'", missing.begin()->first));
  }
  if (out.total() > kMaxBytes) {
    return Fail(errors::kLimit, fmt::format("the model would have {} bytes, more than an ONNX file can have", out.total()),
                {.where = path});
  }
  MGE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  for (const Bytes& piece : out.list()) MGE_RETURN_IF_ERROR(file.Append(piece));
  return file.Commit();
}

}  // namespace mge::onnx
