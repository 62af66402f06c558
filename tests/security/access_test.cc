// SPDX-License-Identifier: Apache-2.0
//
// Checks which caller may call what, on a real coordinator and a real worker.
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <set>

#include "absl/time/clock.h"
#include "core/cluster/roles.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leat/v1/admin.grpc.pb.h"
#include "leat/v1/coordinator.grpc.pb.h"
#include "server/daemon.h"
#include "tests/security/method_walk.h"
#include "worker/config/config.h"
#include "worker/worker.h"

namespace leat {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kOwn[] = "the-operators-first-token";

struct Made {
  std::string id, text;
};

bool IsRefusal(const absl::Status& status) {
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status);
}

class AccessTest : public testing::Test {
 protected:
  AccessTest() {
    config_.listen = "127.0.0.1:0";
    config_.security.token = kOwn;
  }
  void Start() {
    absl::StatusOr<std::unique_ptr<server::Daemon>> daemon =
        server::Daemon::Start(config_, &Clock::Real());
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
    channel_ = rpc::MakeChannel(daemon_->address(), {});
    admin_ = v1::AdminService::NewStub(channel_);
  }
  // Starts a worker with a token of its own, and waits until it is registered.
  void StartWorker() {
    worker::Config config;
    config.coordinator = daemon_->address();
    config.name = "node";
    config.security.token = Make("worker", "nodes").text;
    config.cache_bytes = config.buffer_bytes = 64 << 20;
    config.has_cache_bytes = true;
    config.threads = 1;
    config.SetDefaults();
    const auto ready = std::make_shared<std::promise<void>>();
    absl::StatusOr<std::unique_ptr<worker::Worker>> started =
        worker::Worker::Start(std::move(config),
                              {.on_ready = [ready] { ready->set_value(); },
                               .on_refused = {},
                               .on_fatal = {}});
    ASSERT_TRUE(started.ok()) << started.status();
    worker_ = *std::move(started);
    ready->get_future().wait();
    rows_ = rpc::MakeChannel(worker_->address(), {});
  }
  static void Prepare(grpc::ClientContext* context, const std::string& token) {
    rpc::AddMetadata({.token = token}, context);
    context->set_deadline(std::chrono::system_clock::now() +
                          std::chrono::seconds(30));
  }
  absl::StatusOr<Made> TryMake(const v1::CreateAccessTokenRequest& request) {
    grpc::ClientContext context;
    Prepare(&context, kOwn);
    v1::CreateAccessTokenResponse response;
    RETURN_IF_ERROR(
        rpc::FromGrpc(admin_->CreateAccessToken(&context, request, &response)));
    return Made{response.info().id(), response.token()};
  }
  Made Make(const std::string& role, const std::string& name,
            int seconds_left = 0) {
    v1::CreateAccessTokenRequest request;
    request.set_role(role);
    request.set_name(name);
    if (seconds_left > 0) request.mutable_lifetime()->set_seconds(seconds_left);
    const absl::StatusOr<Made> made = TryMake(request);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.value_or(Made{});
  }
  // Makes a token of role trainer or operator that the worker knows.
  Made MakeKnown(const std::string& role, const std::string& name,
                 int seconds_left = 0) {
    const Made made = Make(role, name, seconds_left);
    const MonotonicTime until = Clock::Real().Now() + std::chrono::seconds(60);
    while (absl::IsUnauthenticated(
        Call(rows_, "leat.v1.WorkerService/Rows", made.text)))
      if (Clock::Real().Now() > until) {
        ADD_FAILURE() << "the worker was not told of " << made.id;
        break;
      }
    return made;
  }
  absl::Status Revoke(const std::string& key) {
    grpc::ClientContext context;
    Prepare(&context, kOwn);
    v1::RevokeAccessTokenRequest request;
    request.set_token(key);
    v1::RevokeAccessTokenResponse response;
    return rpc::FromGrpc(
        admin_->RevokeAccessToken(&context, request, &response));
  }
  absl::Status Hello(const std::string& token) {
    return Call(channel_, "leat.v1.CoordinatorService/Hello", token);
  }
  static absl::Status Call(const std::shared_ptr<grpc::Channel>& channel,
                           const std::string& method,
                           const std::string& token) {
    AnyCall call(channel, method, token);
    call.Send("");
    return call.End();
  }

