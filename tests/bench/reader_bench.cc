// SPDX-License-Identifier: Apache-2.0
//
// reader_bench leat|read|blocks FOLDER: records from files of many records, one
// thread; measured_cases.h describes the protocol.
//
// leat    writes the same kRecords records as TFRecord, tar and LMDB into
//         FOLDER, with the location of the bytes of each ("NAME.places":
//         offset and size, 8 bytes each), and reads them through a Source.
// read    reads exactly those bytes, with one read() or, out of order, pread()
//         per record: the cost of storage.
// blocks  reads the files from end to end, 256 KiB at a time.
//
// A record has 256 to 1,792 random bytes in place of an image, and a label.
#include <fcntl.h>
#include <lmdb.h>
#include <unistd.h>

#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <random>
#include <string_view>
#include <utility>

#include "core/random/permutation.h"
#include "core/status.h"
#include "fmt/format.h"
#include "tests/bench/measured_cases.h"
#include "tests/worker/source/tfrecord/tfrecord_maker.h"
#include "tests/worker/source/webdataset/tar_maker.h"
#include "worker/source/lmdb/walker.h"
#include "worker/source/source.h"
#include "worker/source/source_storage.h"
#include "worker/source/webdataset/tar.h"

namespace leat::worker {
namespace {

constexpr uint64_t kRecords = 100'000;
constexpr size_t kLeast = 256, kMost = 1792;  // bytes per record
constexpr size_t kBatch = 64;                 // samples that live at a time
constexpr size_t kBlock = 256 << 10;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "reader_bench: %s\n", what.c_str());
  std::exit(1);
}

template <class T>
T ValueOrFail(absl::StatusOr<T> value) {
  if (!value.ok()) Fail(std::string(Message(value.status())));
  return *std::move(value);
}

struct Place {
  uint64_t offset = 0;
  uint64_t size = 0;
};

// The same records for each format.
class Records {
 public:
  Records() : bytes_(1 << 20, '\0') {
    for (char& byte : bytes_) byte = static_cast<char>(random_());
  }
  std::string_view Next() {
    const size_t size = kLeast + random_() % (kMost - kLeast + 1);
    return std::string_view(bytes_).substr(random_() % (bytes_.size() - size),
                                           size);
  }

 private:
  std::mt19937 random_{1};
  std::string bytes_;
};

// A file that is written from its beginning.
class Output {
 public:
  explicit Output(const std::filesystem::path& path)
      : path_(path), file_(path, std::ios::binary) {}
  void Add(std::string_view bytes) {
    file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    size_ += bytes.size();
  }
  uint64_t size() const { return size_; }
  void Close() {
    file_.close();
    if (!file_) Fail("cannot write " + path_.string());
  }

 private:
  const std::filesystem::path path_;
  std::ofstream file_;
  uint64_t size_ = 0;
};

using Places = std::vector<Place>;

Places WriteTfrecord(const std::string& path) {
  Output file(path), index(path + ".idx");
  Places places;
  Records records;
  for (uint64_t i = 0; i < kRecords; ++i) {
    const std::string record = TfrecordOf(ExampleOf(
        {{"image/encoded", BytesFeature({std::string(records.Next())})},
         {"image/class/label", IntFeature({static_cast<int64_t>(i % 1000)})}}));
    places.push_back({file.size(), record.size()});
    index.Add(fmt::format("{} {}\n", file.size(), record.size()));
    file.Add(record);
  }
  file.Close();
  index.Close();
  return places;
}

Places WriteTar(const std::string& path) {
  Output file(path);
  Places places;
  Records records;
  for (uint64_t i = 0; i < kRecords; ++i) {
    const std::string label = fmt::format("{}", i % 1000);
    const uint64_t begin = file.size() + kTarBlock;
    file.Add(TarMemberOf(fmt::format("{:08}.jpg", i), records.Next()));
    const uint64_t end = file.size() + kTarBlock + label.size();
    file.Add(TarMemberOf(fmt::format("{:08}.cls", i), label));
    places.push_back({begin, end - begin});
  }
  file.Add(TarEnd());
  file.Close();
  return places;
}

void CheckLmdb(int code) {
  if (code != 0) Fail(fmt::format("lmdb: {}", mdb_strerror(code)));
}

// caffe2.TensorProtos: a string and an int32.
Places WriteLmdb(const std::string& folder) {
  std::filesystem::create_directories(folder);
  MDB_env* env = nullptr;
  MDB_txn* transaction = nullptr;
  MDB_dbi database = 0;
  CheckLmdb(mdb_env_create(&env));
  CheckLmdb(mdb_env_set_mapsize(env, size_t{1} << 30));
  CheckLmdb(mdb_env_open(env, folder.c_str(), MDB_NOSYNC, 0644));
  CheckLmdb(mdb_txn_begin(env, nullptr, 0, &transaction));
  CheckLmdb(mdb_dbi_open(transaction, nullptr, 0, &database));
  Records records;
  for (uint64_t i = 0; i < kRecords; ++i) {
    std::string key = fmt::format("{:08}", i);
    std::string value =
        FieldOf(1, std::string("\x10\x04") + FieldOf(6, records.Next())) +
        FieldOf(1, std::string("\x08\x01\x10\x02\x20") + VarintOf(i % 1000));
    MDB_val k{key.size(), key.data()}, v{value.size(), value.data()};
    CheckLmdb(mdb_put(transaction, database, &k, &v, MDB_APPEND));
  }
  CheckLmdb(mdb_txn_commit(transaction));
  mdb_env_close(env);
  const std::shared_ptr<const StorageFile> file =
      ValueOrFail(StorageOf({}).Open(folder + "/data.mdb"));
  Places places;
  for (const LmdbValue& value : ValueOrFail(ListLmdb(*file, {})).values)
    places.push_back({value.offset, value.bytes});
  return places;
}

