// SPDX-License-Identifier: Apache-2.0
#include "worker/job/peer_records.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/log.h"
#include "core/shapes/field_type.h"
#include "core/status.h"
#include "worker/cache/read_form.h"
#include "worker/sample/stored_bytes.h"

namespace leat::worker {
namespace {

constexpr double kMeanOf = 16;  // answers, approximately
constexpr Duration kLeastTimeout = std::chrono::milliseconds(20);
constexpr Duration kMostTimeout = std::chrono::seconds(1);
// Pixels are not sent: an answer with a form of another kind is wrong.
constexpr std::array kSentForms = {JpegFormKind::kSeekIndex,
                                   JpegFormKind::kCoefficients};

double NsOf(Duration duration) { return static_cast<double>(duration.count()); }

// A peer that takes twice as long as storage usually does is not worth waiting
// for.
Duration TwiceAsLong(double ns) {
  return std::clamp(Duration(static_cast<int64_t>(2 * ns)), kLeastTimeout,
                    kMostTimeout);
}

}  // namespace

void PeerRecords::Mean::Add(double sample) {
  ++count;
  value += (sample - value) / std::min(static_cast<double>(count), kMeanOf);
}

void PeerRecords::CountRead(Duration took) {
  MutexLock lock(&mu_);
  read_ns_.Add(NsOf(took));
}

// Batches, whose means cover several peers, are tried again once a peer has
// come to keep all records.
PeerRecords::Mean& PeerRecords::FoundOf(const Peer& peer,
                                        std::optional<double> kept_share) {
  if (!kept_share) return found_;
  if (told_.size() >= kMaxTold && !told_.contains(peer.name)) return found_;
  Told& told = told_[peer.name];
  if (told.kept_share == *kept_share) return told.found;
  told = {.kept_share = *kept_share,
          .found = {.value = *kept_share, .count = kFirst}};
  if (told.kept_share == 1) asked_share_ns_ = {};
  return told.found;
}

bool PeerRecords::Pays(const OtherOwner& other) {
  MutexLock lock(&mu_);
  const uint64_t turn = missed_++;
  const double found = FoundOf(*other.peer, other.kept_share).value;
  if (answer_ns_.count < (other.kept_share ? kFirstTold : kFirst)) return true;
  if (read_ns_.count == 0) return false;
  return answer_ns_.value < found * (read_ns_.value + saved_ns_.value)
             ? turn % kReadOneOf != 0
             : turn % kOneOf == 0;
}

// The first request goes to storage: its time bounds the time that peers may
// take.
bool PeerRecords::PayTogether(std::span<const OtherOwner> others) {
  const auto records = static_cast<double>(others.size());
  MutexLock lock(&mu_);
  const uint64_t turn = batches_++;
  double found = 0;
  for (const OtherOwner& other : others)
    if (other.may_keep()) found += FoundOf(*other.peer, other.kept_share).value;
  if (request_ns_.count == 0) return false;
  if (asked_share_ns_.count < kFirstTogether) return true;
  const double request_ns =
      std::min(request_ns_.value / records, share_ns_.value);
  return asked_share_ns_.value < request_ns + found / records * saved_ns_.value
             ? turn % kReadOneOf != 0
             : turn % kOneOf == 0;
}

Duration PeerRecords::Timeout() const {
  MutexLock lock(&mu_);
  return read_ns_.count == 0 ? kMostTimeout : TwiceAsLong(read_ns_.value);
}

Duration PeerRecords::TimeoutTogether() const {
  MutexLock lock(&mu_);
  return TwiceAsLong(request_ns_.value);
}

std::optional<StoredSample> PeerRecords::Get(uint64_t record, uint32_t shard) {
  const OtherOwner other =
      options_.ownership->OtherOwnerOf(options_.dataset_id, shard);
  return other.may_keep() && Pays(other)
             ? Ask(*other.peer, other.kept_share, record, Timeout())
             : std::nullopt;
}

// A request that ends at its timeout makes the peer look dead, so the last one
// gets at least the smallest timeout.
PeerBatch PeerRecords::GetTogether(std::span<const WantedRecord> wanted) {
  PeerBatch batch;
  batch.samples.resize(wanted.size());
  std::vector<OtherOwner> others;
  for (const WantedRecord& each : wanted)
    others.push_back(
        options_.ownership->OtherOwnerOf(options_.dataset_id, each.shard));
  if (std::ranges::none_of(others, &OtherOwner::may_keep)) return batch;
  if (!PayTogether(others)) return batch;
  batch.asked = true;
  const MonotonicTime began = clock_.Now(), end = began + TimeoutTogether();
  bool answers = true;
  for (size_t i = 0; i < wanted.size() && answers; ++i) {
    if (!others[i].may_keep()) continue;
    const Duration left = end - clock_.Now();
    if (left <= Duration::zero()) break;
    batch.samples[i] =
        Ask(*others[i].peer, others[i].kept_share, wanted[i].record,
            std::max(left, kLeastTimeout), &answers);
  }
  batch.took = clock_.Now() - began;
  return batch;
}

void PeerRecords::CountTogether(const PeerBatch& batch, Duration took) {
  const auto records = static_cast<double>(batch.samples.size());
  MutexLock lock(&mu_);
  if (batch.asked) {
    asked_share_ns_.Add(NsOf(batch.took + took) / records);
    return;
  }
  request_ns_.Add(NsOf(took));
  share_ns_.Add(NsOf(took) / records);
}

// The caller decides whether the peer may have the records: a peer that had
// nothing until now may have all of the shards that have moved.
std::optional<StoredSample> PeerRecords::GetFrom(const Peer& peer,
                                                 uint64_t record) {
  {
    MutexLock lock(&mu_);
    if (answer_ns_.count >= kFirst && read_ns_.count > 0 &&
        answer_ns_.value >= read_ns_.value + saved_ns_.value)
      return std::nullopt;
  }
  return Ask(peer, std::nullopt, record, Timeout());
}

std::optional<StoredSample> PeerRecords::Ask(const Peer& peer,
                                             std::optional<double> kept_share,
                                             uint64_t record, Duration timeout,
                                             bool* answers) {
  const MonotonicTime began = clock_.Now();
  const bool wants = options_.kinds.seek_index || options_.kinds.coefficients;
  absl::StatusOr<PackedRecord> packed =
      options_.asker->Ask(peer, options_.dataset, record,
                          wants ? options_.codec.version : 0, timeout);
  const bool is_missing = absl::IsNotFound(packed.status());
  std::optional<StoredSample> sample;
  if (packed.ok()) {
    // The peer may keep forms of kinds that this worker does not use.
    for (const JpegFormKind kind : kSentForms)
      if (packed->form_kind == WayOf(kind) && !options_.kinds.Has(kind))
        packed->form.clear();
    const bool has_form = !packed->form.empty();
    sample = Unpack(*std::move(packed));
    if (!sample || (has_form && sample->form == nullptr))
      options_.asker->Refuse(peer);
  }
  if (answers != nullptr) *answers = sample.has_value() || is_missing;
  const Duration took = clock_.Now() - began;
  double saved_ns = 0;
  if (sample && sample->form != nullptr)
    saved_ns = FormShelf::SavedNs(options_.kept, sample->form->kept.kind);
  MutexLock lock(&mu_);
  answer_ns_.Add(NsOf(took));
  FoundOf(peer, kept_share).Add(sample ? 1 : 0);
  if (sample) saved_ns_.Add(saved_ns);
  return sample;
}

std::optional<StoredSample> PeerRecords::Unpack(PackedRecord packed) const {
  std::optional<StoredSample> sample = UnpackSample(std::move(packed.record));
  if (!sample || !FitsTypes(*sample, options_.types)) return std::nullopt;
  if (packed.form.empty() || options_.codec.parse == nullptr) return sample;
  for (const JpegFormKind kind : kSentForms)
    if (packed.form_kind == WayOf(kind))
      AttachForm(options_.codec, kind, std::move(packed.form),
                 /*beside_dataset=*/false, &*sample);
  return sample;
}

}  // namespace leat::worker
