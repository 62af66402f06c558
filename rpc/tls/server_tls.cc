// SPDX-License-Identifier: Apache-2.0
#include "rpc/tls/server_tls.h"

#include <time.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/status.h"
#include "grpc/grpc.h"
#include "openssl/err.h"
#include "openssl/ssl.h"
#include "openssl/x509.h"
#include "openssl/x509v3.h"
#include "rpc/tls/pem.h"

namespace leat::rpc {
namespace {

bool HasNames(const X509* certificate) {
  return X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1) >= 0;
}

// Returns nullopt for an invalid time. A time after 2200, such as the year 9999
// of certificates without an end, becomes 2200: nanoseconds end in 2262. A time
// before 1970 becomes 1970.
std::optional<WallTime> TimeOf(const ASN1_TIME* time) {
  constexpr time_t kLast = 7'258'118'400;
  tm when{};
  if (ASN1_TIME_to_tm(time, &when) != 1) return std::nullopt;
  return std::chrono::system_clock::from_time_t(
      std::clamp(timegm(&when), time_t{0}, kLast));
}

// "--tls-cert /etc/leat/cert.pem".
std::string Named(std::string_view flag, const std::string& file) {
  return file.empty() ? std::string(flag) : fmt::format("{} {}", flag, file);
}
std::string CertOf(const Security& security) {
  return Named("--tls-cert", security.cert_file);
}
std::string KeyOf(const Security& security) {
  return Named("--tls-key", security.key_file);
}

// Checks that the key is the first certificate's, and that each is issued by
// the next.
absl::Status CheckChain(const Security& security,
                        const std::vector<Certificate>& chain, EVP_PKEY* key) {
  size_t own = 0;
  while (own < chain.size() && !X509_check_private_key(chain[own].get(), key))
    ++own;
  ERR_clear_error();
  if (own == chain.size())
    return InvalidArgument("{}: it is not the key of {}", KeyOf(security),
                           CertOf(security));
  if (own > 0)
    return InvalidArgument(
        "{}: {} is the key of its certificate {}: want that one first, then "
        "who issued it, and so on",
        CertOf(security), KeyOf(security), own + 1);
  for (size_t i = 1; i < chain.size(); ++i)
    if (X509_check_issued(chain[i].get(), chain[i - 1].get()) != X509_V_OK)
      return InvalidArgument(
          "{}: its certificate {} did not issue certificate {}: want the "
          "server's own first, then who issued it, and so on",
          CertOf(security), i + 1, i);
  return absl::OkStatus();
}

// Checks that OpenSSL presents the chain. It refuses keys that are too short and
// signatures that are too weak for the level of security that this machine
// demands (man 3 SSL_CTX_set_security_level), as an RSA key of 1024 bits.
absl::Status CheckLevel(const Security& security,
                        const std::vector<Certificate>& chain, EVP_PKEY* key) {
  const std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>> context(
      SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return ResourceExhausted("no memory for TLS");
  const auto refusal = [](std::string_view what) {
    const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    return InvalidArgument("{}: OpenSSL refuses it here: {}", what,
                           reason == nullptr ? "unknown reason" : reason);
  };
  for (size_t i = 0; i < chain.size(); ++i)
    if ((i == 0 ? SSL_CTX_use_certificate(context.get(), chain[i].get())
                : SSL_CTX_add1_chain_cert(context.get(), chain[i].get())) != 1)
      return refusal(
          fmt::format("{}: certificate {}", CertOf(security), i + 1));
  if (SSL_CTX_use_PrivateKey(context.get(), key) != 1)
    return refusal(KeyOf(security));
  return absl::OkStatus();
}

// Returns for example "2026-01-31T12:00:00Z".
std::string TimeText(const ASN1_TIME* time) {
  tm when{};
  if (ASN1_TIME_to_tm(time, &when) != 1) return "unknown";
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
                     when.tm_year + 1900, when.tm_mon + 1, when.tm_mday,
                     when.tm_hour, when.tm_min, when.tm_sec);
}

void LogCertificate(const Security& security) {
  const std::vector<Certificate> chain = CertificatesIn(security.cert_pem);
  if (chain.empty()) return;
  const absl::Status valid = CheckDates(security, Clock::Real().WallNow());
  if (!valid.ok())
    LOG_WARN(
        "tls.expired error=\"{}\" note=\"callers refuse it: replace "
        "--tls-cert and --tls-key\"",
        Message(valid));
  else
    LOG_INFO("tls.certificate expiry={}",
             TimeText(X509_get0_notAfter(chain.front().get())));
}

}  // namespace

absl::Status CheckTls(const Security& security) {
  RETURN_IF_ERROR(security.Validate());
  const std::vector<Certificate> chain = CertificatesIn(security.cert_pem);
  if (chain.empty())
    return InvalidArgument("{}: want a certificate in PEM", CertOf(security));
  const Key key = KeyIn(security.key_pem);
  if (key == nullptr)
    return InvalidArgument(
        "{}: want a private key in PEM, without a passphrase", KeyOf(security));
  RETURN_IF_ERROR(CheckChain(security, chain, key.get()));
  RETURN_IF_ERROR(CheckLevel(security, chain, key.get()));
  if (!HasNames(chain.front().get()))
    return InvalidArgument(
        "{}: it has no subjectAltName, so it is no host's: want DNS:NAME or "
        "IP:ADDRESS in it",
        CertOf(security));
  return CheckRoots(security);
}

