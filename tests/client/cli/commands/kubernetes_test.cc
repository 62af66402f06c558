// SPDX-License-Identifier: Apache-2.0
//
// leat pool run --kubernetes against a scripted API server.
#include <deque>
#include <map>

#include "client/cli/base/exit_code.h"
#include "client/cli/clusters/kubernetes_api.h"
#include "client/cli/clusters/kubernetes_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kApps[] =
    "http://k8s/apis/apps/v1/namespaces/default/deployments/leat-worker/scale";
constexpr char kPods[] = "http://k8s/api/v1/namespaces/default/pods";

// A Deployment, its pods, and the important rules of the real server: a patch
// at an old resourceVersion, or with another UID, is a conflict.
class FakeKubernetes {
 public:
  struct Pod {
    std::string uid, cost;
    bool ends = false;
  };
  std::map<std::string, Pod> pods;
  uint64_t replicas = 0;
  int version = 7;
  size_t page = 500;
  std::vector<HttpCall> calls;
  // Replaces the answers to the next calls.
  std::deque<absl::StatusOr<HttpReply>> failing;
  std::string forbidden;  // "PATCH pods": a refused request
  std::string budget;     // answer to an eviction; empty: OK
  std::function<void()> before_patch;

  void Add(const std::string& name) { pods[name] = {"uid-" + name, "", false}; }
  // Acts as the controller: ends the cheapest pods, or starts others.
  void Settle() {
    while (Live() > replicas) {
      auto victim = pods.end();
      for (auto it = pods.begin(); it != pods.end(); ++it)
        if (!it->second.ends &&
            (victim == pods.end() || Cost(it->second) < Cost(victim->second)))
          victim = it;
      victim->second.ends = true;
    }
    while (Live() < replicas) Add(fmt::format("new-{}", ++made_));
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& [name, pod] : pods)
      if (!pod.ends) names.push_back(name);
    return names;
  }

  absl::StatusOr<HttpReply> operator()(const HttpCall& call) {
    calls.push_back(call);
    if (!failing.empty()) {
      absl::StatusOr<HttpReply> next = failing.front();
      failing.pop_front();
      return next;
    }
    const std::string path = call.url.substr(0, call.url.find('?'));
    if (path == kApps) return Scale(call);
    if (path == kPods) return List(call);
    if (path.starts_with(std::string(kPods) + "/")) return OnPod(call, path);
    return Error(404, "no such path");
  }

 private:
  static int Cost(const Pod& pod) {
    return pod.cost.empty() ? 0 : std::stoi(pod.cost);
  }
  uint64_t Live() const { return Names().size(); }
  static HttpReply Error(int status, const std::string& message) {
    return {status,
            Json({{"kind", "Status"}, {"message", message}, {"code", status}})
                .dump(),
            {}};
  }
  static std::string HeaderOf(const HttpCall& call, const std::string& name) {
    for (const std::string& header : call.headers)
      if (header.starts_with(name + ": "))
        return header.substr(name.size() + 2);
    return "";
  }
  static Json Body(const HttpCall& call) {
    EXPECT_EQ(HeaderOf(call, "Content-Type"),
              call.method == "POST" ? "application/json"
                                    : "application/merge-patch+json");
    return Json::parse(call.body);
  }
  HttpReply Scale(const HttpCall& call) {
    if (call.method == "PATCH") {
      if (before_patch) std::exchange(before_patch, nullptr)();
      if (forbidden == "PATCH scale") return Error(403, "no \"patch\"");
      const Json body = Body(call);
      if (Text(body, "metadata.resourceVersion") != std::to_string(version))
        return Error(409, "the object has been modified");
      replicas = Whole(body, "spec.replicas");
      ++version;
      Settle();
    } else {
      EXPECT_EQ(call.method, "GET");
    }
    Json spec = Json::object(), status = {{"selector", "app=leat,pool=cpu"}};
    if (replicas > 0) spec["replicas"] = replicas;  // 0 is left out
    status["replicas"] = Live();
    return {200,
            Json({{"kind", "Scale"},
                  {"apiVersion", "autoscaling/v1"},
                  {"metadata", {{"resourceVersion", std::to_string(version)}}},
                  {"spec", spec},
                  {"status", status}})
                .dump(),
            {}};
  }
  HttpReply List(const HttpCall& call) {
    EXPECT_EQ(call.method, "GET");
    EXPECT_THAT(call.url,
                HasSubstr("?labelSelector=app%3Dleat%2Cpool%3Dcpu&limit=500"));
    if (forbidden == "GET pods") return Error(403, "no \"list\"");
    size_t from = 0;
    if (const size_t at = call.url.find("&continue="); at != std::string::npos)
      from = std::stoul(call.url.substr(at + 10));
    Json items = Json::array();
    size_t number = 0;
    for (const auto& [name, pod] : pods) {
      if (number++ < from || items.size() == page) continue;
      Json metadata = {{"name", name}, {"uid", pod.uid}};
      if (!pod.cost.empty())
        metadata["annotations"][std::string(kDeletionCost)] = pod.cost;
      if (pod.ends) metadata["deletionTimestamp"] = "2026-11-21T01:00:00Z";
      items.push_back({{"metadata", metadata}});
    }
    Json list = {{"kind", "PartialObjectMetadataList"},
                 {"metadata", Json::object()},
                 {"items", items}};
    if (from + items.size() < pods.size())
      list["metadata"]["continue"] = std::to_string(from + items.size());
    return {200, list.dump(), {}};
  }
  HttpReply OnPod(const HttpCall& call, const std::string& path) {
    std::string name = path.substr(sizeof kPods);
    const bool evicts = name.ends_with("/eviction");
    if (evicts) name.resize(name.size() - std::string("/eviction").size());
    if (forbidden == call.method + " pods") return Error(403, "no");
    const Json body = Body(call);
    const auto found = pods.find(name);
    if (found == pods.end()) return Error(404, "no pod");
    if (evicts) {
      EXPECT_EQ(call.method, "POST");
      EXPECT_EQ(Text(body, "apiVersion"), "policy/v1");
      EXPECT_EQ(Text(body, "deleteOptions.preconditions.uid"),
                found->second.uid);
      if (!budget.empty()) return Error(429, budget);
      found->second.ends = true;
      Settle();
      return {201, "{}", {}};
    }
    EXPECT_EQ(call.method, "PATCH");
    if (Text(body, "metadata.uid") != found->second.uid)
      return Error(409, "the uid is another one");
    const Json& cost = At(body, "metadata.annotations");
    found->second.cost =
        cost.begin()->is_null() ? "" : cost.begin()->get<std::string>();
    return {200, "{}", {}};
  }
  int made_ = 0;
};

