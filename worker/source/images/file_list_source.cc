// SPDX-License-Identifier: Apache-2.0
//
// An opened index: 28 bytes, a URI and an identity per file.
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/counted.h"
#include "core/redaction.h"
#include "core/status.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/content_hash.h"
#include "worker/source/each_file.h"
#include "worker/source/file_set.h"
#include "worker/source/formats.h"
#include "worker/source/images/file_list.h"
#include "worker/source/images/labelled_files.h"
#include "worker/source/index_blob.h"
#include "worker/source/loader_args.h"
#include "worker/source/record_file.h"
#include "worker/source/source_storage.h"
#include "worker/source/storage/base/identity.h"

namespace leat::worker {
namespace {

using stored::v1::IndexedFile;
using stored::v1::ListedFiles;
using stored::v1::ListedHead;

// Files and their labels, in the order of samples.
struct Listing {
  FileSet files;
  std::vector<int32_t> labels;

  absl::Status Add(std::string_view uri, uint64_t size,
                   std::string_view identity, int32_t label) {
    labels.push_back(label);
    return files.Add(uri, size, identity);
  }
  Digest Fingerprint() const {
    Sha256 hash;
    hash.UpdateField("leat.file_list.1");
    files.UpdateHash(&hash);
    for (const int32_t label : labels)
      hash.UpdateU64(static_cast<uint64_t>(label));
    return hash.Finish();
  }
};

class FileListSource final : public LabelledFiles {
 public:
  FileListSource(Listing listing, const Digest& fingerprint,
                 const SourceLimits& limits)
      : LabelledFiles(std::move(listing.files), limits),
        labels_(std::move(listing.labels)) {
    fingerprint_ = fingerprint;
  }

  uint64_t num_samples() const override { return labels_.size(); }

 private:
  int32_t LabelOf(uint64_t file) const override { return labels_[file]; }

