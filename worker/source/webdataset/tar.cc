// SPDX-License-Identifier: Apache-2.0
#include "worker/source/webdataset/tar.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "core/status.h"
#include "worker/source/packed/header_reader.h"

namespace leat::worker {
namespace {

using Block = std::span<const std::byte, kTarBlock>;

constexpr uint64_t kMaxExtra = 1 << 20;  // of a long name, or pax records

std::string_view FieldOf(Block header, size_t offset, size_t size) {
  return {reinterpret_cast<const char*>(header.data()) + offset, size};
}

// Returns the text up to the first zero byte.
std::string_view TextOf(std::string_view field) {
  return field.substr(0, field.find('\0'));
}

std::optional<uint64_t> NumberOf(std::string_view field) {
  const auto first = static_cast<uint8_t>(field[0]);
  if (first & 0x80) {
    if (first != 0x80) return std::nullopt;  // negative, or over 2^88
    uint64_t value = 0;
    for (const char c : field.substr(1)) {
      if (value >> 56 != 0) return std::nullopt;
      value = value << 8 | static_cast<uint8_t>(c);
    }
    return value;
  }
  std::string_view digits = TextOf(field);
  while (digits.starts_with(' ')) digits.remove_prefix(1);
  while (digits.ends_with(' ')) digits.remove_suffix(1);
  uint64_t value = 0;
  if (digits.empty()) return value;
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, value, 8);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

bool IsSum(Block header) {
  const auto wanted = NumberOf(FieldOf(header, 148, 8));
  if (!wanted) return false;
  uint64_t sum = 0;
  int64_t with_signs = 0;
  for (size_t i = 0; i < kTarBlock; ++i) {
    const auto byte = i >= 148 && i < 156 ? uint8_t{' '}
                                          : std::to_integer<uint8_t>(header[i]);
    sum += byte;
    with_signs += static_cast<int8_t>(byte);
  }
  return *wanted == sum || static_cast<int64_t>(*wanted) == with_signs;
}

bool IsZero(std::span<const std::byte> block) {
  return std::all_of(block.begin(), block.end(),
                     [](std::byte b) { return b == std::byte{}; });
}

// True for links, devices and directories, whatever their size field says.
bool HasNoBytes(char type) { return type >= '1' && type <= '6'; }

// Data that precedes a header about it.
struct Extra {
  std::optional<std::string> name;
  std::optional<uint64_t> size;
};

absl::Status Sparse() {
  return Unimplemented("a sparse file: pack the archive without --sparse");
}

// Parses records like "20 size=8589934592\n".
absl::Status ParsePax(std::string_view records, Extra* extra) {
  const absl::Status malformed = DataLoss("malformed pax records");
  while (!records.empty()) {
    size_t length = 0;
    const auto parsed = std::from_chars(
        records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<size_t>(parsed.ptr - records.data());
    if (parsed.ec != std::errc() || length > records.size() ||
        length < digits + 3 || records[digits] != ' ' ||
        records[length - 1] != '\n')
      return malformed;
    const std::string_view record =
        records.substr(digits + 1, length - digits - 2);
    records.remove_prefix(length);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) return malformed;
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    if (key.starts_with("GNU.sparse.")) return Sparse();
    if (key == "path") extra->name = std::string(TextOf(value));
    if (key != "size") continue;
    uint64_t size = 0;
    const char* const end = value.data() + value.size();
    const auto number = std::from_chars(value.data(), end, size);
    if (number.ec != std::errc() || number.ptr != end) return malformed;
    extra->size = size;
  }
  return absl::OkStatus();
}

class TarWalker {
 public:
  TarWalker(const StorageFile& file,
            const std::function<absl::Status(TarMember)>& take)
      : file_(file), take_(take), window_(file) {}

  absl::Status Run(const std::atomic<bool>* cancelled) {
    while (offset_ < file_.size() && !ended_) {
      if (cancelled != nullptr && *cancelled)
        return Cancelled("{}: the listing was cancelled", file_.name());
      const uint64_t header_at = offset_;
      // Errors of storage and of take() name their cause.
      bool known = false;
      const absl::Status status = Step(&known);
      if (status.ok()) continue;
      if (known) return status;
      return Annotate(status,
                      fmt::format("{}: header at {}", file_.name(), header_at));
    }
    if (extra_.name || extra_.size)
      return DataLoss("{}: ends after a header that belongs to a next one",
                      file_.name());
    return absl::OkStatus();
  }