class KubernetesCommand : public ::testing::Test {
 protected:
  KubernetesCommand() {
    shell_.http = [this](const HttpCall& call) { return k8s_(call); };
    for (const char* name : {"a", "b", "c", "d", "e"}) k8s_.Add(name);
    k8s_.replicas = 5;
  }
  int Run(uint64_t desired, const std::vector<std::string>& drain = {},
          uint64_t max = 9) {
    k8s_.calls.clear();
    shell_.pauses = 0;
    const Json pool = {{"max", max}, {"desired", desired}, {"drain", drain}};
    shell_.service.pools_seen = {pool.dump()};
    return shell_.Run({"pool", "run", "cpu", "--kubernetes",
                       "deployment/leat-worker", "--server", "http://k8s/",
                       "--once"});
  }
  std::vector<std::string> Changes() const {
    std::vector<std::string> changes;
    for (const HttpCall& call : k8s_.calls)
      if (call.method != "GET")
        changes.push_back(call.method + " " + call.url.substr(10));
    return changes;
  }

  FakeKubernetes k8s_;
  Shell shell_;
};

TEST_F(KubernetesCommand, ScalesUpAndDownAndTheChosenOnesGo) {
  ASSERT_EQ(Run(7), kGood) << shell_.err;
  EXPECT_EQ(k8s_.replicas, 7u);
  EXPECT_THAT(k8s_.Names(), SizeIs(7));
  ASSERT_EQ(Run(3, {"b", "d", "new-1", "new-2"}), kGood) << shell_.err;
  EXPECT_THAT(k8s_.Names(), ElementsAre("a", "c", "e"));
  EXPECT_THAT(shell_.err, HasSubstr("pod b is to go"));
  EXPECT_THAT(shell_.err, HasSubstr("3 replicas, after 7"));
  // The state is as wanted: no change, also by a second adapter.
  ASSERT_EQ(Run(3, {"b", "d"}), kGood);
  EXPECT_THAT(Changes(), IsEmpty());
  ASSERT_EQ(Run(0, {"a", "c", "e"}), kGood);
  EXPECT_THAT(k8s_.Names(), IsEmpty());
  ASSERT_EQ(Run(1), kGood);
  EXPECT_THAT(k8s_.Names(), SizeIs(1));
}

