// SPDX-License-Identifier: Apache-2.0
//
// leat pool run --kubernetes: keeps a Deployment as the coordinator wants the
// pool. It keeps no state: the coordinator and the API server have all of it.
#include "client/cli/clusters/kubernetes_api.h"
#include "client/cli/commands/pool.h"
#include "core/status.h"

namespace leat::cli {
namespace {

constexpr int kMostPasses = 3;

// Keeps the first error; a pod that is gone, or has changed, is not an error.
void Keep(const absl::Status& status, absl::Status* first) {
  if (!absl::IsNotFound(status) && !absl::IsAborted(status))
    first->Update(status);
}

// Applies as much of the plan as is allowed: if Kubernetes ends other workers
// than the chosen ones, this costs caches, but no batch.
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
    if (absl::IsPermissionDenied(marked))
      break;  // the others will be refused
              // too
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
    // Another client has changed it: its current state is read again.
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
