// SPDX-License-Identifier: Apache-2.0
//
// Includes foreign headers that most sources include. The dev tree and those of
// sanitizers precompile it for their sources (leat_precompiled in the root's
// CMakeLists.txt). The release tree, lint.headers and lint.tidy do not, so they
// find missing includes.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "spdlog/spdlog.h"

#if defined(LEAT_SANITIZED)  // where most sources are tests
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#endif
