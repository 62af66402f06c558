// SPDX-License-Identifier: Apache-2.0
#include "worker/image/resample/resampler.h"

#include <algorithm>
#include <cstring>

#include "core/status.h"

namespace leat::worker {

absl::Status Resampler::Start(int channels, uint8_t* out, ptrdiff_t stride,
                              WorkingMemory* memory) {
  channels_ = channels;
  out_ = out;
  out_stride_ = stride;
  next_in_ = vertical_.first_input();
  next_out_ = 0;
  // A row stays until no output needs it; several rows may arrive at once.
  int end = 0, span = 1;
  for (int i = 0; i < vertical_.size(); ++i) {
    const ResampleTable::Entry& entry = vertical_.entry(i);
    end = std::max(end, entry.start + entry.taps);
    span = std::max(span, end - entry.start);
  }
  ring_rows_ = span + kRowsAtOnce;
  const auto width = static_cast<size_t>(horizontal_.size());
  pitch_ = (width * channels_ + kRowPadding + 63) / 64 * 64;
  RETURN_IF_ERROR(
      memory->Reserve(pitch_ * static_cast<size_t>(ring_rows_), &ring_));
  taps_.resize(static_cast<size_t>(vertical_.max_taps()) + 1);
  return absl::OkStatus();
}

// REQUIRES: rows.count ≤ kRowsAtOnce.
void Resampler::Horizontal(const PixelRows& rows) {
  const uint8_t* in[kRowsAtOnce];
  uint8_t* out[kRowsAtOnce];
  for (int i = 0; i < kRowsAtOnce; ++i) {
    // Rows that are missing at the end are copies of the last one; their
    // results are not used.
    in[i] = rows.first + std::min(i, rows.count - 1) * rows.stride;
    out[i] = RingRow(next_in_ + i);
  }
  const int base = horizontal_.first_input();
  if (channels_ == 1) {
    for (int i = 0; i < rows.count; ++i)
      kernels_.horizontal_gray(horizontal_, base, in[i], out[i]);
  } else if (horizontal_.copies_a_run()) {
    for (int i = 0; i < rows.count; ++i)
      kernels_.compact(in[i], horizontal_.size(), out[i]);
  } else {
    kernels_.horizontal_rgbx(horizontal_, base, in, out);
  }
}

void Resampler::EmitReady() {
  const size_t bytes = static_cast<size_t>(horizontal_.size()) * channels_;
  for (; next_out_ < vertical_.size(); ++next_out_) {
    const ResampleTable::Entry& entry = vertical_.entry(next_out_);
    if (entry.start + entry.taps > next_in_) return;
    uint8_t* out = out_ + next_out_ * out_stride_;
    if (entry.taps == 1) {
      memcpy(out, RingRow(entry.start), bytes);
      continue;
    }
    for (int t = 0; t < entry.taps; ++t) taps_[t] = RingRow(entry.start + t);
    taps_[entry.taps] = taps_[0];
    kernels_.vertical(taps_.data(), vertical_.weights(next_out_), entry.taps,
                      vertical_.bits(), bytes, out);
  }
}

void Resampler::Feed(const PixelRows& rows) {
  for (int i = 0; i < rows.count; i += kRowsAtOnce) {
    const int count = std::min(kRowsAtOnce, rows.count - i);
    Horizontal({rows.first + i * rows.stride, rows.stride, count});
    next_in_ += count;
    EmitReady();
  }
}

size_t Resampler::scratch_bytes() const {
  return horizontal_.scratch_bytes() + vertical_.scratch_bytes();
}

}  // namespace leat::worker
