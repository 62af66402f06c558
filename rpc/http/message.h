// SPDX-License-Identifier: Apache-2.0
//
// What an HttpServer's handler is asked, and what it answers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/clock.h"

namespace leat::rpc {

// Fields that are not there are empty.
struct HttpRequest {
  std::string_view path = {};   // without the query
  std::string_view token = {};  // of "Authorization: Bearer"
  std::string_view query = {};  // behind the question mark
  std::string_view cookie = {};
  std::string_view last_event_id = {};
  std::string_view body = {};
  bool is_post = false;
  // It was not a page of another site that made a browser ask.
  bool is_own_origin = true;
  bool is_tls = false;
  // The caller has shown the certificate that it was asked for, or was not
  // asked for one.
  bool certified = true;
};

struct HttpResponse {
  unsigned status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;  // not null; may be shared
  // Beside those that each answer has, or in their place. No text of a caller
  // is among them.
  std::vector<std::pair<std::string, std::string>> fields = {};
  // Makes it an answer without an end: asked for more so often, on the server's
  // thread. Null ends the answer; an empty text sends nothing. Whoever does not
  // take a text within the request's time is dropped, and one text alone is
  // kept for each caller.
  std::function<std::shared_ptr<const std::string>()> more = nullptr;
  Duration every = std::chrono::seconds(2);

  static HttpResponse Text(unsigned status, std::string text) {
    HttpResponse response;
    response.status = status;
    response.body = std::make_shared<const std::string>(std::move(text));
    return response;
  }
};

// The token in "Bearer TOKEN"; empty: another scheme, or none.
std::string_view BearerToken(std::string_view authorization);

// Whether a browser asks for a page of the server that `host` names, or
// nobody's page made it ask. By Sec-Fetch-Site where a browser sends it, which
// no page can forge; else by Origin, which is `host` then.
bool IsOwnOrigin(std::string_view fetch_site, std::string_view origin,
                 std::string_view host);

// The value of a cookie; empty: none, or several.
std::string_view CookieIn(std::string_view cookies, std::string_view name);

// The value of a field in "a=1&b=x+y%21", decoded; empty: none.
std::string FormValue(std::string_view form, std::string_view name);

// Whether a request with the field `host` is meant for the server at
// `address` ("HOST:PORT"). A page of another site can make a browser send
// requests here under a name of its own (DNS rebinding), so on loopback the
// name has to be an IP address, "localhost" or the one that `address` has.
// Elsewhere callers show what the page has not, and any well-formed name will
// do, since clusters have many.
bool IsHostOf(std::string_view host, std::string_view address);

}  // namespace leat::rpc
