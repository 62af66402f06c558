// SPDX-License-Identifier: Apache-2.0
//
// Redaction removes secrets from storage addresses. Users, passwords, and
// everything after a '?' or '#', which may be a signature, are omitted from
// text that is displayed, logged or sent to viewers. Ids and hashes use the
// address as given.
#pragma once

#include <string>
#include <string_view>

namespace leat {

// Returns the scheme of a URI in lower case; empty: it is a plain path.
std::string SchemeOf(std::string_view uri);

// Returns `uri` without user, password, query and fragment. Plain paths, file:
// URIs and the keys of s3: and gs: are returned whole, since '?' is an ordinary
// character there. If a character of the password was not escaped, what follows
// the user is left out: so is the path of "http://host:80/a@b", which may be
// that of a user "host".
std::string RedactedUri(std::string_view uri);

// Returns `text` with RedactedUri applied to each address in it. An address
// that begins after a quote ends with that quote; others end at a space, a
// quote, "<", ">", ")" or ",".
std::string Redacted(std::string_view text);

}  // namespace leat
