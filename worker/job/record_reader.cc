// SPDX-License-Identifier: Apache-2.0
#include "worker/job/record_reader.h"

#include <algorithm>
#include <utility>

#include "core/cluster/fault.h"
#include "core/log.h"
#include "core/observe/stages.h"
#include "core/shapes/field_type.h"
#include "core/status.h"
#include "worker/cache/read_form.h"
#include "worker/job/numbered_source.h"
#include "worker/source/faults/fault_rules.h"

namespace leat::worker {
namespace {

std::shared_ptr<const ReadForm> WithoutForm(StoredSample* sample) {
  sample->form_bytes = 0;
  return std::exchange(sample->form, nullptr);
}

// Arrangements of one dataset share what is kept of it, unless their records
// are rows that are packed.
const DatasetInfo& KeptOf(const DatasetInfo& dataset) {
  return PacksRows(dataset.arrangement) ? dataset : StoredDataset(dataset);
}

const DatasetInfo& KeptOf(DatasetInfo&& dataset) = delete;

}  // namespace

Digest DatasetKeyOf(const Digest& fingerprint, const Node& reader) {
  return Sha256()
      .Update(std::as_bytes(std::span(fingerprint)))
      .UpdateField(CanonicalText(reader))
      .Finish();
}

RecordPlaces RecordPlaces::Of(std::string_view job, const DatasetInfo& dataset,
                              uint64_t first, const Node& reader,
                              std::shared_ptr<const Source> source,
                              std::vector<ValueType> types, bool supplied,
                              const RuntimeContext& context) {
  RecordPlaces places;
  const DatasetInfo& stored = KeptOf(dataset);
  places.key = DatasetKeyOf(stored.fingerprint, reader);
  places.root = RootOf(reader);
  places.types = std::move(types);
  places.memory = context.cache->Open(places.key, stored.id, stored.name,
                                      source->num_records());
  places.own = source;
  places.source = NumberedSource::Of(std::move(source), first);
  if (context.disk != nullptr && !supplied)
    places.disk =
        context.disk->Open(places.key, stored.name, places.root, stored.id);
  if (context.seek_indexes.parse != nullptr)
    places.seek_file = std::make_unique<const LaterSeekFile>(
        LaterSeekFile::Options{.job = std::string(job),
                               .folder = places.root,
                               .fingerprint = stored.fingerprint,
                               .codec = &context.seek_indexes,
                               .allowed = context.allowed,
                               .budget = context.open_files});
  if (context.asker != nullptr && !supplied)
    places.peers = std::make_unique<PeerRecords>(
        PeerRecordsOptions{.asker = context.asker,
                           .ownership = context.ownership,
                           .codec = context.forms,
                           .kinds = context.cache->forms().kinds(),
                           .dataset_id = dataset.id,
                           .dataset = places.key,
                           .types = places.types,
                           .kept = places.memory},
        context.cache->clock());
  return places;
}

RecordReader::RecordReader(const Digest& plan_hash, const DatasetInfo& dataset,
                           uint64_t first, RecordPlaces places,
                           const RuntimeContext* context)
    : plan_hash_(plan_hash),
      dataset_(dataset),
      kept_(KeptOf(dataset)),
      first_(first),
      context_(context),
      places_(std::move(places)),
      storage_(places_.source, places_.own, first,
               {places_.root, dataset.fingerprint}, context) {}

const RecordReader::LookIn RecordReader::kBelowMemory[] = {
    &RecordReader::Prefetched, &RecordReader::OnDisk, &RecordReader::AtPeers,
    &RecordReader::InStorage};

RecordReader::Record RecordReader::Read(const Wanted& wanted) const {
  if (wanted.supplied != nullptr) return Supplied(wanted);
  if (wanted.read_ahead != nullptr)
    for (const ReadRecord& read : *wanted.read_ahead)
      if (read.sample == wanted.sample) return read.stored;
  return InMemory(wanted);
}

RecordReader::Record RecordReader::BelowMemory(const Wanted& wanted) const {
  Record record;
  for (const LookIn look_in : kBelowMemory)
    if ((this->*look_in)(wanted, &record) != Answer::kMissing) break;
  return record;
}

RecordReader::Record RecordReader::Supplied(const Wanted& wanted) const {
  const std::vector<ValueType>& types = places_.types;
  const size_t fields = wanted.supplied->fields.size();
  if (fields != types.size())
    return OfRecord(wanted.sample, InvalidArgument("{} fields, want {}", fields,
                                                   types.size()));
  for (size_t i = 0; i < fields; ++i) {
    const StoredField& field = wanted.supplied->fields[i];
    if (const absl::Status status =
            CheckStored(types[i], field.bytes, field.shape);
        !status.ok())
      return OfRecord(wanted.sample,
                      Annotate(status, fmt::format("field {}", i)));
  }
  return *wanted.supplied;
}

RecordReader::Record RecordReader::InMemory(const Wanted& wanted) const {
  const StageScope reading(Stage::kRead);
  const absl::StatusOr<uint64_t> found = source().FindRecord(wanted.sample);
  if (!found.ok())
    return WithSample(OfRecord(wanted.sample, found.status()), wanted.sample);
  const uint64_t number = *found;
  Wanted below = wanted;
  below.record = number;
  // From a peer: not part of the record's cost.
  std::shared_ptr<const ReadForm> form;
  Record record = context_->cache->Get(
      places_.memory, Kept(wanted.sample, number),
      context_->ownership->Owns(dataset_.id, ShardOf(wanted.sample)), [&] {
        Record read = BelowMemory(below);
        if (read.ok()) form = WithoutForm(&*read);
        return read;
      });
  // Others may wait for the same record under another sample number.
  if (!record.ok()) return WithSample(record.status(), wanted.sample);
  if ((places_.disk != nullptr || SeekFileFound() != nullptr) &&
      !context_->cache->forms().HasForm(places_.memory, number))
    ReadFormOf(number, &*record);
  if (form != nullptr &&
      (record->form == nullptr || record->form->kept.kind < form->kept.kind)) {
    record->form_bytes = form->kept.bytes;
    record->form = std::move(form);
  }
  return record;
}

// A failed prefetch is tried again by the sources below.
RecordReader::Answer RecordReader::Prefetched(const Wanted& wanted,
                                              Record* record) const {
  Prefetch* const prefetch = wanted.prefetch;
  if (prefetch == nullptr || !prefetch->good()) return Answer::kMissing;
  if (!prefetch->of_peer) {
    storage_.Succeeded(wanted.sample);
    if (places_.seek_file != nullptr) places_.seek_file->Look();
    if (places_.disk != nullptr)
      context_->disk->KeepRecord(places_.disk, wanted.record,
                                 **prefetch->stored, Duration::zero());
  }
  *record = *std::move(prefetch->stored);
  return Answer::kFound;
}

RecordReader::Answer RecordReader::OnDisk(const Wanted& wanted,
                                          Record* record) const {
  if (places_.disk == nullptr) return Answer::kMissing;
  std::optional<StoredSample> kept =
      context_->disk->ReadRecord(places_.disk, wanted.record, places_.types);
  if (!kept) return Answer::kMissing;
  *record = *std::move(kept);
  return Answer::kFound;
}

RecordReader::Answer RecordReader::AtPeers(const Wanted& wanted,
                                           Record* record) const {
  if (places_.peers == nullptr ||
      (wanted.prefetch != nullptr && wanted.prefetch->peers_asked))
    return Answer::kMissing;
  std::optional<StoredSample> given =
      places_.peers->Get(wanted.record, ShardOf(wanted.sample));
  if (!given) return Answer::kMissing;
  *record = *std::move(given);
  return Answer::kFound;
}

RecordReader::Answer RecordReader::InStorage(const Wanted& wanted,
                                             Record* record) const {
  const Clock& clock = context_->cache->clock();
  const bool timed = places_.disk != nullptr || places_.peers != nullptr;
  const MonotonicTime began = timed ? clock.Now() : MonotonicTime();
  *record = storage_.Read(wanted.sample);
  if (!record->ok()) return Answer::kFailed;
  const Duration took = timed ? clock.Now() - began : Duration::zero();
  if (places_.seek_file != nullptr) places_.seek_file->Look();
  if (places_.peers != nullptr) places_.peers->CountRead(took);
  if (places_.disk != nullptr)
    context_->disk->KeepRecord(places_.disk, wanted.record, **record, took);
  return Answer::kFound;
}

std::vector<RowRecords> RecordReader::ReadTogether(
    std::span<const RowOf> rows) const {
  std::vector<Prefetch> prefetches = Bring(rows);
  std::vector<RowRecords> records;
  bool away = false;  // storage does not answer
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint64_t sample = rows[i].sample;
    // Its neighbour was already tried for long.
    if (away && prefetches[i].bad()) {
      const absl::Status status = Judged(prefetches[i].stored->status());
      records.push_back(
          {{.sample = sample,
            .stored = WithSample(StorageReader::Elsewhere(status), sample)}});
      continue;
    }
    records.push_back(
        {{.sample = sample,
          .stored = Read({.sample = sample, .prefetch = &prefetches[i]})}});
    const absl::Status status = records.back().front().stored.status();
    const std::optional<Fault> fault = FaultOf(status);
    away = away || fault == Fault::kWorker || fault == Fault::kTransient;
  }
  return records;
}

