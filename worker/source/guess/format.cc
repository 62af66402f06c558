// SPDX-License-Identifier: Apache-2.0
#include "worker/source/guess/format.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>
#include <vector>

#include "core/redaction.h"
#include "core/status.h"
#include "worker/source/arrays/idx_file.h"
#include "worker/source/format_names.h"
#include "worker/source/lmdb/walker.h"
#include "worker/source/source_storage.h"
#include "worker/source/tfrecord/framing.h"
#include "worker/source/webdataset/tar.h"

namespace leat::worker {
namespace {

constexpr int kMaxLooked = 1000;        // entries of a folder
constexpr uint64_t kMaxGzip = 1 << 30;  // unpacked to recognise an idx file

// Files that people have datasets in, and that no reader takes.
struct ForeignRule {
  std::string_view magic, what;
};
constexpr ForeignRule kForeign[] = {
    {"PK\x03\x04", "a zip archive (.npz is one): unpack it"},
    {"\x1f\x8b", "a gzip file: unpack it (only idx is read gzipped)"},
    {"\x28\xb5\x2f\xfd", "a zstd file: unpack it"},
    {"\xfd\x37zXZ", "an xz file: unpack it"},
    {"BZh", "a bzip2 file: unpack it"},
    {"ARROW1", "an Arrow file: write it as Parquet"},
    {"\x89HDF\r\n\x1a\n", "an HDF5 file: no reader takes it"},
    {"SQLite format 3", "a SQLite database: no reader takes it"},
    {"\x80\x02}",
     "a Python pickle: no reader takes it (CIFAR is read in its "
     "binary form)"},
    {"%PDF-", "a PDF file: no reader takes it"},
    {"\x7f"
     "ELF",
     "a program: no reader takes it"}};

// The signature that a Riegeli/records file begins with, after its first
// block's header: an empty chunk of type 's'.
constexpr size_t kRiegeliBegin = 32, kRiegeliType = 48;
constexpr std::string_view kRiegeliSignature(
    "\0\0\0\0\0\0\0\0\xe1\x9f\x13\xc0\xe9\xb1\xc3\x72s", 17);
constexpr size_t kLmdbMagic = 16;  // its position
constexpr uint64_t kCifarImage = 3 * 32 * 32;

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns the file's first bytes, at most `most`.
absl::StatusOr<std::vector<std::byte>> HeadOf(const StorageFile& file,
                                              uint64_t most) {
  std::vector<std::byte> head(std::min(file.size(), most));
  RETURN_IF_ERROR(file.ReadAt(0, head));
  return head;
}

bool IsTarHeader(std::span<const std::byte> head) {
  if (head.size() < kTarBlock) return false;
  const auto block = head.first<kTarBlock>();
  if (std::all_of(block.begin(), block.end(),
                  [](std::byte b) { return b == std::byte{0}; }))
    return false;
  const absl::Status parsed = ParseTarHeader(block).status();
  return parsed.ok() || absl::IsUnimplemented(parsed);
}

bool IsTfrecordHeader(std::span<const std::byte> head) {
  if (head.size() < kTfrecordHeader) return false;
  uint32_t sum = 0;
  std::memcpy(&sum, head.data() + 8, sizeof sum);
  return sum == MaskedCrc32c(head.first(8));
}

// True if each complete record in `head` begins with labels in their range.
bool FitsCifar(std::span<const std::byte> head, uint64_t size,
               std::span<const int> last) {
  const uint64_t record = last.size() + kCifarImage;
  if (size == 0 || size % record != 0) return false;
  for (size_t at = 0; at + record <= head.size(); at += record)
    for (size_t i = 0; i < last.size(); ++i)
      if (static_cast<int>(head[at + i]) > last[i]) return false;
  return true;
}

bool Exists(const Storage& storage, std::string_view folder,
            std::string_view name) {
  return storage.Stat(JoinUri(folder, name)).ok();
}

// Returns the names of a local folder's files, in order, without those that
// begin with a dot.
std::vector<std::string> FilesIn(const std::string& uri,
                                 const Storage& storage) {
  std::vector<std::string> names;
  const absl::StatusOr<StorageUri> parsed = ParseUri(uri);
  if (!parsed.ok()) return names;
  const std::string folder = storage.LocalPath(parsed->path);
  std::error_code error;
  int looked = 0;
  for (auto it = std::filesystem::directory_iterator(folder, error);
       !error && it != std::filesystem::directory_iterator() &&
       looked < kMaxLooked;
       it.increment(error), ++looked) {
    std::error_code gone;
    std::string name = it->path().filename().string();
    if (!name.starts_with('.') && it->is_regular_file(gone))
      names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Returns the format that most of the files have by their names.
std::string FormatOfNames(const std::vector<std::string>& names) {
  std::map<std::string, int> counts;
  for (const std::string& name : names) {
    const std::string format = FormatOfName(name);
    if (!format.empty() && format != "file_list" && format != "coco")
      ++counts[format];
  }
  const auto most = std::max_element(
      counts.begin(), counts.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? "" : most->first;
}

// MNIST's folder has two idx files of images: those of the training come last
// by name.
std::string IdxOf(const std::vector<std::string>& names) {
  std::string images;
  for (const std::string& name : names)
    if (FormatOfName(name) == "idx") images = name;
  return images;
}

// Handles files whose names reveal nothing: all are assumed to be like the
// first.
FolderFormat FormatOfNameless(const std::string& uri,
                              const std::vector<std::string>& names,
                              const SourceLimits& limits) {
  FolderFormat found{"", uri};
  const auto file = StorageOf(limits).Open(JoinUri(uri, names.front()));
  if (!file.ok() || IsPattern(uri)) return found;
  const absl::StatusOr<std::string> format = FormatOfBytes(**file);
  // JoinUri would escape the pattern in a file:// URI.
  const std::string all = uri + (uri.ends_with('/') ? "*" : "/*");
  for (const char* each : {"webdataset", "tfrecord", "parquet", "array_record"})
    if (format.ok() && *format == each) found = {*format, all};
  return found;
}

}  // namespace

absl::StatusOr<std::string> FormatOfBytes(const StorageFile& file) {
  ASSIGN_OR_RETURN(const auto head, HeadOf(file, kTarBlock));
  const std::string_view text = TextOf(head);
  if (text.starts_with("PAR1")) return "parquet";
  if (text.starts_with("\x93NUMPY")) return "numpy";
  if (text.size() > kLmdbMagic + 4 &&
      text.substr(kLmdbMagic, 4) == "\xde\xc0\xef\xbe")
    return "caffe2";
  if (text.size() > kRiegeliType &&
      text.substr(kRiegeliBegin, kRiegeliSignature.size()) == kRiegeliSignature)
    return "array_record";
  if (IsTarHeader(head)) return "webdataset";
  if (IsTfrecordHeader(head)) return "tfrecord";
  if (text.starts_with("\x1f\x8b")) {
    // A download that was cut off is of its name's kind: the listing says where
    // it ends.
    if (FormatOfName(file.name()) == "idx") return "idx";
    SourceLimits limits;
    limits.max_unpacked_bytes = kMaxGzip;
    if (InspectIdx(file, limits).ok()) return "idx";
  }
  if (LooksLikeImage(head)) return "files";
  for (const ForeignRule& rule : kForeign)
    if (text.starts_with(rule.magic))
      return InvalidArgument("{}: it is {}", file.name(), rule.what);
  return "";
}

absl::StatusOr<std::string> FormatOfLength(const StorageFile& file) {
  static constexpr std::array<int, 1> kCifar10 = {9};
  static constexpr std::array<int, 2> kCifar100 = {19, 99};
  ASSIGN_OR_RETURN(const auto head, HeadOf(file, 8 * (2 + kCifarImage)));
  const auto idx = ParseIdxHeader(
      std::span(head).first(std::min(head.size(), kMaxIdxHead)), file.name());
  if (idx.ok() && idx->header_bytes() + idx->payload_bytes() == file.size())
    return "idx";
  if (FitsCifar(head, file.size(), kCifar10)) return "cifar10";
  if (FitsCifar(head, file.size(), kCifar100)) return "cifar100";
  return "";
}

absl::StatusOr<FolderFormat> FormatOfFolder(const std::string& uri,
                                            const SourceLimits& limits) {
  const Storage& storage = StorageOf(limits);
  if (Exists(storage, uri, "index.json")) return FolderFormat{"mds", uri};
  if (Exists(storage, uri, "data.mdb")) {
    ASSIGN_OR_RETURN(std::string format,
                     FormatOfLmdb(JoinUri(uri, "data.mdb"), limits));
    return FolderFormat{std::move(format), uri};
  }
  if (!IsLocalUri(uri)) return FolderFormat{"image_folder", uri};
  if (Exists(storage, uri, "train.bin") &&
      Exists(storage, uri, "fine_label_names.txt"))
    return FolderFormat{"cifar100", uri};
  const std::vector<std::string> names = FilesIn(uri, storage);
  FolderFormat found{FormatOfNames(names), uri};
  if (found.format == "idx") found.uri = JoinUri(uri, IdxOf(names));
  if (found.format.empty() && !names.empty())
    found = FormatOfNameless(uri, names, limits);
  if (found.format.empty()) found.format = "image_folder";
  return found;
}

absl::StatusOr<std::string> FormatOfLmdb(const std::string& uri,
                                         const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const auto file, StorageOf(limits).Open(uri));
  ASSIGN_OR_RETURN(const LmdbListing listing, ListLmdb(*file, limits));
  if (listing.values.empty() || listing.values.front().bytes == 0)
    return "caffe2";
  // TensorProtos begins with its first field, a message; Datum's is a number.
  std::byte tag{};
  RETURN_IF_ERROR(file->ReadAt(listing.values.front().offset, {&tag, 1}));
  return tag == std::byte{0x0a} ? "caffe2" : "caffe";
}

bool LooksLikeImage(std::span<const std::byte> bytes) {
  using namespace std::string_view_literals;
  const std::string_view text = TextOf(bytes);
  const std::string_view head = text.substr(0, 12);
  for (const std::string_view magic :
       {"\xff\xd8\xff"sv, "\x89PNG\r\n\x1a\n"sv, "II*\0"sv, "MM\0*"sv,
        "\xff\x4f\xff\x51"sv, "\0\0\0\x0cjP  \r\n\x87\n"sv})
    if (head.starts_with(magic)) return true;
  // A bitmap's size is followed by four bytes of zeros.
  if (head.starts_with("BM") && head.size() >= 10)
    return head.substr(6, 4) == "\0\0\0\0"sv;
  return head.starts_with("RIFF") && head.size() == 12 &&
         head.substr(8) == "WEBP";
}

}  // namespace leat::worker
