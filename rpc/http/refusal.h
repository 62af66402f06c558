// SPDX-License-Identifier: Apache-2.0
//
// Answers a request that cannot be read.
#pragma once

#include <boost/system/error_code.hpp>
#include <optional>

#include "rpc/http/message.h"

namespace leat::rpc {

// Returns nullopt if nothing is to be sent: the caller is gone, or was too
// slow.
std::optional<HttpResponse> AnswerTo(const boost::system::error_code& error);

}  // namespace leat::rpc
