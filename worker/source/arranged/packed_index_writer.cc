// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/packed_index_writer.h"

#include <span>
#include <string>
#include <utility>

#include "core/status.h"
#include "worker/source/arranged/chosen_samples.h"
#include "worker/source/varint.h"

namespace leat::worker {

PackedIndexWriter::PackedIndexWriter(const Packing& packing, bool chosen,
                                     uint64_t block_bytes, Write write)
    : packing_(packing),
      chosen_(chosen),
      block_bytes_(block_bytes),
      write_(std::move(write)),
      cutter_(packing,
              [this](const PackWindow& window, std::span<const uint64_t>) {
                return packing_.how == PackHow::kFit ? EndFitted(window)
                                                     : absl::OkStatus();
              }) {}

// A gap takes a byte or two.
uint64_t PackedIndexWriter::BytesOf(const Document& document) const {
  return VarintBytes(document.elements) + (chosen_ ? 2 : 0);
}

absl::Status PackedIndexWriter::Add(uint64_t sample, uint64_t elements) {
  if (pending_.empty()) first_document_ = cutter_.num_documents();
  pending_.push_back({sample, elements});
  pending_bytes_ += BytesOf(pending_.back());
  elements_ += elements;
  hash_.UpdateU64(sample).UpdateU64(elements);
  RETURN_IF_ERROR(cutter_.Add(elements));
  return packing_.how == PackHow::kCut && BlockIsFull() ? EndCut()
                                                        : absl::OkStatus();
}

absl::Status PackedIndexWriter::EndFitted(const PackWindow& window) {
  block_.add_window_documents(window.documents);
  block_.add_window_rows(window.rows);
  block_.set_rows(block_.rows() + window.rows);
  rows_ += window.rows;
  in_windows_ += window.documents;
  // A block without rows would be of no use.
  return BlockIsFull() && block_.rows() > 0 ? Flush(in_windows_)
                                            : absl::OkStatus();
}

absl::Status PackedIndexWriter::EndCut() {
  const uint64_t step = packing_.length - packing_.overlap;
  const uint64_t whole =
      elements_ < packing_.length ? 0 : (elements_ - packing_.overlap) / step;
  if (whole == rows_) return absl::OkStatus();  // a row needs more documents
  block_.set_rows(whole - rows_);
  block_.set_first_element(rows_ * step - begin_);
  // The next block begins with the document that has the next row's first
  // element.
  size_t done = 0;
  uint64_t end = begin_;
  while (done < pending_.size() &&
         end + pending_[done].elements <= whole * step)
    end += pending_[done++].elements;
  rows_ = whole;
  begin_ = end;
  in_windows_ = done;
  return Flush(pending_.size());
}

absl::Status PackedIndexWriter::Flush(size_t documents) {
  block_.set_first_document(first_document_);
  block_.set_documents(documents);
  uint64_t before = 0;
  std::string lengths, gaps;
  lengths.reserve(pending_bytes_);
  for (const Document& document : std::span(pending_).first(documents)) {
    AppendVarint(document.elements, &lengths);
    if (chosen_)
      ChosenSamples::Append(document.sample,
                            std::exchange(before, document.sample), &gaps);
  }
  block_.set_lengths(std::move(lengths));
  block_.set_gaps(std::move(gaps));
  pending_.erase(pending_.begin(),
                 pending_.begin() + static_cast<ptrdiff_t>(in_windows_));
  first_document_ += in_windows_;
  in_windows_ = 0;
  pending_bytes_ = 0;
  for (const Document& document : pending_) pending_bytes_ += BytesOf(document);
  const stored::v1::PackedBlock block = std::exchange(block_, {});
  return write_(block, block.rows());
}

absl::Status PackedIndexWriter::Finish() {
  RETURN_IF_ERROR(cutter_.Finish());
  if (packing_.how == PackHow::kCut) {
    RETURN_IF_ERROR(EndCut());
  } else if (block_.rows() > 0) {
    RETURN_IF_ERROR(Flush(in_windows_));
  }
  if (rows_ > 0) return absl::OkStatus();
  const PackWindow all = {cutter_.num_documents(), elements_, 0};
  return PackedRows::Create(packing_, {&all, 1}).status();
}

}  // namespace leat::worker
