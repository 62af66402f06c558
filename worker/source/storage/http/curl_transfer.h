// SPDX-License-Identifier: Apache-2.0
//
// CurlTransfer: one try of one HTTP request, as a libcurl easy handle.
//
// CurlTransport makes it when the request is queued, prepares it when there is
// a connection for it, and destroys it after `done`; its one thread runs the
// handle. An error becomes the response's failure: libcurl's, or the refusal of
// an address or a redirect that `allowed` does not have.
#pragma once

#include <curl/curl.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "core/freed.h"
#include "worker/source/storage/base/allowed.h"
#include "worker/source/storage/base/config.h"
#include "worker/source/storage/http/http.h"

namespace leat::worker {

// Thread-compatible. Does not move: libcurl holds its address.
class CurlTransfer {
 public:
  CurlTransfer(HttpTransport::Id id, HttpRequest request,
               HttpTransport::Done done);
  CurlTransfer(const CurlTransfer&) = delete;
  CurlTransfer& operator=(const CurlTransfer&) = delete;

  HttpTransport::Id id() const { return id_; }
  // Prepares and returns the handle; nullptr if out of memory. `allowed`
  // outlives it.
  CURL* Prepare(const StorageConfig& config, const AllowedReads& allowed);
  CURL* easy() const { return easy_.get(); }
  // Returns the response, after libcurl is done with the handle.
  HttpResponse Finish(CURLcode code);
  const HttpTransport::Done& done() const { return done_; }

 private:
  static size_t OnHeader(char* data, size_t size, size_t count, void* self);
  static size_t OnBody(char* data, size_t size, size_t count, void* self);
  static curl_socket_t OnSocket(void* self, curlsocktype purpose,
                                curl_sockaddr* address);
  static int OnRequest(void* self, char* ip, char* own_ip, int port,
                       int own_port);
  // True if the URL that it has been sent to may be requested.
  bool MayAsk();
  void Refuse(const absl::Status& why);
  void Hear(uint64_t bytes);
  void TakeHeader(std::string_view line);
  // Returning false ends the transfer.
  bool TakeBody(std::string_view bytes);
  void SetOptions(const StorageConfig& config);

  const HttpTransport::Id id_;
  const HttpRequest request_;
  const HttpTransport::Done done_;
  const AllowedReads* allowed_ = nullptr;  // set by Prepare
  std::unique_ptr<curl_slist, Freed<curl_slist_free_all>> headers_;
  std::array<char, CURL_ERROR_SIZE> error_ = {};
  HttpResponse response_;
  bool head_ended_ = false;  // all its headers have come
  std::string refusal_;      // of an address or a redirect; empty: none
  // Last: it is cleaned up first.
  std::unique_ptr<CURL, Freed<curl_easy_cleanup>> easy_;
};

}  // namespace leat::worker
