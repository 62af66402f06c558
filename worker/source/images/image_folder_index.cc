// SPDX-License-Identifier: Apache-2.0
#include "worker/source/images/image_folder_index.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "core/status.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/wire_format_lite.h"
#include "worker/source/content_hash.h"
#include "worker/source/file_set.h"
#include "worker/source/index_blob.h"
#include "worker/source/storage/base/uri.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::ArrayInputStream;
using google::protobuf::io::CodedInputStream;
using stored::v1::ImageFile;
using stored::v1::ImageFolderClass;

constexpr std::string_view kExtensions[] = {
    "jpg", "jpeg", "jpe", "png", "webp", "bmp", "tif", "tiff", "jp2", "j2k"};
// Formats that people take for images, and no worker decodes.
constexpr std::pair<std::string_view, std::string_view> kUnreadFormats[] = {
    {".heic", "HEIC"}, {".heif", "HEIC"},   {".avif", "AVIF"}, {".gif", "GIF"},
    {".jfif", "JFIF"}, {".jxl", "JPEG XL"}, {".ppm", "PPM"},   {".svg", "SVG"}};
constexpr std::string_view kWanted =
    "*.jpg, *.jpeg, *.jpe, *.png, *.webp, *.bmp, *.tif, *.tiff, *.jp2, *.j2k";

}  // namespace

absl::StatusOr<ImageFolderOptions> ImageFolderOptionsOf(const Node& reader) {
  ImageFolderOptions options;
  const auto path = reader.args.find("path");
  const std::string* const text = path == reader.args.end()
                                      ? nullptr
                                      : std::get_if<std::string>(&path->second);
  if (text == nullptr || text->empty() || text->find('\0') != std::string::npos)
    return InvalidArgument("readers.image_folder: path: want a directory");
  options.path = *text;
  if (text->find("://") != std::string::npos) {
    ASSIGN_OR_RETURN(StorageUri uri, ParseUri(*text));
    if (uri.scheme == UriScheme::kLocal) options.path = std::move(uri.path);
  }
  if (const auto repeat = reader.args.find("repeat");
      repeat != reader.args.end()) {
    const int64_t* const value = std::get_if<int64_t>(&repeat->second);
    if (value == nullptr || *value < 1)
      return InvalidArgument(
          "readers.image_folder: repeat: want a whole number of at least 1");
    options.repeat = static_cast<uint64_t>(*value);
  }
  if (const auto hidden = reader.args.find("hidden");
      hidden != reader.args.end()) {
    const bool* const value = std::get_if<bool>(&hidden->second);
    if (value == nullptr)
      return InvalidArgument(
          "readers.image_folder: hidden: want true or false");
    options.hidden = *value;
  }
  return options;
}

ListingHash::ListingHash(std::string_view root, uint64_t repeat)
    : remote_(!IsLocalUri(root)) {
  hash_.UpdateField(remote_ ? "leat.image_folder.remote.1"
                            : "leat.image_folder.1");
  hash_.UpdateField(root).UpdateU64(repeat);
}

void ListingHash::AddClass(const stored::v1::ImageFolderClass& each) {
  if (each.first() == 0) {
    hash_.UpdateField(each.directory());
    hash_.UpdateU64(each.total() != 0
                        ? each.total()
                        : static_cast<uint64_t>(each.files_size()));
  }
  for (const stored::v1::ImageFile& file : each.files()) {
    hash_.UpdateField(file.name()).UpdateU64(file.bytes());
    if (remote_)
      hash_.UpdateField(file.identity());
    else
      hash_.UpdateU64(static_cast<uint64_t>(file.modified_ns()));
  }
}

StoredSample WithLabel(std::shared_ptr<std::byte[]> bytes, uint64_t size,
                       int32_t label) {
  std::memcpy(bytes.get() + size, &label, sizeof label);
  StoredSample stored;
  stored.fields.resize(2);
  stored.fields[0].bytes = std::span(bytes.get(), size);
  stored.fields[1].bytes = std::span(bytes.get() + size, sizeof label);
  stored.owner = std::move(bytes);
  return stored;
}

