// SPDX-License-Identifier: Apache-2.0
//
// FieldTrouble finds what is wrong with a table of a message's metrics, so that
// each field that is added to a report has a metric, or a reason for having
// none.
#pragma once

#include <set>
#include <span>
#include <string>

#include "fmt/format.h"
#include "google/protobuf/descriptor.h"
#include "rpc/http/metric_page.h"

namespace leat {

// Returns one line per problem; empty: there is none.
inline std::string FieldTrouble(const google::protobuf::Descriptor& message,
                                std::span<const rpc::FieldMetric> fields) {
  std::string trouble;
  std::set<std::string> seen;
  for (const rpc::FieldMetric& field : fields) {
    const std::string name(field.field);
    if (message.FindFieldByName(name) == nullptr)
      trouble += fmt::format("{} has no field {}\n", message.name(), name);
    if (!seen.insert(name).second)
      trouble +=
          fmt::format("{}.{} stands there twice\n", message.name(), name);
    if (field.help.empty())
      trouble += fmt::format("{}.{} has no help\n", message.name(), name);
    const bool is_total = field.name.ends_with("_total");
    if (!field.name.empty() &&
        (is_total != (field.kind == rpc::MetricKind::kCounter) ||
         !field.name.starts_with("leat_")))
      trouble += fmt::format("{}: want leat_…, and …_total of counters alone\n",
                             field.name);
  }
  for (int i = 0; i < message.field_count(); ++i)
    if (!seen.contains(message.field(i)->name()))
      trouble += fmt::format("{}.{} has no metric, and no reason for it\n",
                             message.name(), message.field(i)->name());
  return trouble;
}

}  // namespace leat
