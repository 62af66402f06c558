// SPDX-License-Identifier: Apache-2.0
//
// KubernetesServer: the address of a cluster's API server, and the credentials
// for it. Searched in this order:
//
//   --server          "kubectl proxy", or another address, without an account
//   --kubeconfig, or KUBECONFIG
//   in a pod          the account of the pod
//   ~/.kube/config
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace leat::cli {

struct KubernetesOptions {
  std::string target;      // "deployment/NAME"
  std::string name_space;  // empty: the account's own
  std::string server, kubeconfig;
  bool once = false;
};

struct KubernetesServer {
  std::string url;  // without a trailing slash
  std::string name_space = "default";
  std::string ca, cert, key;  // PEM
  // The account has one of these. The file is read for each request, since the
  // kubelet replaces it.
  std::string token, token_file;

  // Returns the current token; empty: none. kUnauthenticated: the file cannot
  // be read.
  absl::StatusOr<std::string> Token() const;
};

// The folder of a pod's account.
inline constexpr std::string_view kAccountFolder =
    "/var/run/secrets/kubernetes.io/serviceaccount";

// kFailedPrecondition: there is none, or a kubeconfig uses an unsupported
// method (says what to do instead). kInvalidArgument: an address. kNotFound: a
// file.
absl::StatusOr<KubernetesServer> FindKubernetesServer(
    const KubernetesOptions& options,
    const std::function<std::optional<std::string>(const char* name)>& variable,
    std::string_view account_folder = kAccountFolder);

}  // namespace leat::cli
