// SPDX-License-Identifier: Apache-2.0
//
// Random arguments of a resize, for tests that compare two ways of computing
// it.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/pipeline/graph.h"

namespace leat::worker {

// For images of any size. `exact`: the result is (height, width); otherwise at
// least that.
inline std::map<std::string, Value> RandomResizing(int64_t height,
                                                   int64_t width, bool exact,
                                                   std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  const auto text = [](const char* of) { return Value(std::string(of)); };
  const std::vector<int64_t> size{height, width};
  std::map<std::string, Value> args;
  const auto side = static_cast<double>(std::max(height, width));
  switch (exact ? 0 : below(4)) {
    case 0:
      args["size"] = size;
      args["mode"] = text(below(2) == 0 ? "stretch" : "default");
      if (below(3) == 0)
        args["max_size"] = std::vector<int64_t>{height + below(2), width};
      break;
    case 1:
      args["size"] = size;
      args["mode"] = text("not_smaller");
      break;
    case 2:
      args["shorter"] = side + below(3) / 3.0;
      break;
    default:
      args["size"] = std::vector<int64_t>{height, width};
      args["mode"] = text("not_smaller");
      args["max_size"] = std::vector<int64_t>{65'500};
  }
  if (below(2) == 0) {
    const auto pair = [&] {
      return std::vector<double>{below(1000) / 1000.0, below(1000) / 1000.0};
    };
    std::vector<double> start = pair(), end = pair();
    for (size_t d = 0; d < 2; ++d)
      end[d] = start[d] + (1 - start[d]) * (0.2 + 0.7 * end[d]);
    args["roi_start"] = start;
    args["roi_end"] = end;
    args["roi_relative"] = true;
  }
  args["subpixel_scale"] = below(2) == 0;
  const char* const filters[] = {"same",  "linear",   "nearest",
                                 "cubic", "lanczos3", "gaussian"};
  args["min_filter"] = text(filters[below(6)]);
  args["mag_filter"] = text(filters[below(6)]);
  return args;
}

}  // namespace leat::worker
