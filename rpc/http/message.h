// SPDX-License-Identifier: Apache-2.0
//
// The request that an HttpServer's handler receives, and its response.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/clock.h"

namespace leat::rpc {

// Missing fields are empty.
struct HttpRequest {
  std::string_view path = {};   // without the query
  std::string_view token = {};  // from "Authorization: Bearer"
  std::string_view query = {};  // after the question mark
  std::string_view cookie = {};
  std::string_view last_event_id = {};
  std::string_view body = {};
  bool is_post = false;
  // False if a page of another site made a browser send the request.
  bool is_own_origin = true;
  bool is_tls = false;
  // The caller has presented the certificate that it was asked for, or was not
  // asked for one.
  bool certified = true;
};

struct HttpResponse {
  unsigned status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;  // not null; may be shared
  // Header fields added to those that each response has, or replacing them.
  // They never contain text from a caller.
  std::vector<std::pair<std::string, std::string>> fields = {};
  // If set, makes the response endless: called at intervals of `every` on the
  // server's thread. nullptr ends the response; an empty text sends nothing. A
  // caller that does not read a text within the request's time is dropped, and
  // only one text is kept for each caller.
  std::function<std::shared_ptr<const std::string>()> more = nullptr;
  Duration every = std::chrono::seconds(2);

  static HttpResponse Text(unsigned status, std::string text) {
    HttpResponse response;
    response.status = status;
    response.body = std::make_shared<const std::string>(std::move(text));
    return response;
  }
};

// Returns the token in "Bearer TOKEN"; empty: another scheme, or none.
std::string_view BearerToken(std::string_view authorization);

// Returns whether the request comes from a page of the server that `host`
// names, or from no page. Uses Sec-Fetch-Site if the browser sends it, which no
// page can forge; otherwise Origin, which must be `host`.
bool IsOwnOrigin(std::string_view fetch_site, std::string_view origin,
                 std::string_view host);

// Returns the value of a cookie; empty: none, or several.
std::string_view CookieIn(std::string_view cookies, std::string_view name);

// Returns the decoded value of a field in "a=1&b=x+y%21"; empty: none.
std::string FormValue(std::string_view form, std::string_view name);

// Returns whether a request with the field `host` is meant for the server at
// `address` ("HOST:PORT"). A page of another site can make a browser send
// requests here under its own name (DNS rebinding), so on loopback the name
// must be an IP address, "localhost" or the one in `address`. Elsewhere callers
// present credentials that the page does not have, so any well-formed name is
// accepted, since clusters have many.
bool IsHostOf(std::string_view host, std::string_view address);

}  // namespace leat::rpc
