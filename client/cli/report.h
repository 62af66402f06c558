// SPDX-License-Identifier: Apache-2.0
//
// One self-contained HTML file of Views, to attach to an issue: no script, no
// address outside, nothing of the service that could be taken for markup, and
// no secret that an address of storage holds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/cli/view.h"

namespace leat::cli {

struct ReportPart {
  std::string title;
  View view;
};

// `heading`: what the report is of, and when it was made.
std::string ReportHtml(std::string_view heading,
                       const std::vector<ReportPart>& parts);

// `text`, without user names, passwords and queries of the addresses in it:
// "s3://key:secret@host/a?sig=1" is "s3://...@host/a?...".
std::string WithoutSecrets(std::string_view text);

}  // namespace leat::cli
