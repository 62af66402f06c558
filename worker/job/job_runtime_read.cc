// SPDX-License-Identifier: Apache-2.0
//
// How a job's records are read: from the sample cache, else from the disk
// cache, else from another worker's, else where they lie; and the forms of
// their JPEG files.
#include <algorithm>
#include <optional>
#include <utility>

#include "core/cluster/blame.h"
#include "core/observe/stages.h"
#include "core/shapes/stored_type.h"
#include "core/status.h"
#include "worker/cache/read_form.h"
#include "worker/cache/sample_forms.h"
#include "worker/job/job_runtime.h"
#include "worker/source/faults/blame_rules.h"

namespace leat::worker {
namespace {

constexpr auto kReadBackoff = std::chrono::milliseconds(20);

// What another worker may do better, as a code that says so, too.
absl::Status Elsewhere(const absl::Status& status, std::string_view how = "") {
  const Blame blame = BlameOf(status).value_or(Blame::kWorker);
  if (blame == Blame::kSample || blame == Blame::kObject) return status;
  return WithBlame(Unavailable("{}{}", Message(status), how), blame);
}

std::shared_ptr<const ReadForm> WithoutForm(StoredSample* sample) {
  sample->form_bytes = 0;
  return std::exchange(sample->form, nullptr);
}

}  // namespace

absl::StatusOr<StoredSample> JobRuntime::Stored(
    uint64_t sample, const StoredSample* brought,
    const RowRecords* records) const {
  if (brought == nullptr) return Read(sample, records);
  const size_t fields = brought->fields.size();
  if (fields != types_.size())
    return OfRecord(
        sample, InvalidArgument("{} fields, want {}", fields, types_.size()));
  for (size_t i = 0; i < fields; ++i) {
    const StoredField& field = brought->fields[i];
    if (const absl::Status status =
            CheckStored(types_[i], field.bytes, field.shape);
        !status.ok())
      return OfRecord(sample, Annotate(status, fmt::format("field {}", i)));
  }
  return *brought;
}

RowRecords JobRuntime::ReadAhead(const RowOf& row) const {
  RowRecords records = {
      {.sample = row.sample, .stored = Read(row.sample, nullptr)}};
  if (!has_partners_) return records;
  const uint64_t partner = PartnerOf(row).sample;
  if (partner != row.sample)
    records.push_back({.sample = partner, .stored = Read(partner, nullptr)});
  return records;
}

size_t JobRuntime::CountTogether(std::span<const uint64_t> samples) const {
  // Partners lie anywhere.
  return has_partners_ ? 1 : source_->Nearby(samples, context_->nearby);
}

std::vector<size_t> JobRuntime::BringOfPeers(
    std::span<const RowOf> rows, std::span<const size_t> missing,
    PeerBatch* batch, std::vector<AtHand>* at_hand) const {
  std::vector<WantedRecord> wanted;
  for (const size_t i : missing)
    wanted.push_back({source_->RecordOf(rows[i].sample),
                      job_.dataset.shards.ShardOf(rows[i].sample)});
  *batch = peers_->GetTogether(wanted);
  std::vector<size_t> left;
  std::vector<uint64_t> samples;
  size_t first = 0, last = 0;  // of what is left, among those missing
  for (size_t at = 0; at < missing.size(); ++at) {
    AtHand& own = (*at_hand)[missing[at]];
    own.asked = batch->asked;
    if (std::optional<StoredSample>& given = batch->samples[at]) {
      own.stored = *std::move(given);
      own.of_peer = true;
      continue;
    }
    if (left.empty()) first = at;
    last = at;
    left.push_back(missing[at]);
    samples.push_back(rows[missing[at]].sample);
  }
  if (left.size() < 2 || left.size() == missing.size() ||
      source_->Nearby(samples, context_->nearby) == left.size())
    return left;
  const auto between = missing.subspan(first, last - first + 1);
  return {between.begin(), between.end()};
}

std::vector<JobRuntime::AtHand> JobRuntime::Bring(
    std::span<const RowOf> rows) const {
  std::vector<AtHand> at_hand(rows.size());
  std::vector<size_t> missing;
  for (size_t i = 0; i < rows.size(); ++i)
    if (!IsKept(source_->RecordOf(rows[i].sample))) missing.push_back(i);
  if (missing.size() < 2) return at_hand;
  const StageScope reading(Stage::kRead);
  PeerBatch batch;
  if (peers_ != nullptr)
    missing = BringOfPeers(rows, missing, &batch, &at_hand);
  if (!missing.empty() && !Admit().ok()) return at_hand;
  std::vector<uint64_t> samples;
  for (const size_t i : missing) samples.push_back(rows[i].sample);
  std::vector<absl::StatusOr<StoredSample>> read;
  const MonotonicTime began = context_->cache->clock().Now();
  if (!samples.empty()) read = source_->ReadMany(samples);
  const Duration took = context_->cache->clock().Now() - began;
  if (peers_ != nullptr &&
      std::ranges::all_of(read, [](const auto& each) { return each.ok(); }))
    peers_->CountTogether(batch, took);
  for (size_t at = 0; at < missing.size(); ++at)
    if (AtHand& own = at_hand[missing[at]]; !own.stored)
      own.stored = std::move(read[at]);
  return at_hand;
}

std::vector<RowRecords> JobRuntime::ReadTogether(
    std::span<const RowOf> rows) const {
  std::vector<AtHand> at_hand = Bring(rows);
  std::vector<RowRecords> records;
  bool away = false;  // storage does not answer
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint64_t sample = rows[i].sample;
    // Its neighbour was tried for long already.
    if (away && at_hand[i].bad()) {
      const absl::Status status = Judged(at_hand[i].stored->status());
      records.push_back({{.sample = sample,
                          .stored = WithSample(Elsewhere(status), sample)}});
      continue;
    }
    records.push_back(
        {{.sample = sample, .stored = Read(sample, nullptr, &at_hand[i])}});
    const absl::Status status = records.back().front().stored.status();
    const std::optional<Blame> blame = BlameOf(status);
    away = away || blame == Blame::kWorker || blame == Blame::kPassing;
  }
  return records;
}

