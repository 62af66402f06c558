// SPDX-License-Identifier: Apache-2.0
//
// Rows first: each row of the part that a result needs is resampled once, into
// a ring of as many rows as there are taps. Columns first: each row of the
// result is summed up, then resampled.
#include "worker/image/resample/dali_resampler.h"

#include <algorithm>
#include <cstring>

#include "core/status.h"
#include "worker/image/resample/gather.h"

namespace leat::worker {

Rect DaliResampler::Plan(const View& view) {
  across_.SetAxis(view.across());
  down_.SetAxis(view.down());
  across_first_ = AcrossFirst(across_, down_);
  const Rect& after = view.after();
  across_.Build(!across_first_, false, static_cast<int>(after.x),
                static_cast<int>(after.width), view.mirror_x());
  down_.Build(across_first_, true, static_cast<int>(after.y),
              static_cast<int>(after.height), false);
  columns_ = static_cast<size_t>(across_.end_input() - across_.first_input());
  const Rect& from = view.before();
  return {from.x + across_.first_input(), from.y + down_.first_input(),
          across_.end_input() - across_.first_input(),
          down_.end_input() - down_.first_input()};
}

absl::Status DaliResampler::Run(const Pixels& pixels, size_t channels,
                                uint8_t* out, ptrdiff_t stride,
                                WorkingMemory* memory) {
  const auto shifted = [](const DaliTable& table, std::vector<int32_t>* to) {
    to->assign(table.starts().begin(), table.starts().end());
    for (int32_t& start : *to)
      start += table.taps_before() - table.first_input();
  };
  shifted(across_, &starts_);
  shifted(down_, &rows_);
  if (across_.nearest() && down_.nearest()) {
    Copy(pixels, channels, out, stride);
    return absl::OkStatus();
  }
  const auto width = static_cast<size_t>(across_.size());
  const auto taps = static_cast<size_t>(across_.taps_before()) +
                    static_cast<size_t>(across_.taps_behind());
  const size_t padded = (columns_ + taps) * pixels.step + kDaliPadding;
  ring_pitch_ = width * channels + kDaliPadding;
  const size_t ring =
      ring_pitch_ * (across_first_ ? static_cast<size_t>(down_.taps()) : 1);
  RETURN_IF_ERROR(memory->Reserve(padded * sizeof(float), &padded_));
  RETURN_IF_ERROR(memory->Reserve(ring * sizeof(float), &ring_));
  if (across_first_)
    RunAcrossFirst(pixels, channels, out, stride);
  else
    RunDownFirst(pixels, channels, out, stride);
  return absl::OkStatus();
}

void DaliResampler::Copy(const Pixels& pixels, size_t channels, uint8_t* out,
                         ptrdiff_t stride) {
  Gather({.first = pixels.first,
          .pitch = pixels.pitch,
          .step = pixels.step,
          .end = pixels.end,
          .channels = channels,
          .rows = rows_,
          .columns = starts_},
         out, stride, &offsets_);
}

void DaliResampler::RepeatEdges(size_t step) {
  const auto before = static_cast<size_t>(across_.taps_before());
  const auto behind = static_cast<size_t>(across_.taps_behind());
  float* const first = padded_floats() + before * step;
  for (size_t i = 0; i < before; ++i)
    memcpy(padded_floats() + i * step, first, step * sizeof(float));
  float* const last = first + (columns_ - 1) * step;
  for (size_t i = 1; i <= behind; ++i)
    memcpy(last + i * step, last, step * sizeof(float));
}

void DaliResampler::Across(size_t step, size_t channels, float* out) {
  loops_.across(padded_floats(), starts_.data(), across_.weights(),
                across_.taps(), static_cast<size_t>(across_.size()), step,
                channels, out);
}

void DaliResampler::RunAcrossFirst(const Pixels& pixels, size_t channels,
                                   uint8_t* out, ptrdiff_t stride) {
  const int taps = down_.taps();
  const int rows = down_.end_input() - down_.first_input();
  const size_t row_bytes = columns_ * pixels.step;
  float* const middle =
      padded_floats() +
      static_cast<size_t>(across_.taps_before()) * pixels.step;
  float_taps_.resize(static_cast<size_t>(taps));
  const auto ring = [&](int row) {
    return ring_floats() + static_cast<size_t>(row % taps) * ring_pitch_;
  };
  int next = 0;  // first row of the part that is not in the ring yet
  for (int y = 0; y < down_.size(); ++y, out += stride) {
    for (int t = 0; t < taps; ++t) {
      const int row =
          std::clamp(rows_[y] + t - down_.taps_before(), 0, rows - 1);
      for (next = std::max(next, t == 0 ? row : 0); next <= row; ++next) {
        loops_.widen(pixels.first + static_cast<size_t>(next) * pixels.pitch,
                     row_bytes, middle);
        RepeatEdges(pixels.step);
        Across(pixels.step, channels, ring(next));
      }
      float_taps_[static_cast<size_t>(t)] = ring(row);
    }
    loops_.down_floats(float_taps_.data(),
                       down_.weights() + static_cast<size_t>(y) * taps, taps,
                       static_cast<size_t>(across_.size()) * channels, out);
  }
}

void DaliResampler::RunDownFirst(const Pixels& pixels, size_t channels,
                                 uint8_t* out, ptrdiff_t stride) {
  const int taps = down_.taps();
  const int rows = down_.end_input() - down_.first_input();
  float* const middle =
      padded_floats() +
      static_cast<size_t>(across_.taps_before()) * pixels.step;
  byte_taps_.resize(static_cast<size_t>(taps));
  for (int y = 0; y < down_.size(); ++y, out += stride) {
    for (int t = 0; t < taps; ++t) {
      const int row =
          std::clamp(rows_[y] + t - down_.taps_before(), 0, rows - 1);
      byte_taps_[static_cast<size_t>(t)] =
          pixels.first + static_cast<size_t>(row) * pixels.pitch;
    }
    loops_.down_bytes(byte_taps_.data(),
                      down_.weights() + static_cast<size_t>(y) * taps, taps,
                      columns_ * pixels.step, middle);
    RepeatEdges(pixels.step);
    Across(pixels.step, channels, ring_floats());
    loops_.finish(ring_floats(), static_cast<size_t>(across_.size()) * channels,
                  out);
  }
}

size_t DaliResampler::scratch_bytes() const {
  return across_.scratch_bytes() + down_.scratch_bytes() +
         (starts_.capacity() + rows_.capacity() + offsets_.capacity()) *
             sizeof(int32_t);
}

}  // namespace leat::worker
