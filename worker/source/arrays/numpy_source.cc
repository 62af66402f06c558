// SPDX-License-Identifier: Apache-2.0
//
// An opened index: 24 bytes, a name, an identity and 8 bytes of layout per
// file, plus the shapes if they differ.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "core/hash.h"
#include "core/redaction.h"
#include "core/status.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/arrays/numpy.h"
#include "worker/source/file_set.h"
#include "worker/source/formats.h"
#include "worker/source/index_blob.h"
#include "worker/source/loader_args.h"
#include "worker/source/packed/shard_cache.h"
#include "worker/source/source_storage.h"

namespace leat::worker {
namespace {

constexpr uint64_t kMaxArrayBytes = uint64_t{1} << 48;

// Returns the bytes of an array. kDataLoss: sizes that no array has.
absl::StatusOr<uint64_t> BytesOf(const Shape& shape, DType dtype) {
  uint64_t bytes = SizeOf(dtype);
  bool empty = false;
  for (const int64_t side : shape) {
    if (side < 0 ||
        (side > 0 && bytes > kMaxArrayBytes / static_cast<uint64_t>(side)))
      return DataLoss("it claims an array of over {} bytes", kMaxArrayBytes);
    empty = empty || side == 0;
    if (side > 0) bytes *= static_cast<uint64_t>(side);
  }
  return empty ? 0 : bytes;
}

class NumpySource final : public FormatSource {
 public:
  NumpySource(const Storage& storage, std::string path, uint64_t max_file_bytes)
      : storage_(storage),
        max_file_bytes_(max_file_bytes),
        files_(std::move(path)) {}

  absl::Status Load(const Node& reader, std::string_view blob,
                    const SourceLimits& limits);

  uint64_t num_samples() const override {
    return rows_ ? num_rows_ : layouts_.size();
  }
  std::string Describe(uint64_t sample) const override {
    return rows_ ? fmt::format("{} row {}", files_.Shown(0), sample)
                 : files_.Shown(sample);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    if (rows_) return RecordPlace{.file = files_.Shown(0), .index = sample};
    return RecordPlace{.file = files_.Shown(sample),
                       .bytes = files_.size(sample)};
  }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override;

 private:
  struct Layout {
    uint32_t data_offset = 0;
    bool fortran_order = false;
  };
  absl::Status LoadHead(const stored::v1::NumpyHead& head);
  absl::Status AddFile(const stored::v1::NumpyFile& proto);
  absl::Status LoadRows(const Shape& shape);
  Shape ShapeOf(uint64_t sample) const;
  absl::StatusOr<std::shared_ptr<const StorageFile>> Open(size_t index) const;

