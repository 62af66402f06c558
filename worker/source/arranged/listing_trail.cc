// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/listing_trail.h"

#include <algorithm>
#include <utility>

#include "core/status.h"

namespace leat::worker {
namespace {

constexpr int kPartsOfTime = 50;

std::string HashOfSamples(const Digest& base,
                          std::span<const uint64_t> samples) {
  return BytesOf(Sha256()
                     .Update(std::as_bytes(std::span(base)))
                     .Update(std::as_bytes(samples))
                     .Finish());
}

}  // namespace

ListingTrail::ListingTrail(const Digest& base, uint64_t of, TrailKeeper* keeper,
                           const Options& options)
    : base_(base),
      keeper_(keeper),
      options_(options),
      begun_(options.clock->Now()),
      next_(begun_ + options.first_interval),
      progress_{.walked = 0, .of = of},
      earlier_(keeper != nullptr) {}

absl::StatusOr<std::optional<std::string>> ListingTrail::Take(
    std::span<const uint64_t> samples) {
  if (!earlier_) return std::nullopt;
  if (next_result_ == static_cast<size_t>(results_.results_size())) {
    if (results_.results_size() > 0) ++part_;
    results_.Clear();
    next_result_ = 0;
    ASSIGN_OR_RETURN(const std::optional<std::string> part,
                     keeper_->Fetch(part_));
    if (!part || !results_.ParseFromString(*part) ||
        results_.results_size() == 0) {
      EndEarlier();
      return std::nullopt;
    }
  }
  const stored::v1::ListingTrail::Result& next =
      results_.results(static_cast<int>(next_result_));
  if (next.of() != HashOfSamples(base_, samples)) {
    EndEarlier();
    return std::nullopt;
  }
  ++next_result_;
  taken_ += last_taken_ = samples.size();
  return next.result();
}

void ListingTrail::Refuse() {
  --next_result_;
  taken_ -= last_taken_;
  EndEarlier();
}

void ListingTrail::EndEarlier() {
  earlier_ = false;
  results_.mutable_results()->DeleteSubrange(
      static_cast<int>(next_result_),
      results_.results_size() - static_cast<int>(next_result_));
  bytes_ = results_.ByteSizeLong();
}

void ListingTrail::Add(std::span<const uint64_t> samples, std::string result) {
  if (keeper_ == nullptr) return;
  stored::v1::ListingTrail::Result* added = results_.add_results();
  added->set_of(HashOfSamples(base_, samples));
  added->set_result(std::move(result));
  bytes_ += added->ByteSizeLong();
}

absl::Status ListingTrail::Walked(uint64_t samples) {
  progress_.walked += samples;
  if (keeper_ == nullptr) return absl::OkStatus();
  const MonotonicTime now = options_.clock->Now();
  const bool full = !earlier_ && bytes_ >= options_.part_bytes;
  if (now < next_ && !full) return absl::OkStatus();
  next_ = now + std::max<Duration>(options_.first_interval,
                                   (now - begun_) / kPartsOfTime);
  if (earlier_ || results_.results_size() == 0)
    return keeper_->Keep(part_, "", progress_);
  const std::string bytes = results_.SerializeAsString();
  results_.Clear();
  bytes_ = 0;
  return keeper_->Keep(part_++, bytes, progress_);
}

}  // namespace leat::worker
