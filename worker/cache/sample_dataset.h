// SPDX-License-Identifier: Apache-2.0
//
// SampleDataset: a SampleCache's data of one dataset: which of its records are
// kept, which forms are kept beside them, and how long its decodes take.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/hash.h"
#include "worker/cache/decode_costs.h"
#include "worker/cache/form_horizon.h"
#include "worker/cache/form_plan.h"
#include "worker/image/jpeg/forms/keeper.h"
#include "worker/source/disk_cache/cache_shares.h"

namespace leat::worker {

// A record of the dataset that is kept.
struct KeptRecord {
  uint64_t rank = 0;
  uint64_t record = 0;
  uint64_t bytes = 0;
  uint32_t shard = 0;
  friend bool operator<(const KeptRecord& a, const KeptRecord& b) {
    return a.rank < b.rank;
  }
};

class SampleDataset final : public CachedDataset {
 public:
  static constexpr uint64_t kFormBytes = 192;  // in addition to a form

  // A form is beside a field of a record, which has this rank.
  struct FormPlace {
    uint64_t rank = 0;
    uint64_t record = 0;
    size_t field = 0;
    friend auto operator<=>(const FormPlace&, const FormPlace&) = default;
  };
  struct FormCost {
    JpegFormKind kind = JpegFormKind::kSeekIndex;
    uint64_t bytes = 0;
  };

  SampleDataset(const Digest& key, std::string id, std::string name,
                uint64_t number)
      : CachedDataset(key, std::move(name)), number(number) {
    this->id = std::move(id);
  }

  void Describe(CachedDatasetStats* stats) const override;

  const uint64_t number;  // in the keys of slices
  const std::shared_ptr<FormHorizon> horizon = std::make_shared<FormHorizon>();
  DecodeCosts& of(DecodeClass decode) {
    return by_class[static_cast<size_t>(decode)];
  }
  std::array<DecodeCosts, kDecodeClasses> by_class = {
      DecodeCosts(DecodeClass::kFull), DecodeCosts(DecodeClass::kReduced),
      DecodeCosts(DecodeClass::kOtherFormat)};
  // The fields of images that were decoded, as bits; the last is for all others.
  std::atomic<uint64_t> decoded_fields{0};
  void SawField(size_t field) {
    const uint64_t bit = uint64_t{1} << std::min<size_t>(field, 63);
    if ((decoded_fields & bit) == 0) decoded_fields |= bit;
  }
  std::atomic<bool> owns_none{false};  // this worker owns none of its shards
  // Records of ranks below these are to have a form of the kind or a larger
  // one.
  std::array<std::atomic<uint64_t>, kDecodeWays> wanted_below{};

  // Guarded by the cache's lock, and so are the functions.
  std::vector<KeptRecord> heap;
  std::vector<bool> owned;
  bool owned_changed = false;
  MonotonicTime owned_changed_at{};
  uint64_t records = 0;  // 0: not known
  std::map<FormPlace, FormCost> forms;
  std::array<uint64_t, kDecodeWays> form_entries{}, form_bytes{};

  uint64_t all_form_bytes() const {
    return std::accumulate(form_bytes.begin(), form_bytes.end(), uint64_t{0});
  }
  // Returns the kind that the plan wants beside a record of this rank.
  std::optional<JpegFormKind> WantedAt(uint64_t rank) const;
  void AddForm(const FormPlace& place, FormCost cost);
  // Returns the form's bytes; 0 if there is none.
  uint64_t RemoveForm(const FormPlace& place);
  // Returns the bytes of all forms of the record.
  uint64_t RemoveForms(uint64_t rank, uint64_t record);
  // Shards beyond those that were set are owned.
  bool OwnsNone() const {
    return !owned.empty() && std::ranges::none_of(owned, std::identity());
  }
  // Returns the records that are kept or, if the dataset is read, will be.
  double RecordsToKeep(bool living) const;
  // Takes the decodes since the last plan into account. Returns a demand
  // without decodes if the time of a plain one is not known.
  FormDemand DemandSince(double records, double seconds);
};

}  // namespace leat::worker