  const std::vector<int32_t> labels_;
};

std::string Below(const std::string& root, std::string name) {
  if (root.empty() || name.starts_with('/') ||
      name.find("://") != std::string::npos)
    return name;
  return JoinUri(root, name);
}

// Returns the folder of the file `uri`; empty: the working folder. A signature
// of that file, which may contain slashes, is not one of the folder.
std::string FolderOf(const std::string& uri) {
  const std::string scheme = SchemeOf(uri);
  const bool http = scheme == "http" || scheme == "https";
  const std::string file =
      uri.substr(0, http ? uri.find_first_of("?#") : std::string::npos);
  return file.substr(0, file.rfind('/') + 1);  // npos + 1 is 0
}

// Examines the files, and makes an index of them.
absl::StatusOr<BuiltIndex> IndexOf(const Node& reader,
                                   std::vector<LabelledFile> wanted,
                                   std::string_view name,
                                   const std::vector<std::string>& places,
                                   const SourceLimits& limits) {
  const Storage& storage = StorageOf(limits);
  std::vector<StoredObject> found(wanted.size());
  RETURN_IF_ERROR(ForEachIndex(
      wanted.size(), limits.listing_threads, limits.cancelled, [&](size_t i) {
        ASSIGN_OR_RETURN(found[i], storage.Stat(wanted[i].name));
        return absl::OkStatus();
      }));
  BuiltIndex index;
  Listing listing;
  BlobWriter blob(limits);
  ListedHead head;
  head.set_reader(CanonicalText(reader));
  RETURN_IF_ERROR(blob.Add(head));
  ListedFiles part;
  for (size_t i = 0; i < wanted.size(); ++i) {
    RETURN_IF_ERROR(listing.Add(wanted[i].name, found[i].size,
                                found[i].identity, wanted[i].label));
    IndexedFile& file = *part.add_files();
    file.set_name(std::move(wanted[i].name));
    file.set_bytes(found[i].size);
    file.set_identity(std::move(found[i].identity));
    part.add_labels(wanted[i].label);
    if (static_cast<size_t>(part.files_size()) < kFilesAPart &&
        i + 1 < wanted.size())
      continue;
    RETURN_IF_ERROR(blob.Add(part, static_cast<uint64_t>(part.files_size())));
    part.Clear();
  }
  ASSIGN_OR_RETURN(index.blob, blob.Finish());
  index.bytes = listing.files.total_bytes();
  index.groups = GroupsOfLabels(listing.labels);
  index.fingerprint = listing.Fingerprint();
  RETURN_IF_ERROR(FinishIndex(name, wanted.size(), limits, &index));
  ContentHash content("files", places);
  for (size_t i = 0; i < listing.labels.size(); ++i)
    content.AddFile(listing.files.name(i), listing.files.size(i));
  content.AddNumbers(listing.labels).Finish(&index);
  return index;
}

absl::StatusOr<BuiltIndex> BuildFileList(const Node& reader,
                                         const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const std::string path, TextArg(reader, "path"));
  ASSIGN_OR_RETURN(std::string root, TextArg(reader, "root"));
  if (path.empty()) return InvalidArgument("{}: path is empty", reader.op);
  if (root.empty()) root = FolderOf(path);
  ASSIGN_OR_RETURN(const OpenedFile file, StorageOf(limits).Open(path));
  ASSIGN_OR_RETURN(const std::string text,
                   ReadText(limits, path, *file, limits.max_index_bytes));
  absl::StatusOr<std::vector<LabelledFile>> wanted =
      ParseFileList(text, limits.max_files);
  if (!wanted.ok()) return Annotate(wanted.status(), file->name());
  for (LabelledFile& each : *wanted)
    each.name = Below(root, std::move(each.name));
  return IndexOf(reader, *std::move(wanted), path, {root}, limits);
}

absl::StatusOr<BuiltIndex> BuildFiles(const Node& reader,
                                      const SourceLimits& limits) {
  ASSIGN_OR_RETURN(std::vector<std::string> files, TextsArg(reader, "files"));
  ASSIGN_OR_RETURN(const std::string root, TextArg(reader, "root"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> labels,
                   IntsArg(reader, "labels"));
  if (files.empty()) return InvalidArgument("{}: files: none", reader.op);
  if (!labels.empty() && labels.size() != files.size())
    return InvalidArgument("{}: {} for {}", reader.op,
                           Counted(labels.size(), "label"),
                           Counted(files.size(), "file"));
  std::vector<LabelledFile> wanted;
  wanted.reserve(files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    const int64_t label = labels.empty() ? static_cast<int64_t>(i) : labels[i];
    if (label < 0 || label > std::numeric_limits<int32_t>::max())
      return InvalidArgument("{}: labels: {}, want 0 to 2147483647", reader.op,
                             label);
    wanted.push_back({.name = Below(root, std::move(files[i])),
                      .label = static_cast<int32_t>(label)});
  }
  const std::string name = wanted[0].name;
  std::vector<std::string> places = {root};
  if (root.empty())
    for (const LabelledFile& each : wanted) places.push_back(each.name);
  ASSIGN_OR_RETURN(BuiltIndex index,
                   IndexOf(reader, std::move(wanted), name, places, limits));
  // Numbers of files are no labels.
  if (labels.empty()) index.groups.clear();
  return index;
}

// kDataLoss: the file's size is not that of its identity, so that a part of it
// would pass for the whole.
absl::Status CheckListedSize(const IndexedFile& file) {
  const auto identity = ParseIdentity(file.identity(), "");
  if (identity.ok() && identity->size == file.bytes()) return absl::OkStatus();
  return DataLoss("{}: {} bytes are not those of its identity",
                  RedactedUri(file.name()), file.bytes());
}

absl::StatusOr<Listing> ListingOf(const Node& reader, std::string_view blob,
                                  const SourceLimits& limits) {
  BlobReader in(blob);
  ListedHead head;
  RETURN_IF_ERROR(NextHead(reader, &in, &head));
  Listing listing;
  ListedFiles part;
  while (!in.done()) {
    RETURN_IF_ERROR(in.Next(&part));
    if (part.files_size() != part.labels_size())
      return DataLoss("{} labels of {} files", part.labels_size(),
                      part.files_size());
    if (listing.labels.size() + static_cast<size_t>(part.files_size()) >
        limits.max_files)
      return ResourceExhausted("it lists more than {} files: the limit",
                               limits.max_files);
    for (int i = 0; i < part.files_size(); ++i) {
      const IndexedFile& file = part.files(i);
      RETURN_IF_ERROR(CheckListedSize(file));
      RETURN_IF_ERROR(listing.Add(file.name(), file.bytes(), file.identity(),
                                  part.labels(i)));
    }
  }
  if (listing.labels.empty()) return DataLoss("it lists no files");
  listing.files.ShrinkToFit();
  listing.labels.shrink_to_fit();
  return listing;
}

absl::StatusOr<std::unique_ptr<Source>> OpenFileList(
    const Node& reader, std::string_view blob, const SourceLimits& limits) {
  absl::StatusOr<Listing> listing = ListingOf(reader, blob, limits);
  if (!listing.ok())
    return Annotate(listing.status(),
                    fmt::format("the index of {}", reader.op));
  ASSIGN_OR_RETURN(std::string root, TextArg(reader, "root"));
  listing->files.set_folder(std::move(root));
  const Digest fingerprint = listing->Fingerprint();
  return std::make_unique<FileListSource>(*std::move(listing), fingerprint,
                                          limits);
}

}  // namespace

const SourceFormat kFileListFormat = {"readers.file_list", BuildFileList,
                                      OpenFileList,
                                      /*in_blocks=*/true};
const SourceFormat kFilesFormat = {"readers.files", BuildFiles, OpenFileList};

}  // namespace leat::worker
