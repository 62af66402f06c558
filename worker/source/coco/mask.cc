// SPDX-License-Identifier: Apache-2.0
//
// An outline is walked in steps of a fifth of a pixel. Where it crosses the
// middle of a column, at some height, the area below changes from outside to
// inside or back. A run of the inside lies between two such crossings, in the
// order down the columns.
#include "worker/source/coco/mask.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/status.h"

namespace leat::worker {
namespace {

constexpr double kSteps = 5;  // per pixel

struct Point {
  int x = 0, y = 0;  // in steps
};

// Rounds half a step further, towards zero, as COCO's masks do.
int Rounded(double steps) {
  const double further = steps + .5;
  return static_cast<int>(further);
}

Point At(std::span<const float> vertices, size_t i) {
  return {Rounded(kSteps * vertices[2 * i]),
          Rounded(kSteps * vertices[2 * i + 1])};
}

// Calls `use` for the points from `from` to `to`, both included. Each edge is
// computed from its lesser end along its longer axis, in whichever direction it
// is walked.
template <class Use>
void Walk(Point from, Point to, Use use) {
  const int dx = std::abs(to.x - from.x), dy = std::abs(to.y - from.y);
  const bool along_x = dx >= dy;
  const bool back = along_x ? from.x > to.x : from.y > to.y;
  const Point low = back ? to : from, high = back ? from : to;
  const int length = along_x ? dx : dy;
  const int rise = along_x ? high.y - low.y : high.x - low.x;
  const double slope = length == 0 ? 0 : static_cast<double>(rise) / length;
  for (int i = 0; i <= length; ++i) {
    const int t = back ? length - i : i;
    const auto across = [&](int begin) { return Rounded(begin + slope * t); };
    use(along_x ? Point{low.x + t, across(low.y)}
                : Point{across(low.x), low.y + t});
  }
}

}  // namespace

absl::StatusOr<std::vector<uint32_t>> ParseCocoRuns(std::string_view text) {
  std::vector<uint32_t> runs;
  size_t at = 0;
  while (at < text.size()) {
    int64_t run = 0;
    int shift = 0;
    for (bool more = true; more; shift += 5) {
      const int c = at < text.size() ? text[at] - 48 : -1;
      if (c < 0 || c > 63 || shift > 30)
        return DataLoss("no run-length text at its character {}", at);
      ++at;
      run |= static_cast<int64_t>(c & 31) << shift;
      more = (c & 32) != 0;
      if (!more && (c & 16) != 0) run -= int64_t{1} << (shift + 5);
    }
    if (runs.size() > 2) run += runs[runs.size() - 2];
    if (run < 0 || run > UINT32_MAX)
      return DataLoss("run {} is {}, want 0 to {}", runs.size(), run,
                      UINT32_MAX);
    runs.push_back(static_cast<uint32_t>(run));
  }
  return runs;
}

absl::Status CheckCocoOutline(std::span<const float> vertices, uint32_t height,
                              uint32_t width) {
  double outline = 0;
  const size_t count = vertices.size() / 2;
  for (size_t i = 0; i < count; ++i) {
    const double x = vertices[2 * i], y = vertices[2 * i + 1];
    const auto near = [](double at, uint32_t size) {
      return at >= -1.0 * size && at <= 2.0 * size;
    };
    if (!near(x, width) || !near(y, height))
      return DataLoss(
          "vertex ({}, {}) is far outside the image, which is {} x {}", x, y,
          width, height);
    const size_t next = (i + 1) % count;
    outline += std::max(std::abs(vertices[2 * next] - x),
                        std::abs(vertices[2 * next + 1] - y));
  }
  if (outline <= kMaxCocoOutline) return absl::OkStatus();
  return DataLoss("an outline of {} pixels: the limit is {}", outline,
                  kMaxCocoOutline);
}

CocoMask::CocoMask(std::span<int32_t> pixels, uint32_t height, uint32_t width)
    : pixels_(pixels), height_(height), width_(width) {
  std::fill(pixels.begin(), pixels.end(), 0);
}

void CocoMask::Fill(uint64_t begin, uint64_t end, int32_t label) {
  uint64_t x = begin / height_, y = begin % height_;
  for (; begin < end; ++begin) {
    pixels_[y * width_ + x] = label;
    if (++y < height_) continue;
    y = 0;
    ++x;
  }
}

void CocoMask::DrawRuns(std::span<const uint32_t> runs, int32_t label) {
  uint64_t at = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (i % 2 == 1) Fill(at, at + runs[i], label);
    at += runs[i];
  }
}

void CocoMask::DrawPolygon(std::span<const float> vertices, int32_t label) {
  const size_t count = vertices.size() / 2;
  if (count == 0) return;
  edges_.clear();
  const auto columns = static_cast<int>(width_);
  const auto rows = static_cast<double>(height_);
  bool first = true;
  Point last;
  const auto look = [&](Point point) {
    // The column whose middle lies between the two.
    const int x = point.x < last.x ? point.x : point.x - 1;
    const bool crosses =
        !first && point.x != last.x && x >= 0 && x % 5 == 2 && x / 5 < columns;
    if (crosses) {
      const double y = (std::min(point.y, last.y) + .5) / kSteps - .5;
      const double row = std::ceil(std::clamp(y, 0.0, rows));
      edges_.push_back(static_cast<uint64_t>(x / 5) * height_ +
                       static_cast<uint64_t>(row));
    }
    first = false;
    last = point;
  };
  for (size_t i = 0; i < count; ++i)
    Walk(At(vertices, i), At(vertices, (i + 1) % count), look);
  edges_.push_back(height_ * width_);
  std::sort(edges_.begin(), edges_.end());
  for (size_t i = 0; i + 1 < edges_.size(); i += 2)
    Fill(edges_[i], edges_[i + 1], label);
}

}  // namespace leat::worker