absl::Status CheckDates(const Security& security, WallTime now) {
  const std::vector<Certificate> chain = CertificatesIn(security.cert_pem);
  size_t number = 0;
  for (const Certificate& each : chain) {
    ++number;
    const std::string which =
        chain.size() == 1 ? "" : fmt::format(" {}", number);
    const ASN1_TIME* const begin = X509_get0_notBefore(each.get());
    const ASN1_TIME* const end = X509_get0_notAfter(each.get());
    if (const auto until = TimeOf(end); !until || now >= *until)
      return InvalidArgument("{}: its certificate{} expired at {}",
                             CertOf(security), which, TimeText(end));
    if (const auto from = TimeOf(begin); !from || now < *from)
      return InvalidArgument("{}: its certificate{} is valid from {}",
                             CertOf(security), which, TimeText(begin));
  }
  return absl::OkStatus();
}

absl::Status CheckName(const Security& security, std::string_view address) {
  const std::vector<Certificate> chain = CertificatesIn(security.cert_pem);
  if (chain.empty() || address.starts_with("unix")) return absl::OkStatus();
  const std::string host(HostIn(address));
  X509* const own = chain.front().get();
  const bool fits =
      X509_check_host(own, host.c_str(), host.size(), 0, nullptr) == 1 ||
      X509_check_ip_asc(own, host.c_str(), 0) == 1;
  ERR_clear_error();
  if (fits) return absl::OkStatus();
  return InvalidArgument(
      "{}: it is for {}, and callers are told {}: want a certificate for "
      "that, or --advertise one of its names",
      CertOf(security), NamesOf(own), host);
}

std::optional<CertificateTerm> FirstToExpire(const Security& security) {
  std::optional<CertificateTerm> first;
  for (const Certificate& each : CertificatesIn(security.cert_pem))
    if (const auto end = TimeOf(X509_get0_notAfter(each.get()));
        end && (!first || *end < first->end))
      first = {*end, TimeOf(X509_get0_notBefore(each.get()))};
  return first;
}

absl::Status CheckRoots(const Security& security) {
  if (!security.ca_pem.empty() && CertificatesIn(security.ca_pem).empty())
    return InvalidArgument("{}: want certificates in PEM",
                           Named("--tls-ca", security.ca_file));
  return absl::OkStatus();
}

ServerTls::ServerTls(const Security& security)
    : asks_for_certificates_(!security.callers_ca().empty()),
      ca_(security.callers_ca()),
      cert_(security.cert_pem),
      key_(security.key_pem) {}

absl::StatusOr<std::unique_ptr<ServerTls>> ServerTls::Create(
    const Security& security) {
  RETURN_IF_ERROR(CheckTls(security));
  LogCertificate(security);
  return std::unique_ptr<ServerTls>(new ServerTls(security));
}

std::shared_ptr<grpc::ServerCredentials> ServerTls::Credentials(Gate gate) {
  grpc_ssl_server_credentials_options* const options =
      grpc_ssl_server_credentials_create_options_using_config_fetcher(
          asks_for_certificates_
              ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
              : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
          Fetch, this);
  return WithGate(grpc_ssl_server_credentials_create_with_options(options),
                  std::move(gate));
}

absl::Status ServerTls::Replace(const Security& security) {
  RETURN_IF_ERROR(CheckTls(security));
  RETURN_IF_ERROR(CheckDates(security, Clock::Real().WallNow()));
  if (asks_for_certificates_ == security.callers_ca().empty())
    return FailedPrecondition(
        "{}: whether callers' certificates are asked for is decided at the "
        "start",
        Named("--tls-ca", security.ca_file));
  {
    MutexLock lock(&mu_);
    if (ca_ == security.callers_ca() && cert_ == security.cert_pem &&
        key_ == security.key_pem)
      return absl::OkStatus();
    ca_ = security.callers_ca();
    cert_ = security.cert_pem;
    key_ = security.key_pem;
    fetched_ = false;
  }
  LogCertificate(security);
  return absl::OkStatus();
}

grpc_ssl_certificate_config_reload_status ServerTls::Fetch(
    void* self, grpc_ssl_server_certificate_config** config) {
  auto& tls = *static_cast<ServerTls*>(self);
  MutexLock lock(&tls.mu_);
  if (tls.fetched_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  const grpc_ssl_pem_key_cert_pair pair = {tls.key_.c_str(), tls.cert_.c_str()};
  // gRPC requires some roots, even if it asks callers for no certificate.
  const std::string& roots = tls.ca_.empty() ? tls.cert_ : tls.ca_;
  *config = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
  tls.fetched_ = true;
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

}  // namespace leat::rpc