struct Format {
  const char* name;
  const char* file;  // in the folder
  Places (*write)(const std::string& path);
  const char* written;  // the argument of `write`
  Node reader;          // without the path
  const char* paths;    // the argument
};

std::vector<Format> Formats() {
  using Strings = std::vector<std::string>;
  return {
      {"tfrecord",
       "records.tfrecord",
       WriteTfrecord,
       "records.tfrecord",
       {"readers.tfrecord",
        {},
        {{"features", Strings{"image/encoded", "image/class/label"}},
         {"types", Strings{"encoded", "int64"}}}},
       "paths"},
      {"tar",
       "records.tar",
       WriteTar,
       "records.tar",
       {"readers.webdataset",
        {},
        {{"ext", Strings{"jpg", "cls"}},
         {"types", Strings{"encoded", "int32"}},
         {"missing", std::string("error")}}},
       "paths"},
      {"lmdb",
       "lmdb/data.mdb",
       WriteLmdb,
       "lmdb",
       {"readers.caffe2", {}, {}},
       "path"},
  };
}

using Order = std::shared_ptr<const std::vector<uint64_t>>;

Order InOrder(bool shuffled) {
  std::vector<uint64_t> order(kRecords);
  if (shuffled) {
    Permutation(kRecords, 7).Map(0, order);
  } else {
    std::iota(order.begin(), order.end(), uint64_t{0});
  }
  return std::make_shared<const std::vector<uint64_t>>(std::move(order));
}

std::string CaseName(const Format& format, bool shuffled) {
  return std::string(format.name) + (shuffled ? ", shuffled" : "");
}

std::vector<MeasuredCase> OurCases(const std::filesystem::path& folder) {
  std::vector<MeasuredCase> cases;
  for (Format& format : Formats()) {
    const Places places = format.write(folder / format.written);
    Output file((folder / format.name).string() + ".places");
    file.Add({reinterpret_cast<const char*>(places.data()),
              places.size() * sizeof(Place)});
    file.Close();
    format.reader.args.emplace(
        format.paths,
        std::vector<std::string>{(folder / format.written).string()});
    const BuiltIndex index = ValueOrFail(BuildIndex(format.reader, {}));
    const std::shared_ptr<const Source> source =
        ValueOrFail(OpenSource(format.reader, index.blob, {}));
    if (source->num_samples() != kRecords || places.size() != kRecords)
      Fail(fmt::format("{}: {} samples", format.name, source->num_samples()));
    for (const bool shuffled : {false, true}) {
      const Order order = InOrder(shuffled);
      auto batch = std::make_shared<std::vector<StoredSample>>(kBatch);
      cases.push_back({CaseName(format, shuffled), [=] {
                         size_t next = 0;
                         for (const uint64_t sample : *order)
                           (*batch)[next++ % kBatch] =
                               ValueOrFail(source->Read(sample));
                         return order->size();
                       }});
    }
  }
  return cases;
}

int OpenOrFail(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) Fail("cannot open " + path.string());
  return fd;  // open until the end of the program
}

void CheckRead(ssize_t got, size_t wanted) {
  if (got != static_cast<ssize_t>(wanted)) Fail("a short read");
}

std::vector<MeasuredCase> RecordCases(const std::filesystem::path& folder) {
  std::vector<MeasuredCase> cases;
  for (const Format& format : Formats()) {
    auto places = std::make_shared<Places>(kRecords);
    const size_t bytes = kRecords * sizeof(Place);
    CheckRead(read(OpenOrFail((folder / format.name).string() + ".places"),
                   places->data(), bytes),
              bytes);
    const int fd = OpenOrFail(folder / format.file);
    auto buffer = std::make_shared<std::vector<char>>(kBlock);
    cases.push_back(
        {CaseName(format, false), [=] {
           uint64_t at = 0;
           lseek(fd, 0, SEEK_SET);
           for (const Place& place : *places) {
             // Skips the bytes in between.
             if (place.offset != at)
               lseek(fd, static_cast<off_t>(place.offset), SEEK_SET);
             CheckRead(read(fd, buffer->data(), place.size), place.size);
             at = place.offset + place.size;
           }
           return places->size();
         }});
    cases.push_back({CaseName(format, true), [=, order = InOrder(true)] {
                       for (const uint64_t i : *order) {
                         const Place& place = (*places)[i];
                         CheckRead(pread(fd, buffer->data(), place.size,
                                         static_cast<off_t>(place.offset)),
                                   place.size);
                       }
                       return order->size();
                     }});
  }
  return cases;
}

std::vector<MeasuredCase> BlockCases(const std::filesystem::path& folder) {
  std::vector<MeasuredCase> cases;
  for (const Format& format : Formats()) {
    const int fd = OpenOrFail(folder / format.file);
    auto buffer = std::make_shared<std::vector<char>>(kBlock);
    cases.push_back({CaseName(format, false), [=] {
                       lseek(fd, 0, SEEK_SET);
                       while (read(fd, buffer->data(), kBlock) > 0) {
                       }
                       return kRecords;
                     }});
  }
  return cases;
}

}  // namespace
}  // namespace leat::worker

int main(int argc, char** argv) {
  using namespace leat::worker;  // a program of one file
  const std::string_view mode = argc == 3 ? argv[1] : "";
  if (mode == "leat") return leat::MeasureCases(OurCases(argv[2]));
  if (mode == "read") return leat::MeasureCases(RecordCases(argv[2]));
  if (mode == "blocks") return leat::MeasureCases(BlockCases(argv[2]));
  std::fprintf(stderr, "usage: reader_bench leat|read|blocks FOLDER\n");
  return 2;
}
