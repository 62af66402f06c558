// SPDX-License-Identifier: Apache-2.0
#include "server/store/state_directory.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/crc32c.h"
#include "core/log.h"
#include "core/status.h"

namespace leat::server {
namespace {

constexpr size_t kSlotBytes = 64;
constexpr std::string_view kMagic = "LEATHW01";

std::string Encode(const HighWater& mark) {
  std::string slot(kMagic);
  for (int i = 0; i < 8; ++i)
    slot += static_cast<char>(mark.sequence >> (8 * i));
  slot += AsText(mark.hash);
  slot.resize(kSlotBytes - 4);
  const uint32_t crc = Crc32c(slot);
  for (int i = 0; i < 4; ++i) slot += static_cast<char>(crc >> (8 * i));
  return slot;
}

std::optional<HighWater> Decode(std::string_view slot) {
  if (slot.size() != kSlotBytes || slot.substr(0, 8) != kMagic) return {};
  HighWater mark;
  for (int i = 7; i >= 0; --i)
    mark.sequence = mark.sequence << 8 | static_cast<uint8_t>(slot[8 + i]);
  for (size_t i = 0; i < mark.hash.size(); ++i)
    mark.hash[i] = static_cast<uint8_t>(slot[16 + i]);
  if (Encode(mark) != slot) return {};
  return mark;
}

std::string ReadOwner(int fd) {
  char text[32] = {};
  const ssize_t bytes = pread(fd, text, sizeof text - 1, 0);
  std::string owner(text, bytes > 0 ? static_cast<size_t>(bytes) : 0);
  while (!owner.empty() && (owner.back() < '0' || owner.back() > '9'))
    owner.pop_back();
  return owner.empty() ? "unknown" : owner;
}

// A user who may write into the folder can put another state in its place, with
// access tokens of their own.
void WarnOfWriters(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return;
  const bool strange = found.st_uid != 0 && found.st_uid != geteuid();
  if (!strange && (found.st_mode & S_IWOTH) == 0) return;
  LOG_WARN(
      "state.replaceable path={} mode={:o} owner={} note=\"others can replace "
      "the state, and its access tokens: want a folder that only this user "
      "can write to\"",
      path, found.st_mode & 07777, found.st_uid);
}

}  // namespace

absl::Status ErrnoStatus(int error, const std::string& what) {
  absl::StatusCode code = absl::StatusCode::kInternal;
  if (error == EACCES || error == EPERM || error == EROFS)
    code = absl::StatusCode::kPermissionDenied;
  if (error == ENOENT) code = absl::StatusCode::kNotFound;
  if (error == ENOTDIR || error == EISDIR || error == ENAMETOOLONG ||
      error == ELOOP)
    code = absl::StatusCode::kInvalidArgument;
  if (error == ENOSPC || error == EDQUOT || error == EFBIG)
    code = absl::StatusCode::kResourceExhausted;
  return MakeStatus(code, "{}: {}", what, strerror(error));
}

StateDirectory::StateDirectory(std::string path, int lock_fd)
    : path_(std::move(path)), lock_fd_(lock_fd) {}

StateDirectory::StateDirectory(StateDirectory&& other) noexcept
    : path_(std::move(other.path_)),
      lock_fd_(std::exchange(other.lock_fd_, -1)),
      mark_fd_(std::exchange(other.mark_fd_, -1)),
      next_slot_(other.next_slot_) {}

StateDirectory::~StateDirectory() {
  if (mark_fd_ >= 0) close(mark_fd_);
  if (lock_fd_ >= 0) close(lock_fd_);
}

absl::StatusOr<StateDirectory> StateDirectory::Open(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return ErrnoStatus(errno,
                       fmt::format("cannot make state directory {}", path));
  const std::string lock = path + "/lock";
  const int fd =
      open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0)
    return ErrnoStatus(errno,
                       fmt::format("cannot write state directory {}", path));
  StateDirectory directory(path, fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK)
      return ErrnoStatus(errno, fmt::format("cannot lock {}", lock));
    return FailedPrecondition(
        "state directory {} is in use by process {} (lock file {}); stop that "
        "coordinator, or give this one another --state",
        path, ReadOwner(fd), lock);
  }
  const std::string pid = fmt::format("{}\n", getpid());
  if (ftruncate(fd, 0) != 0 ||
      pwrite(fd, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size()))
    return ErrnoStatus(errno, fmt::format("cannot write {}", lock));
  WarnOfWriters(path);
  return directory;
}

absl::StatusOr<std::optional<HighWater>> StateDirectory::ReadHighWater() {
  const std::string path = path_ + "/high-water";
  if (mark_fd_ < 0)
    mark_fd_ = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (mark_fd_ < 0 && errno == ENOENT) return std::optional<HighWater>();
  if (mark_fd_ < 0)
    return ErrnoStatus(errno, fmt::format("cannot open {}", path));
  std::string slots(2 * kSlotBytes, '\0');
  const ssize_t bytes = pread(mark_fd_, slots.data(), slots.size(), 0);
  if (bytes < 0) return ErrnoStatus(errno, fmt::format("cannot read {}", path));
  slots.resize(static_cast<size_t>(bytes));
  std::optional<HighWater> newest;
  for (int i = 0; i < 2; ++i) {
    if (slots.size() < (i + 1) * kSlotBytes) break;
    const std::optional<HighWater> mark =
        Decode(std::string_view(slots).substr(i * kSlotBytes, kSlotBytes));
    if (!mark || (newest && newest->sequence > mark->sequence)) continue;
    newest = mark;
    next_slot_ = 1 - i;
  }
  if (!newest)
    return DataLoss("{} is damaged: neither of its two marks can be read",
                    path);
  return newest;
}

absl::Status StateDirectory::WriteHighWater(const HighWater& mark) {
  const std::string path = path_ + "/high-water";
  if (mark_fd_ < 0) {
    mark_fd_ =
        open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (mark_fd_ < 0)
      return ErrnoStatus(errno, fmt::format("cannot make {}", path));
  }
  const std::string slot = Encode(mark);
  const off_t at = static_cast<off_t>(next_slot_ * kSlotBytes);
  if (pwrite(mark_fd_, slot.data(), slot.size(), at) !=
          static_cast<ssize_t>(slot.size()) ||
      fdatasync(mark_fd_) != 0)
    return ErrnoStatus(errno, fmt::format("cannot write {}", path));
  next_slot_ = 1 - next_slot_;
  return absl::OkStatus();
}

}  // namespace leat::server
