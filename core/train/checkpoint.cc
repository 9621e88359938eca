// SPDX-License-Identifier: Apache-2.0
#include "core/train/checkpoint.h"

#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "fmt/format.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace mge {
namespace {

constexpr std::string_view kMagic = "MGE checkpoint 1";
constexpr uint32_t kMaxRank = 64;

// The checksum of the bytes so far.
class Sum {
 public:
  Sum() : state_(XXH3_createState()) {
    if (!state_) throw std::bad_alloc();
    XXH3_128bits_reset(state_.get());
  }
  void Add(Bytes bytes) { XXH3_128bits_update(state_.get(), bytes.data(), bytes.size()); }
  XXH128_canonical_t Get() const {
    XXH128_canonical_t out;
    XXH128_canonicalFromHash(&out, XXH3_128bits_digest(state_.get()));
    return out;
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

template <typename T>
Bytes BytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

Bytes ElementsOf(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.data()), static_cast<size_t>(tensor.bytes())};
}

class CheckpointWriter {
 public:
  explicit CheckpointWriter(AtomicFile& file) : file_(file) {}
  absl::Status Add(Bytes bytes) {
    sum_.Add(bytes);
    return file_.Append(bytes);
  }
  absl::Status Add(std::string_view text) {
    const uint64_t size = text.size();
    MGE_RETURN_IF_ERROR(Add(BytesOf(size)));
    return Add(AsBytes(text));
  }
  absl::Status Add(const std::string& name, const Tensor& state) {
    MGE_RETURN_IF_ERROR(Add(std::string_view(name)));
    const uint32_t type[] = {static_cast<uint32_t>(state.dtype()), static_cast<uint32_t>(state.shape().size())};
    MGE_RETURN_IF_ERROR(Add(BytesOf(type)));
    for (const int64_t size : state.shape()) MGE_RETURN_IF_ERROR(Add(BytesOf(size)));
    return Add(ElementsOf(state));
  }
  absl::Status Finish() { return file_.Append(BytesOf(sum_.Get())); }

 private:
  AtomicFile& file_;
  Sum sum_;
};

class CheckpointReader {
 public:
  CheckpointReader(const RegularFile& file, const std::string& path)
      : file_(file), path_(path), end_(file.size - static_cast<int64_t>(sizeof(XXH128_canonical_t))) {}

  absl::Status Damaged(std::string what) const {
    return Fail(errors::kBadInputFile, fmt::format("'{}' is no checkpoint, or is damaged", path_),
                {.what = std::move(what), .where = fmt::format("byte {}", at_), .fix = "use an earlier checkpoint"});
  }
  absl::Status Read(std::span<std::byte> out) {
    if (static_cast<int64_t>(out.size()) > end_ - at_) return Damaged("it ends too early");
    MGE_RETURN_IF_ERROR(ReadRange(file_.fd.get(), at_, out, path_));
    sum_.Add(out);
    at_ += static_cast<int64_t>(out.size());
    return absl::OkStatus();
  }
  template <typename T>
  absl::StatusOr<T> Number() {
    T out;
    MGE_RETURN_IF_ERROR(Read(std::as_writable_bytes(std::span(&out, 1))));
    return out;
  }
  absl::StatusOr<std::string> Text() {
    MGE_ASSIGN_OR_RETURN(const uint64_t size, Number<uint64_t>());
    if (size > static_cast<uint64_t>(end_ - at_)) return Damaged(fmt::format("a text has {} bytes", size));
    std::string out(size, '\0');
    MGE_RETURN_IF_ERROR(Read(std::as_writable_bytes(std::span(out))));
    return out;
  }
  absl::StatusOr<Tensor> State() {
    MGE_ASSIGN_OR_RETURN(const auto type, Number<uint32_t>());
    MGE_ASSIGN_OR_RETURN(const auto rank, Number<uint32_t>());
    const auto dtype = static_cast<DType>(type);
    if (!kFloating.Contains(dtype) && dtype != DType::kI64) return Damaged(fmt::format("a state has element type {}", type));
    if (rank > kMaxRank) return Damaged(fmt::format("a state has rank {}", rank));
    Shape shape;
    const int64_t most = (end_ - at_) / ElementBytes(dtype);
    for (int64_t elements = 1; shape.size() < rank;) {
      MGE_ASSIGN_OR_RETURN(const auto size, Number<int64_t>());
      if (size < 0 || size > most || (size > 0 && elements > most / size)) return Damaged("a state is larger than the file");
      elements *= size;
      shape.push_back(size);
    }
    MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(dtype, std::move(shape)));
    MGE_RETURN_IF_ERROR(Read({static_cast<std::byte*>(out.mutable_data()), static_cast<size_t>(out.bytes())}));
    return out;
  }
  // Checks that the checksum is what is left.
  absl::Status Finish() {
    if (at_ != end_) return Damaged(fmt::format("it has {} bytes more than it describes", end_ - at_));
    XXH128_canonical_t stored;
    MGE_RETURN_IF_ERROR(ReadRange(file_.fd.get(), at_, std::as_writable_bytes(std::span(&stored, 1)), path_));
    const XXH128_canonical_t sum = sum_.Get();
    return std::memcmp(&stored, &sum, sizeof(sum)) == 0 ? absl::OkStatus() : Damaged("its checksum does not match");
  }

 private:
  const RegularFile& file_;
  const std::string& path_;
  const int64_t end_;  // of what the checksum covers
  int64_t at_ = 0;
  Sum sum_;
};

}  // namespace

absl::Status WriteCheckpoint(const Checkpoint& checkpoint, const std::string& path) {
  MGE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  CheckpointWriter writer(file);
  MGE_RETURN_IF_ERROR(writer.Add(AsBytes(kMagic)));
  MGE_RETURN_IF_ERROR(writer.Add(std::string_view(checkpoint.optimizer)));
  MGE_RETURN_IF_ERROR(writer.Add(std::string_view(checkpoint.notes)));
  const uint64_t count = checkpoint.states.size();
  MGE_RETURN_IF_ERROR(writer.Add(BytesOf(count)));
  for (const auto& [name, state] : checkpoint.states) MGE_RETURN_IF_ERROR(writer.Add(name, state));
  MGE_RETURN_IF_ERROR(writer.Finish());
  return file.Commit();
}

absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& path) {
  MGE_ASSIGN_OR_RETURN(const RegularFile file, OpenRegularFile(path));
  CheckpointReader reader(file, path);
  std::string magic(kMagic.size(), '\0');
  MGE_RETURN_IF_ERROR(reader.Read(std::as_writable_bytes(std::span(magic))));
  if (magic != kMagic) return reader.Damaged("its first bytes are not those of a checkpoint");
  Checkpoint out;
  MGE_ASSIGN_OR_RETURN(out.optimizer, reader.Text());
  MGE_ASSIGN_OR_RETURN(out.notes, reader.Text());
  MGE_ASSIGN_OR_RETURN(const auto count, reader.Number<uint64_t>());
  for (uint64_t i = 0; i < count; ++i) {
    MGE_ASSIGN_OR_RETURN(std::string name, reader.Text());
    MGE_ASSIGN_OR_RETURN(out.states[std::move(name)], reader.State());
  }
  MGE_RETURN_IF_ERROR(reader.Finish());
  return out;
}

}  // namespace mge
