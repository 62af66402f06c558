// SPDX-License-Identifier: Apache-2.0
#include "worker/source/format_names.h"

namespace leat::worker {
namespace {

struct NameRule {
  std::string_view ending, format;
};
constexpr NameRule kEndings[] = {{".tar", "webdataset"},
                                 {".tfrecord", "tfrecord"},
                                 {".tfrecords", "tfrecord"},
                                 {".parquet", "parquet"},
                                 {".parq", "parquet"},
                                 {".pq", "parquet"},
                                 {".npy", "numpy"},
                                 {".array_record", "array_record"},
                                 {".arrayrecord", "array_record"},
                                 {"-idx3-ubyte", "idx"},
                                 {"-idx3-ubyte.gz", "idx"},
                                 {".idx3-ubyte", "idx"},
                                 {".idx3-ubyte.gz", "idx"},
                                 {".mdb", "caffe2"},
                                 {".json", "coco"},
                                 {".txt", "file_list"},
                                 {".lst", "file_list"}};

}  // namespace

std::string FormatOfName(std::string_view uri) {
  uri = uri.substr(0, uri.find('?') == std::string_view::npos ||
                              uri.find("://") == std::string_view::npos
                          ? uri.size()
                          : uri.find('?'));
  const std::string_view name = uri.substr(uri.find_last_of('/') + 1);
  for (const NameRule& rule : kEndings)
    if (name.ends_with(rule.ending)) return std::string(rule.format);
  // For example "train.tfrecord-00000-of-01024".
  if (name.find(".tfrecord") != std::string_view::npos) return "tfrecord";
  if (name.find(".array_record-") != std::string_view::npos)
    return "array_record";
  if (name.ends_with(".bin") &&
      (name.starts_with("data_batch_") || name.starts_with("test_batch")))
    return "cifar10";
  return "";
}

bool IsPattern(std::string_view uri) {
  return uri.find_first_of("*?[{") != std::string_view::npos;
}

}  // namespace leat::worker
