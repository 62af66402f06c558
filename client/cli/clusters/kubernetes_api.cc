// SPDX-License-Identifier: Apache-2.0
#include "client/cli/clusters/kubernetes_api.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/status.h"

namespace leat::cli {
namespace {

constexpr int kTries = 4;
constexpr absl::Duration kRequestTime = absl::Seconds(10);
constexpr absl::Duration kFirstPause = absl::Milliseconds(500);
constexpr absl::Duration kMostPause = absl::Seconds(10);
constexpr size_t kPodsAtOnce = 500;
constexpr size_t kMaxPods = 100'000;
constexpr size_t kMaxName = 253;
constexpr size_t kMaxMessage = 300;
constexpr char kMergePatch[] = "application/merge-patch+json";

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '.';
         });
}

// Escapes text for a path or a query.
std::string Escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       (c >= '0' && c <= '9') || c == '-' || c == '.' ||
                       c == '_';
    if (plain)
      escaped.push_back(c);
    else
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return escaped;
}

bool FailsForTheMoment(int status) {
  return status == 429 || status == 500 || (status >= 502 && status <= 504);
}

bool FailsForTheMoment(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

// Returns the server's text of an error (a Status of Kubernetes); "": none.
std::string Said(const HttpReply& reply) {
  const absl::StatusOr<Json> json = ParseObject(reply.body, "status");
  const std::string text = json.ok() ? Text(*json, "message") : "";
  return text.empty() ? "" : ": " + text.substr(0, kMaxMessage);
}

}  // namespace

absl::StatusOr<std::string> DeploymentOf(std::string_view target) {
  constexpr std::string_view kKind = "deployment/";
  if (target.starts_with(kKind) && IsName(target.substr(kKind.size())))
    return std::string(target.substr(kKind.size()));
  return InvalidArgument("--kubernetes \"{}\": want deployment/NAME", target);
}

absl::StatusOr<HttpReply> KubernetesApi::Try(const Request& request) {
  HttpCall call{
      .method = request.method,
      .url = fmt::format(
          "{}/{}/namespaces/{}/{}{}", server_.url,
          request.group.empty() ? "api/v1" : "apis/" + request.group + "/v1",
          Escape(server_.name_space), request.path, request.query),
      .headers = {"Accept: " + request.accept, "User-Agent: leat"},
      .body = request.body,
      .ca = server_.ca,
      .cert = server_.cert,
      .key = server_.key,
      .limit = kRequestTime};
  if (!request.type.empty())
    call.headers.push_back("Content-Type: " + request.type);
  // Over plaintext no token is sent.
  if (server_.url.starts_with("https://")) {
    ASSIGN_OR_RETURN(const std::string token, server_.Token());
    if (!token.empty())
      call.headers.push_back("Authorization: Bearer " + token);
  }
  return http_(call);
}

absl::Status KubernetesApi::Refusal(const Request& request,
                                    const HttpReply& reply) const {
  const std::string what = fmt::format("{} {} in namespace {}", request.verb,
                                       request.path, server_.name_space);
  switch (reply.status) {
    case 401:
      return Unauthenticated(
          "the API server does not know this account (401, to {}): want a "
          "token "
          "or a certificate that is good{}",
          what, Said(reply));
    case 403:
      return PermissionDenied(
          "the account may not {}: want a Role with apiGroups [\"{}\"], "
          "resources [\"{}\"], verbs [\"{}\"], as in "
          "deploy/kubernetes/adapter{}",
          what, request.group, request.resource, request.verb, Said(reply));
    case 404:
      return NotFound("{}: there is none (404){}", what, Said(reply));
    case 409:
      return Aborted("{}: it has changed meanwhile (409){}", what, Said(reply));
    case 429:
      return ResourceExhausted("{}: not now (429){}", what, Said(reply));
    default:
      return MakeStatus(
          FailsForTheMoment(reply.status) ? absl::StatusCode::kUnavailable
                                          : absl::StatusCode::kInternal,
          "{}: the API server answers {}{}", what, reply.status, Said(reply));
  }
}

