// SPDX-License-Identifier: Apache-2.0
//
// MetricPage writes metrics in Prometheus' text format. A page is made for each
// scrape, from the messages that daemons report anyway:
//
//   FieldMetric{.field = "cache_hits_total", .name = "leat_cache_hits_total",
//               .kind = MetricKind::kCounter, .label = "cache",
//               .value = "memory"}
//   and a message with cache_hits_total = 7
//     ─► leat_cache_hits_total{cache="memory"} 7
//
// Every declared metric is on the page, with its help, even if it has no
// series. Thread-compatible.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "google/protobuf/message.h"

namespace leat::rpc {

enum class MetricKind : uint8_t { kCounter, kGauge, kHistogram };

// How several messages with the same labels are combined to one series.
enum class Fold : uint8_t { kSum, kMost };

struct Metric {
  std::string_view name;  // "leat_…"
  MetricKind kind = MetricKind::kGauge;
  std::string_view help;
};

// The metric of a message's field.
struct FieldMetric {
  std::string_view field;
  // Empty: the field is not a metric, and `help` says why.
  std::string_view name;
  MetricKind kind = MetricKind::kGauge;
  std::string_view help;
  // One label, if several fields share a metric.
  std::string_view label = {}, value = {};
  double scale = 1;  // to base units
  Fold fold = Fold::kSum;
};

class MetricPage {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;
  struct Bucket {
    double most = 0;     // upper bound
    uint64_t count = 0;  // of all values up to it
  };

  void Declare(const Metric& metric);
  void Declare(std::span<const FieldMetric> fields);
  // REQUIRES: the metric is not a histogram.
  void Add(const Metric& metric, const Labels& labels, double value,
           Fold fold = Fold::kSum);
  // Adds the numbers of a message's fields.
  void Add(std::span<const FieldMetric> fields,
           const google::protobuf::Message& message, const Labels& labels);
  // `buckets` ascend, without the unbounded one.
  void AddHistogram(const Metric& metric, const Labels& labels,
                    std::vector<Bucket> buckets, uint64_t count, double sum);

  std::string Text() const;

 private:
  struct Series {
    double value = 0;
    std::vector<Bucket> buckets;
    uint64_t count = 0;
  };
  struct Family {
    MetricKind kind = MetricKind::kGauge;
    std::string help;
    std::map<Labels, Series> series;
  };
  Family& FamilyOf(const Metric& metric);

  std::map<std::string, Family, std::less<>> families_;
};

}  // namespace leat::rpc