 private:
  absl::Status Step(bool* known) {
    const uint64_t left = file_.size() - offset_;
    if (left < kTarBlock)
      return DataLoss(
          "the file has {} bytes from there, want {}: it was cut "
          "off, or is no tar archive",
          left, kTarBlock);
    const auto bytes = window_.At(offset_, kTarBlock);
    if (!bytes.ok()) {
      *known = true;
      return bytes.status();
    }
    if (IsZero(*bytes)) {
      ended_ = true;
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(TarHeader header,
                     ParseTarHeader(bytes->first<kTarBlock>()));
    const bool about_next = header.type == 'x' || header.type == 'L' ||
                            header.type == 'g' || header.type == 'K';
    if (!about_next && extra_.size && !HasNoBytes(header.type))
      header.size = *extra_.size;
    const uint64_t data = offset_ + kTarBlock;
    if (header.size > file_.size() - data)
      return DataLoss(
          "it has {} bytes, but the file has {} from there: it was "
          "cut off",
          header.size, file_.size() - data);
    const uint64_t padding = (kTarBlock - header.size % kTarBlock) % kTarBlock;
    if (padding > file_.size() - data - header.size)
      return DataLoss(
          "the file ends in the block of its last bytes: it was "
          "cut off");
    offset_ = data + header.size + padding;
    if (about_next) return TakeExtra(header, data, known);
    const Extra extra = std::exchange(extra_, {});
    if (!header.is_file()) return absl::OkStatus();
    if (extra.name) header.name = *extra.name;
    *known = true;
    return take_({std::move(header.name), data, header.size});
  }

  absl::Status TakeExtra(const TarHeader& header, uint64_t data, bool* known) {
    if (header.type == 'g' || header.type == 'K') return absl::OkStatus();
    if (header.size > kMaxExtra)
      return ResourceExhausted(
          "{} bytes about the next header: the limit is "
          "{}",
          header.size, kMaxExtra);
    std::string text(header.size, '\0');
    if (const absl::Status status = file_.ReadAt(
            data, std::as_writable_bytes(std::span(text.data(), text.size())));
        !status.ok()) {
      *known = true;
      return status;
    }
    if (header.type == 'x') return ParsePax(text, &extra_);
    extra_.name = std::string(TextOf(text));
    return absl::OkStatus();
  }

  const StorageFile& file_;
  const std::function<absl::Status(TarMember)>& take_;
  HeaderReader window_;
  uint64_t offset_ = 0;
  bool ended_ = false;
  Extra extra_;
};

}  // namespace

absl::StatusOr<TarHeader> ParseTarHeader(Block block) {
  if (!IsSum(block))
    return DataLoss("its checksum is wrong: corrupt, or not a tar archive{}",
                    block[0] == std::byte{0x1f} && block[1] == std::byte{0x8b}
                        ? " but compressed by gzip: unpack it"
                        : "");
  TarHeader header;
  header.type = FieldOf(block, 156, 1)[0];
  header.name = std::string(TextOf(FieldOf(block, 0, 100)));
  const std::string_view prefix = TextOf(FieldOf(block, 345, 155));
  if (FieldOf(block, 257, 6) == std::string_view("ustar\0", 6) &&
      !prefix.empty())
    header.name = std::string(prefix) + "/" + header.name;
  const auto size = NumberOf(FieldOf(block, 124, 12));
  if (!size) return DataLoss("its size is no number: corrupt");
  header.size = *size;
  switch (header.type) {
    case '\0':  // V7's, where a slash marks directories
      header.type = header.name.ends_with('/') ? '5' : '0';
      break;
    case 'S':
      return Sparse();
    case 'M':
      return Unimplemented("part of an archive over several volumes");
    default:
      break;
  }
  if (HasNoBytes(header.type)) header.size = 0;
  return header;
}

absl::Status WalkTar(const StorageFile& file,
                     const std::atomic<bool>* cancelled,
                     const std::function<absl::Status(TarMember)>& take) {
  return TarWalker(file, take).Run(cancelled);
}

}  // namespace leat::worker
