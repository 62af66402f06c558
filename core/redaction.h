// SPDX-License-Identifier: Apache-2.0
//
// What people may see of storage's addresses. Users, passwords, and what
// follows a '?' or '#', which may be a signature, are left out of all that is
// shown, logged or told to those who look. Ids and hashes are made of what was
// given.
#pragma once

#include <string>
#include <string_view>

namespace leat {

// The scheme of a URI in lower case; empty: it is a plain path.
std::string SchemeOf(std::string_view uri);

// `uri` without user, password, query and fragment. Plain paths and file: URIs
// are shown whole. Keys of s3: and gs: too, since '?' is a letter there.
std::string RedactedUri(std::string_view uri);

// `text` with each address in it as RedactedUri shows it. An address ends with
// the quotes that it begins in, or at a space, a quote, "<", ">", ")" or ",".
std::string Redacted(std::string_view text);

}  // namespace leat