std::vector<RecordReader::Prefetch> RecordReader::Bring(
    std::span<const RowOf> rows) const {
  std::vector<Prefetch> prefetches(rows.size());
  std::vector<size_t> missing;
  std::vector<WantedRecord> records;
  for (const RowOf& row : rows) {
    const absl::StatusOr<uint64_t> record = source().FindRecord(row.sample);
    records.push_back(
        {record.value_or(Source::kNoRecord), ShardOf(row.sample)});
    // Read tells the error.
    if (record.ok() && !IsKept(*record)) missing.push_back(records.size() - 1);
  }
  if (missing.size() < 2) return prefetches;
  const StageScope reading(Stage::kRead);
  PeerBatch batch;
  PeerRecords* const peers = places_.peers.get();
  if (peers != nullptr)
    missing = BringOfPeers(rows, records, missing, &batch, &prefetches);
  std::vector<uint64_t> samples;
  for (const size_t i : missing) samples.push_back(rows[i].sample);
  const MonotonicTime began = context_->cache->clock().Now();
  std::vector<absl::StatusOr<StoredSample>> read = storage_.ReadMany(samples);
  const Duration took = context_->cache->clock().Now() - began;
  if (read.size() < samples.size()) return prefetches;
  if (peers != nullptr &&
      std::ranges::all_of(read, [](const auto& each) { return each.ok(); }))
    peers->CountTogether(batch, took);
  for (size_t at = 0; at < missing.size(); ++at)
    if (Prefetch& own = prefetches[missing[at]]; !own.stored)
      own.stored = std::move(read[at]);
  return prefetches;
}

