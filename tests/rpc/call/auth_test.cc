// SPDX-License-Identifier: Apache-2.0
#include "rpc/call/auth.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "core/status.h"
#include "gtest/gtest.h"
#include "leat/v1/worker.grpc.pb.h"
#include "rpc/call/channel.h"
#include "rpc/call/server_stream.h"
#include "rpc/server/server.h"

namespace leat::rpc {
namespace {

using Reactor = grpc::ServerBidiReactor<v1::RowsRequest, v1::RowsResponse>;

// Admits or rejects calls, without further answer.
class Gate : public v1::WorkerService::CallbackService {
 public:
  explicit Gate(Security security) : security_(std::move(security)) {}
  Reactor* Rows(grpc::CallbackServerContext* context) override {
    return new RejectedStream<v1::RowsRequest, v1::RowsResponse>(
        CheckMetadata(security_, *context));
  }

 private:
  const Security security_;
};

absl::Status Call(const Server& server, const Security& security,
                  const char* version) {
  auto stub =
      v1::WorkerService::NewStub(MakeChannel(server.address(), security));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(10));
  if (version != nullptr) context.AddMetadata("leat-version", version);
  if (!security.token.empty())
    context.AddMetadata("leat-token", security.token);
  auto stream = stub->Rows(&context);
  return FromGrpc(stream->Finish());
}

struct Host {
  explicit Host(const Security& security,
                const std::string& address = "127.0.0.1:0")
      : gate(security) {
    ServerOptions options;
    options.address = address;
    server = Server::Start(options, security, {&gate}).value();
  }
  Gate gate;
  std::unique_ptr<Server> server;
};

TEST(Auth, MinorVersionsMixAndMajorVersionsDoNot) {
  Host host({});
  EXPECT_TRUE(Call(*host.server, {}, "1.0").ok());
  EXPECT_TRUE(Call(*host.server, {}, "1.9").ok());
  for (const char* version : {"2.0", "0.9", "", "banana"}) {
    const absl::Status status = Call(*host.server, {}, version);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << version;
    EXPECT_NE(Message(status).find(kProtocolVersion), std::string_view::npos)
        << status;
  }
  EXPECT_EQ(Call(*host.server, {}, nullptr).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(Auth, OnlyTheTokenOpens) {
  Host host({.token = "0123456789"});
  EXPECT_TRUE(Call(*host.server, {.token = "0123456789"}, "1.0").ok());
  for (const char* token : {"", "0123456788", "012345678", "01234567890"})
    EXPECT_EQ(Call(*host.server, {.token = token}, "1.0").code(),
              absl::StatusCode::kUnauthenticated)
        << token;
}

std::string Slurp(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Auth, TlsServersAreVerifiedByTheirRoots) {
  const std::filesystem::path dir =
      std::filesystem::path(testing::TempDir()) / "leat_auth_test";
  std::filesystem::create_directories(dir);
  const std::string make = fmt::format(
      "cd {} && openssl req -x509 -newkey ec -pkeyopt "
      "ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost "
      "-addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem "
      "2>/dev/null",
      dir.string());
  if (std::system(make.c_str()) != 0)
    GTEST_SKIP() << "no openssl program here to make a certificate with";

  Security server;
  server.cert_pem = Slurp(dir / "cert.pem");
  server.key_pem = Slurp(dir / "key.pem");
  Host host(server, "localhost:0");
  EXPECT_TRUE(Call(*host.server, {.ca_pem = server.cert_pem}, "1.0").ok());
  EXPECT_EQ(Call(*host.server, {}, "1.0").code(),
            absl::StatusCode::kUnavailable);  // plaintext
  std::filesystem::remove_all(dir);
}

TEST(Auth, RolesOfCertificatesAreByPatterns) {
  const auto fits = [](const char* pattern, const char* name) {
    return Fits(ParseSanRole(std::string(pattern) + "=viewer").value(), name);
  };
  EXPECT_TRUE(fits("spiffe://a/trainer/*", "spiffe://a/trainer/x.y"));
  EXPECT_TRUE(fits("spiffe://a/*/t*r", "spiffe://a/b/trainer"));
  EXPECT_TRUE(fits("*.nodes.example", "GPU-1.nodes.example"));
  EXPECT_TRUE(fits("a=b", "a=b"));
  for (const char* name :
       {"spiffe://a/trainer", "spiffe://a/trainer/x/y", "spiffe://b/trainer/x",
        "spiffe://a/Trainer/x", "xspiffe://a/trainer/x", ""})
    EXPECT_FALSE(fits("spiffe://a/trainer/*", name)) << name;
  for (const char* name : {"a.b.nodes.example", "nodes.example",
                           "x.nodes.example.evil", "x.nodes.exampl"})
    EXPECT_FALSE(fits("*.nodes.example", name)) << name;
  for (const char* wrong : {"", "a", "=viewer", "a=", "a=king"})
    EXPECT_EQ(ParseSanRole(wrong).status().code(),
              absl::StatusCode::kInvalidArgument)
        << wrong;
  Security alone;
  alone.san_roles = {{"a", Role::kViewer}};
  EXPECT_EQ(alone.Validate().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Auth, TheSystemsRootsSayNothingOfCallers) {
  Security security{.ca_pem = "roots", .system_roots = true};
  security.cert_pem = security.key_pem = "x";
  EXPECT_EQ(security.callers_ca(), "");
  EXPECT_TRUE(IsExposed(security, "0.0.0.0:1"));
  security.san_roles.push_back({"*=trainer", Role::kTrainer});
  EXPECT_EQ(security.Validate().code(), absl::StatusCode::kInvalidArgument);
  security.system_roots = false;
  EXPECT_TRUE(security.Validate().ok());
  EXPECT_FALSE(IsExposed(security, "0.0.0.0:1"));
}

TEST(Auth, ACertificateNeedsItsKey) {
  EXPECT_EQ(Security{.cert_pem = "x"}.Validate().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Security{.key_pem = "x"}.Validate().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Auth, LocalAddressesAreThoseThatNoOtherMachineReaches) {
  for (const char* local : {"127.0.0.1:0", "[::1]:80", "localhost:1",
                            "unix:/tmp/x", "unix-abstract:x"})
    EXPECT_TRUE(IsLocal(local)) << local;
  for (const char* remote :
       {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "host:7411", "1270.0.0.1:1",
        "localhost.example:1", "127.evil.example:1"})
    EXPECT_FALSE(IsLocal(remote)) << remote;
}

TEST(Auth, ListenersBeyondThisMachineNeedTlsAndKnownCallers) {
  const Security tls{.cert_pem = "c", .key_pem = "k"};
  Security token = tls, mutual = tls, plain, insecure = tls;
  token.token = plain.token = "0123456789abcdef";
  mutual.ca_pem = "roots";
  insecure.insecure = true;
  EXPECT_TRUE(CheckListener(token, "0.0.0.0:1").ok());
  EXPECT_TRUE(CheckListener(mutual, "0.0.0.0:1").ok());
  EXPECT_TRUE(CheckListener(insecure, "0.0.0.0:1").ok());
  EXPECT_TRUE(IsExposed(insecure, "0.0.0.0:1"));
  EXPECT_FALSE(IsExposed(token, "0.0.0.0:1"));
  EXPECT_EQ(InsecureListener(insecure, {"127.0.0.1:1", "", "0.0.0.0:2"}),
            "0.0.0.0:2");
  EXPECT_EQ(InsecureListener(insecure, {"127.0.0.1:1", ""}), "");
  EXPECT_EQ(InsecureListener(tls, {"0.0.0.0:2"}), "");
  for (const Security& open : {tls, plain, Security{}}) {
    const absl::Status status = CheckListener(open, "0.0.0.0:1");
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(Message(status).find("0.0.0.0:1"), std::string_view::npos);
    EXPECT_NE(Message(status).find(open.cert_pem.empty() ? "--tls-cert"
                                                         : "--access-token"),
              std::string_view::npos)
        << status;
    EXPECT_TRUE(CheckListener(open, "127.0.0.1:1").ok());
  }
}

}  // namespace
}  // namespace leat::rpc
