// SPDX-License-Identifier: Apache-2.0
//
// The page's data as JSON. Messages are as the CLI prints them, but for fields
// that are 0 or empty, which are left out, and numbers of 64 bits, which are
// text, as protobuf's mapping has it.
#pragma once

#include <string>

#include "google/protobuf/message.h"
#include "server/observe/cluster_events.h"
#include "server/page/model.h"

namespace leat::server {

std::string JsonOf(const google::protobuf::Message& message);
std::string JsonOf(const PageModel& model);
// Shares to a thousandth, other numbers to a hundredth; null: not known.
std::string JsonOf(const JobHistory& history);

}  // namespace leat::server
