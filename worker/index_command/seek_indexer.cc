// SPDX-License-Identifier: Apache-2.0
#include "worker/index_command/seek_indexer.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "rpc/process/machine.h"
#include "worker/cache/seek_file.h"
#include "worker/image/jpeg/decode/decoder.h"
#include "worker/image/jpeg/forms/codec.h"
#include "worker/image/jpeg/forms/form.h"
#include "worker/source/each_file.h"

namespace leat::worker {
namespace {

// The records read between two writes; their indexes wait in memory.
constexpr uint64_t kChunk = 1024;

bool IsJpeg(std::span<const std::byte> bytes) {
  return bytes.size() > 2 && bytes[0] == std::byte{0xff} &&
         bytes[1] == std::byte{0xd8};
}

// Returns no bytes if no index can be made of the file.
std::vector<std::byte> SeekIndexOf(std::span<const std::byte> file,
                                   JpegDecoder* decoder) {
  if (!decoder->Open(file).ok()) return {};
  decoder->MakeForms(FormKinds::Only(JpegFormKind::kSeekIndex), 0);
  PixelRows row;
  if (!decoder->Start({.x = 0, .y = 0, .width = 1, .height = 1}, false).ok() ||
      !decoder->ReadRows(&row).ok())
    return {};
  const absl::StatusOr<std::unique_ptr<const JpegForm>> form =
      decoder->TakeForm(JpegFormKind::kSeekIndex);
  if (!form.ok()) return {};
  return {(*form)->bytes().begin(), (*form)->bytes().end()};
}

// Decoders keeps decoders from file to file; each is used by one thread at a
// time.
class Decoders {
 public:
  std::unique_ptr<JpegDecoder> Take() {
    MutexLock lock(&mu_);
    if (free_.empty()) return std::make_unique<JpegDecoder>(ImageLimits());
    std::unique_ptr<JpegDecoder> decoder = std::move(free_.back());
    free_.pop_back();
    return decoder;
  }
  void Give(std::unique_ptr<JpegDecoder> decoder) {
    MutexLock lock(&mu_);
    free_.push_back(std::move(decoder));
  }

 private:
  Mutex mu_;
  std::vector<std::unique_ptr<JpegDecoder>> free_ ABSL_GUARDED_BY(mu_);
};

// Takes the index as it is listed, and processes the records of each block when
// it comes.
class SeekSink final : public IndexSink {
 public:
  SeekSink(const Node& reader, const SourceLimits& limits,
           SeekFileWriter* writer, std::atomic<uint64_t>* records_read)
      : reader_(reader),
        limits_(limits),
        writer_(*writer),
        records_read_(*records_read) {}

  absl::Status Add(std::string bytes, uint64_t samples) override {
    if (samples == 0) {
      if (head_.size() + bytes.size() > limits_.max_index_bytes)
        return ResourceExhausted(
            "an index of more than {} bytes, which is read whole: the limit",
            limits_.max_index_bytes);
      head_ += bytes;
      return absl::OkStatus();
    }
    blocks_ = true;
    SourceLimits limits = limits_;
    limits.one_of_many = true;
    ASSIGN_OR_RETURN(const auto source,
                     OpenSource(reader_, head_ + bytes, limits));
    return TakeAll(*source, samples);
  }
  // Processes the records if the index has no blocks, since no Add did.
  absl::Status Finish() {
    if (blocks_) return absl::OkStatus();
    ASSIGN_OR_RETURN(const auto source, OpenSource(reader_, head_, limits_));
    return TakeAll(*source, source->num_records());
  }
  uint64_t indexes() const { return indexes_; }

 private:
  absl::Status TakeAll(const Source& source, uint64_t records) {
    for (uint64_t first = 0; first < records; first += kChunk) {
      std::vector<std::vector<std::byte>> forms(
          std::min(kChunk, records - first));
      RETURN_IF_ERROR(ForEachIndex(forms.size(), threads_, limits_.cancelled,
                                   [&](size_t i) {
                                     forms[i] = IndexOf(source.Read(first + i));
                                     ++records_read_;
                                     return absl::OkStatus();
                                   }));
      indexes_ += static_cast<uint64_t>(std::ranges::count_if(
          forms, [](const auto& form) { return !form.empty(); }));
      RETURN_IF_ERROR(writer_.Append(forms));
    }
    return absl::OkStatus();
  }

  std::vector<std::byte> IndexOf(const absl::StatusOr<StoredSample>& stored) {
    if (!stored.ok()) return {};
    for (const StoredField& field : stored->fields) {
      if (!IsJpeg(field.bytes)) continue;
      std::unique_ptr<JpegDecoder> decoder = decoders_.Take();
      std::vector<std::byte> index = SeekIndexOf(field.bytes, decoder.get());
      decoders_.Give(std::move(decoder));
      return index;
    }
    return {};
  }

  const Node& reader_;
  const SourceLimits& limits_;
  SeekFileWriter& writer_;
  std::atomic<uint64_t>& records_read_;
  const int threads_ = rpc::UsableCores();
  Decoders decoders_;
  std::string head_;
  bool blocks_ = false;
  uint64_t indexes_ = 0;
};

}  // namespace

absl::StatusOr<WrittenSeekFile> WriteSeekFile(
    const Node& reader, const BuiltIndex& built, const SourceLimits& limits,
    std::atomic<uint64_t>* records_read) {
  const std::string path = SeekFilePath(RootOf(reader), built.fingerprint);
  if (path.empty())
    return InvalidArgument(
        "--seek: the dataset lies in no file system, so that no seek index can "
        "be beside it: --disk-cache of a worker keeps those of such a dataset");
  ASSIGN_OR_RETURN(const std::unique_ptr<SeekFileWriter> writer,
                   SeekFileWriter::Create(path, built.fingerprint,
                                          built.shards.num_samples(),
                                          JpegFormCodec().version));
  SeekSink sink(reader, limits, writer.get(), records_read);
  ASSIGN_OR_RETURN(const BuiltIndex again,
                   BuildIndexInto(reader, limits, &sink));
  RETURN_IF_ERROR(sink.Finish());
  if (again.fingerprint != built.fingerprint)
    return FailedPrecondition(
        "--seek: the dataset changed while it was indexed; try again");
  RETURN_IF_ERROR(writer->Finish());
  return WrittenSeekFile{path, writer->bytes(), sink.indexes()};
}

}  // namespace leat::worker
