// SPDX-License-Identifier: Apache-2.0
//
// Draws sequences: a strip for each row, with a colour for each document, and
// below it the documents and the beginning of the text. The page (HTML) has the
// whole text, up to kMaxTextElements of each row.
#pragma once

#include <string>
#include <string_view>

#include "client/cli/previews/sequences.h"
#include "core/observe/previews.h"

namespace leat::cli {

// `text`: a vocabulary gave the texts, so they are drawn, too. REQUIRES: there
// is a row.
RgbImage DrawSequences(const Sequences& sequences, bool text);

// Returns a document of its own, without scripts. All text in it is escaped.
std::string SequencePage(const Sequences& sequences);

// Returns text for an element or an attribute of HTML: what could control a
// terminal or a browser is made visible.
std::string HtmlText(std::string_view text);

}  // namespace leat::cli
