// SPDX-License-Identifier: Apache-2.0
//
// A pool of workers as the pods of a Deployment: computes the changes that make
// it as the coordinator wants it.
//
// A worker has its pod's name. When a Deployment is scaled down, the annotation
// pod-deletion-cost decides, after readiness, which pods end: those that the
// coordinator has drained are the cheapest.
//
//   desired 2 of 5, drain [c, d, e] ─► c, d, e marked ─► scale 2
//   desired 5 of 5, drain [a]       ─► a is evicted and replaced
//
// Pure, and a function only of the observed state and the wish: it may be
// repeated, also by two adapters at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/base/fields.h"

namespace leat::cli {

inline constexpr std::string_view kDeletionCost =
    "controller.kubernetes.io/pod-deletion-cost";
// A pod that is to end gets this cost. Costs that others have set are kept.
inline constexpr std::string_view kCheapest = "-1000";

struct KubernetesPod {
  std::string name, uid;
  bool ends = false;
  std::string cost;  // empty: none
};

struct KubernetesScale {
  uint64_t replicas = 0;  // requested by the Deployment
  uint64_t pods = 0;      // existing ones, without those that end
  std::string selector, version;
};

// Parses an autoscaling/v1 Scale. kInternal: it is none.
absl::StatusOr<KubernetesScale> ParseScale(std::string_view text);

// A part of a list of pods, or of their metadata.
struct KubernetesPods {
  std::vector<KubernetesPod> pods;
  std::string rest;  // where the list continues; empty: complete
};
// kInternal: it is not a list of pods.
absl::StatusOr<KubernetesPods> ParsePods(std::string_view text);

struct KubernetesPlan {
  struct Mark {
    KubernetesPod pod;
    bool cheapest = false;  // false: the mark is removed
  };
  std::vector<Mark> marks;           // first
  std::optional<uint64_t> replicas;  // then
  std::vector<KubernetesPod> evictions;
};

KubernetesPlan PlanKubernetes(uint64_t desired,
                              const std::vector<std::string>& drain,
                              const KubernetesScale& scale,
                              const std::vector<KubernetesPod>& pods);

}  // namespace leat::cli
