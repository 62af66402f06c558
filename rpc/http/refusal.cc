// SPDX-License-Identifier: Apache-2.0
#include "rpc/http/refusal.h"

#include <boost/beast/http/error.hpp>

namespace leat::rpc {

std::optional<HttpResponse> AnswerTo(const boost::system::error_code& error) {
  if (error == boost::beast::http::error::header_limit ||
      error == boost::beast::http::error::buffer_overflow)
    return HttpResponse::Text(431, "the header is too large\n");
  if (error == boost::beast::http::error::body_limit)
    return HttpResponse::Text(413, "the body is too large\n");
  const boost::system::error_code any = boost::beast::http::make_error_code(
      boost::beast::http::error::bad_version);
  if (error.category() != any.category() ||
      error == boost::beast::http::error::end_of_stream ||
      error == boost::beast::http::error::partial_message)
    return std::nullopt;
  return HttpResponse::Text(400, "this is no request of HTTP/1.1\n");
}

}  // namespace leat::rpc
