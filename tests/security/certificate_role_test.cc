// SPDX-License-Identifier: Apache-2.0
//
// Roles from names in certificates, at a real coordinator over TLS.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/daemon.h"
#include "tests/rpc/certificate_maker.h"
#include "tests/security/method_walk.h"

namespace leat {
namespace {

using rpc::MadeCertificate;
using ::testing::AllOf;
using ::testing::HasSubstr;

class CertificateRoleTest : public ::testing::Test {
 protected:
  void Start(bool with_token) {
    server::Config config;
    config.listen = "localhost:0";
    config.security.ca_pem = root_.pem();
    config.security.cert_pem = own_.pem();
    config.security.key_pem = own_.key_pem();
    config.security.san_roles = {
        {"spiffe://example.org/trainer/*", Role::kTrainer},
        {"*.nodes.example.org", Role::kWorker},
        {"ops.example.org", Role::kOperator}};
    if (with_token) config.security.token = kToken;
    auto daemon = server::Daemon::Start(config, &Clock::Real());
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
  }
  absl::Status Call(const std::string& method, const std::string& names,
                    const std::string& token = "") {
    const MadeCertificate caller({.name = "ops.example.org", .names = names},
                                 &root_);
    AnyCall call(
        rpc::MakeChannel(daemon_->address(), {.ca_pem = root_.pem(),
                                              .cert_pem = caller.pem(),
                                              .key_pem = caller.key_pem()}),
        "leat.v1." + method, token);
    call.Send("");
    return call.End();
  }
  static bool IsIn(const absl::Status& status) {
    return !absl::IsUnauthenticated(status) &&
           !absl::IsPermissionDenied(status) && !absl::IsUnavailable(status);
  }

  static constexpr char kToken[] = "the-operators-first-token";
  const MadeCertificate root_{{.name = "root", .names = "", .authority = true}};
  const MadeCertificate own_{{}, &root_};
  std::unique_ptr<server::Daemon> daemon_;
};

TEST_F(CertificateRoleTest, TheFirstPatternThatFitsIsTheRole) {
  Start(/*with_token=*/false);
  const std::string trainer = "URI:spiffe://example.org/trainer/vision",
                    node = "DNS:gpu-1.nodes.example.org",
                    both = "DNS:ops.example.org," + trainer;
  EXPECT_TRUE(IsIn(Call("CoordinatorService/CreateJob", trainer)));
  EXPECT_TRUE(IsIn(Call("CoordinatorService/GetIndexBlocks", node)));
  EXPECT_TRUE(IsIn(Call("AdminService/DeleteJob", "DNS:ops.example.org")));
  const absl::Status denied = Call("AdminService/DeleteJob", both);
  EXPECT_TRUE(absl::IsPermissionDenied(denied)) << denied;
  EXPECT_THAT(std::string(denied.message()),
              AllOf(HasSubstr("AdminService/DeleteJob"),
                    HasSubstr("certificate/spiffe://example.org/trainer"),
                    HasSubstr("role trainer"), HasSubstr("--role-from-san")));
  EXPECT_TRUE(
      absl::IsPermissionDenied(Call("CoordinatorService/CreateJob", node)));
}

// A common name gives no role; nor does a mail address or an IP.
TEST_F(CertificateRoleTest, OthersAreNobody) {
  Start(/*with_token=*/false);
  for (const char* names :
       {"", "DNS:stranger.example.org", "email:ops@ops.example.org",
        "DNS:ops.example.org.evil", "URI:https://ops.example.org"}) {
    const absl::Status status = Call("AdminService/GetStatus", names);
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << names << ": " << status;
  }
  EXPECT_TRUE(absl::IsUnauthenticated(
      Call("AdminService/GetStatus", "DNS:ops.example.org", "wrong")));
}

TEST_F(CertificateRoleTest, ATokenCountsMoreThanACertificate) {
  Start(/*with_token=*/true);
  const std::string trainer = "URI:spiffe://example.org/trainer/vision";
  EXPECT_TRUE(
      absl::IsPermissionDenied(Call("AdminService/DeleteJob", trainer)));
  EXPECT_TRUE(IsIn(Call("AdminService/DeleteJob", trainer, kToken)));
  EXPECT_TRUE(absl::IsUnauthenticated(
      Call("AdminService/GetStatus", "DNS:ops.example.org", "wrong")));
}

}  // namespace
}  // namespace leat
