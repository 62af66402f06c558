// SPDX-License-Identifier: Apache-2.0
//
// Explains what is wrong with a message in JSON where protobuf's parser does
// not say what it wants.
#pragma once

#include <string>
#include <string_view>

#include "google/protobuf/descriptor.h"

namespace leat::rpc {

// Names the first of the message's own fields whose word its enum lacks, the
// word, and those that it has. Without one: what the parser said.
std::string JsonTrouble(std::string_view json, std::string_view parser_said,
                        const google::protobuf::Descriptor& message);

}  // namespace leat::rpc