  server::Config config_;
  std::unique_ptr<server::Daemon> daemon_;
  std::unique_ptr<worker::Worker> worker_;
  std::shared_ptr<grpc::Channel> channel_, rows_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
};

// A stream that registers a worker of this name.
struct Registration {
  Registration(const std::shared_ptr<grpc::Channel>& channel,
               const std::string& name, const std::string& token)
      : stub(v1::CoordinatorService::NewStub(channel)) {
    rpc::AddMetadata({.token = token}, &context);
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(30));
    stream = stub->WorkerSession(&context);
    v1::WorkerSessionRequest request;
    request.mutable_register_()->set_name(name);
    request.mutable_register_()->set_address("127.0.0.1:1");
    request.mutable_register_()->set_threads(1);
    stream->Write(request);
  }
  ~Registration() {
    context.TryCancel();
    if (!ended) stream->Finish().ok();
  }
  bool Welcomed() {
    v1::WorkerSessionResponse response;
    return stream->Read(&response) && response.has_welcome();
  }
  absl::Status End() {
    v1::WorkerSessionResponse response;
    while (stream->Read(&response)) {
    }
    ended = true;
    return rpc::FromGrpc(stream->Finish());
  }

  std::unique_ptr<v1::CoordinatorService::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerSessionRequest,
                                           v1::WorkerSessionResponse>>
      stream;
  bool ended = false;
};

TEST_F(AccessTest, EveryMethodOfBothDaemonsAnswersAsTheTableSays) {
  Start();
  StartWorker();
  std::map<std::string, std::string> tokens;
  for (const Role role : kRoles)
    if (role != Role::kOperator)
      tokens[std::string(Name(role))] = Make(std::string(Name(role)), "").text;
  tokens["operator"] = MakeKnown("operator", "").text;  // like the others
  std::set<std::string> walked;
  for (const auto& channel : {channel_, rows_}) {
    for (const std::string& method : AllMethods()) {
      const std::string name = method.substr(method.rfind('.') + 1);
      // A method without a rule is answered like an unknown method.
      const MethodRule* const rule = FindMethod(name);
      ASSERT_NE(rule, nullptr)
          << method << " has no line in the table of core/cluster/roles.cc";
      if (absl::IsUnimplemented(Call(channel, method, tokens["operator"])))
        continue;  // the other daemon's
      walked.insert(name);
      for (const std::string& wrong :
           {std::string(), std::string("wrong"),
            TokenText(std::array<uint8_t, kTokenRandomBytes>{})})
        EXPECT_TRUE(absl::IsUnauthenticated(Call(channel, method, wrong)))
            << method << " \"" << wrong << "\"";
      for (const Role role : kRoles) {
        const absl::Status status =
            Call(channel, method, tokens[std::string(Name(role))]);
        if (MayCall(role, *rule)) {
          EXPECT_FALSE(IsRefusal(status))
              << method << " " << Name(role) << " " << status;
        } else {
          EXPECT_TRUE(absl::IsPermissionDenied(status))
              << method << " " << Name(role) << " " << status;
        }
      }
    }
  }
  std::set<std::string> table;
  for (const MethodRule& rule : MethodRules())
    table.insert(std::string(rule.method));
  EXPECT_EQ(walked, table);
  // Callers do not learn which services exist.
  for (const auto& channel : {channel_, rows_})
    EXPECT_TRUE(absl::IsUnimplemented(
        Call(channel,
             "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
             kOwn)));
}

TEST_F(AccessTest, ARefusalNamesTokenRoleAndRemedyAndNoSecret) {
  Start();
  const Made made = Make("viewer", "wall-screen");
  const absl::Status denied =
      Call(channel_, "leat.v1.AdminService/DeleteJob", made.text);
  for (const char* part : {"AdminService/DeleteJob", "role operator",
                           "wall-screen", "role viewer", "leat access create"})
    EXPECT_THAT(std::string(Message(denied)), HasSubstr(part));
  EXPECT_THAT(std::string(Message(denied)), HasSubstr(made.id));
  EXPECT_THAT(std::string(Message(denied)), Not(HasSubstr(made.text)));
  EXPECT_THAT(std::string(Message(denied)),
              Not(HasSubstr(made.text.substr(14))));
}

