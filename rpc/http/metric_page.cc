// SPDX-License-Identifier: Apache-2.0
#include "rpc/http/metric_page.h"

#include <algorithm>
#include <optional>

#include "google/protobuf/descriptor.h"
#include "prometheus/metric_family.h"
#include "prometheus/text_serializer.h"

namespace leat::rpc {
namespace {

using google::protobuf::FieldDescriptor;

// Names come from users. Prometheus rejects a page with a label that is not
// UTF-8, so a long one is cut between characters.
std::string LabelOf(const std::string& text) {
  constexpr size_t kMost = 128;
  if (text.size() <= kMost) return text;
  size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;
  return text.substr(0, end);
}

Metric MetricOf(const FieldMetric& field) {
  return {.name = field.name, .kind = field.kind, .help = field.help};
}

// Returns nullopt if the field is not a single number.
std::optional<double> NumberIn(const google::protobuf::Message& message,
                               const FieldDescriptor* field) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if (field == nullptr || field->is_repeated()) return std::nullopt;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT64:
      return static_cast<double>(reflection.GetUInt64(message, field));
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.GetUInt32(message, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return static_cast<double>(reflection.GetInt64(message, field));
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.GetInt32(message, field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.GetDouble(message, field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, field) ? 1 : 0;
    default:
      return std::nullopt;
  }
}

prometheus::MetricType TypeOf(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return prometheus::MetricType::Counter;
    case MetricKind::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricKind::kHistogram:
      break;
  }
  return prometheus::MetricType::Histogram;
}

}  // namespace

MetricPage::Family& MetricPage::FamilyOf(const Metric& metric) {
  const auto found = families_.find(metric.name);
  if (found != families_.end()) return found->second;
  Family& family = families_[std::string(metric.name)];
  family.kind = metric.kind;
  family.help = metric.help;
  return family;
}

void MetricPage::Declare(const Metric& metric) { FamilyOf(metric); }

void MetricPage::Declare(std::span<const FieldMetric> fields) {
  for (const FieldMetric& field : fields)
    if (!field.name.empty()) Declare(MetricOf(field));
}

void MetricPage::Add(const Metric& metric, const Labels& labels, double value,
                     Fold fold) {
  Labels cut = labels;
  for (auto& [name, text] : cut) text = LabelOf(text);
  const auto [at, is_new] =
      FamilyOf(metric).series.try_emplace(std::move(cut), Series{value, {}, 0});
  if (is_new) return;
  double& kept = at->second.value;
  kept = fold == Fold::kSum ? kept + value : std::max(kept, value);
}

void MetricPage::Add(std::span<const FieldMetric> fields,
                     const google::protobuf::Message& message,
                     const Labels& labels) {
  for (const FieldMetric& field : fields) {
    if (field.name.empty()) continue;
    const std::optional<double> number = NumberIn(
        message,
        message.GetDescriptor()->FindFieldByName(std::string(field.field)));
    if (!number) continue;
    Labels all = labels;
    if (!field.label.empty()) all.emplace_back(field.label, field.value);
    Add(MetricOf(field), all, *number * field.scale, field.fold);
  }
}

void MetricPage::AddHistogram(const Metric& metric, const Labels& labels,
                              std::vector<Bucket> buckets, uint64_t count,
                              double sum) {
  FamilyOf(metric).series[labels] = {sum, std::move(buckets), count};
}

std::string MetricPage::Text() const {
  std::vector<prometheus::MetricFamily> families;
  for (const auto& [name, family] : families_) {
    prometheus::MetricFamily& to = families.emplace_back();
    to.name = name;
    to.help = family.help;
    to.type = TypeOf(family.kind);
    for (const auto& [labels, series] : family.series) {
      prometheus::ClientMetric& metric = to.metric.emplace_back();
      for (const auto& [label, text] : labels)
        metric.label.push_back({label, text});
      metric.counter.value = series.value;
      metric.gauge.value = series.value;
      metric.histogram.sample_count = series.count;
      metric.histogram.sample_sum = series.value;
      for (const Bucket& bucket : series.buckets)
        metric.histogram.bucket.push_back({bucket.count, bucket.most});
    }
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace leat::rpc
