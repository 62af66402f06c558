// SPDX-License-Identifier: Apache-2.0
//
// Listing: threads read the indexes of some files at a time, or walk the files;
// their lengths are put together in order, and freed, before the next.
#include <algorithm>
#include <utility>

#include "core/counted.h"
#include "core/redaction.h"
#include "core/status.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/arrays/numpy.h"
#include "worker/source/loader_args.h"
#include "worker/source/packed/indexed_files.h"
#include "worker/source/packed/packed_index.h"
#include "worker/source/source_storage.h"
#include "worker/source/tokens/documents.h"
#include "worker/source/tokens/tokens.h"

namespace leat::worker {
namespace {

constexpr std::string_view kData = ".bin", kIndex = ".idx", kNumpy = ".npy";

bool IsTokensName(std::string_view name) {
  return name.ends_with(kData) || name.ends_with(kNumpy);
}

class FileLister {
 public:
  FileLister(const TokenOptions& options, const SourceLimits& limits)
      : options_(options),
        limits_(limits),
        bounds_{.max_documents = limits.max_files,
                .cancelled = limits.cancelled} {}

  // Finds a file's documents. `uri` is the file's; errors need not name it.
  absl::StatusOr<TokenFile> List(const std::string& uri,
                                 const StorageFile& file) const {
    if (uri.ends_with(kNumpy)) return ListNumpy(file);
    if (options_.dtype) return ListFlat(file);
    if (uri.ends_with(kData)) return ListMegatron(uri, file);
    return InvalidArgument(
        "it is no .bin with an .idx beside it, and no .npy: want dtype= for a "
        "file of elements only");
  }

 private:
  absl::StatusOr<TokenFile> ListNumpy(const StorageFile& file) const {
    RETURN_IF_ERROR(WantDocuments());
    ASSIGN_OR_RETURN(const NumpyHeader header, ReadNumpyHeader(file));
    if (header.shape.size() != 1 || header.dtype == DType::kBool)
      return FailedPrecondition(
          "an array of {} axes of {}, want one axis of numbers; "
          "readers.numpy(array=) reads rows",
          header.shape.size(), Name(header.dtype));
    if (options_.dtype && *options_.dtype != header.dtype)
      return InvalidArgument(
          "its elements are {}, and argument \"dtype\" is {}",
          Name(header.dtype), Name(*options_.dtype));
    return FindDocuments(file, header.dtype, header.data_offset,
                         static_cast<uint64_t>(header.shape[0]), options_.end,
                         bounds_);
  }

  absl::StatusOr<TokenFile> ListFlat(const StorageFile& file) const {
    RETURN_IF_ERROR(WantDocuments());
    const size_t size = SizeOf(*options_.dtype);
    if (file.size() % size != 0)
      return DataLoss("{} bytes, want a multiple of {}: elements are {}",
                      file.size(), size, Name(*options_.dtype));
    return FindDocuments(file, *options_.dtype, 0, file.size() / size,
                         options_.end, bounds_);
  }

  absl::StatusOr<TokenFile> ListMegatron(const std::string& uri,
                                         const StorageFile& file) const {
    if (options_.end)
      return InvalidArgument(
          "argument \"end\" is {}: its .idx says where documents end, want "
          "dtype= if it is not to be read",
          *options_.end);
    const std::string index =
        uri.substr(0, uri.size() - kData.size()) + std::string(kIndex);
    const auto opened = StorageOf(limits_).Open(index);
    absl::StatusOr<TokenFile> found =
        opened.ok() ? ReadMegatronIndex(**opened, file.size(),
                                        options_.sequences, bounds_)
                    : opened.status();
    if (absl::IsNotFound(found.status()))
      return Annotate(found.status(),
                      "want an .idx beside it, or dtype= for a file of "
                      "elements only");
    return found.ok() ? std::move(found)
                      : Annotate(found.status(), RedactedUri(index));
  }

  absl::Status WantDocuments() const {
    if (!options_.sequences) return absl::OkStatus();
    return InvalidArgument(
        "argument \"unit\" is \"sequence\": only a .bin with an .idx has "
        "sequences");
  }

  const TokenOptions& options_;
  const SourceLimits& limits_;
  const DocumentBounds bounds_;
};

// Adds the lengths of a file's documents. A file with very many is added in
// parts, so that a block does not grow with it.
absl::Status AddParts(const ListedFile& file, const TokenFile& found,
                      const SourceLimits& limits, PackedIndex* index) {
  constexpr size_t kMost = 1 << 20;  // documents per part
  const size_t most = std::clamp<size_t>(limits.block_bytes / 4, 1, kMost);
  uint64_t begin = 0;
  const std::vector<uint32_t>& lengths = found.lengths;
  for (size_t first = 0; first < lengths.size(); first += most) {
    const size_t end = std::min(first + most, lengths.size());
    stored::v1::TokensFile part;
    *part.mutable_file() = IndexedFileOf(file);
    part.mutable_lengths()->Add(lengths.begin() + static_cast<ptrdiff_t>(first),
                                lengths.begin() + static_cast<ptrdiff_t>(end));
    part.set_data_offset(found.data_offset);
    part.set_begin(begin);
    part.set_first(first);
    part.set_more(end < lengths.size());
    part.set_index_identity(found.index_identity);
    RETURN_IF_ERROR(index->AddPart(part, end - first));
    for (size_t i = first; i < end; ++i) begin += lengths[i];
  }
  return absl::OkStatus();
}

// Puts the files together, in order.
class Joiner {
 public:
  Joiner(const TokenOptions& options, const SourceLimits& limits)
      : options_(options),
        limits_(limits),
        index_("tokens", options.files, "documents", limits) {}

