// SPDX-License-Identifier: Apache-2.0
//
// The index that a coordinator sends to a worker. The first byte selects the
// reader, of a small existing valid file, so that samples of an index that
// passes are read. No network is used.
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "core/pipeline/operators.h"
#include "core/status.h"
#include "google/protobuf/stubs/logging.h"
#include "leat/stored/v1/records.pb.h"
#include "tests/fuzz/lmdb_maker.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"
#include "tests/worker/source/array_record/riegeli_writer.h"
#include "tests/worker/source/tfrecord/tfrecord_maker.h"
#include "tests/worker/source/webdataset/tar_maker.h"
#include "worker/source/index_blob.h"
#include "worker/source/source.h"

namespace leat::worker::index_fuzz {
namespace {

using Texts = std::vector<std::string>;

constexpr int kFirstFile = 200;  // a number that no other file has

const char* const kReaders[] = {
    "readers.image_folder", "readers.file_list",  "readers.files",
    "readers.cifar10",      "readers.caffe",      "readers.idx",
    "readers.numpy",        "readers.mds",        "readers.array_record",
    "readers.tfrecord",     "readers.webdataset", "readers.coco",
    "readers.external",     "readers.tokens"};

std::string NumberOf(uint32_t field, uint64_t value) {
  return VarintOf(field << 3) + VarintOf(value);
}

std::string BytesFor(std::string_view op) {
  if (op == "readers.file_list")
    return fmt::format("{}/{} 1\n", NamedFile::kFolder, kFirstFile);
  if (op == "readers.cifar10") return std::string(2 * 3073, '\1');
  if (op == "readers.caffe")
    return LmdbOf({NumberOf(1, 3) + NumberOf(2, 1) + NumberOf(3, 2) +
                   FieldOf(4, "rRgGbB") + NumberOf(5, 4)});
  if (op == "readers.idx")
    return std::string("\0\0\x08\x02\0\0\0\2\0\0\0\3abcdef", 18);
  if (op == "readers.numpy")
    return std::string("\x93NUMPY\x01\0\x36\0", 10) +
           "{'descr':'<f4','fortran_order':False,'shape':(2,1)}  \n" +
           "12345678";
  if (op == "readers.mds")  // one sample of a column of four bytes
    return LittleEndian(1) + LittleEndian(12) + LittleEndian(20) +
           LittleEndian(4) + "data";
  if (op == "readers.array_record")
    return RiegeliWriter::File({"a", "bc", "d"}, 2);
  if (op == "readers.tfrecord")
    return TfrecordOf(ExampleOf({{"a", IntFeature({5})}}));
  if (op == "readers.webdataset")
    return TarMemberOf("0.jpg", "abc") + TarMemberOf("0.cls", "1") + TarEnd();
  if (op == "readers.coco")  // of the first file, which is an image
    return fmt::format(
        R"({{"images":[{{"id":7,"file_name":"{}","height":9,"width":8}}],)"
        R"("categories":[{{"id":3,"name":"cat"}}],"annotations":[{{"id":1,)"
        R"("image_id":7,"category_id":3,"bbox":[1,2,3,4],"iscrowd":0,)"
        R"("segmentation":[[1,1,5,1,5.5,6]]}},{{"id":2,"image_id":7,)"
        R"("category_id":3,"bbox":[0,0,8,9],"iscrowd":1,)"
        R"("segmentation":{{"size":[9,8],"counts":[10,20,42]}}}}]}})",
        kFirstFile);
  return "image";
}

Node ReaderOf(std::string_view op, const std::string& path) {
  Node reader{.op = std::string(op), .inputs = {}, .args = {}};
  if (op == "readers.image_folder" || op == "readers.mds")
    reader.args["path"] = NamedFile::kFolder;
  else if (op == "readers.file_list")
    reader.args["path"] = path;
  else if (op == "readers.files" || op == "readers.tokens")
    reader.args["files"] = Texts{path};
  else if (op == "readers.caffe")
    reader.args["path"] = Texts{path};
  else if (op == "readers.idx")
    reader.args["images"] = path;
  else if (op == "readers.numpy")
    reader.args["array"] = path;
  else if (op == "readers.coco")
    reader.args = {{"annotations", path},
                   {"root", NamedFile::kFolder},
                   {"outputs", Texts{"image", "boxes", "labels", "image_id",
                                     "polygons", "vertices", "mask"}}};
  else if (op == "readers.external")
    reader.args = {{"num_samples", int64_t{5}}, {"name", "fed"}};
  else
    reader.args["paths"] = Texts{path};
  if (op == "readers.tokens") {
    reader.args["dtype"] = "uint8";
    reader.args["end"] = int64_t{'a'};
  }
  if (op == "readers.mds") reader.args["columns"] = Texts{"x"};
  if (op == "readers.tfrecord") {
    reader.args["features"] = Texts{"a"};
    reader.args["types"] = Texts{"int64[?]"};
  }
  if (op == "readers.webdataset") {
    reader.args["ext"] = Texts{"jpg", "cls", "txt"};
    reader.args["types"] = Texts{"encoded", "int64", "uint8[?]"};
    reader.args["missing"] = "empty";
  }
  return reader;
}

struct World {
  World() {
    // All other addresses in an index are rejected at once.
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("https_proxy", "http://127.0.0.1:1", 1);
    unsetenv("no_proxy");
    auto created = Storage::Create({.connect_timeout = StorageMs(1),
                                    .deadline = StorageMs(1),
                                    .max_tries = 1,
                                    .s3_endpoint = "http://127.0.0.1:1"});
    fuzz::Require(created.ok());
    storage = *std::move(created);
    int number = kFirstFile;
    for (const char* op : kReaders) {
      files.push_back(std::make_unique<NamedFile>(BytesFor(op), number++));
      readers.push_back(ReaderOf(op, files.back()->path()));
    }
    limits.listing_threads = 1;
    limits.max_file_bytes = 1 << 20;
    limits.max_unpacked_bytes = 1 << 20;
    limits.storage = storage.get();
  }
  std::unique_ptr<Storage> storage;
  std::vector<std::unique_ptr<NamedFile>> files;
  std::vector<Node> readers;
  SourceLimits limits;
};

const World& TheWorld() {
  static const World& world = *new World;
  return world;
}

void Run(std::string_view bytes) {
  const google::protobuf::LogSilencer silent;  // of text that is not UTF-8
  if (bytes.empty()) return;
  const World& world = TheWorld();
  const size_t kind = static_cast<uint8_t>(bytes[0]) % world.readers.size();
  const auto source =
      OpenSource(world.readers[kind], bytes.substr(1), world.limits);
  if (!source.ok()) return fuzz::Require(!Message(source.status()).empty());
  const uint64_t samples = (*source)->num_samples();
  fuzz::Require(samples > 0);
  for (const uint64_t sample : {uint64_t{0}, samples / 2, samples - 1}) {
    (void)(*source)->Describe(sample);
    (void)(*source)->RecordOf(sample);
    (void)(*source)->Read(sample);
  }
}

// Indexes of folders are built by hand, because /proc/self/fd is not a folder
// that can be listed.
std::string ImageFolderIndex(const std::string& name) {
  stored::v1::ImageFolderIndex index;
  index.set_root(NamedFile::kFolder);
  index.set_repeat(1);
  auto& each = *index.add_classes();
  each.set_label(3);
  auto& file = *each.add_files();
  file.set_name(name);
  file.set_bytes(5);
  file.set_modified_ns(1'000'000'000'000'000'000);
  return index.SerializeAsString();
}

std::string MdsIndex(const Node& reader, const std::string& name,
                     uint64_t bytes) {
  BlobWriter blob({});
  stored::v1::MdsHead head;
  head.set_reader(CanonicalText(reader));
  auto& column = *head.add_columns();
  column.set_name("x");
  column.set_encoding("bytes");
  head.add_outputs(0);
  stored::v1::MdsShards shards;
  auto& shard = *shards.add_shards();
  shard.mutable_file()->set_name(name);
  shard.mutable_file()->set_bytes(bytes);
  shard.mutable_file()->set_identity(
      fmt::format("size={} mtime_ns=1000000000000000000", bytes));
  shard.set_raw_bytes(bytes);
  shard.set_samples(1);
  fuzz::Require(blob.Add(head).ok() && blob.Add(shards).ok());
  return blob.Finish().value();
}

std::vector<std::string> Seeds() {
  const World& world = TheWorld();
  std::vector<std::string> seeds;
  for (size_t i = 0; i < world.readers.size(); ++i) {
    const std::string name = fmt::format("{}", kFirstFile + i);
    std::string blob;
    if (world.readers[i].op == "readers.image_folder") {
      blob = ImageFolderIndex(name);
    } else if (world.readers[i].op == "readers.mds") {
      blob = MdsIndex(world.readers[i], name, 20);
    } else {
      const auto index = BuildIndex(world.readers[i], world.limits);
      fuzz::Require(index.ok());
      blob = index->blob;
    }
    const auto source = OpenSource(world.readers[i], blob, world.limits);
    fuzz::Require(source.ok());
    // Samples that consumers supply cannot be read.
    fuzz::Require((*source)->Read(0).ok() ==
                  (world.readers[i].op != "readers.external"));
    seeds.push_back(static_cast<char>(i) + blob);
  }
  return seeds;
}

const fuzz::Target kTarget(
    {.name = "index", .run = Run, .seeds = Seeds, .runs = 3000});

}  // namespace
}  // namespace leat::worker::index_fuzz
