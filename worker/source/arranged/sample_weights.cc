// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <optional>

#include "core/plan/rounded_weight.h"
#include "core/status.h"
#include "fmt/ranges.h"
#include "worker/source/arranged/element_value.h"
#include "worker/source/arranged/sample_groups.h"
#include "worker/source/arrays/numpy.h"
#include "worker/source/source_storage.h"

namespace leat::worker {
namespace {

constexpr uint64_t kWeightPieceBytes = 1 << 20;

absl::Status NotOneEach(uint64_t weights, const std::string& name,
                        uint64_t samples) {
  return InvalidArgument(
      "weights has {} numbers; want {}, one for each sample of dataset \"{}\"",
      weights, samples, name);
}

// Whole numbers of more than 53 bits are rounded, as weights are anyway.
double WeightAt(DType dtype, const std::byte* at) {
  const std::optional<int64_t> whole = WholeNumber(dtype, at);
  return whole ? static_cast<double>(*whole) : *Fraction(dtype, at);
}

absl::StatusOr<std::vector<uint32_t>> ReadWeightFile(
    const std::string& uri, const std::string& name, uint64_t samples,
    const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const StorageFile> file,
                   StorageOf(limits).Open(uri));
  ASSIGN_OR_RETURN(const NumpyHeader header,
                   ReadNumpyHeader(*file, NumpyElements::kFloat64Too));
  if (header.shape.size() != 1)
    return InvalidArgument("{}: its shape is ({}): want one axis of numbers",
                           file->name(), fmt::join(header.shape, ", "));
  if (static_cast<uint64_t>(header.shape[0]) != samples)
    return Annotate(
        NotOneEach(static_cast<uint64_t>(header.shape[0]), name, samples),
        file->name());
  const size_t element = SizeOf(header.dtype);
  const uint64_t a_piece = kWeightPieceBytes / element;
  std::vector<uint32_t> keys;
  keys.reserve(samples);
  std::vector<std::byte> piece;
  for (uint64_t first = 0; first < samples; first += a_piece) {
    if (limits.cancelled != nullptr && *limits.cancelled)
      return Cancelled("the worker stops");
    piece.resize(std::min(a_piece, samples - first) * element);
    RETURN_IF_ERROR(file->ReadAt(header.data_offset + first * element, piece));
    for (size_t at = 0; at < piece.size(); at += element) {
      const std::byte* const bytes = piece.data() + at;
      const double weight = header.float64 ? ElementAt<double>(bytes)
                                           : WeightAt(header.dtype, bytes);
      RETURN_IF_ERROR(CheckWeight(weight, keys.size(), file->name()));
      keys.push_back(RoundedWeight::Of(weight).key());
    }
  }
  return keys;
}

}  // namespace

absl::StatusOr<std::vector<uint32_t>> ReadWeights(const SampleWeights& weights,
                                                  const std::string& name,
                                                  uint64_t samples,
                                                  const SourceLimits& limits) {
  if (samples > kMaxWeighedSamples)
    return ResourceExhausted(
        "weights of the {} samples of dataset \"{}\": want at most {}", samples,
        name, kMaxWeighedSamples);
  if (!weights.uri.empty())
    return ReadWeightFile(weights.uri, name, samples, limits);
  if (weights.list.size() != samples)
    return NotOneEach(weights.list.size(), name, samples);
  std::vector<uint32_t> keys;
  for (const double weight : weights.list)
    keys.push_back(RoundedWeight::Of(weight).key());
  return keys;
}

}  // namespace leat::worker
