// SPDX-License-Identifier: Apache-2.0
#include "client/cli/clusters/kubernetes_pool.h"

#include <set>

#include "core/status.h"

namespace leat::cli {
namespace {

// The annotation's name has dots, so At() cannot look it up by path.
std::string CostOf(const Json& metadata) {
  const Json& all = At(metadata, "annotations");
  if (!all.is_object()) return "";
  const auto found = all.find(kDeletionCost);
  return found == all.end() || !found->is_string() ? ""
                                                   : found->get<std::string>();
}

}  // namespace

absl::StatusOr<KubernetesScale> ParseScale(std::string_view text) {
  ASSIGN_OR_RETURN(const Json json, ParseObject(text, "scale"));
  KubernetesScale scale{
      Whole(json, "spec.replicas"), Whole(json, "status.replicas"),
      Text(json, "status.selector"), Text(json, "metadata.resourceVersion")};
  // A number that is 0 is left out.
  if (Text(json, "kind") == "Scale" && !scale.version.empty() &&
      !scale.selector.empty())
    return scale;
  return Internal(
      "the API server's answer is no Scale with a resourceVersion and a "
      "selector: kind \"{}\"",
      Text(json, "kind").substr(0, 64));
}

absl::StatusOr<KubernetesPods> ParsePods(std::string_view text) {
  ASSIGN_OR_RETURN(const Json json, ParseObject(text, "pods"));
  const std::string kind = Text(json, "kind");
  if ((kind != "PodList" && kind != "PartialObjectMetadataList") ||
      !At(json, "items").is_array())
    return Internal("the API server's answer is no list of pods: kind \"{}\"",
                    kind.substr(0, 64));
  KubernetesPods part;
  part.rest = Text(json, "metadata.continue");
  for (const Json& item : Items(json, "items"))
    part.pods.push_back({Text(item, "metadata.name"),
                         Text(item, "metadata.uid"),
                         !Text(item, "metadata.deletionTimestamp").empty(),
                         CostOf(At(item, "metadata"))});
  return part;
}

KubernetesPlan PlanKubernetes(uint64_t desired,
                              const std::vector<std::string>& drain,
                              const KubernetesScale& scale,
                              const std::vector<KubernetesPod>& pods) {
  const std::set<std::string> goes(drain.begin(), drain.end());
  KubernetesPlan plan;
  // As many pods as wanted exist, and no pod is missing or ending.
  const bool settled = scale.replicas == desired && scale.pods == desired;
  if (scale.replicas != desired) plan.replicas = desired;
  for (const KubernetesPod& pod : pods) {
    if (pod.ends) continue;
    const bool cheapest = pod.cost == kCheapest;
    if (goes.contains(pod.name) != cheapest)
      plan.marks.push_back({pod, !cheapest});
    if (goes.contains(pod.name) && settled) plan.evictions.push_back(pod);
  }
  return plan;
}

}  // namespace leat::cli
