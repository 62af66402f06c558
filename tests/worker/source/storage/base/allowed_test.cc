// SPDX-License-Identifier: Apache-2.0
//
// The paths that jobs may read, tested through all of storage: with files,
// links and listings, and servers on loopback.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>

#include "core/cluster/fault.h"
#include "core/mutex.h"
#include "tests/worker/source/storage/remote/fixture.h"

namespace leat::worker {
namespace {

// A name server for names below .rebound.test: each query gets the next answer,
// and the last one for ever.
class Answers {
 public:
  void Set(std::deque<std::string> answers) {
    MutexLock lock(&mu_);
    answers_ = std::move(answers);
    asked_ = 0;
  }
  std::string Next() {
    MutexLock lock(&mu_);
    ++asked_;
    std::string next = answers_.front();
    if (answers_.size() > 1) answers_.pop_front();
    return next;
  }
  int asked() {
    MutexLock lock(&mu_);
    return asked_;
  }

 private:
  Mutex mu_;
  std::deque<std::string> answers_ ABSL_GUARDED_BY(mu_) = {"192.0.2.1"};
  int asked_ ABSL_GUARDED_BY(mu_) = 0;
};

Answers& NameServer() {
  static auto* const answers = new Answers;
  return *answers;
}

using Resolver = int(const char*, const char*, const addrinfo*, addrinfo**);

}  // namespace
}  // namespace leat::worker

// libcurl finds this function before the C library's, whose list is returned:
// it queries that for the answer instead of the name.
extern "C" int getaddrinfo(const char* name, const char* service,
                           const addrinfo* hints, addrinfo** found) {
  static auto* const real = reinterpret_cast<leat::worker::Resolver*>(
      dlsym(RTLD_NEXT, "getaddrinfo"));
  if (name == nullptr || !std::string_view(name).ends_with(".rebound.test"))
    return real(name, service, hints, found);
  return real(leat::worker::NameServer().Next().c_str(), service, hints, found);
}

namespace leat::worker {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Request = ObjectServer::Request;
using Reply = ObjectServer::Reply;
using Code = absl::StatusCode;
using Prefixes = std::vector<std::string>;

constexpr char kOutside[] = "outside of what this worker may read";

class Allowed : public RemoteStorage {
 protected:
  Allowed() { setenv("no_proxy", "*", 1); }
  // Makes storage that may read only these.
  void Allow(Prefixes prefixes) {
    StorageConfig config = Small();
    config.allow = std::move(prefixes);
    Restart(config);
  }
  absl::Status Open(const std::string& uri) {
    return storage_->Open(uri).status();
  }
  void Refuses(const std::string& uri) {
    for (const absl::Status& status :
         {Open(uri), storage_->Stat(uri).status()}) {
      EXPECT_EQ(status.code(), Code::kPermissionDenied)
          << uri << ": " << status;
      EXPECT_THAT(Text(status), AllOf(HasSubstr(uri), HasSubstr(kOutside)));
      EXPECT_EQ(FaultOf(status), Fault::kWorker) << uri;
    }
  }
  void Link(const std::string& to, const std::string& from) {
    fs::create_symlink(to, from);
  }

