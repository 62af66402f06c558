// SPDX-License-Identifier: Apache-2.0
//
// A report is one HTML file of Views, to attach to an issue. It has no script
// and loads nothing; no text from the service is interpreted as markup; and
// secrets in addresses of storage are left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/cli/base/view.h"

namespace leat::cli {

struct ReportPart {
  std::string title;
  View view;
};

// `heading` says when the report was made.
std::string ReportHtml(std::string_view heading,
                       const std::vector<ReportPart>& parts);

}  // namespace leat::cli