  absl::Status Take(const ListedFile& file, const TokenFile& found) {
    if (first_.uri.empty()) RETURN_IF_ERROR(Begin(file, found.dtype));
    if (found.dtype != dtype_)
      return FailedPrecondition("{} has {}, but {} has {}: want one type",
                                RedactedUri(first_.uri), Name(dtype_),
                                RedactedUri(file.uri), Name(found.dtype));
    if (found.lengths.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(index_.AddFile(file, found.lengths.size()));
    index_.hash().UpdateField(found.index_identity);
    index_.content().AddNumbers(found.lengths);
    return AddParts(file, found, limits_, &index_);
  }

  absl::StatusOr<BuiltIndex> Finish(size_t files) {
    if (index_.empty())
      return NotFound("{}: no documents in {}",
                      RedactedUri(options_.files.front()),
                      Counted(files, "file"));
    return index_.FinishUniform({{ValueType::Kind::kTensor, dtype_, {-1}}});
  }

 private:
  absl::Status Begin(const ListedFile& file, DType dtype) {
    first_ = file;
    dtype_ = dtype;
    BeginTokensHash(options_, dtype, &index_.hash());
    stored::v1::TokensHead head;
    for (const std::string& path : FilesInHead(options_)) head.add_files(path);
    head.set_dtype(static_cast<uint32_t>(dtype));
    return index_.AddHead(head);
  }

  const TokenOptions& options_;
  const SourceLimits& limits_;
  PackedIndex index_;
  ListedFile first_;
  DType dtype_ = DType::kUint16;
};

}  // namespace

absl::StatusOr<TokenOptions> TokenOptionsOf(const Node& reader) {
  TokenOptions options;
  ASSIGN_OR_RETURN(options.files, TextsArg(reader, "files"));
  if (options.files.empty())
    return InvalidArgument("{}: files: want at least one", reader.op);
  options.files_key = LongListKey(reader, "files");
  ASSIGN_OR_RETURN(const std::string dtype, TextArg(reader, "dtype"));
  options.dtype = ParseDType(dtype);
  if (!dtype.empty() && (!options.dtype || *options.dtype == DType::kBool))
    return InvalidArgument("{}: dtype is \"{}\", want a type of numbers",
                           reader.op, dtype);
  const auto end = reader.args.find("end");
  if (end != reader.args.end()) {
    const auto* const number = std::get_if<int64_t>(&end->second);
    if (number == nullptr)
      return InvalidArgument("{}: end: want a whole number", reader.op);
    if (*number >= 0) options.end = *number;
  }
  ASSIGN_OR_RETURN(const std::string unit, TextArg(reader, "unit", "document"));
  options.sequences = unit == "sequence";
  if (!options.sequences && unit != "document")
    return InvalidArgument("{}: unit is \"{}\", want document or sequence",
                           reader.op, unit);
  return options;
}

std::vector<std::string> FilesInHead(const TokenOptions& options) {
  if (options.files_key.empty()) return options.files;
  return {options.files_key};
}

void BeginTokensHash(const TokenOptions& options, DType dtype, Sha256* hash) {
  hash->UpdateField("leat.tokens.1")
      .UpdateU64(static_cast<uint64_t>(dtype))
      .UpdateU64(options.sequences)
      .UpdateU64(options.end ? static_cast<uint64_t>(*options.end) + 1 : 0);
}

absl::StatusOr<BuiltIndex> BuildTokensIndex(const Node& reader,
                                            const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const TokenOptions options, TokenOptionsOf(reader));
  ASSIGN_OR_RETURN(
      const IndexedFiles listing,
      ListIndexed(options.files, {}, IsTokensName, "files", limits));
  const FileLister lister(options, limits);
  Joiner joiner(options, limits);
  std::vector<TokenFile> found(listing.files.size());
  const auto walk = [&](size_t i, const StorageFile& file) -> absl::Status {
    absl::StatusOr<TokenFile> listed = lister.List(listing.files[i].uri, file);
    if (!listed.ok()) return Annotate(listed.status(), file.name());
    found[i] = *std::move(listed);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ReadIndexedInOrder(listing, limits, walk, {}, [&](size_t i) {
    return joiner.Take(listing.files[i], std::exchange(found[i], {}));
  }));
  return joiner.Finish(listing.files.size());
}

}  // namespace leat::worker
