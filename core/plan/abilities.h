// SPDX-License-Identifier: Apache-2.0
//
// Abilities: what a job needs of a worker beyond its decoder class, and not
// every worker has. A worker says at its registration which it has; one that
// lacks an ability owns none of the shards of jobs that need it.
//
// There is one so far, "parquet": Arrow's libraries, which are beside some
// workers only.
//
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/pipeline/graph.h"
#include "core/plan/job.h"

namespace leat {

// Sorted, each once.
using Abilities = std::vector<std::string>;

// Workers have it that have Arrow's libraries beside them.
inline constexpr std::string_view kParquetAbility = "parquet";

inline constexpr size_t kMaxAbilities = 64;  // of a worker
inline constexpr size_t kMaxAbilityLength = 128;

// Returns the ability that an operator needs; empty: every worker can run it.
std::string_view AbilityFor(std::string_view op);

// kInvalidArgument: not 1 to kMaxAbilityLength of A-Z a-z 0-9 . _ - : @, as in
// "parquet".
absl::Status CheckAbility(std::string_view name);

// Returns what a worker needs to list the reader's dataset.
Abilities AbilitiesFor(const Node& reader);
// Returns what a worker needs to compute the job's rows: of a mixture, what any
// of its sources needs.
Abilities AbilitiesFor(const JobSpec& spec);
bool HasAll(const Abilities& has, const Abilities& needed);
// Returns those of `needed` that `has` lacks.
Abilities Lacking(const Abilities& has, const Abilities& needed);

// Returns what gives a worker the ability, for people: "install …".
std::string_view HowToHave(std::string_view ability);

}  // namespace leat
