// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/row_packer.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "worker/source/arranged/packing_message.h"
#include "worker/source/each_file.h"
#include "worker/source/varint.h"

namespace leat::worker {
namespace {

constexpr size_t kDocumentsTogether = 64;  // that a thread measures
constexpr size_t kDocumentsAtATime = 64 * kDocumentsTogether;

}  // namespace

RowPacker::RowPacker(PackNode pack, std::vector<ValueType> types, bool chosen,
                     const Source* documents, const SourceLimits& limits,
                     ListingTrail* trail)
    : pack_(std::move(pack)),
      types_(std::move(types)),
      documents_(documents),
      limits_(limits),
      trail_(trail),
      element_bytes_(PackedElementBytes(types_[pack_.outputs[0]])),
      blob_(limits),
      writer_(pack_.packing, chosen,
              limits.blocks == nullptr ? std::numeric_limits<uint64_t>::max()
                                       : limits.block_bytes / 2,
              [this](const stored::v1::PackedBlock& block, uint64_t rows) {
                RETURN_IF_ERROR(blob_.Add(block, rows));
                // A block has one message, also where two would fit.
                return limits_.blocks == nullptr ? absl::OkStatus()
                                                 : blob_.Finish().status();
              }) {}

absl::Status RowPacker::Begin(const std::string& text, const Digest& base) {
  const absl::Status length = documents_->IndexedColumn("length", 0).status();
  if (!length.ok() && !absl::IsUnimplemented(length)) return length;
  indexed_ = length.ok();
  stored::v1::ArrangedHead head;
  head.set_text(text);
  head.set_base_fingerprint(BytesOf(base));
  *head.mutable_packing() = ToStored(pack_, types_);
  return blob_.Add(head);
}

absl::Status RowPacker::Add(uint64_t sample) {
  ++chosen_samples_;
  pending_.push_back(sample);
  return pending_.size() < kDocumentsAtATime ? absl::OkStatus() : Measure();
}

uint64_t RowPacker::LengthOf(const StoredSample& stored) const {
  return stored.fields[pack_.outputs[0]].bytes.size() / element_bytes_;
}

absl::Status RowPacker::MeasureSome(std::span<const uint64_t> samples,
                                    std::span<uint64_t> lengths) const {
  if (indexed_) {
    for (size_t i = 0; i < samples.size(); ++i) {
      ASSIGN_OR_RETURN(const int64_t length,
                       documents_->IndexedColumn("length", samples[i]));
      lengths[i] = static_cast<uint64_t>(length);
    }
    return absl::OkStatus();
  }
  const std::vector<absl::StatusOr<StoredSample>> stored =
      documents_->ReadMany(samples);
  for (size_t i = 0; i < samples.size(); ++i) {
    if (stored[i].ok()) {
      if (pack_.outputs[0] >= stored[i]->fields.size())
        return DataLoss("{} has {} values, and output {} is packed",
                        documents_->Describe(samples[i]),
                        stored[i]->fields.size(), pack_.outputs[0]);
      lengths[i] = LengthOf(*stored[i]);
      continue;
    }
    const std::optional<Fault> fault = FaultOf(stored[i].status());
    if (fault && *fault != Fault::kSample)
      return Annotate(stored[i].status(), documents_->Describe(samples[i]));
    lengths[i] = kNoLength;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint64_t>> RowPacker::ReadLengths() const {
  std::vector<uint64_t> lengths(pending_.size());
  if (indexed_) {  // threads would take longer than it takes
    RETURN_IF_ERROR(MeasureSome(pending_, lengths));
    return lengths;
  }
  RETURN_IF_ERROR(ForEachIndex(
      (pending_.size() + kDocumentsTogether - 1) / kDocumentsTogether,
      limits_.listing_threads, limits_.cancelled, [&](size_t i) {
        const size_t first = i * kDocumentsTogether;
        const size_t count =
            std::min(kDocumentsTogether, pending_.size() - first);
        return MeasureSome(std::span(pending_).subspan(first, count),
                           std::span(lengths).subspan(first, count));
      }));
  return lengths;
}

// The trail has a varint for each document: its length and 1; or 0, a bad
// record.
absl::StatusOr<std::vector<uint64_t>> RowPacker::TakeOrReadLengths() {
  ASSIGN_OR_RETURN(const std::optional<std::string> taken,
                   trail_->Take(pending_));
  if (taken) {
    std::vector<uint64_t> lengths(pending_.size());
    std::string_view rest = *taken;
    const bool whole = std::ranges::all_of(lengths, [&](uint64_t& length) {
      const bool there = TakeVarint(&rest, &length);
      --length;  // kNoLength of 0
      return there;
    });
    if (whole && rest.empty()) return lengths;
    trail_->Refuse();
  }
  ASSIGN_OR_RETURN(std::vector<uint64_t> lengths, ReadLengths());
  std::string found;
  for (const uint64_t length : lengths) AppendVarint(length + 1, &found);
  trail_->Add(pending_, std::move(found));
  return lengths;
}

absl::Status RowPacker::Measure() {
  ASSIGN_OR_RETURN(std::vector<uint64_t> lengths,
                   indexed_ ? ReadLengths() : TakeOrReadLengths());
  for (size_t i = 0; i < pending_.size(); ++i) {
    if (lengths[i] == kNoLength) {
      passed_over_.Add("bad documents", documents_->Describe(pending_[i]));
      lengths[i] = 0;
    }
    if (const absl::Status added = writer_.Add(pending_[i], lengths[i]);
        !added.ok())
      return Annotate(added, documents_->Describe(pending_[i]));
  }
  pending_.clear();
  return absl::OkStatus();
}

absl::StatusOr<std::string> RowPacker::Finish() {
  RETURN_IF_ERROR(Measure());
  RETURN_IF_ERROR(writer_.Finish());
  return blob_.Finish();
}

}  // namespace leat::worker