TEST_F(AccessTest, ATokenOfAnotherClusterOrAnotherTextIsNotKnown) {
  Start();
  const Made made = Make("trainer", "t");
  EXPECT_TRUE(Hello(made.text).ok());
  std::string other = made.text;
  other.back() = other.back() == '0' ? '1' : '0';
  for (const std::string& wrong :
       {other, TokenText(std::array<uint8_t, kTokenRandomBytes>{}),
        made.text.substr(0, made.text.size() - 1), std::string("x"),
        std::string(kOwn) + "x", std::string(kOwn).substr(1)}) {
    const absl::Status status = Hello(wrong);
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << wrong << " " << status;
    if (wrong.size() > 1) {
      EXPECT_THAT(std::string(Message(status)), Not(HasSubstr(wrong)));
    }
  }
  EXPECT_TRUE(Hello(kOwn).ok());
}

TEST_F(AccessTest, OnlyRolesAndNamesAndTimesThatThereAreMakeTokens) {
  Start();
  v1::CreateAccessTokenRequest good;
  good.set_role("trainer");
  EXPECT_TRUE(TryMake(good).ok());
  const auto refused = [&](const auto& change, const char* why) {
    v1::CreateAccessTokenRequest bad = good;
    change(bad);
    const absl::Status status = TryMake(bad).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << why;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(why));
  };
  refused([](auto& bad) { bad.set_role("root"); }, "role \"root\"");
  refused([](auto& bad) { bad.set_role(""); }, "role \"\"");
  refused([](auto& bad) { bad.set_name("a\nb"); }, "(unprintable)");
  refused([](auto& bad) { bad.set_name(std::string(65, 'a')); }, "1 to 64");
  refused([](auto& bad) { bad.mutable_lifetime()->set_seconds(0); },
          "lifetime 0 s");
  refused([](auto& bad) { bad.mutable_lifetime()->set_seconds(-5); },
          "lifetime -5 s");
  EXPECT_TRUE(absl::IsNotFound(Revoke("nobody")));
}

TEST_F(AccessTest, ARevokedTokenEndsItsStreamsAtBothDaemons) {
  Start();
  StartWorker();
  const Made made = Make("trainer", "t");
  const Made other = MakeKnown("trainer", "u");  // the previous one, too
  const Made nodes = Make("worker", "more-nodes");
  AnyCall session(channel_, "leat.v1.CoordinatorService/ConsumerSession",
                  made.text);
  AnyCall rows(rows_, "leat.v1.WorkerService/Rows", made.text);
  AnyCall stays(rows_, "leat.v1.WorkerService/Rows", other.text);
  Registration worker(channel_, "w", nodes.text);
  ASSERT_TRUE(worker.Welcomed());
  EXPECT_TRUE(Revoke(nodes.id).ok());
  EXPECT_TRUE(absl::IsUnauthenticated(worker.End()));
  EXPECT_TRUE(Revoke(made.id).ok());
  for (AnyCall* call : {&session, &rows}) {
    const absl::Status status = call->End();
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(made.id));
  }
  EXPECT_TRUE(absl::IsUnauthenticated(Hello(made.text)));
  EXPECT_TRUE(absl::IsUnauthenticated(
      Call(rows_, "leat.v1.WorkerService/Rows", made.text)));
  stays.Send("");
  EXPECT_FALSE(IsRefusal(stays.End()));
  EXPECT_TRUE(absl::IsNotFound(Revoke(made.id)));
}

TEST_F(AccessTest, ATokenThatExpiresEndsItsStreamsToo) {
  Start();
  StartWorker();
  const Made made = MakeKnown("trainer", "t", /*seconds_left=*/2);
  AnyCall session(channel_, "leat.v1.CoordinatorService/ConsumerSession",
                  made.text);
  AnyCall rows(rows_, "leat.v1.WorkerService/Rows", made.text);
  EXPECT_TRUE(absl::IsUnauthenticated(session.End()));
  EXPECT_TRUE(absl::IsUnauthenticated(rows.End()));
  EXPECT_TRUE(absl::IsUnauthenticated(Hello(made.text)));
}

