// SPDX-License-Identifier: Apache-2.0
#include "client/cli/diagnostics/credentials.h"

#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>
#include <utility>

#include "core/cluster/roles.h"
#include "core/freed.h"
#include "core/status.h"
#include "fmt/format.h"
#include "openssl/err.h"
#include "openssl/x509.h"
#include "openssl/x509v3.h"
#include "rpc/tls/pem.h"

namespace leat::cli {
namespace {

constexpr std::streamsize kMostBytes = 1 << 20;
constexpr size_t kMostCertificates = 1000;  // a system has some 150

// Returns the file's text, and its facts in `file`.
std::string ReadSecret(const std::string& path, SecretFile* file) {
  file->path = path;
  if (path.empty()) return "";
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    file->trouble = std::strerror(errno);
    return "";
  }
  file->mode = info.st_mode & 0777;
  std::ifstream in(path, std::ios::binary);
  std::string text(kMostBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  if (in.bad() || (!in.eof() && in.fail()) || !S_ISREG(info.st_mode))
    file->trouble = S_ISREG(info.st_mode) ? "it cannot be read" : "no file";
  else if (text.empty())
    file->trouble = "it is empty";
  else if (text.size() > kMostBytes)
    file->trouble = "it is larger than 1 MiB";
  return file->trouble.empty() ? text : "";
}

absl::Time TimeIn(const ASN1_TIME* from, absl::Time otherwise) {
  tm when{};
  if (ASN1_TIME_to_tm(from, &when) != 1) return otherwise;
  return absl::FromTimeT(timegm(&when));
}

CertificateFacts FactsOf(X509* certificate) {
  CertificateFacts facts;
  char subject[256] = {};
  X509_NAME_oneline(X509_get_subject_name(certificate), subject,
                    sizeof subject);
  facts.subject = subject;
  // A date that cannot be read makes it invalid.
  facts.begin =
      TimeIn(X509_get0_notBefore(certificate), absl::InfiniteFuture());
  facts.end = TimeIn(X509_get0_notAfter(certificate), absl::InfinitePast());
  facts.names = rpc::NamesIn(certificate);
  return facts;
}

// Returns whether one of the roots signed the first of the chain, directly or
// not, whatever the dates are: these have their own findings.
bool IsVouched(const std::vector<rpc::Certificate>& chain,
               const std::vector<rpc::Certificate>& roots) {
  const std::unique_ptr<X509_STORE, Freed<X509_STORE_free>> store(
      X509_STORE_new());
  for (const rpc::Certificate& root : roots)
    X509_STORE_add_cert(store.get(), root.get());
  X509_STORE_set_flags(store.get(),
                       X509_V_FLAG_NO_CHECK_TIME | X509_V_FLAG_PARTIAL_CHAIN);
  STACK_OF(X509)* const others = sk_X509_new_null();
  for (const rpc::Certificate& each : chain) sk_X509_push(others, each.get());
  const std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>> check(
      X509_STORE_CTX_new());
  const bool vouched = X509_STORE_CTX_init(check.get(), store.get(),
                                           chain.front().get(), others) == 1 &&
                       X509_verify_cert(check.get()) == 1;
  sk_X509_free(others);
  ERR_clear_error();
  return vouched;
}

void GatherKey(const std::string& pem,
               const std::vector<rpc::Certificate>& chain,
               CredentialFacts* facts) {
  const rpc::Key key = rpc::KeyIn(pem);
  facts->has_key = key != nullptr;
  for (size_t i = 0; key != nullptr && i < chain.size() && !facts->owner; ++i)
    if (X509_check_private_key(chain[i].get(), key.get()) == 1)
      facts->owner = i;
  ERR_clear_error();
}

void GatherToken(const CredentialSources& sources, CredentialFacts* facts) {
  std::string text = ReadSecret(sources.token_file, &facts->token_file);
  if (sources.token_file.empty()) text = sources.token;
  facts->has_token = !text.empty();
  if (!facts->has_token) return;
  const absl::StatusOr<std::string> token = TokenIn(
      sources.token_file.empty() ? "LEAT_ACCESS_TOKEN" : sources.token_file,
      text, kMinOwnToken);
  if (token.ok())
    facts->token_id = TokenId(*token);
  else
    facts->token_trouble = std::string(Message(token.status()));
}

}  // namespace

CredentialFacts GatherCredentials(const CredentialSources& sources) {
  CredentialFacts facts;
  GatherToken(sources, &facts);
  const std::vector<rpc::Certificate> chain = rpc::CertificatesIn(
      ReadSecret(sources.cert, &facts.cert), kMostCertificates);
  const std::vector<rpc::Certificate> roots =
      rpc::CertificatesIn(ReadSecret(sources.ca, &facts.ca), kMostCertificates);
  GatherKey(ReadSecret(sources.key, &facts.key), chain, &facts);
  for (const rpc::Certificate& each : chain)
    facts.chain.push_back(FactsOf(each.get()));
  for (const rpc::Certificate& each : roots)
    facts.roots.push_back(FactsOf(each.get()));
  for (size_t i = 1; i < chain.size() && !facts.misplaced; ++i)
    if (X509_check_issued(chain[i].get(), chain[i - 1].get()) != X509_V_OK)
      facts.misplaced = i;
  facts.vouched = !chain.empty() && !roots.empty() && IsVouched(chain, roots);
  return facts;
}

}  // namespace leat::cli
