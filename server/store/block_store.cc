// SPDX-License-Identifier: Apache-2.0
#include "server/store/block_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "core/fd.h"
#include "core/status.h"
#include "server/store/state_directory.h"

namespace leat::server {
namespace {

constexpr std::string_view kTemporary = ".tmp";

timespec SpecOf(WallTime time) {
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                      time.time_since_epoch())
                      .count();
  return {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
}

// Returns false if this is not a block's file.
bool ParseName(std::string_view text, Digest* name) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
  };
  if (text.size() != 2 * name->size()) return false;
  for (size_t i = 0; i < name->size(); ++i) {
    const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    (*name)[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return true;
}

absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& directory) {
  DIR* const dir = opendir(directory.c_str());
  if (dir == nullptr)
    return ErrnoStatus(errno, fmt::format("cannot list {}", directory));
  std::vector<std::string> names;
  while (const dirent* entry = readdir(dir)) names.emplace_back(entry->d_name);
  closedir(dir);
  return names;
}

// kDataLoss: the disk fails to return a part of it.
absl::StatusOr<Digest> HashOfFile(int fd, const std::string& path) {
  Sha256 hash;
  std::string bytes(64 << 10, '\0');
  while (true) {
    const ssize_t got = read(fd, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EIO)
      return DataLoss("the disk fails to read {}: it is removed", path);
    if (got < 0) return ErrnoStatus(errno, fmt::format("cannot read {}", path));
    if (got == 0) return hash.Finish();
    hash.Update(std::string_view(bytes.data(), static_cast<size_t>(got)));
  }
}

}  // namespace

absl::Status MemoryBlocks::Put(const Digest& name, std::string_view bytes,
                               WallTime now) {
  auto copy = std::make_shared<const std::string>(bytes);
  MutexLock lock(&mu_);
  if (const auto it = blocks_.find(name); it != blocks_.end()) {
    it->second.used_at = now;
    return absl::OkStatus();
  }
  if (bytes.size() > max_bytes_ - bytes_)
    return ResourceExhausted(
        "a block of {} bytes beside {} bytes of indexes in memory: the limit "
        "is {}; give the coordinator a state directory",
        bytes.size(), bytes_, max_bytes_);
  bytes_ += bytes.size();
  blocks_[name] = {.bytes = std::move(copy), .used_at = now};
  return absl::OkStatus();
}

absl::Status MemoryBlocks::Find(const Digest& name, uint64_t bytes,
                                WallTime now) {
  MutexLock lock(&mu_);
  const auto it = blocks_.find(name);
  if (it == blocks_.end() || it->second.bytes->size() != bytes)
    return NotFound("there is no block {} of {} bytes", ToHex(name), bytes);
  it->second.used_at = now;
  return absl::OkStatus();
}

absl::Status MemoryBlocks::Check(const Digest& name, bool /*again*/) {
  MutexLock lock(&mu_);
  if (blocks_.contains(name)) return absl::OkStatus();
  return NotFound("there is no block {}", ToHex(name));
}

absl::StatusOr<std::string> MemoryBlocks::Read(const Digest& name,
                                               uint64_t offset, size_t most) {
  std::shared_ptr<const std::string> bytes;
  {
    MutexLock lock(&mu_);
    const auto it = blocks_.find(name);
    if (it == blocks_.end())
      return NotFound("there is no block {}", ToHex(name));
    bytes = it->second.bytes;
  }
  return bytes->substr(std::min<uint64_t>(offset, bytes->size()), most);
}

absl::StatusOr<uint64_t> MemoryBlocks::Collect(const std::set<Digest>& live,
                                               WallTime before) {
  MutexLock lock(&mu_);
  return std::erase_if(blocks_, [&](const auto& entry) {
    mu_.AssertHeld();
    if (live.contains(entry.first) || entry.second.used_at >= before)
      return false;
    bytes_ -= entry.second.bytes->size();
    return true;
  });
}

absl::StatusOr<std::unique_ptr<FileBlocks>> FileBlocks::Open(
    std::string directory) {
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    return ErrnoStatus(errno, fmt::format("cannot make {}", directory));
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return ErrnoStatus(errno, fmt::format("cannot open {}", directory));
  std::unique_ptr<FileBlocks> blocks(new FileBlocks(std::move(directory), fd));
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   NamesIn(blocks->directory_));
  for (const std::string& name : names)
    if (name.ends_with(kTemporary)) unlinkat(fd, name.c_str(), 0);
  return blocks;
}

FileBlocks::~FileBlocks() { close(fd_); }

std::string FileBlocks::PathOf(const Digest& name) const {
  return fmt::format("{}/{}", directory_, ToHex(name));
}

std::string FileBlocks::TemporaryOf(const std::string& path) {
  return fmt::format("{}.{}{}", path, ++next_temporary_, kTemporary);
}

void FileBlocks::Note(const Digest& name, bool sound) {
  MutexLock lock(&mu_);
  if (sound)
    sound_.insert(name);
  else
    sound_.erase(name);
}

absl::Status FileBlocks::Write(int fd, const std::string& path,
                               std::string_view bytes, WallTime now) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      return ErrnoStatus(errno, fmt::format("cannot write {}", path));
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  const timespec times[2] = {SpecOf(now), SpecOf(now)};
  if (futimens(fd, times) != 0 || fsync(fd) != 0)
    return ErrnoStatus(errno, fmt::format("cannot write {}", path));
  return absl::OkStatus();
}

