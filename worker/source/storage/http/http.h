// SPDX-License-Identifier: Apache-2.0
//
// HttpTransport: single HTTP tries, many at a time. It has no retries,
// signatures or objects.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::worker {

struct HttpRequest {
  bool head = false;
  std::string url;
  std::vector<std::string> headers;  // "Name: value"; may hold secrets
  bool follow_redirects = false;     // at most 5; never from https to http
  bool trusted_host = false;         // by the operator: at any address
  // A range: `into.size()` bytes from `first` on. Bodies of 206, and of 200 if
  // `first` is 0, go to `into`; others to HttpResponse::body.
  std::optional<uint64_t> first;
  std::span<std::byte> into;
  uint64_t max_body = 64 << 10;
  // Increases when the try begins, having waited for a connection, at the end
  // of its answer's head, and with every part of its body. nullptr: not needed.
  // It must live as long as `into`.
  std::atomic<uint64_t>* heard = nullptr;
};

struct HttpResponse {
  enum class Failure {
    kNone,        // a whole response came, whatever its status
    kConnection,  // no server, or the connection broke: try again
    kTimeout,     // too slow: try again
    kTooLarge,    // more bytes than requested
    kFinal,       // no try can help: a bad certificate, a malformed URL
    kRefused,     // it, or its redirect's target, may not be requested
  };

  Failure failure = Failure::kNone;
  std::string failure_text;
  int status = 0;         // 0: no whole head came
  uint64_t received = 0;  // bytes at the beginning of `into`
  // The first max_body bytes; larger bodies of 200 are kTooLarge.
  std::string body;
  // Headers of the last response, after redirects; empty: missing.
  std::string etag;
  std::string last_modified;
  std::string content_range;
  std::string retry_after;
  std::string bucket_region;
  std::string date;
  std::optional<uint64_t> content_length;
};

class HttpTransport {
 public:
  using Id = uint64_t;
  using Done = std::function<void(HttpResponse)>;

  virtual ~HttpTransport() = default;
  // Starts one try; `done` is called once, on another thread or inside a later
  // call, unless Cancel came before. The memory of `into` must live until then.
  // `done` must not call the transport.
  virtual Id Begin(HttpRequest request, Done done) = 0;
  // When it returns, `done` of `id` has returned or never will be called, and
  // `into` is not written any more. The caller holds no lock that `done` takes.
  virtual void Cancel(Id id) = 0;
  // True if requests wait for a connection, so that none should be made twice.
  virtual bool Saturated() const = 0;
};

}  // namespace leat::worker
