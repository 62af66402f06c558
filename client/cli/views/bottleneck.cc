// SPDX-License-Identifier: Apache-2.0
#include "client/cli/views/bottleneck.h"

#include <algorithm>
#include <utility>

#include "client/cli/base/text.h"
#include "core/counted.h"
#include "core/observe/bottleneck.h"
#include "fmt/format.h"

namespace leat::cli {

std::string LimitText(const Json& job) {
  const std::string limit = Text(job, "limited_by");
  std::string seen = Text(job, "limited_by_seen");
  if (limit.empty() || seen.empty()) return limit;
  if (seen.back() == 's') seen.pop_back();
  return fmt::format("{} ({} s)", limit, seen);
}

View BottleneckView(Json answer) {
  View view;
  view.names = {Text(answer, "limit")};
  const std::string limit = Text(answer, "limit");
  const bool good = limit == "trainer";
  const bool known = limit != "unknown";
  Section verdict;
  verdict.facts = {{"Job", {Text(answer, "job"), Tone::kBold}},
                   {"Limited by",
                    {std::string(TitleOf(limit)), good    ? Tone::kGood
                                                  : known ? Tone::kWarn
                                                          : Tone::kDim}}};
  const std::string subject = Text(answer, "subject");
  if (!subject.empty()) verdict.facts.emplace_back("About", subject);
  Section why;
  why.lines.push_back({Text(answer, "summary")});
  for (const Json& figure : Items(answer, "figures")) {
    const std::string unit = Text(figure, "unit");
    why.lines.push_back({fmt::format("{}: {}{}{}", Text(figure, "what"),
                                     Rate(Number(figure, "value")),
                                     unit.empty() ? "" : " ", unit),
                         Tone::kPlain, 2});
  }
  Section change;
  change.lines.push_back({"Change: " + Text(answer, "advice"),
                          known && !good ? Tone::kBold : Tone::kPlain});
  change.lines.push_back(
      {fmt::format("Seen: {} of {} and {}",
                   Text(answer, "seen").empty() ? "0s" : Text(answer, "seen"),
                   Counted(Whole(answer, "workers"), "worker"),
                   Counted(Whole(answer, "consumers"), "consumer")),
       Tone::kDim});
  view.sections = {std::move(verdict), std::move(why), std::move(change)};
  view.data = std::move(answer);
  return view;
}

}  // namespace leat::cli