absl::StatusOr<std::string> KubernetesApi::Ask(const Request& request) {
  absl::Duration pause = kFirstPause;
  for (int tries = 1;; ++tries) {
    absl::StatusOr<HttpReply> reply = Try(request);
    if (reply.ok() && reply->status >= 200 && reply->status < 300)
      return std::move(reply->body);
    const bool passes = reply.ok() ? FailsForTheMoment(reply->status)
                                   : FailsForTheMoment(reply.status());
    if (!passes || !request.again || tries == kTries)
      return reply.ok() ? Refusal(request, *reply) : reply.status();
    pause_(std::min(kMostPause,
                    std::max(pause, reply.ok() ? reply->retry_after
                                               : absl::ZeroDuration())));
    pause *= 2;
  }
}

absl::StatusOr<KubernetesScale> KubernetesApi::GetScale(
    const std::string& deployment) {
  ASSIGN_OR_RETURN(const std::string text,
                   Ask({.method = "GET",
                        .verb = "get",
                        .group = "apps",
                        .resource = "deployments/scale",
                        .path = "deployments/" + deployment + "/scale"}));
  return ParseScale(text);
}

absl::Status KubernetesApi::SetScale(const std::string& deployment,
                                     uint64_t replicas,
                                     const std::string& version) {
  const Json body = {{"metadata", {{"resourceVersion", version}}},
                     {"spec", {{"replicas", replicas}}}};
  return Ask({.method = "PATCH",
              .verb = "patch",
              .group = "apps",
              .resource = "deployments/scale",
              .path = "deployments/" + deployment + "/scale",
              .type = kMergePatch,
              .body = body.dump()})
      .status();
}

absl::StatusOr<std::vector<KubernetesPod>> KubernetesApi::ListPods(
    const std::string& selector) {
  std::vector<KubernetesPod> pods;
  std::string rest;
  do {
    ASSIGN_OR_RETURN(
        const std::string text,
        Ask({.method = "GET",
             .verb = "list",
             .resource = "pods",
             .path = "pods",
             .query = fmt::format(
                 "?labelSelector={}&limit={}{}", Escape(selector), kPodsAtOnce,
                 rest.empty() ? "" : "&continue=" + Escape(rest)),
             // Only their metadata is needed.
             .accept = "application/json;as=PartialObjectMetadataList;"
                       "g=meta.k8s.io;v=v1,application/json"}));
    ASSIGN_OR_RETURN(KubernetesPods part, ParsePods(text));
    std::move(part.pods.begin(), part.pods.end(), std::back_inserter(pods));
    if (pods.size() > kMaxPods)
      return ResourceExhausted("there are more than {} pods with {}", kMaxPods,
                               selector);
    if (!part.rest.empty() && part.pods.empty())
      return Internal("the API server's list of pods goes on without pods");
    rest = std::move(part.rest);
  } while (!rest.empty());
  return pods;
}

absl::Status KubernetesApi::Mark(const KubernetesPlan::Mark& mark) {
  // With the UID, another pod with this name is not changed.
  const Json cost = mark.cheapest ? Json(kCheapest) : Json(nullptr);
  const Json body = {{"metadata",
                      {{"uid", mark.pod.uid},
                       {"annotations", {{std::string(kDeletionCost), cost}}}}}};
  return Ask({.method = "PATCH",
              .verb = "patch",
              .resource = "pods",
              .path = "pods/" + Escape(mark.pod.name),
              .type = kMergePatch,
              .body = body.dump()})
      .status();
}

absl::Status KubernetesApi::Evict(const KubernetesPod& pod) {
  const Json body = {
      {"apiVersion", "policy/v1"},
      {"kind", "Eviction"},
      {"metadata", {{"name", pod.name}, {"namespace", server_.name_space}}},
      {"deleteOptions", {{"preconditions", {{"uid", pod.uid}}}}}};
  return Ask({.method = "POST",
              .verb = "create",
              .resource = "pods/eviction",
              .path = "pods/" + Escape(pod.name) + "/eviction",
              .type = "application/json",
              .body = body.dump(),
              .again = false})
      .status();
}

}  // namespace leat::cli
