// SPDX-License-Identifier: Apache-2.0
#include "client/cli/clusters/kubernetes_server.h"

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <iterator>

#include "absl/strings/escaping.h"
#include "client/cli/base/file.h"
#include "core/status.h"

namespace leat::cli {
namespace {

constexpr size_t kMaxFile = 1 << 20;

// Returns the text without trailing blanks.
absl::StatusOr<std::string> ReadText(std::string_view what,
                                     const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path, kMaxFile);
  if (!text.ok()) return NotFound("{} {}", what, Message(text.status()));
  if (text->size() > kMaxFile)
    return InvalidArgument("{} {}: it has more than {} bytes", what, path,
                           kMaxFile);
  while (text->ends_with('\n') || text->ends_with(' ')) text->pop_back();
  return text;
}

absl::StatusOr<std::string> Address(std::string_view from, std::string url) {
  while (url.ends_with('/')) url.pop_back();
  const bool known = url.starts_with("http://") || url.starts_with("https://");
  if (!known || url.find_first_of(" \t\r\n?#@") != std::string::npos)
    return InvalidArgument("{} \"{}\": want http(s)://HOST:PORT", from, url);
  return url;
}

std::string Word(const YAML::Node& map, const char* key) {
  if (!map.IsMap() || !map[key] || !map[key].IsScalar()) return "";
  return map[key].Scalar();
}

// Returns the entry of a list with this name; a null node: none.
YAML::Node Named(const YAML::Node& list, const std::string& name,
                 const char* part) {
  if (list && list.IsSequence())
    for (const YAML::Node& each : list)
      if (Word(each, "name") == name && each[part]) return each[part];
  return YAML::Node(YAML::NodeType::Null);
}

// Returns a kubeconfig's value of KEY-data, or the content of the file in KEY.
absl::StatusOr<std::string> Pem(const YAML::Node& map, const std::string& key,
                                const std::filesystem::path& folder) {
  const std::string data = Word(map, (key + "-data").c_str());
  if (!data.empty()) {
    std::string pem;
    if (!absl::Base64Unescape(data, &pem))
      return InvalidArgument("kubeconfig: {}-data is not base64", key);
    return pem;
  }
  const std::string path = Word(map, key.c_str());
  if (path.empty()) return std::string();
  return ReadText("kubeconfig: " + key, folder / path);
}

absl::Status RefuseUnknown(const std::string& path, const YAML::Node& cluster,
                           const YAML::Node& user) {
  for (const char* key : {"exec", "auth-provider", "username", "as"})
    if (user.IsMap() && user[key])
      return FailedPrecondition(
          "kubeconfig {}: its user has \"{}\", which is not known here: run "
          "\"kubectl proxy\", and give --server http://127.0.0.1:8001",
          path, key);
  for (const char* key :
       {"insecure-skip-tls-verify", "tls-server-name", "proxy-url"})
    if (cluster.IsMap() && cluster[key] && Word(cluster, key) != "false")
      return FailedPrecondition(
          "kubeconfig {}: its cluster has \"{}\", which is not known here: run "
          "\"kubectl proxy\", and give --server http://127.0.0.1:8001",
          path, key);
  return absl::OkStatus();
}

absl::StatusOr<KubernetesServer> OfKubeconfig(const std::string& path,
                                              const YAML::Node& file) {
  const std::string name = file.IsMap() ? Word(file, "current-context") : "";
  if (name.empty())
    return FailedPrecondition("kubeconfig {}: it has no current-context", path);
  const YAML::Node context = Named(file["contexts"], name, "context");
  const YAML::Node cluster =
      Named(file["clusters"], Word(context, "cluster"), "cluster");
  const YAML::Node user = Named(file["users"], Word(context, "user"), "user");
  if (!cluster.IsMap())
    return FailedPrecondition(
        "kubeconfig {}: its context \"{}\" names no cluster that it has", path,
        name);
  RETURN_IF_ERROR(RefuseUnknown(path, cluster, user));
  const std::filesystem::path folder =
      std::filesystem::path(path).parent_path();
  KubernetesServer server;
  ASSIGN_OR_RETURN(server.url,
                   Address(fmt::format("kubeconfig {}: server", path),
                           Word(cluster, "server")));
  if (const std::string own = Word(context, "namespace"); !own.empty())
    server.name_space = own;
  ASSIGN_OR_RETURN(server.ca, Pem(cluster, "certificate-authority", folder));
  ASSIGN_OR_RETURN(server.cert, Pem(user, "client-certificate", folder));
  ASSIGN_OR_RETURN(server.key, Pem(user, "client-key", folder));
  server.token = Word(user, "token");
  if (const std::string token = Word(user, "tokenFile"); !token.empty())
    server.token_file = folder / token;
  return server;
}

absl::StatusOr<KubernetesServer> ReadKubeconfig(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadText("kubeconfig", path));
  try {
    return OfKubeconfig(path, YAML::Load(text));
  } catch (const YAML::Exception& error) {
    // Its text is not shown: it may hold a secret.
    return InvalidArgument("kubeconfig {}: line {} is no YAML", path,
                           error.mark.line + 1);
  }
}

absl::StatusOr<KubernetesServer> OfPod(const std::string& host,
                                       const std::string& port,
                                       const std::string& folder) {
  KubernetesServer server;
  const bool v6 = host.find(':') != std::string::npos;
  ASSIGN_OR_RETURN(server.url,
                   Address("KUBERNETES_SERVICE_HOST",
                           fmt::format("https://{}:{}",
                                       v6 ? fmt::format("[{}]", host) : host,
                                       port.empty() ? "443" : port)));
  ASSIGN_OR_RETURN(server.ca,
                   ReadText("the pod's account", folder + "/ca.crt"));
  server.token_file = folder + "/token";
  if (absl::StatusOr<std::string> own =
          ReadText("the pod's account", folder + "/namespace");
      own.ok() && !own->empty())
    server.name_space = *std::move(own);
  return server;
}

}  // namespace

absl::StatusOr<std::string> KubernetesServer::Token() const {
  if (token_file.empty()) return token;
  absl::StatusOr<std::string> text =
      ReadText("the account's token", token_file);
  if (text.ok() && text->find_first_of("\r\n") == std::string::npos &&
      !text->empty())
    return text;
  return Unauthenticated(
      "the account's token {}: {}", token_file,
      text.ok() ? "it is not one line" : "it cannot be read");
}

absl::StatusOr<KubernetesServer> FindKubernetesServer(
    const KubernetesOptions& options,
    const std::function<std::optional<std::string>(const char* name)>& variable,
    std::string_view account_folder) {
  if (!options.server.empty()) {
    KubernetesServer server;
    ASSIGN_OR_RETURN(server.url, Address("--server", options.server));
    return server;
  }
  const std::string file = options.kubeconfig.empty()
                               ? variable("KUBECONFIG").value_or("")
                               : options.kubeconfig;
  if (!file.empty()) return ReadKubeconfig(file);
  if (const std::string host = variable("KUBERNETES_SERVICE_HOST").value_or("");
      !host.empty())
    return OfPod(host, variable("KUBERNETES_SERVICE_PORT").value_or(""),
                 std::string(account_folder));
  const std::string home = variable("HOME").value_or("") + "/.kube/config";
  if (std::error_code error; std::filesystem::exists(home, error))
    return ReadKubeconfig(home);
  return FailedPrecondition(
      "no cluster is known: want a pod with an account, --kubeconfig, or "
      "\"kubectl proxy\" and --server http://127.0.0.1:8001");
}

}  // namespace leat::cli
