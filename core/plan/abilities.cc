// SPDX-License-Identifier: Apache-2.0
#include "core/plan/abilities.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "core/status.h"

namespace leat {
namespace {

void Add(const Node& node, std::set<std::string>* abilities) {
  if (const std::string_view ability = AbilityFor(node.op); !ability.empty())
    abilities->emplace(ability);
}

}  // namespace

std::string_view AbilityFor(std::string_view op) {
  return op == "readers.parquet" ? kParquetAbility : std::string_view();
}

absl::Status CheckAbility(std::string_view name) {
  if (name.empty() || name.size() > kMaxAbilityLength)
    return InvalidArgument("ability of {} characters: want 1 to {}",
                           name.size(), kMaxAbilityLength);
  const auto bad = std::ranges::find_if(name, [](char c) {
    return !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
           !(c >= '0' && c <= '9') &&
           std::string_view("._-:@").find(c) == std::string_view::npos;
  });
  if (bad != name.end())
    return InvalidArgument(
        "ability has character {} at {}: want only A-Z a-z 0-9 . _ - : @",
        static_cast<int>(static_cast<unsigned char>(*bad)), bad - name.begin());
  return absl::OkStatus();
}

Abilities AbilitiesFor(const Node& reader) {
  std::set<std::string> abilities;
  Add(reader, &abilities);
  return {abilities.begin(), abilities.end()};
}

Abilities AbilitiesFor(const JobSpec& spec) {
  std::set<std::string> abilities;
  for (size_t i = 0; i < NumSources(spec); ++i)
    for (const Node& node : PipelineOf(spec, i).nodes) Add(node, &abilities);
  return {abilities.begin(), abilities.end()};
}

bool HasAll(const Abilities& has, const Abilities& needed) {
  return std::ranges::includes(has, needed);
}

Abilities Lacking(const Abilities& has, const Abilities& needed) {
  Abilities lacking;
  std::ranges::set_difference(needed, has, std::back_inserter(lacking));
  return lacking;
}

std::string_view HowToHave(std::string_view ability) {
  return ability == kParquetAbility
             ? "install Arrow's libraries beside a leat-worker (pip install "
               "'leat-data[parquet]', or Leat's bundle), and start it again"
             : "start a leat-worker that has it";
}

}  // namespace leat
