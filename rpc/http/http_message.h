// SPDX-License-Identifier: Apache-2.0
//
// What an HttpServer's handler is asked, and what it answers.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace leat::rpc {

struct HttpRequest {
  std::string_view path;   // without the query
  std::string_view token;  // of "Authorization: Bearer"; empty: none
};

struct HttpResponse {
  unsigned status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;  // not null; may be shared

  static HttpResponse Text(unsigned status, std::string text) {
    HttpResponse response;
    response.status = status;
    response.body = std::make_shared<const std::string>(std::move(text));
    return response;
  }
};

// The token in "Bearer TOKEN"; empty: another scheme, or none.
std::string_view BearerToken(std::string_view authorization);

// Whether a request with the field `host` is meant for the server at
// `address` ("HOST:PORT"). A page of another site can make a browser send
// requests here under a name of its own (DNS rebinding), so on loopback the
// name has to be an IP address, "localhost" or the one that `address` has.
// Elsewhere callers show what the page has not, and any well-formed name will
// do, since clusters have many.
bool IsHostOf(std::string_view host, std::string_view address);

}  // namespace leat::rpc
