// SPDX-License-Identifier: Apache-2.0
//
// leat pool run --kubernetes: keeps a Deployment as the coordinator wants the
// pool. It keeps no state: whatever it needs, the coordinator and the API
// server say.
#include "client/cli/clusters/kubernetes_api.h"
#include "client/cli/commands/pool.h"
#include "core/status.h"

namespace leat::cli {
namespace {

constexpr int kMostPasses = 3;

// The first error; a pod that is gone, or has changed, is none.
void Keep(const absl::Status& status, absl::Status* first) {
  if (!absl::IsNotFound(status) && !absl::IsAborted(status))
    first->Update(status);
}

// What can be done is done, also where a part of it is refused: an engine that
// ends other workers than those that were chosen costs caches, and no batch.
absl::Status Apply(Session& session, KubernetesApi& api,
                   const std::string& deployment, const KubernetesPlan& plan,
                   const KubernetesScale& scale) {
  absl::Status first;
  for (const KubernetesPlan::Mark& mark : plan.marks) {
    const absl::Status marked = api.Mark(mark);
    Keep(marked, &first);
    if (marked.ok())
      session.Say(fmt::format("pod {} {}", mark.pod.name,
                              mark.cheapest ? "is to go" : "stays"));
    if (absl::IsPermissionDenied(marked)) break;  // of the others, too
  }
  if (plan.replicas) {
    RETURN_IF_ERROR(api.SetScale(deployment, *plan.replicas, scale.version));
    session.Say(fmt::format("deployment/{}: {} replicas, after {}", deployment,
                            *plan.replicas, scale.replicas));
  }
  for (const KubernetesPod& pod : plan.evictions) {
    const absl::Status evicted = api.Evict(pod);
    Keep(evicted, &first);
    if (!evicted.ok()) break;
    session.Say(fmt::format("pod {} is replaced", pod.name));
  }
  return first;
}

absl::Status Reconcile(Session& session, KubernetesApi& api,
                       const std::string& deployment, const Json& pool) {
  if (Whole(pool, "max") == 0) return absl::OkStatus();
  absl::Status status;
  for (int pass = 0; pass < kMostPasses; ++pass) {
    ASSIGN_OR_RETURN(const KubernetesScale scale, api.GetScale(deployment));
    ASSIGN_OR_RETURN(const std::vector<KubernetesPod> pods,
                     api.ListPods(scale.selector));
    status = Apply(session, api, deployment,
                   PlanKubernetes(Whole(pool, "desired"),
                                  Strings(pool, "drain"), scale, pods),
                   scale);
    // Somebody else has changed it: what there is now is read again.
    if (!absl::IsAborted(status)) break;
  }
  return status;
}

}  // namespace

absl::StatusOr<int> RunKubernetesPool(Session& session) {
  const KubernetesOptions& options = session.options().kubernetes;
  ASSIGN_OR_RETURN(const std::string deployment, DeploymentOf(options.target));
  ASSIGN_OR_RETURN(
      KubernetesServer server,
      FindKubernetesServer(options, session.environment().variable));
  if (!options.name_space.empty()) server.name_space = options.name_space;
  KubernetesApi api(std::move(server), session.environment().http,
                    session.environment().pause);
  session.Say(fmt::format("pool \"{}\": deployment/{} in namespace {}",
                          session.options().name, deployment,
                          api.name_space()));
  return FollowPool(session, session.options().name, options.once,
                    [&](const Json& pool) {
                      return Reconcile(session, api, deployment, pool);
                    });
}

}  // namespace leat::cli