std::vector<size_t> RecordReader::BringOfPeers(
    std::span<const RowOf> rows, std::span<const WantedRecord> records,
    std::span<const size_t> missing, PeerBatch* batch,
    std::vector<Prefetch>* prefetches) const {
  std::vector<WantedRecord> wanted;
  for (const size_t i : missing) wanted.push_back(records[i]);
  *batch = places_.peers->GetTogether(wanted);
  std::vector<size_t> left;
  std::vector<uint64_t> samples;
  size_t first = 0, last = 0;  // in `left`, among those missing
  for (size_t at = 0; at < missing.size(); ++at) {
    Prefetch& own = (*prefetches)[missing[at]];
    own.peers_asked = batch->asked;
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
      CountTogether(samples) == left.size())
    return left;
  const auto between = missing.subspan(first, last - first + 1);
  return {between.begin(), between.end()};
}

std::optional<StoredSample> RecordReader::FindKept(uint64_t record) const {
  std::optional<StoredSample> kept =
      context_->cache->Find(places_.memory, record);
  if (places_.disk == nullptr) return kept;
  if (!kept)
    kept = context_->disk->ReadRecord(places_.disk, record, places_.types);
  if (kept && kept->form == nullptr)
    context_->disk->ReadFormOf(places_.disk, record, &*kept);
  return kept;
}

bool RecordReader::TakeFrom(const Peer& peer, uint64_t sample) const {
  const absl::StatusOr<uint64_t> found = source().FindRecord(sample);
  if (!found.ok()) return false;
  const uint64_t record = *found;
  if (IsKept(record)) return true;
  if (places_.peers == nullptr) return false;
  std::optional<StoredSample> taken = places_.peers->GetFrom(peer, record);
  if (!taken) return false;
  const std::shared_ptr<const ReadForm> form = WithoutForm(&*taken);
  const SampleCache::Record where = Kept(sample, record);
  if (!context_->cache->Put(places_.memory, where, *taken)) return false;
  if (form != nullptr)
    context_->cache->forms().KeepForm(places_.memory, record, form->file,
                                      form->kept);
  return true;
}

bool RecordReader::IsKept(uint64_t record) const {
  return context_->cache->Contains(places_.memory, record) ||
         (places_.disk != nullptr &&
          context_->disk->HasRecord(places_.disk, record));
}

// The disk cache is read first: its form may decode faster than the one beside
// the dataset.
void RecordReader::ReadFormOf(uint64_t record, StoredSample* sample) const {
  if (places_.disk != nullptr)
    context_->disk->ReadFormOf(places_.disk, record, sample);
  if (sample->form != nullptr) return;
  if (const SeekFile* const file = SeekFileFound())
    file->ReadFormOf(record, sample);
}

SampleForms RecordReader::FormsOf(uint64_t sample, uint64_t epoch,
                                  const StoredSample& stored) const {
  return {
      context_->cache, &places_.memory,
      source().FindRecord(sample).value_or(Source::kNoRecord),
      SampleOnDisk{.forms = places_.disk == nullptr ? nullptr : context_->disk,
                   .dataset = places_.disk,
                   .read = stored.form},
      WhoseRow{.job = &plan_hash_, .epoch = epoch, .idle = context_->idle}};
}

absl::Status RecordReader::OfRecord(uint64_t sample,
                                    const absl::Status& status) const {
  if (status.ok()) return status;
  return Judged(Annotate(status, source().Describe(sample)));
}

}  // namespace leat::worker
