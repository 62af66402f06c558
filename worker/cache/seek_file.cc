// SPDX-License-Identifier: Apache-2.0
#include "worker/cache/seek_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/crc32c.h"
#include "core/fd.h"
#include "core/status.h"
#include "worker/cache/read_form.h"
#include "worker/source/disk_cache/segment.h"
#include "worker/source/faults/file_error.h"
#include "worker/source/source.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {
namespace {

constexpr char kMagic[8] = {'L', 'e', 'a', 't', 'S', 'e', 'e', 'k'};
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 64, kSumAt = 56, kPlaceBytes = 8;
// A seek index takes 10 bytes per 16 MCUs, so no image that is decoded has one
// of this size.
constexpr uint64_t kMaxFormBytes = 16 << 20;
constexpr uint64_t kMaxRecords = uint64_t{1} << 40;
constexpr size_t kNameBytes = 8;  // of the fingerprint
constexpr uint64_t kPaddedAtOnce = 4096;
constexpr mode_t kMode = 0644;

template <class Number>
void Store(Number number, std::byte* to) {
  for (size_t i = 0; i < sizeof number; ++i)
    to[i] = static_cast<std::byte>(number >> (8 * i));
}
template <class Number>
Number Load(const std::byte* from) {
  Number number = 0;
  for (size_t i = sizeof number; i-- > 0;)
    number = static_cast<Number>(number << 8 | static_cast<Number>(from[i]));
  return number;
}

std::vector<std::byte> HeaderOf(const Digest& fingerprint, uint64_t records,
                                uint32_t form_version) {
  std::vector<std::byte> header(kHeaderBytes);
  std::memcpy(header.data(), kMagic, sizeof kMagic);
  Store(kVersion, &header[8]);
  Store(form_version, &header[12]);
  Store(records, &header[16]);
  std::memcpy(&header[24], fingerprint.data(), fingerprint.size());
  Store(Crc32c(std::span<const std::byte>(header.data(), kSumAt)),
        &header[kSumAt]);
  return header;
}

uint64_t FormsBegin(uint64_t records) {
  return kHeaderBytes + kPlaceBytes * (records + 1);
}

// Returns the file opened, locked and empty. Uses a file that a killed process
// has left, so that such files do not accumulate.
absl::StatusOr<int> OpenUnfinished(const std::string& path) {
  const int fd =
      open(path.c_str(),
           O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kMode);
  if (fd < 0) return FileError(errno, "create", path);
  struct stat opened, there;
  absl::Status status;
  // The process that had the lock may have finished since `open`: then this is
  // its finished file, which must not be emptied.
  if (flock(fd, LOCK_EX | LOCK_NB) != 0 || fstat(fd, &opened) != 0 ||
      stat(path.c_str(), &there) != 0 || opened.st_ino != there.st_ino)
    status = FailedPrecondition(
        "{}: another process is writing it; try again when it has ended", path);
  else if (ftruncate(fd, 0) != 0)
    status = FileError(errno, "truncate", path);
  if (status.ok()) return fd;
  close(fd);
  return status;
}

// Like open(2), limited to files that may be read.
absl::Status OpenAllowed(const AllowedReads* allowed, const std::string& path,
                         int flags, int* fd) {
  if (allowed != nullptr) return allowed->Open(path, flags, path, fd);
  *fd = open(path.c_str(), flags);
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> CheckHeader(std::span<const std::byte> header,
                                     const std::string& path,
                                     const Digest& fingerprint,
                                     uint16_t form_version) {
  if (std::memcmp(header.data(), kMagic, sizeof kMagic) != 0)
    return InvalidArgument("{}: not a seek index of leat index --seek", path);
  const auto version = Load<uint32_t>(&header[8]);
  const auto forms = Load<uint32_t>(&header[12]);
  if (version != kVersion || forms != form_version)
    return InvalidArgument(
        "{}: of version {}.{}, want {}.{}: run leat index --seek again", path,
        version, forms, kVersion, form_version);
  if (Load<uint32_t>(&header[kSumAt]) != Crc32c(header.first(kSumAt)))
    return DataLoss("{}: its header is damaged", path);
  if (std::memcmp(&header[24], fingerprint.data(), fingerprint.size()) != 0)
    return FailedPrecondition(
        "{}: of another dataset: run leat index --seek again", path);
  return Load<uint64_t>(&header[16]);
}

}  // namespace

std::string SeekFilePath(std::string root, const Digest& fingerprint,
                         const AllowedReads* allowed) {
  if (root.empty() || !IsLocalUri(root)) return "";
  int fd = -1;
  if (!OpenAllowed(allowed, root, O_PATH | O_CLOEXEC, &fd).ok()) return "";
  struct stat info;
  const bool is_file =
      fd >= 0 && fstat(fd, &info) == 0 && !S_ISDIR(info.st_mode);
  if (fd >= 0) close(fd);
  if (is_file) {
    const size_t slash = root.rfind('/');
    root = slash == std::string::npos ? "." : root.substr(0, slash);
  }
  return fmt::format("{}/.{}.leat-seek", root,
                     ToHex(std::span(fingerprint).first<kNameBytes>()));
}

absl::StatusOr<std::shared_ptr<const SeekFile>> SeekFile::Open(
    const std::string& path, const Digest& fingerprint, FormCodec codec,
    const AllowedReads* allowed, std::shared_ptr<OpenFileBudget> budget) {
  if (budget == nullptr) budget = std::make_shared<OpenFileBudget>(1);
  const std::shared_ptr<SeekFile> file(new SeekFile(
      path, fingerprint, std::move(codec), allowed, std::move(budget)));
  RETURN_IF_ERROR(
      file->share_.Get([&]() { return file->OpenNow(&file->records_); })
          .status());
  return file;
}

SeekFile::SeekFile(const std::string& path, const Digest& fingerprint,
                   FormCodec codec, const AllowedReads* allowed,
                   std::shared_ptr<OpenFileBudget> budget)
    : path_(path),
      fingerprint_(fingerprint),
      codec_(std::move(codec)),
      allowed_(allowed),
      share_(std::move(budget)) {}

absl::StatusOr<int> SeekFile::OpenNow(uint64_t* records) const {
  // The path is examined before it is opened: it need not be a regular file,
  // and a pipe or a device would react to being opened.
  int looked = -1;
  RETURN_IF_ERROR(
      OpenAllowed(allowed_, path_, O_PATH | O_NOFOLLOW | O_CLOEXEC, &looked));
  if (looked < 0) return FileError(errno, "open", path_);
  const Fd found(looked);
  struct stat info;
  if (fstat(looked, &info) != 0 || !S_ISREG(info.st_mode))
    return FailedPrecondition("{}: not a regular file", path_);
  Fd fd(open(fmt::format("/proc/self/fd/{}", looked).c_str(),
             O_RDONLY | O_CLOEXEC));
  if (!fd.open()) return FileError(errno, "open", path_);
  if (fstat(fd.get(), &info) != 0) return FileError(errno, "stat", path_);
  std::byte header[kHeaderBytes];
  if (!ReadFully(fd.get(), header, 0))
    return DataLoss("{}: {} bytes, shorter than a header", path_, info.st_size);
  ASSIGN_OR_RETURN(*records,
                   CheckHeader(header, path_, fingerprint_, codec_.version));
  const auto bytes = static_cast<uint64_t>(info.st_size);
  if (*records > kMaxRecords || bytes < FormsBegin(*records))
    return DataLoss("{}: {} bytes, too short for {} records", path_, bytes,
                    *records);
  bytes_ = bytes;
  return fd.Release();
}

absl::StatusOr<int> SeekFile::OpenAgain() const {
  uint64_t records = 0;
  ASSIGN_OR_RETURN(const int opened, OpenNow(&records));
  Fd fd(opened);
  if (records != records_)
    return FailedPrecondition("{}: of {} records, was of {}", path_, records,
                              records_);
  return fd.Release();
}

std::optional<std::vector<std::byte>> SeekFile::Read(uint64_t record) const {
  if (record >= records_) return std::nullopt;
  const auto use = share_.Get([this]() { return OpenAgain(); });
  if (!use.ok()) return std::nullopt;
  const int fd = use->fd();
  std::byte places[2 * kPlaceBytes];
  if (!ReadFully(fd, places, kHeaderBytes + kPlaceBytes * record))
    return std::nullopt;
  const auto begin = Load<uint64_t>(places);
  const auto end = Load<uint64_t>(places + kPlaceBytes);
  if (begin < FormsBegin(records_) || end <= begin || end > bytes_ ||
      end - begin > kMaxFormBytes)
    return std::nullopt;
  std::vector<std::byte> form(end - begin);
  if (!ReadFully(fd, form, begin)) return std::nullopt;
  return form;
}

void SeekFile::ReadFormOf(uint64_t record, StoredSample* sample) const {
  if (std::optional<std::vector<std::byte>> form = Read(record))
    AttachForm(codec_, JpegFormKind::kSeekIndex, *std::move(form),
               /*beside_dataset=*/true, sample);
}

absl::StatusOr<std::unique_ptr<SeekFileWriter>> SeekFileWriter::Create(
    const std::string& path, const Digest& fingerprint, uint64_t records,
    uint16_t form_version) {
  if (records > kMaxRecords)
    return InvalidArgument("{}: {} records, want at most {}", path, records,
                           kMaxRecords);
  std::string unfinished = path + ".new";
  ASSIGN_OR_RETURN(const int fd, OpenUnfinished(unfinished));
  return std::unique_ptr<SeekFileWriter>(new SeekFileWriter(
      path, std::move(unfinished), fd, fingerprint, records, form_version));
}

SeekFileWriter::SeekFileWriter(std::string path, std::string unfinished, int fd,
                               const Digest& fingerprint, uint64_t records,
                               uint16_t form_version)
    : path_(std::move(path)),
      unfinished_(std::move(unfinished)),
      fd_(fd),
      fingerprint_(fingerprint),
      records_(records),
      form_version_(form_version),
      end_(FormsBegin(records)) {}

SeekFileWriter::~SeekFileWriter() {
  // The file is removed while this process still holds its lock. After `close`
  // another writer could have locked the same file, and would lose it.
  if (!finished_) unlink(unfinished_.c_str());
  close(fd_);
}

absl::Status SeekFileWriter::Write(std::span<const std::byte> bytes,
                                   uint64_t at) const {
  while (!bytes.empty()) {
    const ssize_t put =
        pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0)
      return FileError(put == 0 ? EIO : errno, "write", unfinished_);
    bytes = bytes.subspan(static_cast<size_t>(put));
    at += static_cast<uint64_t>(put);
  }
  return absl::OkStatus();
}

