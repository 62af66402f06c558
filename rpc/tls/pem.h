// SPDX-License-Identifier: Apache-2.0
//
// Reads certificates and keys from PEM, as OpenSSL's types.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/freed.h"
#include "openssl/bio.h"
#include "openssl/evp.h"
#include "openssl/x509.h"

namespace leat::rpc {

using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

// Returns the certificates before the first other block, up to `most`.
std::vector<Certificate> CertificatesIn(const std::string& pem,
                                        size_t most = 100);
// Returns the names of its subjectAltName: "DNS:a", "IP Address:10.0.0.1".
std::vector<std::string> NamesIn(X509* certificate);
// Returns them as one text; "no name" if there is none.
std::string NamesOf(X509* certificate);
// Returns nullptr if there is none, or it has a passphrase.
Key KeyIn(const std::string& pem);

}  // namespace leat::rpc
