// SPDX-License-Identifier: Apache-2.0
#include "worker/cache/sample_dataset.h"

#include <bit>

namespace leat::worker {

void SampleDataset::AddForm(const FormPlace& place, FormCost cost) {
  forms[place] = cost;
  ++form_entries[WayOf(cost.kind)];
  form_bytes[WayOf(cost.kind)] += cost.bytes;
}

uint64_t SampleDataset::RemoveForm(const FormPlace& place) {
  const auto it = forms.find(place);
  if (it == forms.end()) return 0;
  const FormCost cost = it->second;
  forms.erase(it);
  --form_entries[WayOf(cost.kind)];
  form_bytes[WayOf(cost.kind)] -= cost.bytes;
  return cost.bytes;
}

uint64_t SampleDataset::RemoveForms(uint64_t rank, uint64_t record) {
  uint64_t removed = 0;
  for (;;) {
    const auto it = forms.lower_bound({rank, record, 0});
    if (it == forms.end()) return removed;
    const FormPlace place = it->first;
    if (place.rank != rank || place.record != record) return removed;
    removed += RemoveForm(place);
  }
}

double SampleDataset::RecordsToKeep(bool living) const {
  const auto have = static_cast<double>(entries);
  if (!living) return have;
  double share = 1;
  if (!owned.empty())
    share = static_cast<double>(std::count(owned.begin(), owned.end(), true)) /
            static_cast<double>(owned.size());
  return std::max(have, share * static_cast<double>(records));
}

// Times are means over the decodes of each class, weighted by their number.
FormDemand SampleDataset::DemandSince(double to_keep, double seconds) {
  std::array<double, kDecodeClasses> asked_since{};
  double known = 0;
  for (size_t i = 0; i < kDecodeClasses; ++i) {
    asked_since[i] = static_cast<double>(by_class[i].LookAgain());
    if (by_class[i].mean_ns[0] > 0) known += asked_since[i];
  }
  const double files = std::max(1, std::popcount(decoded_fields.load()));
  const double file_bytes =
      static_cast<double>(bytes) / static_cast<double>(entries) / files;
  const auto ns_of = [&](size_t way) {
    double ns = 0;
    for (size_t i = 0; i < kDecodeClasses && known > 0; ++i) {
      const std::array<double, kDecodeWays>& mean = by_class[i].mean_ns;
      const double each =
          mean[way] > 0 ? mean[way] : by_class[i].usual[way].time * mean[0];
      if (mean[0] > 0) ns += asked_since[i] / known * each;
    }
    return ns;
  };
  const auto usual_size = [&](size_t way) {
    double size = 0;
    for (size_t i = 0; i < kDecodeClasses && known > 0; ++i)
      if (by_class[i].mean_ns[0] > 0)
        size += asked_since[i] / known * by_class[i].usual[way].size;
    return size;
  };
  const auto form = [&](JpegFormKind kind) {
    const size_t way = WayOf(kind);
    const uint64_t count = form_entries[way];
    return FormDemand::Form{
        .bytes = count < kLeastMeasured
                     ? kFormBytes + usual_size(way) * file_bytes
                     : static_cast<double>(form_bytes[way]) /
                           static_cast<double>(count),
        .ns = ns_of(way)};
  };
  return {.files = to_keep * files,
          .decodes = known / seconds,
          .plain_ns = ns_of(0),
          .seek_index = form(JpegFormKind::kSeekIndex),
          .coefficients = form(JpegFormKind::kCoefficients),
          .pixels = form(JpegFormKind::kPixels)};
}

std::optional<JpegFormKind> SampleDataset::WantedAt(uint64_t rank) const {
  std::optional<JpegFormKind> wanted;
  for (const JpegFormKind kind : kJpegFormKinds)
    if (rank < wanted_below[WayOf(kind)]) wanted = kind;
  return wanted;
}

void SampleDataset::Describe(CachedDatasetStats* stats) const {
  stats->bytes += all_form_bytes();
  for (const JpegFormKind kind : kJpegFormKinds) {
    const size_t way = WayOf(kind);
    uint64_t hits = 0;
    double saved_ns = 0;
    for (const DecodeCosts& decodes : by_class) {
      hits += decodes.count[way];
      saved_ns += decodes.SavedNs(kind);
    }
    if (form_entries[way] + hits == 0) continue;
    stats->forms.push_back(
        {.form = FormName(kind),
         .bytes = form_bytes[way],
         .entries = form_entries[way],
         .hits = hits,
         .saved_ms = static_cast<uint64_t>(std::max(0.0, saved_ns / 1e6))});
  }
}

}  // namespace leat::worker