absl::Status SeekFileWriter::Append(
    std::span<const std::vector<std::byte>> forms) {
  if (forms.size() > records_ - next_)
    return InvalidArgument("{}: more records than {}", path_, records_);
  std::vector<std::byte> places(kPlaceBytes * (forms.size() + 1)), all;
  uint64_t end = end_;
  for (size_t i = 0; i < forms.size(); ++i) {
    Store(end, &places[kPlaceBytes * i]);
    if (forms[i].size() > kMaxFormBytes) continue;
    all.insert(all.end(), forms[i].begin(), forms[i].end());
    end += forms[i].size();
  }
  Store(end, &places[kPlaceBytes * forms.size()]);
  RETURN_IF_ERROR(Write(all, end_));
  RETURN_IF_ERROR(Write(places, kHeaderBytes + kPlaceBytes * next_));
  next_ += forms.size();
  end_ = end;
  return absl::OkStatus();
}

absl::Status SeekFileWriter::Finish() {
  // This runs once even if no record is missing: it writes the last place.
  do {
    RETURN_IF_ERROR(Append(std::vector<std::vector<std::byte>>(
        std::min(kPaddedAtOnce, records_ - next_))));
  } while (next_ < records_);
  RETURN_IF_ERROR(Write(HeaderOf(fingerprint_, records_, form_version_), 0));
  if (fsync(fd_) != 0) return FileError(errno, "write", unfinished_);
  if (rename(unfinished_.c_str(), path_.c_str()) != 0)
    return FileError(errno, "rename to", path_);
  finished_ = true;
  return absl::OkStatus();
}

}  // namespace leat::worker