std::string WithoutTrailingSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool IsImageName(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string extension(name.substr(dot + 1));
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return std::find(std::begin(kExtensions), std::end(kExtensions), extension) !=
         std::end(kExtensions);
}

absl::Status CheckImageName(const std::string& path, std::string_view name) {
  return Annotate(CheckName(name), path);
}

void CountNoImage(std::string_view name, std::string_view where,
                  PassedOverCounts* counts) {
  if (name.starts_with('.')) return;
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos)
    return counts->Add("files without an extension", where);
  std::string extension(name.substr(dot));
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const auto& [known, format] : kUnreadFormats)
    if (extension == known)
      return counts->Add(fmt::format("{} images ({})", format, extension),
                         where);
  counts->Add(fmt::format("files {}", extension), where);
}

absl::Status NoImages(std::string_view root, const PassedOverCounts& counts) {
  constexpr size_t kMostShown = 4;
  std::string there;
  size_t shown = 0;
  for (const PassedOver& each : counts.Take())
    if (shown++ < kMostShown)
      there += fmt::format("{} {} {}", there.empty() ? "; there are" : ",",
                           each.count, each.what);
  return NotFound(
      "{}: no images in it or in its sub-directories (looked for {}{})",
      RedactedUri(root), kWanted, there);
}

void CountClasses(const std::vector<ListedClass>& classes,
                  const FolderFiles& unclassified, PassedOverCounts* counts) {
  for (const ListedClass& each : classes)
    if (each.files.empty())
      counts->Add("classes without an image", each.directory);
  if (!unclassified.empty())
    counts->Add("images beside the directories of classes",
                unclassified[0].name, unclassified.size());
}

