// SPDX-License-Identifier: Apache-2.0
//
// A bucket of the histogram has the lengths with the same 10 leading bits: for
// example 2,048 and 2,049 share one, 1,023 has one of its own.
#include "worker/index_command/sequence_report.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "core/status.h"

namespace leat::worker {
namespace {

constexpr uint64_t kExact = 1024;  // lengths with a bucket of their own
constexpr uint64_t kHalf = kExact / 2;

template <class T>
std::vector<int64_t> NumbersOf(std::span<const std::byte> bytes) {
  std::vector<int64_t> numbers(bytes.size() / sizeof(T));
  for (size_t i = 0; i < numbers.size(); ++i) {
    T value;
    std::memcpy(&value, &bytes[i * sizeof(T)], sizeof(T));
    numbers[i] = value;  // NOLINT(bugprone-signed-char-misuse): int8 is one
  }
  return numbers;
}

}  // namespace

bool IsSequence(const ValueType& type) {
  return type.kind == ValueType::Kind::kTensor && type.shape == Shape{-1} &&
         type.dtype != DType::kBool && type.dtype != DType::kFloat16 &&
         type.dtype != DType::kFloat32 && type.dtype != DType::kBfloat16;
}

std::vector<int64_t> WholeNumbers(std::span<const std::byte> bytes,
                                  DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return NumbersOf<uint8_t>(bytes);
    case DType::kInt8:
      return NumbersOf<int8_t>(bytes);
    case DType::kInt16:
      return NumbersOf<int16_t>(bytes);
    case DType::kUint16:
      return NumbersOf<uint16_t>(bytes);
    case DType::kInt32:
      return NumbersOf<int32_t>(bytes);
    case DType::kUint32:
      return NumbersOf<uint32_t>(bytes);
    case DType::kInt64:
      return NumbersOf<int64_t>(bytes);
    default:
      return {};
  }
}

SequenceReport::SequenceReport(std::span<const uint64_t> rows)
    : buckets_(BucketOf(kMaxDocumentElements) + 1) {
  tried_.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    Tried& tried = tried_[i];
    tried.length = rows[i];
    tried.cutter = std::make_unique<WindowCutter>(
        Packing{.how = PackHow::kFit, .length = rows[i]},
        [&tried](const PackWindow& window, std::span<const uint64_t>) {
          tried.rows += window.rows;
          return absl::OkStatus();
        });
  }
}

size_t SequenceReport::BucketOf(uint64_t elements) {
  if (elements < kExact) return elements;
  const auto shift = static_cast<unsigned>(std::bit_width(elements)) - 10;
  return shift * kHalf + (elements >> shift);
}

uint64_t SequenceReport::LeastOf(size_t bucket) {
  if (bucket < kExact) return bucket;
  const size_t shift = (bucket - kHalf) / kHalf;
  return (bucket - shift * kHalf) << shift;
}

void SequenceReport::Add(uint64_t elements) {
  for (Tried& tried : tried_)
    if (tried.status.ok()) tried.status = tried.cutter->Add(elements);
  ++buckets_[std::min(BucketOf(elements), buckets_.size() - 1)];
  ++documents_;
  empty_ += elements == 0;
  elements_ += elements;
  least_ = std::min(least_, elements);
  most_ = std::max(most_, elements);
}

uint64_t SequenceReport::Quantile(double of) const {
  const auto wanted =
      static_cast<uint64_t>(std::ceil(of * static_cast<double>(documents_)));
  uint64_t seen = 0;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    seen += buckets_[bucket];
    if (seen >= wanted && seen > 0) return LeastOf(bucket);
  }
  return 0;
}

nlohmann::ordered_json SequenceReport::Finish() {
  nlohmann::ordered_json packed = nlohmann::ordered_json::array();
  for (Tried& tried : tried_) {
    if (tried.status.ok()) tried.status = tried.cutter->Finish();
    if (!tried.status.ok()) {
      packed.push_back({{"how", "fit"},
                        {"length", tried.length},
                        {"error", std::string(Message(tried.status))}});
      continue;
    }
    const double room =
        static_cast<double>(tried.rows) * static_cast<double>(tried.length);
    packed.push_back(
        {{"how", "fit"},
         {"length", tried.length},
         {"rows", tried.rows},
         {"fill", room == 0 ? 0 : static_cast<double>(elements_) / room}});
  }
  return nlohmann::ordered_json{
      {"documents", documents_},
      {"elements", elements_},
      {"empty", empty_},
      {"least", documents_ == 0 ? 0 : least_},
      {"mean", documents_ == 0 ? 0.0
                               : static_cast<double>(elements_) /
                                     static_cast<double>(documents_)},
      {"most", most_},
      {"p1", Quantile(0.01)},
      {"p10", Quantile(0.1)},
      {"p50", Quantile(0.5)},
      {"p90", Quantile(0.9)},
      {"p99", Quantile(0.99)},
      {"packed", std::move(packed)}};
}

}  // namespace leat::worker
