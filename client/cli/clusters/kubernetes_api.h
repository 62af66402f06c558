// SPDX-License-Identifier: Apache-2.0
//
// KubernetesApi: an adapter's requests to a cluster's API server.
//
// Each request has ten seconds. Temporary failures (no connection, 429, 500,
// 502, 503, 504) are retried up to four times in all, with pauses that double
// or that the server requests, up to ten seconds. Errors:
//
//   kPermissionDenied    403: names the rule that a Role has to have
//   kUnauthenticated     401
//   kNotFound            404
//   kAborted             409: what was read has changed; read it again
//   kResourceExhausted   429: of an eviction, by a PodDisruptionBudget
//   kUnavailable, kDeadlineExceeded: no answer
//   kInternal            an answer that cannot be read, or another status
//
// Thread-compatible.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/base/http_call.h"
#include "client/cli/clusters/kubernetes_pool.h"
#include "client/cli/clusters/kubernetes_server.h"

namespace leat::cli {

class KubernetesApi {
 public:
  using Http = std::function<absl::StatusOr<HttpReply>(const HttpCall&)>;
  using Pause = std::function<void(absl::Duration)>;

  KubernetesApi(KubernetesServer server, Http http, Pause pause)
      : server_(std::move(server)),
        http_(std::move(http)),
        pause_(std::move(pause)) {}

  const std::string& name_space() const { return server_.name_space; }

  absl::StatusOr<KubernetesScale> GetScale(const std::string& deployment);
  // kAborted: it is not at `version` any more.
  absl::Status SetScale(const std::string& deployment, uint64_t replicas,
                        const std::string& version);
  // Returns all pods that match the selector. kResourceExhausted: there are too
  // many.
  absl::StatusOr<std::vector<KubernetesPod>> ListPods(
      const std::string& selector);
  // kNotFound, kAborted: the pod is gone, or another one has its name.
  absl::Status Mark(const KubernetesPlan::Mark& mark);
  absl::Status Evict(const KubernetesPod& pod);

 private:
  // The parts of a request, also for the message of a 403.
  struct Request {
    std::string method, verb, group, resource;
    std::string path;   // below the namespace's path
    std::string query;  // with its '?'
    std::string type;   // of the body
    std::string body = {};
    std::string accept = "application/json";
    bool again = true;  // temporary failures are retried
  };
  absl::StatusOr<std::string> Ask(const Request& request);
  absl::StatusOr<HttpReply> Try(const Request& request);
  absl::Status Refusal(const Request& request, const HttpReply& reply) const;

  const KubernetesServer server_;
  const Http http_;
  const Pause pause_;
};

// Returns "leat-worker" for "deployment/leat-worker". kInvalidArgument.
absl::StatusOr<std::string> DeploymentOf(std::string_view target);

}  // namespace leat::cli
