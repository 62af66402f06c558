// SPDX-License-Identifier: Apache-2.0
//
// How the API server and its credentials are found.
#include "client/cli/clusters/kubernetes_server.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/escaping.h"
#include "client/cli/clusters/kubernetes_api.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::cli {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class KubernetesServerTest : public ::testing::Test {
 protected:
  KubernetesServerTest()
      : dir_(std::filesystem::temp_directory_path() /
             fmt::format("leat-kubernetes-test-{}", getpid())) {
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
  }
  ~KubernetesServerTest() override { std::filesystem::remove_all(dir_); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name) << text;
  }
  absl::StatusOr<KubernetesServer> Find(const KubernetesOptions& options = {}) {
    return FindKubernetesServer(
        options,
        [this](const char* name) -> std::optional<std::string> {
          const auto found = variables_.find(name);
          if (found == variables_.end()) return std::nullopt;
          return found->second;
        },
        dir_.string());
  }
  absl::Status Refused(const std::string& config) {
    Write("config", config);
    return Find({.kubeconfig = dir_ / "config"}).status();
  }

  const std::filesystem::path dir_;
  std::map<std::string, std::string> variables_;
};

TEST_F(KubernetesServerTest, APodHasAnAccountWhoseTokenIsReadEachTime) {
  variables_ = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                {"KUBERNETES_SERVICE_PORT", "6443"}};
  Write("ca.crt", "CA\n");
  Write("namespace", "leat");
  Write("token", "first\n");
  const KubernetesServer server = Find().value();
  EXPECT_EQ(server.url, "https://10.0.0.1:6443");
  EXPECT_EQ(server.ca, "CA");
  EXPECT_EQ(server.name_space, "leat");
  EXPECT_EQ(server.Token().value(), "first");
  Write("token", "second\n");
  EXPECT_EQ(server.Token().value(), "second");
  Write("token", "two\nlines");
  EXPECT_TRUE(absl::IsUnauthenticated(server.Token().status()));
  EXPECT_THAT(std::string(Message(server.Token().status())),
              Not(HasSubstr("lines")));
  variables_["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  EXPECT_EQ(Find()->url, "https://[fd00::1]:6443");
}

TEST_F(KubernetesServerTest, ATokenGoesOverTlsAlone) {
  HttpCall seen;
  const auto ask = [&](const std::string& url) {
    KubernetesServer server{.url = url, .token = "secret"};
    KubernetesApi api(
        server,
        [&](const HttpCall& call) {
          seen = call;
          return HttpReply{404, "", {}};
        },
        [](absl::Duration) {});
    EXPECT_TRUE(absl::IsNotFound(api.GetScale("w").status()));
    return seen.headers;
  };
  EXPECT_THAT(ask("https://k8s"), Contains("Authorization: Bearer secret"));
  EXPECT_THAT(ask("http://k8s"), Not(Contains(HasSubstr("Authorization"))));
}

TEST_F(KubernetesServerTest, AKubeconfigsCurrentContextCounts) {
  const std::string pem = absl::Base64Escape("PEM");
  Write("key.pem", "KEY");
  Write("config", fmt::format(R"(
current-context: here
contexts:
- {{name: there, context: {{cluster: x, user: x}}}}
- {{name: here, context: {{cluster: c, user: u, namespace: teams}}}}
clusters:
- {{name: c, cluster: {{server: "https://k8s:6443/", certificate-authority-data: {0}}}}}
users:
- {{name: u, user: {{client-certificate-data: {0}, client-key: key.pem}}}}
)",
                              pem));
  variables_["KUBECONFIG"] = dir_ / "config";
  const KubernetesServer server = Find().value();
  EXPECT_EQ(server.url, "https://k8s:6443");
  EXPECT_EQ(server.name_space, "teams");
  EXPECT_EQ(server.ca, "PEM");
  EXPECT_EQ(server.cert, "PEM");
  EXPECT_EQ(server.key, "KEY");
  EXPECT_EQ(server.Token().value(), "");
  EXPECT_EQ(Find({.server = "http://127.0.0.1:8001"})->url,
            "http://127.0.0.1:8001");
}

TEST_F(KubernetesServerTest, WhatIsNotKnownOfAKubeconfigIsRefused) {
  const auto config = [](const std::string& cluster, const std::string& user) {
    return fmt::format(
        "current-context: a\ncontexts: [{{name: a, context: {{cluster: a, "
        "user: "
        "a}}}}]\nclusters: [{{name: a, cluster: {{{}}}}}]\nusers: [{{name: a, "
        "user: {{{}}}}}]\n",
        cluster, user);
  };
  const std::string good = "server: 'https://k'";
  EXPECT_TRUE(Refused(config(good, "token: t")).ok());
  for (const auto& [text, part] :
       std::vector<std::pair<std::string, std::string>>{
           {config(good, "exec: {command: aws}"), "kubectl proxy"},
           {config(good, "username: me"), "kubectl proxy"},
           {config(good + ", insecure-skip-tls-verify: true", ""),
            "insecure-skip-tls-verify"},
           {config(good + ", certificate-authority-data: '*'", ""), "base64"},
           {config(good, "client-key: nowhere.pem"), "nowhere.pem"},
           {config("server: 'ftp://k'", ""), "http(s)://"},
           {"current-context: b", "names no cluster"},
           {"{}", "current-context"},
           {"[1]", "current-context"},
           {"a: [", "no YAML"},
           {"", "current-context"}}) {
    const absl::Status status = Refused(text);
    EXPECT_FALSE(status.ok()) << text;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(part)) << text;
  }
}

}  // namespace
}  // namespace leat::cli