  const TempDir dir_;
  const std::string in_ = dir_.Write("root/in", "0123456789");
  const std::string out_ = dir_.Write("rooted/secret", "a secret");
  const std::string root_ = dir_.path() + "/root";
};

TEST_F(Allowed, FilesBelowAFolderAndNoOthers) {
  Allow({root_});
  EXPECT_EQ(ReadWhole(*Opened(in_), 10).value(), "0123456789");
  EXPECT_TRUE(Open("file://" + in_).ok());
  EXPECT_TRUE(Open(dir_.path() + "/rooted/../root/in").ok());
  EXPECT_EQ(storage_->Stat(in_)->size, 10);
  EXPECT_EQ(Open(root_ + "/none").code(), Code::kNotFound);
  for (const std::string& path :
       {out_, root_ + "/../rooted/secret", "file://" + out_,
        std::string("/etc/passwd"), std::string("/proc/self/environ"),
        std::string("/dev/zero")})
    Refuses(path);
  EXPECT_EQ(Open("file://elsewhere" + in_).code(), Code::kInvalidArgument);
}

TEST_F(Allowed, WhetherAFileIsThereOutsideIsNotSaid) {
  Allow({root_});
  for (const std::string& path :
       {dir_.path() + "/rooted/none", root_ + "/../none/x",
        root_ + "/in/../../x", std::string("none"), out_ + "/below"})
    Refuses(path);
}

TEST_F(Allowed, LinksAreFollowedBeforeTheyAreCompared) {
  Link(out_, root_ + "/file");
  Link(dir_.path() + "/rooted", root_ + "/folder");
  Link(in_, root_ + "/good");
  Link(root_, dir_.path() + "/link");
  Allow({root_});
  EXPECT_TRUE(Open(root_ + "/good").ok());
  EXPECT_TRUE(Open(dir_.path() + "/link/in").ok());
  Refuses(root_ + "/file");
  Refuses(root_ + "/folder/secret");
  Refuses(dir_.path() + "/link/file");
  // A root that is a link is the folder that it leads to at present.
  Allow({dir_.path() + "/link/"});
  EXPECT_TRUE(Open(in_).ok());
  EXPECT_TRUE(Open(dir_.path() + "/link/in").ok());
  Refuses(out_);
  fs::remove(dir_.path() + "/link");
  Link(dir_.path() + "/rooted", dir_.path() + "/link");
  EXPECT_TRUE(Open(out_).ok());
  Refuses(in_);
}

// Links in an allowed folder reveal nothing about their targets.
TEST_F(Allowed, LinksDoNotSayWhetherAFileIsThereOutside) {
  const std::string outside = dir_.path() + "/rooted";
  Link(outside + "/none", root_ + "/dangling");
  Link(out_, root_ + "/leads");
  Link(outside, root_ + "/folder");
  Link("../rooted/none", root_ + "/relative");
  Link(root_ + "/dangling", root_ + "/twice");
  Link(outside + "/secret/below", root_ + "/not-a-folder");
  Link(root_ + "/loop", root_ + "/loop");
  Link("gone", root_ + "/inside");
  Link(root_, root_ + "/folder-inside");
  Allow({root_});
  const auto words = [&](const std::string& name) {
    const absl::Status status = Open(root_ + "/" + name);
    EXPECT_EQ(status.code(), Code::kPermissionDenied) << name << status;
    const std::string text(Message(status));
    return text.substr(text.find(name) + name.size());
  };
  const std::string refused = words("leads");
  for (const char* name :
       {"dangling", "folder/none", "folder/secret", "folder/../none",
        "relative", "twice", "not-a-folder", "folder/secret/below", "loop",
        "none/../../rooted/none"})
    EXPECT_EQ(words(name), refused) << name;
  // A target that would be inside is missing, as before.
  for (const char* name :
       {"inside", "folder-inside/none", "folder-inside/inside", "none/x"})
    EXPECT_EQ(Open(root_ + "/" + name).code(), Code::kNotFound) << name;
}

TEST_F(Allowed, ListingsDoNotTellOfWhatLinksLeadTo) {
  Link("gone", root_ + "/inside");
  Link(in_, root_ + "/good");
  Allow({root_});
  ASSERT_TRUE(storage_->List(root_).ok());
  EXPECT_EQ(storage_->List(root_)->size(), 2);
  for (const std::string& target : {out_, dir_.path() + "/rooted/none"}) {
    Link(target, root_ + "/photo.jpg");
    const absl::Status listed = storage_->List(root_).status();
    EXPECT_THAT(Text(listed),
                AllOf(HasSubstr("/photo.jpg"), HasSubstr(kOutside)))
        << target;
    EXPECT_EQ(listed.code(), Code::kPermissionDenied);
    fs::remove(root_ + "/photo.jpg");
  }
}

TEST_F(Allowed, ListingsStayInside) {
  Allow({root_});
  EXPECT_EQ(storage_->List(root_)->size(), 1);
  EXPECT_EQ(storage_->List(dir_.path()).status().code(),
            Code::kPermissionDenied);
  EXPECT_EQ(storage_->List(dir_.path() + "/none").status().code(),
            Code::kPermissionDenied);
  Link(dir_.path() + "/rooted", root_ + "/folder");
  EXPECT_THAT(Text(storage_->List(root_).status()),
              AllOf(HasSubstr("/folder"), HasSubstr(kOutside)));
}

TEST_F(Allowed, NothingAtAllIsSaidClearly) {
  Allow({});
  for (const std::string& uri :
       {in_, std::string("s3://bucket/key"), Url("/x")})
    EXPECT_THAT(Text(Open(uri)), HasSubstr("may read nothing")) << uri;
  EXPECT_EQ(server_.Seen().size(), 0);
}

TEST_F(Allowed, BucketsAndTheirPrefixes) {
  for (const char* key : {"/bucket/train/x", "/bucket/training/x", "/other/x"})
    server_.Put(key, "0123456789");
  Allow({"s3://bucket/train/", "gs://other"});
  EXPECT_TRUE(Open("s3://bucket/train/x").ok());
  EXPECT_TRUE(storage_->List("s3://bucket/train").ok());
  const size_t seen = server_.Seen().size();
  for (const char* uri :
       {"s3://bucket/training/x", "s3://bucket/train/../training/x",
        "s3://bucket/train/%2e%2e/training/x", "s3://bucket/train/./x",
        "s3://bucket/x", "s3://other/x", "gs://bucket/train/x"})
    Refuses(uri);
  for (const char* uri : {"s3://bucket", "s3://bucket/trai", "s3://other/"})
    EXPECT_EQ(storage_->List(uri).status().code(), Code::kPermissionDenied);
  Refuses(in_);
  EXPECT_EQ(server_.Seen().size(), seen);
}

TEST_F(Allowed, HostsByNamePortAndPath) {
  server_.Put("/a/x", "0123456789");
  server_.Put("/b/x", "0123456789");
  Allow({server_.url() + "/a"});
  EXPECT_TRUE(Open(Url("/a/x")).ok());
  const size_t seen = server_.Seen().size();
  const std::string port = server_.url().substr(server_.url().rfind(':'));
  for (const std::string& url :
       {Url("/b/x"), Url("/ab/x"), Url("/a/../b/x"), Url("/a/%2E%2e/b/x"),
        Url("/a/%252e%25252E/b/x"), Url("/a/..;v=1/b/x"), Url("/a/.%3B/b/x"),
        "http://localhost" + port + "/a/x", "https://127.0.0.1" + port + "/a/x",
        std::string("http://127.0.0.1:1/a/x")})
    Refuses(url);
  EXPECT_EQ(server_.Seen().size(), seen);
}

TEST_F(Allowed, RedirectsAreCompared) {
  ObjectServer other;
  other.Put("/x", "0123456789");
  std::string to = other.url() + "/x";
  server_.Always([&](const Request&, Reply* reply) {
    *reply = {.status = 302, .headers = {{"Location", to}}};
  });
  Allow({server_.url()});
  const absl::Status status = Open(Url("/from"));
  EXPECT_EQ(status.code(), Code::kPermissionDenied) << status;
  EXPECT_THAT(Text(status), AllOf(HasSubstr(Url("/from")),
                                  HasSubstr("--allow " + other.url()),
                                  Not(HasSubstr("0123"))));
  EXPECT_EQ(other.Seen().size(), 0);
  Allow({server_.url(), other.url()});
  EXPECT_TRUE(Open(Url("/from")).ok());
}

// Also if everything may be read.
TEST_F(Allowed, AddressesOfMetadataInAnyForm) {
  const auto refused = [&](const std::string& url, const char* kind) {
    const absl::Status status = Open(url);
    EXPECT_EQ(status.code(), Code::kPermissionDenied) << url << ": " << status;
    EXPECT_THAT(Text(status), HasSubstr(kind)) << url;
  };
  const std::pair<const char*, const char*> addresses[] = {
      {"169.254.169.254", "link-local"},
      {"2852039166", "link-local"},
      {"0xa9fea9fe", "link-local"},
      {"0251.0376.0251.0376", "link-local"},
      {"169.16689662", "link-local"},
      {"[::ffff:169.254.169.254]", "link-local"},
      {"[::ffff:0:169.254.169.254]", "link-local"},
      {"[64:ff9b::a9fe:a9fe]", "link-local"},
      {"[64:ff9b:1:a9fe:a9:fe00::]", "translated"},
      {"[2002:a9fe:a9fe::1]", "link-local"},
      {"[fe80::a9fe:a9fe]", "link-local"},
      {"[fd00:ec2::254]", "metadata"},
      {"[fd20:ce::254]", "metadata"},
      {"100.100.100.200", "metadata"},
      {"168.63.129.16", "metadata"},
      {"192.0.0.192", "metadata"}};
  for (const auto& [host, kind] : addresses) {
    refused(fmt::format("http://{}/latest/meta-data", host), kind);
    const std::string to = fmt::format("http://{}/x", host);
    server_.Next([to](const Request&, Reply* reply) {
      *reply = {.status = 302, .headers = {{"Location", to}}};
    });
    refused(Url("/from"), kind);
  }
}

// The address of a name is checked when the connection is made: a name that was
// good before does not help. Names below .localhost stand for loopback.
TEST_F(Allowed, NamesOfThisMachine) {
  server_.Put("/x", "0123456789");
  const std::string port = server_.url().substr(server_.url().rfind(':'));
  const std::string name = "http://data.localhost" + port;
  for (const bool by_name : {false, true}) {
    if (by_name) Allow({name});
    const absl::Status status = Open(name + "/x");
    EXPECT_EQ(status.code(), Code::kPermissionDenied) << status;
    EXPECT_THAT(Text(status), HasSubstr("loopback"));
  }
  EXPECT_EQ(server_.Seen().size(), 0);
  Allow({name, server_.url()});
  EXPECT_TRUE(Open(name + "/x").ok());
  // The job names the address itself, and may read everything.
  Restart(Small());
  EXPECT_TRUE(Open(Url("/x")).ok());
  EXPECT_TRUE(Open("http://localhost" + port + "/x").ok());
}

// A name of a server that may be read resolves to another address later: in a
// later query, as the second answer of one query, and after a redirect. The
// first answer was used, so the check of the name alone would let all of them
// pass.
TEST_F(Allowed, NamesThatAreBoundAnew) {
  server_.Put("/x", "0123456789");
  ObjectServer other;  // another port: libcurl asks for its name anew
  other.Put("/x", "a secret");
  const auto at = [](const ObjectServer& server) {
    return "http://data.rebound.test" +
           server.url().substr(server.url().rfind(':'));
  };
  const std::string name = at(server_), second = at(other);
  bool redirect = false;
  server_.Always([&](const Request&, Reply* reply) {
    if (redirect)
      *reply = {.status = 302, .headers = {{"Location", second + "/x"}}};
  });
  const auto refused = [&](const std::string& url, const std::string& address) {
    const absl::Status status = Open(url);
    EXPECT_EQ(status.code(), Code::kPermissionDenied) << url << ": " << status;
    EXPECT_THAT(Text(status),
                AllOf(HasSubstr(url), HasSubstr(address),
                      HasSubstr("--allow http://"), Not(HasSubstr("secret"))));
  };
  for (const std::string address :
       {"127.0.0.1", "169.254.169.254", "::1", "::ffff:169.254.169.254",
        "fd00:ec2::254"}) {
    // Both names may be read, and the first one's address; the other server
    // listens at 127.0.0.1, too.
    Allow({name, second, server_.url()});
    redirect = false;
    NameServer().Set({"127.0.0.1", address});
    EXPECT_TRUE(Open(name + "/x").ok());
    refused(second + "/x", address.substr(address.rfind(':') + 1));
    EXPECT_EQ(NameServer().asked(), 2) << address;
    Allow({name, second, server_.url()});
    redirect = true;
    NameServer().Set({"127.0.0.1", address});
    refused(name + "/x", address.substr(address.rfind(':') + 1));
    EXPECT_EQ(NameServer().asked(), 2) << address;
  }
  EXPECT_EQ(other.Seen().size(), 0);
  // The address was refused, and nothing else about it.
  Allow({name, second, server_.url(), other.url()});
  NameServer().Set({"127.0.0.1"});
  EXPECT_TRUE(Open(name + "/x").ok());
  EXPECT_EQ(other.Seen().size(), 1);
}

TEST_F(Allowed, PrefixesThatMeanNothingAreRefused) {
  for (const char* prefix :
       {"", "data", "../data", "s3://", "s3://b/../c", "http://",
        "http://host/a/../b", "http://host/?x", "http://user@host/",
        "ftp://host/", "file://host/data"}) {
    StorageConfig config = Small();
    config.allow = Prefixes{prefix};
    const auto storage = Storage::Create(config);
    EXPECT_EQ(storage.status().code(), Code::kInvalidArgument) << prefix;
    EXPECT_THAT(Text(storage.status()),
                HasSubstr(fmt::format("--allow \"{}\"", prefix)));
  }
}

}  // namespace
}  // namespace leat::worker
