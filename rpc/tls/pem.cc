// SPDX-License-Identifier: Apache-2.0
#include "rpc/tls/pem.h"

#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "openssl/err.h"
#include "openssl/pem.h"
#include "openssl/x509v3.h"

namespace leat::rpc {
namespace {

Bio Reader(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// A daemon cannot ask anyone for a passphrase.
int NoPassphrase(char*, int, int, void*) { return -1; }

}  // namespace

std::vector<Certificate> CertificatesIn(const std::string& pem, size_t most) {
  std::vector<Certificate> certificates;
  const Bio reader = Reader(pem);
  while (certificates.size() < most) {
    Certificate next(
        PEM_read_bio_X509(reader.get(), nullptr, NoPassphrase, nullptr));
    if (next == nullptr) break;
    certificates.push_back(std::move(next));
  }
  ERR_clear_error();
  return certificates;
}

std::vector<std::string> NamesIn(X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(
          certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> texts;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get());
       ++i) {
    const Bio out(BIO_new(BIO_s_mem()));
    GENERAL_NAME_print(out.get(), sk_GENERAL_NAME_value(names.get(), i));
    char* text = nullptr;
    const long size = BIO_get_mem_data(out.get(), &text);
    texts.emplace_back(text, static_cast<size_t>(size));
  }
  return texts;
}

std::string NamesOf(X509* certificate) {
  const std::vector<std::string> names = NamesIn(certificate);
  return names.empty() ? "no name" : fmt::format("{}", fmt::join(names, ", "));
}

Key KeyIn(const std::string& pem) {
  Key key(PEM_read_bio_PrivateKey(Reader(pem).get(), nullptr, NoPassphrase,
                                  nullptr));
  ERR_clear_error();
  return key;
}

}  // namespace leat::rpc
