// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/structure.h"

#include <sys/mman.h>

#include <algorithm>

#include "core/base/errors.h"
#include "core/base/lazy_bytes.h"
#include "core/onnx/fields.h"
#include "core/onnx/wire.h"
#include "fmt/format.h"

namespace mge::onnx {
namespace {

constexpr uint64_t kWindow = 16 << 10;  // bytes that are read at a time
constexpr int kMaxDepth = 250;

enum class Message { kModel, kGraph, kNode, kAttribute, kFunction, kTensor, kElements, kOther };

// Returns the type of a field that is a message, or a run of bytes.
Message TypeOf(Message parent, uint64_t field) {
  switch (parent) {
    case Message::kModel:
      if (field == field::model::kGraph) return Message::kGraph;
      return field == field::model::kFunctions ? Message::kFunction : Message::kOther;
    case Message::kFunction: return field == field::function::kNode ? Message::kNode : Message::kOther;
    case Message::kGraph:
      if (field == field::graph::kInitializer) return Message::kTensor;
      return field == field::graph::kNode ? Message::kNode : Message::kOther;
    case Message::kNode: return field == field::node::kAttribute ? Message::kAttribute : Message::kOther;
    case Message::kAttribute:
      if (field == field::attribute::kTensor) return Message::kTensor;
      return field == field::attribute::kGraph || field == field::attribute::kGraphs ? Message::kGraph : Message::kOther;
    case Message::kTensor: return field == field::tensor::kRaw ? Message::kElements : Message::kOther;
    default: return Message::kOther;
  }
}

class StructureReader {
 public:
  StructureReader(const SourceFile& file, std::byte* to) : file_(file), to_(to), size_(static_cast<uint64_t>(file.size())) {}

  absl::Status Run() {
    MGE_ASSIGN_OR_RETURN(const bool well_formed, Walk(0, size_, Message::kModel, 0));
    return well_formed ? absl::OkStatus() : Load(at_, std::min(at_ + kWindow, size_));
  }

 private:
  // Reads the bytes [begin, end), except those that are there.
  absl::Status Load(uint64_t begin, uint64_t end) {
    if (end <= loaded_) return absl::OkStatus();
    begin = std::max(begin, loaded_);
    end = std::min(std::max(end, begin + kWindow), size_);
    loaded_ = end;
    return file_.Read(static_cast<int64_t>(begin), {to_ + begin, static_cast<size_t>(end - begin)});
  }

  // Reads the fields in [at, end). Returns false if they are malformed.
  absl::StatusOr<bool> Walk(uint64_t at, uint64_t end, Message type, int depth) {
    while (at < end) {
      at_ = at;
      MGE_RETURN_IF_ERROR(Load(at, std::min(at + 20, end)));  // tag and length, or tag and number
      Bytes head(to_ + at, static_cast<size_t>(std::min<uint64_t>(20, end - at)));
      const std::byte* begin = head.data();
      uint64_t tag = 0, size = 0;
      if (!TakeVarint(&head, &tag)) return false;
      const uint64_t wire = tag & 7;
      if ((wire == 0 || wire == 2) && !TakeVarint(&head, &size)) return false;
      at += static_cast<uint64_t>(head.data() - begin);
      if (wire == 0) continue;
      if (wire == 1 || wire == 5) size = wire == 1 ? 8 : 4;
      if ((wire != 1 && wire != 2 && wire != 5) || size > end - at) return false;
      const Message inner = wire == 2 ? TypeOf(type, tag >> 3) : Message::kOther;
      const bool large = size >= static_cast<uint64_t>(kLazyBytes);
      if (!large || inner == Message::kOther || depth == kMaxDepth) {
        MGE_RETURN_IF_ERROR(Load(at, at + size));
      } else if (inner != Message::kElements) {
        MGE_ASSIGN_OR_RETURN(const bool well_formed, Walk(at, at + size, inner, depth + 1));
        if (!well_formed) return false;
      }
      at += size;
    }
    return true;
  }

  const SourceFile& file_;
  std::byte* const to_;
  const uint64_t size_;
  uint64_t loaded_ = 0;  // no byte from here on was read
  uint64_t at_ = 0;      // the field that is being read
};

}  // namespace

absl::StatusOr<std::shared_ptr<const std::byte>> ReadStructure(const SourceFile& file) {
  const size_t size = std::max<size_t>(static_cast<size_t>(file.size()), 1);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return Fail(errors::kOutOfMemory,
                fmt::format("the system has no address space for the {} bytes of '{}'", size, file.name()));
  }
  auto* bytes = static_cast<std::byte*>(memory);
  std::shared_ptr<const std::byte> out(bytes, [size](const std::byte* b) { munmap(const_cast<std::byte*>(b), size); });
  MGE_RETURN_IF_ERROR(StructureReader(file, bytes).Run());
  return out;
}

}  // namespace mge::onnx
