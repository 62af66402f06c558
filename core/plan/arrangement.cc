// SPDX-License-Identifier: Apache-2.0
#include "core/plan/arrangement.h"

#include <algorithm>
#include <bit>
#include <span>

#include "core/hash.h"
#include "core/pipeline/canonical.h"
#include "core/plan/rounded_weight.h"
#include "core/plan/shard_table.h"
#include "core/redaction.h"
#include "core/selection/condition.h"
#include "core/status.h"
#include "core/utf8.h"
#include "fmt/ranges.h"

namespace leat {
namespace {

constexpr size_t kShownWhere = 60;

// The last number of a range is part of its text, so that two ranges of equal
// numbers have equal texts.
uint64_t LastOf(const Numbers& range) {
  return range.begin + (range.end - 1 - range.begin) / range.step * range.step;
}

std::string TextOf(const Numbers& numbers, bool place) {
  if (numbers.step != 0)
    return fmt::format("samples range {} {} {}\n", numbers.begin,
                       LastOf(numbers), numbers.step);
  if (!numbers.list.empty()) {
    Sha256 hash;
    for (const uint64_t number : numbers.list) hash.UpdateU64(number);
    return fmt::format("samples list {} {}\n", numbers.list.size(),
                       ToHex(hash.Finish()));
  }
  if (numbers.uri.empty()) return "";
  std::string text = "samples file";
  if (place) {
    text += ' ';
    AppendQuoted(numbers.uri, &text);
  }
  return text + "\n";
}

std::string TextOf(const SampleWeights& weights, bool place) {
  if (!weights.list.empty()) {
    Sha256 hash;
    for (const double weight : weights.list)
      hash.UpdateU64(std::bit_cast<uint64_t>(weight));
    return fmt::format("weights list {} {}\n", weights.list.size(),
                       ToHex(hash.Finish()));
  }
  if (weights.uri.empty()) return "";
  std::string text = "weights file";
  if (place) {
    text += ' ';
    AppendQuoted(weights.uri, &text);
  }
  return text + "\n";
}

std::string ShownGroups(const Arrangement& arrangement) {
  if (arrangement.by_class) return "by class";
  if (!arrangement.by.empty()) return "by " + arrangement.by;
  return arrangement.weights.uri.empty()
             ? fmt::format("{} weights", arrangement.weights.list.size())
             : "weights of " + RedactedUri(arrangement.weights.uri);
}

std::string ShownNumbers(const Numbers& numbers) {
  if (numbers.step == 1)
    return fmt::format("{}:{}", numbers.begin, numbers.end);
  if (numbers.step != 0)
    return fmt::format("{}:{}:{}", numbers.begin, numbers.end, numbers.step);
  if (!numbers.list.empty())
    return fmt::format("{} samples", numbers.list.size());
  return fmt::format("samples of {}", RedactedUri(numbers.uri));
}

absl::Status CheckList(std::vector<uint64_t> list) {
  if (list.size() > kMaxListedNumbers)
    return InvalidArgument(
        "samples: a list of {}: want at most {}, a range, or a .npy file",
        list.size(), kMaxListedNumbers);
  std::ranges::sort(list);
  const auto twice = std::ranges::adjacent_find(list);
  if (twice != list.end())
    return InvalidArgument("samples has {} twice: want each number once",
                           *twice);
  return absl::OkStatus();
}

absl::Status CheckGrouping(const Arrangement& arrangement) {
  const SampleWeights& weights = arrangement.weights;
  const int kinds = int{arrangement.by_class} + int{!arrangement.by.empty()} +
                    int{!weights.list.empty()} + int{!weights.uri.empty()};
  if (kinds > 1)
    return InvalidArgument(
        "select: {} of groups by class, by a column, a list of weights and a "
        "file of weights: want one of them",
        kinds);
  if (kinds > 0 && arrangement.pack)
    return InvalidArgument(
        "weights: rows that are packed of several samples are in no group: "
        "want no weights with fn.pack");
  if (weights.list.size() > kMaxListedNumbers)
    return InvalidArgument(
        "weights: a list of {}: want at most {}, or a .npy file",
        weights.list.size(), kMaxListedNumbers);
  for (size_t i = 0; i < weights.list.size(); ++i)
    RETURN_IF_ERROR(CheckWeight(weights.list[i], i));
  if (arrangement.by.empty()) return absl::OkStatus();
  return ParseColumn(arrangement.by, "by").status();
}

}  // namespace

std::string CanonicalText(const Arrangement& arrangement, bool place) {
  std::string text = TextOf(arrangement.samples, place);
  if (!arrangement.where.empty()) {
    text += "where ";
    AppendQuoted(Condition::Parse(arrangement.where)->CanonicalText(), &text);
    text += '\n';
  }
  if (arrangement.by_class) text += "by class\n";
  if (!arrangement.by.empty()) {
    text += "by ";
    AppendQuoted(TextOf(*ParseColumn(arrangement.by, "by")), &text);
    text += '\n';
  }
  text += TextOf(arrangement.weights, place);
  if (arrangement.pack) text += CanonicalText(*arrangement.pack) + "\n";
  return text;
}

bool PacksRows(std::string_view canonical_text) {
  const size_t line = canonical_text.rfind('\n', canonical_text.size() - 2);
  const size_t last = line == std::string_view::npos ? 0 : line + 1;
  return !canonical_text.empty() &&
         canonical_text.substr(last).starts_with("pack(");
}

std::string ShownText(const Arrangement& arrangement) {
  std::vector<std::string> texts;
  if (IsSet(arrangement.samples))
    texts.push_back(ShownNumbers(arrangement.samples));
  if (!arrangement.where.empty()) {
    const auto condition = Condition::Parse(arrangement.where);
    std::string where =
        condition.ok() ? condition->CanonicalText() : arrangement.where;
    if (where.size() > kShownWhere) {
      const size_t space = where.rfind(' ', kShownWhere);
      where = space == std::string::npos ? ToUtf8(where, kShownWhere)
                                         : where.substr(0, space);
      where += " ...";
    }
    texts.push_back("where " + where);
  }
  if (IsGrouped(arrangement)) texts.push_back(ShownGroups(arrangement));
  if (arrangement.pack)
    texts.push_back(fmt::format(
        "rows of {} ({})", arrangement.pack->packing.length,
        arrangement.pack->packing.how == PackHow::kFit ? "fit" : "cut"));
  return fmt::format("{}", fmt::join(texts, " "));
}

absl::Status CheckArrangement(const Arrangement& arrangement) {
  const Numbers& samples = arrangement.samples;
  const int kinds = int{samples.step != 0} + int{!samples.list.empty()} +
                    int{!samples.uri.empty()};
  if (kinds > 1)
    return InvalidArgument(
        "samples: {} of a range, a list and a file: want one of them", kinds);
  if (samples.step != 0 && samples.begin >= samples.end)
    return InvalidArgument("samples: range({}, {}, {}) is empty: want samples",
                           samples.begin, samples.end, samples.step);
  if (samples.step != 0 && samples.end > kMaxSamples)
    return InvalidArgument("samples: range({}, {}, {}): want numbers below {}",
                           samples.begin, samples.end, samples.step,
                           kMaxSamples);
  if (samples.step == 0 && (samples.begin != 0 || samples.end != 0))
    return InvalidArgument(
        "samples: range({}, {}, 0): want a step of 1 or more", samples.begin,
        samples.end);
  RETURN_IF_ERROR(CheckList(samples.list));
  RETURN_IF_ERROR(CheckGrouping(arrangement));
  if (arrangement.pack) RETURN_IF_ERROR(CheckPackNode(*arrangement.pack));
  if (arrangement.where.empty()) return absl::OkStatus();
  return Condition::Parse(arrangement.where).status();
}

}  // namespace leat
