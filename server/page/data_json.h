// SPDX-License-Identifier: Apache-2.0
//
// The page's data as JSON. Messages are as the CLI prints them, except that
// fields that are 0 or empty are left out, and 64-bit numbers are text, as in
// protobuf's mapping.
#pragma once

#include <string>

#include "google/protobuf/message.h"
#include "server/observe/cluster_events.h"
#include "server/page/model.h"

namespace leat::server {

std::string JsonOf(const google::protobuf::Message& message);
std::string JsonOf(const PageModel& model);
// Shares are rounded to a thousandth, other numbers to a hundredth; null:
// unknown.
std::string JsonOf(const JobHistory& history);

}  // namespace leat::server
