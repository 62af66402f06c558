// SPDX-License-Identifier: Apache-2.0
//
// An index is read along three columns at a time, in pieces of a mebibyte:
//
//   lengths    3   2   4        of sequences
//   positions  0   6   10       in bytes, of two bytes each
//   documents  0   2   3        so the documents have 3 + 2 and 4 tokens
#include "worker/source/tokens/documents.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <span>

#include "core/status.h"

namespace leat::worker {
namespace {

constexpr size_t kPiece = 1 << 20;
constexpr uint64_t kMegatronHead = 34;
constexpr std::string_view kMegatronMagic("MMIDIDX\0\0", 9);
constexpr uint64_t kMaxTokens = std::numeric_limits<uint32_t>::max();

struct MegatronType {
  uint8_t code;
  DType dtype;
};
constexpr MegatronType kMegatronTypes[] = {
    {1, DType::kUint8}, {2, DType::kInt8},  {3, DType::kInt16},
    {4, DType::kInt32}, {5, DType::kInt64}, {7, DType::kFloat32},
    {8, DType::kUint16}};

absl::Status CheckCancelled(const StorageFile& file,
                            const DocumentBounds& bounds) {
  if (bounds.cancelled != nullptr && *bounds.cancelled)
    return Cancelled("{}: the listing was cancelled", file.name());
  return absl::OkStatus();
}

// Collects documents within the bounds.
class Documents {
 public:
  Documents(const DocumentBounds& bounds, std::vector<uint32_t>* lengths)
      : max_(bounds.max_documents), lengths_(*lengths) {}

  absl::Status Add(uint64_t tokens) {
    if (tokens > kMaxTokens)
      return ResourceExhausted("document {} has {} tokens: the limit is {}",
                               lengths_.size(), tokens, kMaxTokens);
    if (lengths_.size() >= max_)
      return ResourceExhausted("more than {} documents: the limit", max_);
    lengths_.push_back(static_cast<uint32_t>(tokens));
    return absl::OkStatus();
  }

 private:
  const uint64_t max_;
  std::vector<uint32_t>& lengths_;
};

// Numbers that follow each other in a file.
template <class T>
class Column {
 public:
  Column(const StorageFile& file, uint64_t offset, uint64_t count,
         const DocumentBounds& bounds)
      : file_(file), bounds_(bounds), offset_(offset), left_(count) {}

  // REQUIRES: called at most `count` times.
  absl::StatusOr<T> Next() {
    if (at_ == values_.size()) RETURN_IF_ERROR(Fill());
    return values_[at_++];
  }

 private:
  absl::Status Fill() {
    RETURN_IF_ERROR(CheckCancelled(file_, bounds_));
    values_.resize(std::min<uint64_t>(left_, kPiece / sizeof(T)));
    const auto bytes = std::as_writable_bytes(std::span(values_));
    RETURN_IF_ERROR(file_.ReadAt(offset_, bytes));
    offset_ += bytes.size();
    left_ -= values_.size();
    at_ = 0;
    return absl::OkStatus();
  }

