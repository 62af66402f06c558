// SPDX-License-Identifier: Apache-2.0
//
// Records are put in the order of their keys, which LMDB stores without gaps
// (MDB_APPEND), in transactions with a bounded number of pages: uncommitted
// data is in memory. The map grows between them.
//
// A value is {1: image, 1: label}, tensors of
// {1: size of an axis, 2: type, 4: packed int32, 6: string}.
#include <fcntl.h>
#include <lmdb.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "client/cli/convert/outputs.h"
#include "client/cli/convert/wire.h"
#include "core/status.h"

namespace leat::cli {
namespace {

constexpr uint64_t kPagesPerTransaction = 4096;
constexpr size_t kProbeBytes = 1 << 20;
constexpr uint64_t kMaxRecords = 100'000'000;  // as many as sort by key
constexpr uint32_t kInt32 = 2, kString = 4;    // caffe2.TensorProto.DataType

std::string TensorProtosOf(const Record& record) {
  std::string image;
  AppendNumber(1, 1, &image);
  AppendNumber(2, kString, &image);
  AppendBytes(6, record.image, &image);
  std::string label;
  AppendNumber(1, 1, &label);
  AppendNumber(2, kInt32, &label);
  AppendBytes(4, Varint(static_cast<uint64_t>(int64_t{record.label})), &label);
  std::string protos;
  AppendBytes(1, image, &protos);
  AppendBytes(1, label, &protos);
  return protos;
}

// Returns the error that prevents the file from growing; EIO: none is found.
int WhyNotWritten(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const off_t end = lseek(fd, 0, SEEK_END);
  const std::string more(kProbeBytes, '\0');
  size_t written = 0;
  int why = EIO;
  while (end >= 0 && written < more.size()) {
    const ssize_t count = pwrite(fd, more.data(), more.size() - written,
                                 end + static_cast<off_t>(written));
    if (count < 0) why = errno;
    if (count <= 0) break;
    written += static_cast<size_t>(count);
  }
  close(fd);
  return why;
}

class Caffe2Output : public RecordOutput {
 public:
  explicit Caffe2Output(const std::string& folder)
      : path_(folder + "/data.mdb"), env_(nullptr, mdb_env_close) {}
  ~Caffe2Output() override {
    if (transaction_ != nullptr) mdb_txn_abort(transaction_);
  }

  absl::Status Open(const std::string& folder) {
    MDB_env* env = nullptr;
    RETURN_IF_ERROR(Check(mdb_env_create(&env)));
    env_.reset(env);
    // No other process uses the file yet, and it is synchronised once, at the
    // end.
    return Check(
        mdb_env_open(env, folder.c_str(), MDB_NOSYNC | MDB_NOLOCK, 0666));
  }

  absl::Status Add(const Record& record) override {
    if (records_ == kMaxRecords) {
      return ResourceExhausted("{}: more than {} records", path_, kMaxRecords);
    }
    std::string key = fmt::format("{:08}", records_);
    std::string value = TensorProtosOf(record);
    const uint64_t pages = value.size() / page_bytes() + 2;
    if (pages_ > 0 && pages_ + pages > kPagesPerTransaction) {
      RETURN_IF_ERROR(Commit());
    }
    if (transaction_ == nullptr) RETURN_IF_ERROR(Begin(pages));
    MDB_val key_bytes{key.size(), key.data()};
    MDB_val value_bytes{value.size(), value.data()};
    RETURN_IF_ERROR(Check(
        mdb_put(transaction_, dbi_, &key_bytes, &value_bytes, MDB_APPEND)));
    pages_ += pages;
    ++records_;
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    if (transaction_ != nullptr) RETURN_IF_ERROR(Commit());
    return Check(mdb_env_sync(env_.get(), 1));
  }

 private:
  uint64_t page_bytes() const {
    MDB_stat stat;
    mdb_env_stat(env_.get(), &stat);
    return stat.ms_psize;
  }

  // `pages`: for the first value.
  absl::Status Begin(uint64_t pages) {
    MDB_envinfo info;
    RETURN_IF_ERROR(Check(mdb_env_info(env_.get(), &info)));
    const uint64_t used = info.me_last_pgno + 1;
    // Replaced pages, and those of the tree, take as many again.
    const uint64_t wanted =
        (used + 2 * std::max(pages, kPagesPerTransaction)) * page_bytes();
    if (wanted > info.me_mapsize) {
      RETURN_IF_ERROR(Check(mdb_env_set_mapsize(
          env_.get(), std::max<uint64_t>(wanted, 2 * info.me_mapsize))));
    }
    RETURN_IF_ERROR(
        Check(mdb_txn_begin(env_.get(), nullptr, 0, &transaction_)));
    pages_ = 0;
    return Check(mdb_dbi_open(transaction_, nullptr, 0, &dbi_));
  }

  absl::Status Commit() {
    return Check(mdb_txn_commit(std::exchange(transaction_, nullptr)));
  }

  // LMDB reports a short write as EIO: one more write shows the reason.
  absl::Status Check(int code) const {
    if (code == 0) return absl::OkStatus();
    if (code == EIO) code = WhyNotWritten(path_);
    return FailedPrecondition("{}: record {}: {}", path_, records_,
                              mdb_strerror(code));
  }

  const std::string path_;
  std::unique_ptr<MDB_env, void (*)(MDB_env*)> env_;
  MDB_txn* transaction_ = nullptr;
  MDB_dbi dbi_ = 0;
  uint64_t pages_ = 0;  // in the transaction, at most
  uint64_t records_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RecordOutput>> NewCaffe2Output(
    const std::string& folder) {
  auto output = std::make_unique<Caffe2Output>(folder);
  RETURN_IF_ERROR(output->Open(folder));
  return output;
}

}  // namespace leat::cli