absl::StatusOr<StoredSample> JobRuntime::Read(uint64_t sample,
                                              const RowRecords* records,
                                              AtHand* at_hand) const {
  if (records != nullptr)
    for (const ReadRecord& record : *records)
      if (record.sample == sample) return record.stored;
  const StageScope reading(Stage::kRead);
  const uint32_t shard = job_.dataset.shards.ShardOf(sample);
  const uint64_t record = source_->RecordOf(sample);
  std::shared_ptr<const ReadForm> form;  // of a peer: not the record's cost
  absl::StatusOr<StoredSample> stored = context_->cache->Get(
      kept_, {.number = record, .shard = shard},
      context_->ownership->Owns(job_.dataset.id, shard),
      [&]() -> absl::StatusOr<StoredSample> {
        absl::StatusOr<StoredSample> read = ReadMissing(sample, at_hand);
        if (read.ok()) form = WithoutForm(&*read);
        return read;
      });
  // Others may wait for the same record by another number.
  if (!stored.ok()) return WithSample(stored.status(), sample);
  if ((on_disk_ != nullptr || seek_file_ != nullptr) &&
      !context_->cache->HasForm(kept_, record))
    ReadFormOf(record, &*stored);
  if (form != nullptr &&
      (stored->form == nullptr || stored->form->kept.kind < form->kept.kind)) {
    stored->form_bytes = form->kept.bytes;
    stored->form = std::move(form);
  }
  return stored;
}

std::optional<StoredSample> JobRuntime::FindKept(uint64_t record) const {
  std::optional<StoredSample> kept = context_->cache->Find(kept_, record);
  if (on_disk_ == nullptr) return kept;
  if (!kept) kept = context_->disk->ReadRecord(on_disk_, record, types_);
  if (kept && kept->form == nullptr)
    context_->disk->ReadFormOf(on_disk_, record, &*kept);
  return kept;
}

// The disk cache is asked first: its form may decode faster than the one beside
// the dataset.
void JobRuntime::ReadFormOf(uint64_t record, StoredSample* sample) const {
  if (on_disk_ != nullptr) context_->disk->ReadFormOf(on_disk_, record, sample);
  if (sample->form == nullptr && seek_file_ != nullptr)
    seek_file_->ReadFormOf(record, sample);
}

