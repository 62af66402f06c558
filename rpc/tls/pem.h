// SPDX-License-Identifier: Apache-2.0
//
// Reads certificates and keys from PEM, as OpenSSL's types. For sources of
// rpc/.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "openssl/bio.h"
#include "openssl/evp.h"
#include "openssl/x509.h"

namespace leat::rpc {

// Frees an OpenSSL object.
template <auto kFree>
struct Freed {
  template <class T>
  void operator()(T* thing) const {
    kFree(thing);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

// Returns the certificates before the first other block; at most 100.
std::vector<Certificate> CertificatesIn(const std::string& pem);
// Returns the names of its subjectAltName: "DNS:a, IP Address:10.0.0.1"; or "no
// name".
std::string NamesOf(X509* certificate);
// Returns nullptr if there is none, or it has a passphrase.
Key KeyIn(const std::string& pem);

}  // namespace leat::rpc
