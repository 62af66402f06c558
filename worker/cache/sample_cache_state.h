// SPDX-License-Identifier: Apache-2.0
//
// What a SampleCache holds.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/mutex.h"
#include "core/status.h"
#include "worker/cache/form_plan.h"
#include "worker/cache/sample_cache.h"

namespace leat::worker {

inline constexpr uint64_t kLeastMeasured = 8;  // decodes or forms, for a mean
// What is assumed of photos as long as it was not measured: of a plain
// decode's time, of the record's bytes, and of a plain decode's time beside it.
struct UsualForm {
  double time = 0, size = 0, making = 0;
};
inline constexpr std::array<UsualForm, kDecodeWays> kUsualForms = {
    {{1, 0, 0}, {0.7, 1.0 / 64, 0.2}, {0.45, 2, 1.5}, {0.05, 5.4, 3}}};

// A record that is kept. Guarded by its slice.
struct SampleCache::Entry {
  struct Form {
    const std::byte* file = nullptr;  // of which it is: a field's bytes
    KeptForm kept;
  };

  bool Holds(std::span<const std::byte> file) const {
    for (const StoredField& field : sample.fields)
      if (field.bytes.data() == file.data() &&
          field.bytes.size() == file.size())
        return true;
    return false;
  }

  StoredSample sample;
  std::unique_ptr<const Form> form;  // null: none
  FormKinds refused;                 // of its file
  // Whether its form is such a one, or a better one.
  bool Has(JpegFormKind kind) const {
    return form != nullptr && (form->kept.kind > kind ||
                               (form->kept.kind == kind && form->kept.whole));
  }
};

struct SampleCache::Kept {
  uint64_t rank = 0;
  uint64_t record = 0;
  uint64_t bytes = 0;
  uint32_t shard = 0;
  friend bool operator<(const Kept& a, const Kept& b) {
    return a.rank < b.rank;
  }
};

class SampleCache::Dataset final : public CachedDataset {
 public:
  struct FormCost {
    JpegFormKind kind = JpegFormKind::kSeekIndex;
    uint64_t bytes = 0;
  };

  Dataset(const Digest& key, std::string id, std::string name, uint64_t number)
      : CachedDataset(key, std::move(name)), number(number) {
    this->id = std::move(id);
  }

  void Describe(CachedDatasetStats* stats) const override;

  const uint64_t number;  // in the keys of slices
  const std::shared_ptr<FormHorizon> horizon = std::make_shared<FormHorizon>();
  // Decodes at one scale.
  struct Decodes {
    std::atomic<uint64_t> asked{0};
    // By way: decodes, and what they took.
    std::array<std::atomic<uint64_t>, kDecodeWays> count{}, ns{};
    // Of plain decodes; and by way, of decodes by a form, and what making one
    // takes beyond a plain decode.
    TimeOfBytes plain;
    std::array<TimeOfBytes, kDecodeWays> by_form, making;
    // What the last plans saw. Guarded by the cache's lock.
    uint64_t asked_before = 0;
    std::array<uint64_t, kDecodeWays> count_before{}, ns_before{};
    std::array<double, kDecodeWays> mean_ns{};  // 0: not known

    // What making such a form of a file will take beyond a plain decode.
    // nullopt: it is not known what that takes.
    std::optional<Duration> CostOf(JpegFormKind kind, size_t file_bytes) const;
    // What a decode of such a file by a form takes if it takes so long plainly;
    // no form: that. It is what was measured or what is usual, whichever is
    // less: the first forms are of small files, whose decodes take long for
    // each byte, and too many forms cost less than too few.
    Duration TimeOf(std::optional<JpegFormKind> kind, size_t file_bytes,
                    Duration plainly) const;
    // Over all decodes by such a form: what plain ones would have taken, less
    // what these did. Negative: nothing was saved.
    double SavedNs(JpegFormKind kind) const;
    // The decodes since the last plan become `mean_ns`. Returns how many were
    // asked for.
    uint64_t LookAgain();
  };
  Decodes& of(DecodeScale scale) {
    return by_scale[static_cast<size_t>(scale)];
  }
  std::array<Decodes, kDecodeScales> by_scale;
  std::atomic<bool> owns_none{false};  // of its shards, this worker
  // Below which ranks records are to have a form of the kind or a larger one.
  std::array<std::atomic<uint64_t>, kDecodeWays> wanted_below{};

  // Guarded by the cache's lock, and so are the functions.
  std::vector<Kept> heap;
  std::vector<bool> owned;
  bool owned_changed = false;
  MonotonicTime owned_changed_at{};
  uint64_t records = 0;  // 0: not known
  // By rank and record.
  std::map<std::pair<uint64_t, uint64_t>, FormCost> forms;
  std::array<uint64_t, kDecodeWays> form_entries{}, form_bytes{};

  uint64_t all_form_bytes() const {
    return std::accumulate(form_bytes.begin(), form_bytes.end(), uint64_t{0});
  }
  // The kind that the plan wants beside a record of this rank.
  std::optional<JpegFormKind> WantedAt(uint64_t rank) const;
  void AddForm(uint64_t rank, uint64_t record, FormCost cost);
  // The bytes that it had; 0: there is none.
  uint64_t RemoveForm(uint64_t rank, uint64_t record);
  // Shards beyond those that were told are owned.
  bool OwnsNone() const {
    return !owned.empty() && std::ranges::none_of(owned, std::identity());
  }
  // Records that are kept or, if it is read, will be.
  double RecordsToKeep(bool living) const;
  // Takes the decodes since the last plan into account. No decodes in it: how
  // long a plain one takes is not known.
  FormDemand DemandSince(double records, double seconds);
};

// A read in progress, shared by those who wait for it. Guarded by its slice.
struct SampleCache::Flight {
  bool done = false;
  bool keep = false;  // one of those who want it may keep it
  absl::StatusOr<StoredSample> result = absl::UnknownError("not read");
};

struct SampleCache::Slice {
  Mutex mu;
  CondVar landed;
  absl::flat_hash_map<Key, Entry> kept ABSL_GUARDED_BY(mu);
  absl::flat_hash_map<Key, std::shared_ptr<Flight>> flights ABSL_GUARDED_BY(mu);
};

}  // namespace leat::worker