absl::Status FileBlocks::Put(const Digest& name, std::string_view bytes,
                             WallTime now) {
  const std::string path = PathOf(name);
  const std::string temporary = TemporaryOf(path);
  const int fd =
      open(temporary.c_str(),
           O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0)
    return ErrnoStatus(errno, fmt::format("cannot make {}", temporary));
  absl::Status status = Write(fd, temporary, bytes, now);
  close(fd);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0)
    status = ErrnoStatus(errno, fmt::format("cannot make {}", path));
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  if (fsync(fd_) != 0)
    return ErrnoStatus(errno, fmt::format("cannot write {}", directory_));
  Note(name, /*sound=*/true);
  return absl::OkStatus();
}

absl::Status FileBlocks::Find(const Digest& name, uint64_t bytes,
                              WallTime now) {
  RETURN_IF_ERROR(Check(name, /*again=*/false));
  const std::string path = PathOf(name);
  struct stat info;
  if (lstat(path.c_str(), &info) != 0)
    return ErrnoStatus(errno, fmt::format("cannot look at {}", path));
  if (static_cast<uint64_t>(info.st_size) != bytes) {
    RETURN_IF_ERROR(Check(name, /*again=*/true));
    return NotFound("block {} has {} bytes: want {}", path, info.st_size,
                    bytes);
  }
  const timespec times[2] = {SpecOf(now), SpecOf(now)};
  if (utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0)
    return ErrnoStatus(errno, fmt::format("cannot keep {}", path));
  return absl::OkStatus();
}

absl::Status FileBlocks::Check(const Digest& name, bool again) {
  if (!again) {
    MutexLock lock(&mu_);
    if (sound_.contains(name)) return absl::OkStatus();
  }
  const std::string path = PathOf(name);
  const int fd =
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) {
    const int error = errno;
    Note(name, /*sound=*/false);
    if (error == ENOENT) return NotFound("there is no block {}", path);
    return ErrnoStatus(error, fmt::format("cannot open {}", path));
  }
  struct stat info {};
  fstat(fd, &info);
  const absl::StatusOr<Digest> hash = HashOfFile(fd, path);
  close(fd);
  const bool sound = hash.ok() && *hash == name;
  Note(name, sound);
  if (sound) return absl::OkStatus();
  if (hash.ok() || absl::IsDataLoss(hash.status()))
    RETURN_IF_ERROR(Remove(path, info.st_ino));
  RETURN_IF_ERROR(hash.status());
  return DataLoss(
      "{}, of {} bytes, is damaged, since its name is not its hash: it is "
      "removed",
      path, info.st_size);
}

// Another thread may have written the block again meanwhile. The file is
// therefore moved to another name, which no thread writes, checked there, and
// put back if it is not the damaged one.
absl::Status FileBlocks::Remove(const std::string& path, uint64_t inode) {
  const std::string away = TemporaryOf(path);
  if (rename(path.c_str(), away.c_str()) != 0)
    return errno == ENOENT
               ? absl::OkStatus()
               : ErrnoStatus(errno, fmt::format("cannot remove {}", path));
  struct stat info {};
  if (lstat(away.c_str(), &info) == 0 && info.st_ino != inode) {
    if (rename(away.c_str(), path.c_str()) == 0) return absl::OkStatus();
  } else if (unlink(away.c_str()) == 0) {
    return absl::OkStatus();
  }
  return ErrnoStatus(errno, fmt::format("cannot remove {}", path));
}

// Memory is for the bytes that are there: most blocks are far smaller than what
// may be read at once.
absl::StatusOr<std::string> FileBlocks::Read(const Digest& name,
                                             uint64_t offset, size_t most) {
  const std::string path = PathOf(name);
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.open() && errno == ENOENT)
    return NotFound("there is no block {}", path);
  if (!fd.open())
    return ErrnoStatus(errno, fmt::format("cannot open {}", path));
  struct stat info {};
  if (fstat(fd.get(), &info) != 0)
    return ErrnoStatus(errno, fmt::format("cannot look at {}", path));
  const auto size = static_cast<uint64_t>(info.st_size);
  std::string bytes(std::min<uint64_t>(most, size - std::min(size, offset)),
                    '\0');
  size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t read = pread(fd.get(), bytes.data() + got, bytes.size() - got,
                               static_cast<off_t>(offset + got));
    if (read < 0 && errno == EINTR) continue;
    if (read < 0)
      return ErrnoStatus(errno, fmt::format("cannot read {}", path));
    if (read == 0) break;
    got += static_cast<size_t>(read);
  }
  bytes.resize(got);
  return bytes;
}

absl::StatusOr<uint64_t> FileBlocks::Collect(const std::set<Digest>& live,
                                             WallTime before) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(directory_));
  uint64_t removed = 0;
  for (const std::string& text : names) {
    Digest name;
    struct stat info;
    if (!ParseName(text, &name) || live.contains(name) ||
        fstatat(fd_, text.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    const auto used_at = std::chrono::seconds(info.st_mtim.tv_sec) +
                         std::chrono::nanoseconds(info.st_mtim.tv_nsec);
    if (used_at >= before.time_since_epoch()) continue;
    if (unlinkat(fd_, text.c_str(), 0) != 0)
      return ErrnoStatus(errno,
                         fmt::format("cannot remove {}/{}", directory_, text));
    Note(name, /*sound=*/false);
    ++removed;
  }
  return removed;
}

}  // namespace leat::server
