// SPDX-License-Identifier: Apache-2.0
//
// Credentials: finds problems with the access token and the certificates that a
// command line, a context or the environment names; on a daemon's host, with
// those that its flags name.
//
// Collecting facts and judging them are separate; the judgement does not access
// the system. Neither contains a secret.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/diagnostics/diagnostics.h"

namespace leat::cli {

// The locations of credentials; empty: not given. `token` is the environment's.
struct CredentialSources {
  std::string token_file, token, ca, cert, key;
};

struct SecretFile {
  std::string path;     // empty: not given
  std::string trouble;  // why it cannot be read; empty: it can
  uint32_t mode = 0;    // its permissions
};

struct CertificateFacts {
  std::string subject;
  std::vector<std::string> names;  // "DNS:a", "URI:spiffe://..."
  absl::Time begin, end;
};

struct CredentialFacts {
  SecretFile token_file, ca, cert, key;
  bool has_token = false;
  std::string token_id;       // not secret; empty: not from the coordinator
  std::string token_trouble;  // why it cannot be valid, and where it is
  std::vector<CertificateFacts> chain, roots;  // in the files' order
  bool has_key = false;         // the file has one, without a passphrase
  std::optional<size_t> owner;  // index in the chain of the key's certificate
  std::optional<size_t> misplaced;  // the first that did not issue the one
                                    // before it
  bool vouched = false;             // a root signed the first, directly or not
};

CredentialFacts GatherCredentials(const CredentialSources& sources);
// Returns one diagnosis for each check of the given credentials, good ones too.
std::vector<Diagnosis> DiagnoseCredentials(const CredentialFacts& facts,
                                           absl::Time now);

}  // namespace leat::cli