  const StorageFile& file_;
  const DocumentBounds& bounds_;
  uint64_t offset_, left_;
  std::vector<T> values_;
  size_t at_ = 0;
};

struct MegatronHead {
  DType dtype = DType::kUint16;
  uint64_t sequences = 0;
  uint64_t indices = 0;  // of documents
};

template <class T>
T NumberAt(std::span<const std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

absl::Status CheckSize(const MegatronHead& head, uint64_t size) {
  constexpr uint64_t kSequence = sizeof(int32_t) + sizeof(int64_t);
  uint64_t rest = size - kMegatronHead;
  const bool fits =
      head.sequences <= rest / kSequence &&
      head.indices <= (rest - head.sequences * kSequence) / sizeof(int64_t);
  if (fits) {
    rest -= head.sequences * kSequence + head.indices * sizeof(int64_t);
    if (rest == 0 || rest == head.sequences) return absl::OkStatus();
  }
  return DataLoss(
      "{} bytes for {} sequences and {} document indices, want {} + {} for "
      "each sequence and {} for each index: cut off, or no index",
      size, head.sequences, head.indices, kMegatronHead, kSequence,
      sizeof(int64_t));
}

absl::StatusOr<MegatronHead> ReadHead(const StorageFile& file) {
  if (file.size() < kMegatronHead)
    return DataLoss("{} bytes, want at least {}: no index of Megatron's",
                    file.size(), kMegatronHead);
  std::array<std::byte, kMegatronHead> bytes;
  RETURN_IF_ERROR(file.ReadAt(0, bytes));
  if (std::memcmp(bytes.data(), kMegatronMagic.data(), kMegatronMagic.size()) !=
      0)
    return DataLoss(
        "it does not begin with \"MMIDIDX\": no index of Megatron's");
  const auto version = NumberAt<uint64_t>(bytes, 9);
  if (version != 1) return Unimplemented("it has version {}, want 1", version);
  const auto code = NumberAt<uint8_t>(bytes, 17);
  const auto* const type =
      std::ranges::find(kMegatronTypes, code, &MegatronType::code);
  if (type == std::end(kMegatronTypes))
    return Unimplemented(
        "its elements have the type {}{}, want uint8 (1), int8 (2), int16 (3), "
        "int32 (4), int64 (5), float32 (7) or uint16 (8)",
        code, code == 6 ? " (float64)" : "");
  MegatronHead head{.dtype = type->dtype,
                    .sequences = NumberAt<uint64_t>(bytes, 18),
                    .indices = NumberAt<uint64_t>(bytes, 26)};
  RETURN_IF_ERROR(CheckSize(head, file.size()));
  return head;
}

// The sequences of an index. Each must begin where the one before it ends.
class Sequences {
 public:
  Sequences(const StorageFile& file, const MegatronHead& head,
            uint64_t data_bytes, const DocumentBounds& bounds)
      : element_(SizeOf(head.dtype)),
        data_bytes_(data_bytes),
        lengths_(file, kMegatronHead, head.sequences, bounds),
        positions_(file, kMegatronHead + head.sequences * sizeof(int32_t),
                   head.sequences, bounds) {}

  // Returns the next one's length in tokens.
  absl::StatusOr<uint64_t> Next() {
    ASSIGN_OR_RETURN(const int32_t length, lengths_.Next());
    ASSIGN_OR_RETURN(const int64_t position, positions_.Next());
    if (length < 0)
      return DataLoss("sequence {} has {} tokens, want 0 or more", count_,
                      length);
    if (position < 0 || static_cast<uint64_t>(position) != end_)
      return DataLoss(
          "sequence {} is at byte {}, want {}, where the one before it ends",
          count_, position, end_);
    const uint64_t bytes = static_cast<uint64_t>(length) * element_;
    if (bytes > data_bytes_ - end_)
      return DataLoss(
          "sequence {} has {} bytes at {}, and its .bin has only {}", count_,
          bytes, end_, data_bytes_);
    end_ += bytes;
    ++count_;
    return static_cast<uint64_t>(length);
  }
  absl::Status CheckEnd() const {
    if (end_ == data_bytes_) return absl::OkStatus();
    return DataLoss("its {} sequences have {} bytes, and its .bin has {}",
                    count_, end_, data_bytes_);
  }

 private:
  const uint64_t element_, data_bytes_;
  Column<int32_t> lengths_;
  Column<int64_t> positions_;
  uint64_t count_ = 0, end_ = 0;
};

// Joins sequences to documents, as the document indices say.
absl::Status JoinSequences(const StorageFile& file, const MegatronHead& head,
                           const DocumentBounds& bounds, Sequences* sequences,
                           Documents* documents) {
  constexpr uint64_t kSequence = sizeof(int32_t) + sizeof(int64_t);
  Column<int64_t> indices(file, kMegatronHead + head.sequences * kSequence,
                          head.indices, bounds);
  if (head.indices == 0)
    return DataLoss("it has no document indices, want at least one: 0");
  ASSIGN_OR_RETURN(const int64_t first, indices.Next());
  if (first != 0)
    return DataLoss("document 0 begins at sequence {}, want 0", first);
  uint64_t at = 0;
  for (uint64_t document = 0; document + 1 < head.indices; ++document) {
    ASSIGN_OR_RETURN(const int64_t end, indices.Next());
    if (end < 0 || static_cast<uint64_t>(end) < at ||
        static_cast<uint64_t>(end) > head.sequences)
      return DataLoss("document {} ends at sequence {}, want {} to {}",
                      document, end, at, head.sequences);
    uint64_t tokens = 0;
    for (; at < static_cast<uint64_t>(end); ++at) {
      ASSIGN_OR_RETURN(const uint64_t length, sequences->Next());
      tokens += length;
    }
    RETURN_IF_ERROR(documents->Add(tokens));
  }
  if (at == head.sequences) return absl::OkStatus();
  return DataLoss(
      "its documents end at sequence {}, want {}: the rest would not be read; "
      "unit=\"sequence\" reads all",
      at, head.sequences);
}

// Calls use(number of the first, tokens) for pieces of the file.
template <class T, class Use>
absl::Status ForEachPiece(const StorageFile& file, uint64_t offset,
                          uint64_t tokens, const DocumentBounds& bounds,
                          Use use) {
  std::vector<T> piece(std::min<uint64_t>(tokens, kPiece / sizeof(T)));
  for (uint64_t at = 0; at < tokens; at += piece.size()) {
    RETURN_IF_ERROR(CheckCancelled(file, bounds));
    const auto some =
        std::span(piece).first(std::min<uint64_t>(piece.size(), tokens - at));
    RETURN_IF_ERROR(
        file.ReadAt(offset + at * sizeof(T), std::as_writable_bytes(some)));
    RETURN_IF_ERROR(use(at, some));
  }
  return absl::OkStatus();
}

template <class T>
absl::Status CutAt(T end, const StorageFile& file, uint64_t offset,
                   uint64_t tokens, const DocumentBounds& bounds,
                   Documents* documents) {
  uint64_t begin = 0;
  RETURN_IF_ERROR(ForEachPiece<T>(
      file, offset, tokens, bounds,
      [&](uint64_t first, std::span<const T> piece) -> absl::Status {
        for (auto it = piece.begin();;) {
          it = std::find(it, piece.end(), end);
          if (it == piece.end()) return absl::OkStatus();
          ++it;
          const uint64_t behind =
              first + static_cast<uint64_t>(it - piece.begin());
          RETURN_IF_ERROR(documents->Add(behind - begin));
          begin = behind;
        }
      }));
  return begin < tokens ? documents->Add(tokens - begin) : absl::OkStatus();
}

template <class T>
absl::StatusOr<T> EndOf(int64_t end, DType dtype) {
  using Range = std::numeric_limits<T>;
  if (end >= 0 &&
      static_cast<uint64_t>(end) <= static_cast<uint64_t>(Range::max()))
    return static_cast<T>(end);
  return InvalidArgument(
      "argument \"end\" is {}, want 0 to {}: elements are {}", end,
      Range::max(), Name(dtype));
}

}  // namespace

absl::StatusOr<TokenFile> ReadMegatronIndex(const StorageFile& file,
                                            uint64_t data_bytes, bool sequences,
                                            const DocumentBounds& bounds) {
  ASSIGN_OR_RETURN(const MegatronHead head, ReadHead(file));
  TokenFile result{.dtype = head.dtype, .index_identity = file.identity()};
  Sequences all(file, head, data_bytes, bounds);
  Documents documents(bounds, &result.lengths);
  if (sequences) {
    for (uint64_t i = 0; i < head.sequences; ++i) {
      ASSIGN_OR_RETURN(const uint64_t length, all.Next());
      RETURN_IF_ERROR(documents.Add(length));
    }
  } else {
    RETURN_IF_ERROR(JoinSequences(file, head, bounds, &all, &documents));
  }
  RETURN_IF_ERROR(all.CheckEnd());
  return result;
}

absl::StatusOr<TokenFile> FindDocuments(const StorageFile& file, DType dtype,
                                        uint64_t data_offset, uint64_t tokens,
                                        std::optional<int64_t> end,
                                        const DocumentBounds& bounds) {
  TokenFile result{.dtype = dtype, .data_offset = data_offset};
  Documents documents(bounds, &result.lengths);
  if (!end) {
    if (tokens > 0) RETURN_IF_ERROR(documents.Add(tokens));
    return result;
  }
  const auto cut = [&]<class T>(T) -> absl::Status {
    ASSIGN_OR_RETURN(const T value, EndOf<T>(*end, dtype));
    return CutAt(value, file, data_offset, tokens, bounds, &documents);
  };
  switch (dtype) {
    case DType::kUint8:
      RETURN_IF_ERROR(cut(uint8_t{}));
      break;
    case DType::kInt8:
      RETURN_IF_ERROR(cut(int8_t{}));
      break;
    case DType::kInt16:
      RETURN_IF_ERROR(cut(int16_t{}));
      break;
    case DType::kUint16:
      RETURN_IF_ERROR(cut(uint16_t{}));
      break;
    case DType::kInt32:
      RETURN_IF_ERROR(cut(int32_t{}));
      break;
    case DType::kUint32:
      RETURN_IF_ERROR(cut(uint32_t{}));
      break;
    case DType::kInt64:
      RETURN_IF_ERROR(cut(int64_t{}));
      break;
    case DType::kBool:
    case DType::kFloat16:
    case DType::kFloat32:
    case DType::kBfloat16:
      return InvalidArgument(
          "argument \"end\" is {}, and elements are {}: want whole numbers",
          *end, Name(dtype));
  }
  return result;
}

}  // namespace leat::worker
