// SPDX-License-Identifier: Apache-2.0
//
// ObjectServer: objects by HTTP ranges and S3's listing, with faults that tests
// inject. Does not check signatures; it only records them.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "fmt/format.h"
#include "tests/worker/source/storage/http/http_server.h"
#include "worker/source/storage/base/uri.h"

namespace leat::worker {

class ObjectServer {
 public:
  using Request = HttpServer::Request;
  using Reply = HttpServer::Reply;
  // Gets a request and the reply that it would get, and may change the reply.
  using Fault = std::function<void(const Request&, Reply*)>;

  ObjectServer()
      : server_(std::make_unique<HttpServer>(
            [this](const Request& request) { return Handle(request); })) {}

  std::string url() const { return server_->url(); }
  void Stop() { server_->Stop(); }
  // `path` as in URLs, unescaped: "/bucket/key".
  void Put(const std::string& path, std::string bytes,
           const std::string& etag = "v1") {
    const MutexLock lock(&mu_);
    objects_[path] = {std::move(bytes), etag};
  }
  void Remove(const std::string& path) {
    const MutexLock lock(&mu_);
    objects_.erase(path);
  }
  // Injects this fault into the next requests, one each, in order.
  void Next(Fault fault, int times = 1) {
    const MutexLock lock(&mu_);
    for (int i = 0; i < times; ++i) once_.push_back(fault);
  }
  // Injects this fault into every request, before those.
  void Always(Fault fault) {
    const MutexLock lock(&mu_);
    always_ = std::move(fault);
  }
  void set_page_keys(size_t keys) { page_keys_ = keys; }
  std::vector<Request> Seen() const {
    const MutexLock lock(&mu_);
    return seen_;
  }
  int Count(const std::string& method) const {
    int count = 0;
    for (const Request& each : Seen()) count += each.method == method ? 1 : 0;
    return count;
  }

  static Fault Status(int status, std::string code = "",
                      std::string message = "") {
    return [=](const Request&, Reply* reply) {
      *reply = {.status = status, .body = "a page for people"};
      if (!code.empty()) {
        reply->body = fmt::format(
            "<?xml version=\"1.0\"?><Error><Code>{}</Code><Message>{}"
            "</Message></Error>",
            code, message);
      }
    };
  }

 private:
  struct Object {
    std::string bytes;
    std::string etag;
  };

  Reply Handle(const Request& request) {
    Fault always, once;
    Reply reply;
    {
      const MutexLock lock(&mu_);
      seen_.push_back(request);
      reply = request.Query("list-type") == "2" ? List(request) : Get(request);
      always = always_;
      if (!once_.empty()) {
        once = std::move(once_.front());
        once_.pop_front();
      }
    }
    if (always) always(request, &reply);
    if (once) once(request, &reply);
    return reply;
  }

  Reply Get(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const auto found = objects_.find(request.Path());
    if (found == objects_.end()) {
      return {.status = 404, .body = "<Error><Code>NoSuchKey</Code></Error>"};
    }
    const Object& object = found->second;
    const std::string etag = "\"" + object.etag + "\"";
    const std::string wanted = request.Header("if-match");
    if (!wanted.empty() && wanted != etag) return {.status = 412};
    Reply reply = {.headers = {{"ETag", etag}}, .body = object.bytes};
    if (request.method == "HEAD") return reply;
    if (const auto range = request.Range(); range.has_value()) {
      if (range->first >= object.bytes.size()) {
        return {.status = 416,
                .headers = {{"Content-Range",
                             fmt::format("bytes */{}", object.bytes.size())}}};
      }
      const uint64_t last =
          std::min<uint64_t>(range->second, object.bytes.size() - 1);
      reply.status = 206;
      reply.headers.emplace_back(
          "Content-Range", fmt::format("bytes {}-{}/{}", range->first, last,
                                       object.bytes.size()));
      reply.body = object.bytes.substr(range->first, last - range->first + 1);
    }
    return reply;
  }

  Reply List(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const std::string bucket = request.Path() + "/";
    const std::string prefix = bucket + request.Query("prefix");
    const std::string after = request.Query("continuation-token");
    std::string body = "<ListBucketResult xmlns=\"http://s3\">";
    body += "<EncodingType>url</EncodingType>";
    size_t keys = 0;
    std::string last;
    bool truncated = false;
    for (const auto& [path, object] : objects_) {
      if (!path.starts_with(prefix) || path <= bucket + after) continue;
      if (keys == page_keys_) {
        truncated = true;
        break;
      }
      ++keys;
      last = path.substr(bucket.size());
      body += fmt::format(
          "<Contents><Key>{}</Key><Size>{}</Size><ETag>&quot;{}&quot;</ETag>"
          "</Contents>",
          PercentEncode(last, "/"), object.bytes.size(), object.etag);
    }
    body += fmt::format("<IsTruncated>{}</IsTruncated>", truncated);
    if (truncated) {
      body += fmt::format("<NextContinuationToken>{}</NextContinuationToken>",
                          last);
    }
    return {.body = body + "</ListBucketResult>"};
  }

  mutable Mutex mu_;
  std::map<std::string, Object> objects_ ABSL_GUARDED_BY(mu_);
  std::deque<Fault> once_ ABSL_GUARDED_BY(mu_);
  Fault always_ ABSL_GUARDED_BY(mu_);
  std::vector<Request> seen_ ABSL_GUARDED_BY(mu_);
  std::atomic<size_t> page_keys_ = 1000;
  std::unique_ptr<HttpServer> server_;  // last: ends first
};

}  // namespace leat::worker
