// SPDX-License-Identifier: Apache-2.0
#include "worker/source/disk_cache/segment.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "core/crc32c.h"
#include "core/status.h"
#include "worker/source/faults/file_error.h"

namespace leat::worker {
namespace {

bool ParseHex(std::string_view text, uint64_t* value) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), *value, 16);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

uint32_t StratumOf(uint64_t rank) {
  if (rank >> 61 != 0) return static_cast<uint32_t>(rank >> 58) + 73;
  const int width = std::bit_width(rank);
  if (width < 52) return 0;
  return static_cast<uint32_t>((width - 52) * 8) + 1 +
         static_cast<uint32_t>(rank >> (width - 4) & 7);
}

uint64_t LowestRankOf(uint32_t stratum) {
  if (stratum >= 81) return uint64_t{stratum - 73} << 58;
  if (stratum == 0) return 0;
  return uint64_t{8 + (stratum - 1) % 8} << (51 + (stratum - 1) / 8 - 3);
}
uint32_t DiskEntry::Crc() const {
  return Crc32c(
      std::as_bytes(std::span(this, 1)).first(sizeof *this - sizeof entry_crc));
}

bool DiskEntry::IsSound(uint64_t data_bytes) const {
  return std::memcmp(magic, DiskEntry().magic, sizeof magic) == 0 &&
         entry_crc == Crc() && offset <= data_bytes &&
         size <= data_bytes - offset;
}

std::string DiskSegmentName::File(std::string_view kind) const {
  return fmt::format("{}-{:02x}-{:016x}.{}", ToHex(dataset), stratum, number,
                     kind);
}

std::optional<DiskSegmentName> DiskSegmentName::Of(std::string_view file) {
  constexpr size_t kDigest = 64, kStem = kDigest + 1 + 2 + 1 + 16;
  if (file.size() <= kStem) return std::nullopt;
  DiskSegmentName name;
  uint64_t stratum = 0, byte = 0;
  for (size_t i = 0; i < name.dataset.size(); ++i) {
    if (!ParseHex(file.substr(2 * i, 2), &byte)) return std::nullopt;
    name.dataset[i] = static_cast<uint8_t>(byte);
  }
  if (!ParseHex(file.substr(kDigest + 1, 2), &stratum) ||
      stratum >= kDiskStrata ||
      !ParseHex(file.substr(kDigest + 4, 16), &name.number))
    return std::nullopt;
  name.stratum = static_cast<uint32_t>(stratum);
  if (file != name.File("data") && file != name.File("index"))
    return std::nullopt;
  return name;
}

bool IsOfOtherVersion(std::string_view file) {
  const size_t stem = file.find_first_not_of("0123456789abcdef");
  return stem == 16 &&
         (file.substr(stem) == ".data" || file.substr(stem) == ".index");
}

bool ReadFully(int fd, std::span<std::byte> into, uint64_t offset) {
  for (size_t done = 0; done < into.size();) {
    const ssize_t got = pread(fd, into.data() + done, into.size() - done,
                              static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

// Anyone who can write there chooses what jobs train on: checksums detect
// damage, not intent.
absl::Status CheckOwnDirectory(const std::string& directory) {
  std::string path = directory;  // with a trailing slash a link is followed
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  struct stat about;
  if (lstat(path.c_str(), &about) != 0)
    return FileError(errno, "look at the disk cache", directory);
  if (!S_ISDIR(about.st_mode))
    return FailedPrecondition("disk cache {}: want a directory, not a link",
                              directory);
  if (about.st_uid != geteuid())
    return FailedPrecondition(
        "disk cache {}: it is user {}'s, want one of user {}, who runs this "
        "worker",
        directory, about.st_uid, geteuid());
  if ((about.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return FailedPrecondition(
        "disk cache {}: others may write to it (mode {:04o}), want 0700",
        directory, about.st_mode & 07777);
  return absl::OkStatus();
}

int OpenOwn(const std::string& path, int flags) {
  return open(path.c_str(), O_CLOEXEC | O_NOFOLLOW | flags, 0600);
}

}  // namespace leat::worker