namespace {

void SetFile(const FolderFile& file, ImageFile* proto) {
  proto->set_name(std::string(file.name));
  proto->set_bytes(file.bytes);
  proto->set_modified_ns(file.modified_ns);
  proto->set_identity(std::string(file.identity));
}

// Adds a class, into blocks in parts. Concatenated messages are merged
// messages: one class, or part, after the other.
absl::Status AddClass(const ListedClass& each, int32_t label,
                      const SourceLimits& limits, ListingHash* hash,
                      ContentHash* content, IndexBytes* bytes) {
  constexpr size_t kFilesAPartOfAClass = 1024;
  const size_t total = each.files.size();
  const size_t most =
      limits.blocks == nullptr
          ? std::max<size_t>(total, 1)
          : std::clamp<size_t>(limits.block_bytes / 64, 1, kFilesAPartOfAClass);
  content->AddText(each.directory).AddNumber(total);
  for (size_t i = 0; i < total; ++i)
    content->AddFile(each.files[i].name, each.files[i].bytes);
  size_t first = 0;
  do {
    const size_t end = std::min(first + most, total);
    stored::v1::ImageFolderIndex part;
    stored::v1::ImageFolderClass& proto = *part.add_classes();
    proto.set_directory(each.directory);
    proto.set_label(label);
    if (end - first < total) {
      proto.set_first(first);
      proto.set_total(total);
    }
    proto.mutable_files()->Reserve(static_cast<int>(end - first));
    for (size_t i = first; i < end; ++i)
      SetFile(each.files[i], proto.add_files());
    hash->AddClass(proto);
    std::string text;
    if (!part.SerializeToString(&text))
      return ResourceExhausted("a class of {} images is over {} bytes", total,
                               std::numeric_limits<int>::max());
    RETURN_IF_ERROR(bytes->Add(text, end - first));
    first = end;
  } while (first < total);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BuiltIndex> AssembleImageFolder(
    const ImageFolderOptions& options, const std::string& root,
    std::vector<ListedClass> classes, const SourceLimits& limits) {
  BuiltIndex index;
  uint64_t files = 0;
  stored::v1::ImageFolderIndex head;
  head.set_root(root);
  head.set_repeat(options.repeat);
  IndexBytes bytes(limits);
  RETURN_IF_ERROR(bytes.Add(head.SerializeAsString(), 0));
  ListingHash hash(root, options.repeat);
  ContentHash content("image_folder", {});
  content.AddNumber(options.repeat);
  for (ListedClass& listed : classes) {
    const ListedClass each = std::move(listed);  // frees it at the end
    for (size_t i = 0; i < each.files.size(); ++i)
      index.bytes += each.files[i].bytes;
    files += each.files.size();
    index.classes.push_back(each.directory);
    index.groups.push_back({each.directory, each.files.size()});
    if (const absl::Status added =
            AddClass(each, static_cast<int32_t>(index.classes.size() - 1),
                     limits, &hash, &content, &bytes);
        !added.ok())
      return Annotate(added, fmt::format("{}: {} images", root, files));
  }
  // A class that comes again and again is not one run.
  if (options.repeat > 1 || index.groups.size() > kMaxGroups)
    index.groups.clear();
  if (files > kMaxSamples / options.repeat)
    return InvalidArgument("repeat {} of {} images: want at most 2^48 samples",
                           options.repeat, files);
  ASSIGN_OR_RETURN(index.blob, bytes.Finish());
  const uint64_t samples = files * options.repeat;
  ASSIGN_OR_RETURN(
      index.shards,
      ShardTable::Uniform(samples, ShardTable::DefaultShardSize(samples)));
  index.fingerprint = hash.Finish();
  content.Finish(&index);
  return index;
}

// Reads one class at a time, so that the whole listing never exists as
// messages.
absl::StatusOr<Digest> ReadImageFolderIndex(
    const ImageFolderOptions& options, std::string_view blob,
    const SourceLimits& limits,
    const std::function<absl::Status(const ImageFolderClass&)>& add) {
  const std::string wanted_root = WithoutTrailingSlashes(options.path);
  ListingHash hash(wanted_root, options.repeat);
  std::string root;
  uint64_t repeat = 1;
  uint64_t files = 0;
  if (blob.size() > limits.max_index_bytes ||
      blob.size() > std::numeric_limits<int>::max())
    return ResourceExhausted("an index of {} bytes: the limit is {}",
                             blob.size(), limits.max_index_bytes);
  const absl::Status malformed = DataLoss("the index is malformed");
  ArrayInputStream array(blob.data(), static_cast<int>(blob.size()));
  CodedInputStream input(&array);
  input.SetTotalBytesLimit(std::numeric_limits<int>::max());
  while (const uint32_t tag = input.ReadTag()) {
    uint32_t length = 0;
    switch (WireFormatLite::GetTagFieldNumber(tag)) {
      case stored::v1::ImageFolderIndex::kRootFieldNumber:
        if (!input.ReadVarint32(&length) ||
            !input.ReadString(&root, static_cast<int>(length)))
          return malformed;
        break;
      case stored::v1::ImageFolderIndex::kClassesFieldNumber: {
        if (!input.ReadVarint32(&length) ||
            length > blob.size() - static_cast<size_t>(input.CurrentPosition()))
          return malformed;
        const auto limit = input.PushLimit(static_cast<int>(length));
        ImageFolderClass proto;
        if (!proto.MergeFromCodedStream(&input) ||
            !input.ConsumedEntireMessage())
          return malformed;
        input.PopLimit(limit);
        hash.AddClass(proto);
        files += static_cast<uint64_t>(proto.files_size());
        RETURN_IF_ERROR(add(proto));
        break;
      }
      case stored::v1::ImageFolderIndex::kRepeatFieldNumber:
        if (!input.ReadVarint64(&repeat)) return malformed;
        break;
      default:
        if (!WireFormatLite::SkipField(&input, tag)) return malformed;
    }
  }
  if (!input.ConsumedEntireMessage()) return malformed;
  if (root != wanted_root || repeat != options.repeat)
    return DataLoss("it is of another reader: {} repeated {} times",
                    RedactedUri(root), repeat);
  if (files == 0) return DataLoss("it lists no files");
  if (repeat == 0 || files > kMaxSamples / repeat)
    return DataLoss("the index has repeat {} for {} files", repeat, files);
  return hash.Finish();
}

}  // namespace leat::worker
