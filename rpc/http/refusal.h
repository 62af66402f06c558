// SPDX-License-Identifier: Apache-2.0
//
// What a request that cannot be read is answered.
#pragma once

#include <boost/system/error_code.hpp>
#include <optional>

#include "rpc/http/message.h"

namespace leat::rpc {

// nullopt: nothing, since the caller is gone, or was too slow.
std::optional<HttpResponse> AnswerTo(const boost::system::error_code& error);

}  // namespace leat::rpc