TEST_F(KubernetesCommand, APoolWithoutBoundsIsLeftAlone) {
  EXPECT_EQ(Run(1, {}, /*max=*/0), kGood);
  EXPECT_THAT(k8s_.calls, IsEmpty());
}

TEST_F(KubernetesCommand, WhoStaysAfterAllLosesItsMark) {
  k8s_.pods["a"].cost = "-1000";
  k8s_.pods["b"].cost = "-5";  // set by another program
  k8s_.pods["c"].cost = "-1000";
  k8s_.pods["c"].ends = true;
  k8s_.replicas = 4;
  ASSERT_EQ(Run(4), kGood) << shell_.err;
  EXPECT_THAT(Changes(), ElementsAre(HasSubstr("/pods/a")));
  EXPECT_EQ(k8s_.pods["a"].cost, "");
  EXPECT_EQ(k8s_.pods["b"].cost, "-5");
}

TEST_F(KubernetesCommand, WhomAnOperatorDrainedIsReplaced) {
  ASSERT_EQ(Run(5, {"b"}), kGood) << shell_.err;
  EXPECT_TRUE(k8s_.pods["b"].ends);
  EXPECT_THAT(k8s_.Names(), ElementsAre("a", "c", "d", "e", "new-1"));
  // A PodDisruptionBudget postpones it; it is retried the next time.
  k8s_.budget = "Cannot evict pod as it would violate the budget";
  EXPECT_NE(Run(5, {"c", "d"}), kGood);
  EXPECT_THAT(shell_.err, HasSubstr("violate the budget"));
  EXPECT_EQ(shell_.pauses, 0);
  EXPECT_FALSE(k8s_.pods["c"].ends);
}

TEST_F(KubernetesCommand, AConflictIsReadAgain) {
  k8s_.before_patch = [this] {
    k8s_.replicas = 6;
    ++k8s_.version;
  };
  ASSERT_EQ(Run(2), kGood) << shell_.err;
  EXPECT_EQ(k8s_.replicas, 2u);
  EXPECT_THAT(Changes(), SizeIs(2));
}

TEST_F(KubernetesCommand, ConflictsWithoutEndAreAnError) {
  std::function<void()> again = [&] {
    ++k8s_.version;
    k8s_.before_patch = again;
  };
  k8s_.before_patch = again;
  EXPECT_NE(Run(2), kGood);
  EXPECT_THAT(Changes(), SizeIs(3));
  EXPECT_THAT(shell_.err, HasSubstr("409"));
}

TEST_F(KubernetesCommand, APodThatIsGoneOrReplacedHoldsNothingUp) {
  k8s_.failing = {
      k8s_({.url = kApps}),
      k8s_({.url = std::string(kPods) +
                   "?labelSelector=app%3Dleat%2Cpool%3Dcpu&limit=500"})};
  k8s_.pods.erase("a");
  k8s_.pods["b"].uid = "another";
  ASSERT_EQ(Run(3, {"a", "b"}), kGood) << shell_.err;
  EXPECT_EQ(k8s_.replicas, 3u);
  EXPECT_EQ(k8s_.pods["b"].cost, "");
}

