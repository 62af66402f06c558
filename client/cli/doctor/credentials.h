// SPDX-License-Identifier: Apache-2.0
//
// Credentials: what is wrong with the access token and the certificates that a
// command line, a context or the environment names; on a daemon's host, with
// those that its flags name.
//
// Facts are gathered first, and judged without the system. Neither has a secret
// in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/doctor/doctor.h"

namespace leat::cli {

// Where they are; empty: none is given. `token` is the environment's.
struct CredentialSources {
  std::string token_file, token, ca, cert, key;
};

struct SecretFile {
  std::string path;     // empty: none is given
  std::string trouble;  // why it cannot be read; empty: it can
  uint32_t mode = 0;    // of its permissions
};

struct CertificateFacts {
  std::string subject;
  std::vector<std::string> names;  // "DNS:a", "URI:spiffe://..."
  absl::Time begin, end;
};

struct CredentialFacts {
  SecretFile token_file, ca, cert, key;
  bool has_token = false;
  std::string token_id;       // no secret; empty: not one of the coordinator's
  std::string token_trouble;  // why it can be nobody's, and where it is
  std::vector<CertificateFacts> chain, roots;  // in the files' order
  bool has_key = false;             // the file holds one, without a passphrase
  std::optional<size_t> owner;      // of the chain, whose key it is
  std::optional<size_t> misplaced;  // the first that did not issue its former
  bool vouched = false;             // some root vouches for the first
};

CredentialFacts GatherCredentials(const CredentialSources& sources);
// One for each check of what is given, good ones too.
std::vector<Diagnosis> DiagnoseCredentials(const CredentialFacts& facts,
                                           absl::Time now);

}  // namespace leat::cli
