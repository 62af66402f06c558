// SPDX-License-Identifier: Apache-2.0
//
// A file is read once if its numbers ascend, since then none comes twice; and
// once more otherwise.
#include "worker/source/arranged/numbers.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/redaction.h"
#include "core/status.h"
#include "fmt/ranges.h"
#include "worker/source/arranged/element_value.h"
#include "worker/source/arrays/numpy.h"
#include "worker/source/source_storage.h"

namespace leat::worker {
namespace {

constexpr uint64_t kNumberPieceBytes = 1 << 20;
constexpr uint64_t kCancelEvery = 1 << 16;

absl::Status NotBelow(uint64_t number, const std::string& name,
                      uint64_t samples) {
  return InvalidArgument(
      "samples has {}; want numbers below {}, the samples of dataset \"{}\"",
      number, samples, name);
}

absl::Status NotStopped(const SourceLimits& limits) {
  return limits.cancelled != nullptr && *limits.cancelled
             ? Cancelled("the worker stops")
             : absl::OkStatus();
}

absl::Status ForEachOfRange(uint64_t begin, uint64_t end, uint64_t step,
                            const SourceLimits& limits,
                            const std::function<absl::Status(uint64_t)>& use) {
  uint64_t count = 0;
  for (uint64_t number = begin; number < end;
       number += std::min(step, end - number)) {
    if (count++ % kCancelEvery == 0) RETURN_IF_ERROR(NotStopped(limits));
    RETURN_IF_ERROR(use(number));
  }
  return absl::OkStatus();
}

// A .npy file of the numbers of samples.
class NumberFile {
 public:
  // `name` and `samples`: as ForEachNumber.
  static absl::StatusOr<NumberFile> Open(const std::string& uri,
                                         const std::string& name,
                                         uint64_t samples,
                                         const SourceLimits& limits) {
    NumberFile opened(name, samples);
    ASSIGN_OR_RETURN(opened.file_, StorageOf(limits).Open(uri));
    ASSIGN_OR_RETURN(const NumpyHeader header,
                     ReadNumpyHeader(*opened.file_, NumpyElements::kIntegers));
    opened.begin_ = header.data_offset;
    opened.dtype_ = header.dtype;
    if (header.shape.size() != 1 || header.shape[0] < 1)
      return InvalidArgument("{}: its shape is ({}): want one axis of numbers",
                             opened.file_->name(),
                             fmt::join(header.shape, ", "));
    opened.count_ = static_cast<uint64_t>(header.shape[0]);
    return opened;
  }

  const std::string& name() const { return file_->name(); }

  // Checks the numbers on every walk: the file may be written meanwhile, and
  // storage does not see it if its time stays the same.
  absl::Status ForEach(const SourceLimits& limits,
                       const std::function<absl::Status(uint64_t)>& use) const {
    const size_t element = SizeOf(dtype_);
    const uint64_t a_piece = kNumberPieceBytes / element;
    std::vector<std::byte> piece;
    for (uint64_t first = 0; first < count_; first += a_piece) {
      RETURN_IF_ERROR(NotStopped(limits));
      piece.resize(std::min(a_piece, count_ - first) * element);
      RETURN_IF_ERROR(file_->ReadAt(begin_ + first * element, piece));
      for (size_t at = 0; at < piece.size(); at += element) {
        const int64_t number = *WholeNumber(dtype_, piece.data() + at);
        if (number < 0)
          return InvalidArgument("{}: number {} is {}: want 0 or more", name(),
                                 first + at / element, number);
        if (static_cast<uint64_t>(number) >= samples_)
          return Annotate(
              NotBelow(static_cast<uint64_t>(number), dataset_, samples_),
              name());
        RETURN_IF_ERROR(use(static_cast<uint64_t>(number)));
      }
    }
    return absl::OkStatus();
  }

 private:
  NumberFile(std::string dataset, uint64_t samples)
      : dataset_(std::move(dataset)), samples_(samples) {}

  std::string dataset_;
  uint64_t samples_;
  std::shared_ptr<const StorageFile> file_;
  DType dtype_ = DType::kInt64;
  uint64_t begin_ = 0, count_ = 0;
};

absl::Status CheckNoneTwice(const NumberFile& file, uint64_t samples,
                            const SourceLimits& limits) {
  if (samples > kMaxUnorderedSamples)
    return ResourceExhausted(
        "{}: its numbers are not ascending: want that of numbers of {} "
        "samples, more than {}",
        file.name(), samples, kMaxUnorderedSamples);
  std::vector<bool> seen(samples);
  return file.ForEach(limits, [&](uint64_t number) {
    if (seen[number])
      return InvalidArgument("{}: it has {} twice: want each number once",
                             file.name(), number);
    seen[number] = true;
    return absl::OkStatus();
  });
}

absl::Status ForEachOfFile(const std::string& uri, const std::string& name,
                           uint64_t samples, const SourceLimits& limits,
                           const std::function<absl::Status(uint64_t)>& use) {
  ASSIGN_OR_RETURN(const NumberFile file,
                   NumberFile::Open(uri, name, samples, limits));
  bool ascending = true;
  uint64_t next = 0;
  RETURN_IF_ERROR(file.ForEach(limits, [&](uint64_t number) {
    ascending = ascending && number >= next;
    next = number + 1;
    return absl::OkStatus();
  }));
  if (!ascending) RETURN_IF_ERROR(CheckNoneTwice(file, samples, limits));
  return file.ForEach(limits, use);
}

}  // namespace

absl::Status ForEachNumber(const Numbers& numbers, const std::string& name,
                           uint64_t samples, const SourceLimits& limits,
                           const std::function<absl::Status(uint64_t)>& use) {
  if (!numbers.uri.empty())
    return ForEachOfFile(numbers.uri, name, samples, limits, use);
  if (numbers.step != 0) {
    const uint64_t last = numbers.begin + (numbers.end - 1 - numbers.begin) /
                                              numbers.step * numbers.step;
    if (last >= samples) return NotBelow(last, name, samples);
    return ForEachOfRange(numbers.begin, numbers.end, numbers.step, limits,
                          use);
  }
  if (numbers.list.empty()) return ForEachOfRange(0, samples, 1, limits, use);
  for (const uint64_t number : numbers.list) {
    if (number >= samples) return NotBelow(number, name, samples);
    RETURN_IF_ERROR(use(number));
  }
  return absl::OkStatus();
}

}  // namespace leat::worker