TEST_F(KubernetesCommand, AForbiddenRequestNamesTheRule) {
  k8s_.forbidden = "PATCH scale";
  EXPECT_EQ(Run(2), kNotAllowed);
  EXPECT_THAT(
      shell_.err,
      AllOf(HasSubstr("apiGroups [\"apps\"]"),
            HasSubstr("resources [\"deployments/scale\"], verbs [\"patch\"]"),
            HasSubstr("namespace default"), HasSubstr("no \"patch\"")));
  k8s_.forbidden = "GET pods";
  EXPECT_EQ(Run(2), kNotAllowed);
  EXPECT_THAT(shell_.err, HasSubstr("resources [\"pods\"], verbs [\"list\"]"));
  // It scales nevertheless: other workers end, which costs their caches.
  k8s_.forbidden = "PATCH pods";
  EXPECT_EQ(Run(2, {"a", "b", "c"}), kNotAllowed);
  EXPECT_THAT(shell_.err, HasSubstr("resources [\"pods\"], verbs [\"patch\"]"));
  EXPECT_EQ(k8s_.replicas, 2u);
  EXPECT_THAT(Changes(), SizeIs(2));
}

TEST_F(KubernetesCommand, WhatFailsForTheMomentIsTriedAgain) {
  k8s_.failing = {absl::UnavailableError("refused"),
                  HttpReply{503, "x", absl::ZeroDuration()},
                  HttpReply{429, "", absl::Seconds(3)}};
  ASSERT_EQ(Run(2), kGood) << shell_.err;
  EXPECT_EQ(shell_.pauses, 3);
  EXPECT_EQ(k8s_.replicas, 2u);
  for (int i = 0; i < 9; ++i)
    k8s_.failing.push_back(absl::DeadlineExceededError("slow"));
  EXPECT_NE(Run(4), kGood);
  EXPECT_EQ(shell_.pauses, 3);
  EXPECT_THAT(k8s_.calls, SizeIs(4));
}

TEST_F(KubernetesCommand, OddAnswersAreNamedAndNothingIsChanged) {
  for (const auto& [status, body, part] :
       std::vector<std::tuple<int, std::string, std::string>>{
           {200, "<html>", "JSON"},
           {200, "{}", "no Scale"},
           {200, R"({"kind": "Scale", "spec": {"replicas": 3}})", "no Scale"},
           {200, "", "JSON"},
           {302, "", "answers 302"},
           {401, R"({"message": "Unauthorized"})", "401"},
           {404, R"({"message": "deployments \"x\" not found"})", "not found"},
           {418, std::string(100'000, 'x'), "answers 418"}}) {
    k8s_.failing = {HttpReply{status, body, {}}};
    EXPECT_NE(Run(2), kGood) << body.substr(0, 50);
    EXPECT_THAT(shell_.err, HasSubstr(part));
    EXPECT_LT(shell_.err.size(), 2000u);
    EXPECT_THAT(Changes(), IsEmpty());
    k8s_.failing.clear();
  }
}

TEST_F(KubernetesCommand, ALongListIsReadInParts) {
  k8s_.page = 2;
  ASSERT_EQ(Run(2, {"a", "c", "e"}), kGood) << shell_.err;
  EXPECT_THAT(k8s_.Names(), ElementsAre("b", "d"));
}

TEST_F(KubernetesCommand, WhatIsWrongIsNamedBeforeAnybodyIsAsked) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> table = {
      {{}, "--kubernetes is missing"},
      {{"--kubernetes", "leat-worker", "--server", "http://k"},
       "deployment/NAME"},
      {{"--kubernetes", "deployment/A/b", "--server", "http://k"},
       "deployment/NAME"},
      {{"--kubernetes", "deployment/a", "--server", "k8s:80"}, "http(s)://"},
      {{"--kubernetes", "deployment/a", "--server", "http://k?x"},
       "http(s)://"},
      {{"--kubernetes", "deployment/a", "--max", "3"}, "are of set"},
      {{"--kubernetes", "deployment/a", "--kubeconfig", "/nowhere"},
       "/nowhere"},
      {{"--kubernetes", "deployment/a"}, "kubectl proxy"},
  };
  for (const auto& [flags, part] : table) {
    std::vector<std::string> command = {"pool", "run", "cpu"};
    command.insert(command.end(), flags.begin(), flags.end());
    EXPECT_NE(shell_.Run(command), kGood) << part;
    EXPECT_THAT(shell_.err, HasSubstr(part));
  }
  EXPECT_THAT(k8s_.calls, IsEmpty());
}

}  // namespace
}  // namespace leat::cli