  const Storage& storage_;
  const uint64_t max_file_bytes_;
  bool rows_ = false;
  DType dtype_ = DType::kUint8;
  Shape shape_;  // of a sample; -1 where they differ
  bool ragged_ = false;
  uint64_t num_rows_ = 0;
  FileSet files_;
  std::vector<Layout> layouts_;
  std::vector<int64_t> shapes_;  // one after the other, if ragged_
  // The one file whose rows are samples, if rows_, after its first use.
  struct Held {
    std::shared_ptr<const StorageFile> file;
    uint64_t bytes() const { return 0; }
  };
  mutable ShardCache<Held> array_{0, 1};
};

absl::Status NumpySource::LoadHead(const stored::v1::NumpyHead& head) {
  rows_ = head.rows();
  const uint32_t dtype = head.type().dtype();
  if (dtype < static_cast<uint32_t>(kFirstDType) ||
      dtype > static_cast<uint32_t>(kLastDType))
    return DataLoss("it has elements of an unknown type {}", dtype);
  dtype_ = static_cast<DType>(dtype);
  shape_.assign(head.type().shape().begin(), head.type().shape().end());
  ragged_ = std::count(shape_.begin(), shape_.end(), -1) > 0;
  return absl::OkStatus();
}

absl::Status NumpySource::AddFile(const stored::v1::NumpyFile& proto) {
  const Shape shape(proto.shape().begin(), proto.shape().end());
  RETURN_IF_ERROR(files_.Add(proto.file().name(), proto.file().bytes(),
                             proto.file().identity()));
  ASSIGN_OR_RETURN(const uint64_t bytes, BytesOf(shape, dtype_));
  if (proto.data_offset() > proto.file().bytes() ||
      bytes > proto.file().bytes() - proto.data_offset())
    return DataLoss("{}: it claims {} bytes of a file of {}",
                    RedactedUri(proto.file().name()), bytes,
                    proto.file().bytes());
  layouts_.push_back({proto.data_offset(), proto.fortran_order()});
  if (rows_) return LoadRows(shape);
  bool same = shape.size() == shape_.size();
  for (size_t i = 0; same && i < shape.size(); ++i)
    same = shape_[i] == -1 || shape_[i] == shape[i];
  if (!same)
    return DataLoss("{}: its shape is not of the index's type",
                    RedactedUri(proto.file().name()));
  if (ragged_) shapes_.insert(shapes_.end(), shape.begin(), shape.end());
  return absl::OkStatus();
}

absl::Status NumpySource::LoadRows(const Shape& shape) {
  if (layouts_.size() > 1 || shape.empty() || shape[0] < 1 || ragged_ ||
      !std::equal(shape.begin() + 1, shape.end(), shape_.begin(),
                  shape_.end()) ||
      (layouts_[0].fortran_order && shape.size() > 1))
    return DataLoss("it is of no array of rows");
  num_rows_ = static_cast<uint64_t>(shape[0]);
  return absl::OkStatus();
}

absl::Status NumpySource::Load(const Node& reader, std::string_view blob,
                               const SourceLimits& limits) {
  BlobReader in(blob);
  stored::v1::NumpyHead head;
  RETURN_IF_ERROR(NextHead(reader, &in, &head));
  RETURN_IF_ERROR(LoadHead(head));
  Sha256 hash;
  hash.UpdateField("leat.numpy.1").UpdateField(head.SerializeAsString());
  stored::v1::NumpyFiles part;
  while (!in.done()) {
    RETURN_IF_ERROR(in.Next(&part));
    const size_t begin = files_.count();
    if (begin + static_cast<size_t>(part.files_size()) > limits.max_files)
      return ResourceExhausted("it lists more than {} files: the limit",
                               limits.max_files);
    for (const stored::v1::NumpyFile& file : part.files()) {
      RETURN_IF_ERROR(AddFile(file));
      hash.UpdateU64(file.data_offset()).UpdateU64(file.fortran_order());
      for (const int64_t side : file.shape())
        hash.UpdateU64(static_cast<uint64_t>(side));
    }
    files_.UpdateHash(&hash, begin);
  }
  if (layouts_.empty()) return DataLoss("it lists no files");
  fingerprint_ = hash.Finish();
  files_.ShrinkToFit();
  layouts_.shrink_to_fit();
  shapes_.shrink_to_fit();
  return absl::OkStatus();
}

Shape NumpySource::ShapeOf(uint64_t sample) const {
  if (!ragged_) return shape_;
  const size_t rank = shape_.size();
  const auto begin = shapes_.begin() + static_cast<ptrdiff_t>(sample * rank);
  return Shape(begin, begin + static_cast<ptrdiff_t>(rank));
}

absl::StatusOr<std::shared_ptr<const StorageFile>> NumpySource::Open(
    size_t index) const {
  if (!rows_) return files_.Open(storage_, index);
  ASSIGN_OR_RETURN(
      const std::shared_ptr<const Held> held,
      array_.Get(0, [this]() -> absl::StatusOr<std::shared_ptr<const Held>> {
        ASSIGN_OR_RETURN(auto file, files_.Open(storage_, 0));
        return std::make_shared<const Held>(Held{std::move(file)});
      }));
  return held->file;
}

absl::StatusOr<StoredSample> NumpySource::Read(uint64_t sample) const {
  const size_t index = rows_ ? 0 : sample;
  const Shape shape = ShapeOf(sample);
  ASSIGN_OR_RETURN(const uint64_t bytes, BytesOf(shape, dtype_));
  if (bytes > max_file_bytes_)
    return ResourceExhausted("{} has {} bytes: the limit is {}",
                             Describe(sample), bytes, max_file_bytes_);
  ASSIGN_OR_RETURN(const auto file, Open(index));
  const Layout& layout = layouts_[index];
  const uint64_t offset = layout.data_offset + (rows_ ? sample * bytes : 0);
  auto data = std::make_shared_for_overwrite<std::byte[]>(bytes);
  RETURN_IF_ERROR(file->ReadAt(offset, {data.get(), bytes}));
  if (layout.fortran_order && shape.size() > 1) {
    auto turned = std::make_shared_for_overwrite<std::byte[]>(bytes);
    TransposeFortran(shape, SizeOf(dtype_), {data.get(), bytes},
                     {turned.get(), bytes});
    data = std::move(turned);
  }
  if (dtype_ == DType::kBool)  // NumPy takes any byte but 0 for true
    for (std::byte& each : std::span(data.get(), bytes))
      each = std::byte{each != std::byte{0}};
  StoredSample stored;
  stored.fields.resize(1);
  stored.fields[0].bytes = std::span(data.get(), bytes);
  if (ragged_) stored.fields[0].shape = shape;
  stored.owner = std::move(data);
  return stored;
}

// Walks `to` in order; `at` is the position of its element in `from`.
template <class T>
void Transpose(const Shape& shape, const std::byte* from, std::byte* to) {
  const size_t rank = shape.size();
  std::vector<size_t> strides(rank, 1);
  for (size_t i = 1; i < rank; ++i)
    strides[i] = strides[i - 1] * static_cast<size_t>(shape[i - 1]);
  std::vector<int64_t> index(rank, 0);
  const size_t step = strides[rank - 1];
  const auto inner = static_cast<size_t>(shape[rank - 1]);
  for (size_t at = 0;;) {
    for (size_t i = 0; i < inner; ++i, to += sizeof(T))
      std::memcpy(to, from + (at + i * step) * sizeof(T), sizeof(T));
    size_t axis = rank - 1;
    while (axis > 0) {
      --axis;
      at += strides[axis];
      if (++index[axis] < shape[axis]) break;
      at -= strides[axis] * static_cast<size_t>(shape[axis]);
      index[axis] = 0;
      if (axis == 0) return;
    }
    if (rank == 1) return;
  }
}

}  // namespace

void TransposeFortran(const Shape& shape, size_t element,
                      std::span<const std::byte> from,
                      std::span<std::byte> to) {
  if (to.empty()) return;
  switch (element) {
    case 1:
      return Transpose<uint8_t>(shape, from.data(), to.data());
    case 2:
      return Transpose<uint16_t>(shape, from.data(), to.data());
    case 4:
      return Transpose<uint32_t>(shape, from.data(), to.data());
    default:
      return Transpose<uint64_t>(shape, from.data(), to.data());
  }
}

absl::StatusOr<std::unique_ptr<Source>> OpenNumpy(const Node& reader,
                                                  std::string_view blob,
                                                  const SourceLimits& limits) {
  ASSIGN_OR_RETURN(std::string path, TextArg(reader, "path"));
  return Loaded(std::make_unique<NumpySource>(
                    StorageOf(limits), std::move(path), limits.max_file_bytes),
                reader.op, reader, blob, limits);
}

const SourceFormat kNumpyFormat = {"readers.numpy", BuildNumpyIndex, OpenNumpy};

}  // namespace leat::worker