TEST_F(AccessTest, SeveralOfANameAreRevokedByTheirIds) {
  Start();
  const Made one = Make("trainer", "vision");
  const Made two = Make("trainer", "vision");
  EXPECT_TRUE(Hello(one.text).ok());
  EXPECT_TRUE(Hello(two.text).ok());
  const absl::Status several = Revoke("vision");
  EXPECT_EQ(several.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(several)), HasSubstr(one.id));
  EXPECT_TRUE(Revoke(one.id).ok());
  EXPECT_TRUE(Hello(two.text).ok());
  EXPECT_TRUE(Revoke("vision").ok());
  EXPECT_TRUE(absl::IsUnauthenticated(Hello(two.text)));
}

TEST_F(AccessTest, TokensSurviveARestartAndTheirTextsAreNotKept) {
  const std::filesystem::path dir =
      std::filesystem::path(testing::TempDir()) / "leat_access_test";
  std::filesystem::remove_all(dir);
  config_.state_dir = dir.string();
  Start();
  const Made kept = Make("viewer", "kept"), gone = Make("viewer", "gone");
  ASSERT_TRUE(Revoke("gone").ok());
  for (int restart = 0; restart < 2; ++restart) {
    daemon_.reset();
    Start();
    EXPECT_TRUE(Hello(kept.text).ok());
    EXPECT_TRUE(absl::IsUnauthenticated(Hello(gone.text)));
  }
  daemon_.reset();
  for (const auto& file : std::filesystem::recursive_directory_iterator(dir)) {
    if (!file.is_regular_file()) continue;
    std::stringstream bytes;
    bytes << std::ifstream(file.path()).rdbuf();
    EXPECT_THAT(bytes.str(), Not(HasSubstr(kept.text.substr(14))));
    EXPECT_THAT(bytes.str(), Not(HasSubstr(kOwn)));
  }
  config_.security.token = "";
  const absl::Status open =
      server::Daemon::Start(config_, &Clock::Real()).status();
  EXPECT_EQ(open.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(open)), HasSubstr("--access-token-file"));
  std::filesystem::remove_all(dir);
}

TEST_F(AccessTest, WhereNobodyIsAskedATokenWouldKeepNobodyOut) {
  config_.security.token = "";
  Start();
  EXPECT_TRUE(Hello("").ok());
  v1::CreateAccessTokenRequest request;
  request.set_role("trainer");
  EXPECT_EQ(TryMake(request).status().code(),
            absl::StatusCode::kFailedPrecondition);
  config_.security.token = TokenText(std::array<uint8_t, kTokenRandomBytes>{});
  EXPECT_EQ(server::Daemon::Start(config_, &Clock::Real()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(AccessTest, ALivingWorkersNameIsItsIdentitys) {
  config_.coordinator.heartbeat_interval = std::chrono::milliseconds(100);
  config_.coordinator.membership.lost_after = std::chrono::seconds(2);
  Start();
  const Made nodes = Make("worker", "nodes"), again = Make("worker", "nodes");
  const Made thief = Make("worker", "thief");
  Registration first(channel_, "w", nodes.text);
  ASSERT_TRUE(first.Welcomed());
  {
    Registration stranger(channel_, "w", thief.text);
    const absl::Status status = stranger.End();
    EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << status;
    for (const char* part : {"w lives", "worker/nodes", "worker/thief"})
      EXPECT_THAT(std::string(Message(status)), HasSubstr(part));
  }
  // The next token of the same name is the same identity.
  Registration second(channel_, "w", again.text);
  EXPECT_TRUE(second.Welcomed());
  EXPECT_TRUE(absl::IsAborted(first.End()));
  // It sends no heartbeat: once it is lost, the name is free.
  bool taken = false;
  for (int tries = 0; tries < 1'000 && !taken; ++tries) {
    Registration stranger(channel_, "w", thief.text);
    taken = stranger.Welcomed();
    EXPECT_TRUE(taken || absl::IsAlreadyExists(stranger.End()));
    absl::SleepFor(absl::Milliseconds(50));
  }
  EXPECT_TRUE(taken);
}

}  // namespace
}  // namespace leat
