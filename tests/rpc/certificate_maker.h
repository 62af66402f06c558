// SPDX-License-Identifier: Apache-2.0
//
// Makes certificates and keys in PEM for tests: with any dates, names and
// issuers.
#pragma once

#include <chrono>
#include <cstring>
#include <memory>
#include <string>

#include "openssl/bio.h"
#include "openssl/ec.h"
#include "openssl/evp.h"
#include "openssl/pem.h"
#include "openssl/rsa.h"
#include "openssl/x509.h"
#include "openssl/x509v3.h"

namespace leat::rpc {

struct CertificateWish {
  std::string name = "localhost";              // CN
  std::string names = "DNS:localhost";         // subjectAltName; empty: none
  std::chrono::seconds from{-3600}, to{3600};  // from now
  bool authority = false;
  int rsa_bits = 0;  // of the key; 0: it is of the curve P-256
};

// A certificate and its key.
class MadeCertificate {
 public:
  // If `issuer` is nullptr, the certificate is signed by its own key.
  explicit MadeCertificate(const CertificateWish& wish,
                           const MadeCertificate* issuer = nullptr)
      : key_(wish.rsa_bits > 0 ? EVP_RSA_gen(wish.rsa_bits)
                               : EVP_EC_gen("P-256"),
             EVP_PKEY_free),
        x509_(X509_new(), X509_free) {
    static long serial = 0;
    X509* const x = x509_.get();
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(x), wish.from.count());
    X509_gmtime_adj(X509_getm_notAfter(x), wish.to.count());
    X509_set_pubkey(x, key_.get());
    X509_NAME* const name = X509_get_subject_name(x);
    X509_NAME_add_entry_by_txt(
        name, "CN", MBSTRING_ASC,
        reinterpret_cast<const unsigned char*>(wish.name.c_str()), -1, -1, 0);
    const MadeCertificate& by = issuer == nullptr ? *this : *issuer;
    X509_set_issuer_name(x, X509_get_subject_name(by.x509_.get()));
    if (!wish.names.empty()) Extend(NID_subject_alt_name, wish.names);
    if (wish.authority) Extend(NID_basic_constraints, "critical,CA:TRUE");
    X509_sign(x, by.key_.get(), EVP_sha256());
  }

  std::string pem() const {
    const std::unique_ptr<BIO, int (*)(BIO*)> out(BIO_new(BIO_s_mem()),
                                                  BIO_free);
    PEM_write_bio_X509(out.get(), x509_.get());
    return TextOf(out.get());
  }
  std::string key_pem() const {
    const std::unique_ptr<BIO, int (*)(BIO*)> out(BIO_new(BIO_s_mem()),
                                                  BIO_free);
    PEM_write_bio_PrivateKey(out.get(), key_.get(), nullptr, nullptr, 0,
                             nullptr, nullptr);
    return TextOf(out.get());
  }

 private:
  void Extend(int nid, const std::string& value) {
    X509_EXTENSION* const extension =
        X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
    X509_add_ext(x509_.get(), extension, -1);
    X509_EXTENSION_free(extension);
  }
  static std::string TextOf(BIO* bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    return {data, static_cast<size_t>(size)};
  }

  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key_;
  const std::unique_ptr<X509, void (*)(X509*)> x509_;
};

}  // namespace leat::rpc