bool JobRuntime::IsKept(uint64_t record) const {
  return context_->cache->Contains(kept_, record) ||
         (on_disk_ != nullptr && context_->disk->HasRecord(on_disk_, record));
}

bool JobRuntime::TakeFrom(const Peer& peer, uint64_t sample) const {
  const uint64_t record = source_->RecordOf(sample);
  if (IsKept(record)) return true;
  if (peers_ == nullptr) return false;
  std::optional<StoredSample> taken = peers_->GetFrom(peer, record);
  if (!taken) return false;
  const std::shared_ptr<const ReadForm> form = WithoutForm(&*taken);
  const SampleCache::Record where = {
      .number = record, .shard = job_.dataset.shards.ShardOf(sample)};
  if (!context_->cache->Put(kept_, where, *taken)) return false;
  if (form != nullptr)
    context_->cache->KeepForm(kept_, record, form->file, form->kept);
  return true;
}

absl::StatusOr<StoredSample> JobRuntime::ReadMissing(uint64_t sample,
                                                     AtHand* at_hand) const {
  const uint64_t record = source_->RecordOf(sample);
  if (at_hand != nullptr && at_hand->good()) {
    if (!at_hand->of_peer) {
      Ended(absl::OkStatus(), sample);
      if (on_disk_ != nullptr)
        context_->disk->KeepRecord(on_disk_, record, **at_hand->stored,
                                   Duration::zero());
    }
    return *std::move(*at_hand->stored);
  }
  if (on_disk_ == nullptr && peers_ == nullptr) return ReadStored(sample);
  std::optional<StoredSample> kept;
  if (on_disk_ != nullptr)
    kept = context_->disk->ReadRecord(on_disk_, record, types_);
  const bool asked = at_hand != nullptr && at_hand->asked;
  if (!kept && peers_ != nullptr && !asked)
    kept = peers_->Get(record, job_.dataset.shards.ShardOf(sample));
  if (kept) return *std::move(kept);
  const MonotonicTime began = context_->cache->clock().Now();
  absl::StatusOr<StoredSample> stored = ReadStored(sample);
  const Duration took = context_->cache->clock().Now() - began;
  if (!stored.ok()) return stored;
  if (peers_ != nullptr) peers_->CountRead(took);
  if (on_disk_ != nullptr)
    context_->disk->KeepRecord(on_disk_, record, *stored, took);
  return stored;
}

SampleForms JobRuntime::FormsOf(uint64_t sample, uint64_t epoch,
                                const StoredSample& stored) const {
  return {
      context_->cache, &kept_, source_->RecordOf(sample),
      SampleOnDisk{.forms = on_disk_ == nullptr ? nullptr : context_->disk,
                   .dataset = on_disk_,
                   .read = stored.form},
      WhoseRow{.job = &job_.plan_hash, .epoch = epoch, .idle = context_->idle}};
}

absl::StatusOr<StoredSample> JobRuntime::ReadStored(uint64_t sample) const {
  RETURN_IF_ERROR(Admit());
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<StoredSample> read = source_->Read(sample);
    const absl::Status status = Judged(read.status());
    const std::optional<Blame> blame = BlameOf(status);
    const bool answered = !blame.has_value() || blame == Blame::kSample ||
                          blame == Blame::kObject;
    if (answered || attempt >= context_->read_attempts) Ended(status, sample);
    if (read.ok()) return read;
    if (answered) return status;
    if (attempt >= context_->read_attempts)
      return Elsewhere(status, fmt::format(" (tried {} times)", attempt));
    if (!Pause(kReadBackoff * attempt))
      return WithBlame(Cancelled("{} (the worker stops)", Message(status)),
                       Blame::kPassing);
  }
}

absl::Status JobRuntime::Admit() const {
  return context_->troubles == nullptr ? absl::OkStatus()
                                       : context_->troubles->Admit(dataset_);
}

void JobRuntime::Ended(const absl::Status& status, uint64_t sample) const {
  if (context_->troubles != nullptr)
    context_->troubles->Ended(dataset_, status, source_, sample);
}

// Before another try. False: the worker stops.
bool JobRuntime::Pause(Duration duration) const {
  StopSignal never;
  return (context_->stop == nullptr ? &never : context_->stop)->Pause(duration);
}

}  // namespace leat::worker
