// SPDX-License-Identifier: Apache-2.0
//
// Files of seek indexes beside a dataset, mostly with correct sums. A form that
// is found in one belongs to the record's own bytes, and a decoder accepts it.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>

#include "core/crc32c.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"
#include "tests/worker/image/jpeg/forms/support.h"
#include "tests/worker/temp_dir.h"
#include "worker/cache/read_form.h"
#include "worker/cache/seek_file.h"

namespace leat::worker::seek_file_fuzz {
namespace {

constexpr Digest kFingerprint = {1, 2, 3};
constexpr size_t kHeader = 64, kSumAt = 56, kPlace = 8;

// The dataset: two photos, for the seek file's first records.
const std::string& Photo(uint64_t record) {
  static const auto& photos = *new std::vector<std::string>{
      testing::MakeJpeg({.width = 70, .height = 40}),
      testing::MakeJpeg({.width = 300, .height = 17, .seed = 2})};
  return photos[record % photos.size()];
}

template <class Number>
Number At(std::span<const char> bytes, size_t at) {
  Number number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

// Corrects the beginning of the header, its sum, and the sums of the first
// records' forms.
void Repair(std::span<char> bytes) {
  if (bytes.size() < kHeader + 4 * kPlace) return;
  std::memcpy(bytes.data(), "LeatSeek\1\0\0\0\1\0\0", 15);
  std::memcpy(bytes.data() + 24, kFingerprint.data(), kFingerprint.size());
  const uint32_t sum = Crc32c(std::string_view(bytes.data(), kSumAt));
  std::memcpy(bytes.data() + kSumAt, &sum, sizeof sum);
  for (size_t record = 0; record < 3; ++record) {
    const auto begin = At<uint64_t>(bytes, kHeader + kPlace * record);
    const auto end = At<uint64_t>(bytes, kHeader + kPlace * (record + 1));
    if (end > bytes.size() || begin > end || end - begin < 8) continue;
    const uint32_t form =
        Crc32c(std::string_view(bytes.data() + begin + 8, end - begin - 8));
    std::memcpy(bytes.data() + begin + 4, &form, sizeof form);
  }
}

void Run(std::string_view bytes) {
  static JpegDecoder& decoder = *new JpegDecoder(ImageLimits());
  const NamedFile named(bytes);
  const auto file = SeekFile::Open(named.path(), kFingerprint, JpegFormCodec());
  if (!file.ok()) return fuzz::Require(!Message(file.status()).empty());
  const uint64_t records = (*file)->records();
  for (const uint64_t record :
       {uint64_t{0}, uint64_t{1}, uint64_t{2}, records - 1, records,
        std::numeric_limits<uint64_t>::max()}) {
    const auto photo = BytesOf(Photo(record));
    StoredSample sample = {.fields = {{.bytes = photo, .shape = {}}},
                           .owner = nullptr};
    (*file)->ReadFormOf(record, &sample);
    if (sample.form == nullptr) continue;
    const JpegForm& form = *sample.form->kept.form;
    fuzz::Require(record < records && sample.form->IsOf(photo) &&
                  sample.form->beside_dataset && form.IsOf(photo) &&
                  form.size_bytes() <= bytes.size());
    const WindowOfJpeg read =
        DecodeJpeg(decoder, photo, {.x = 5, .y = 3, .width = 20, .height = 9},
                   false, &form);
    fuzz::Require(read.status.ok() && read.damage.ok());
  }
}

std::string Written(size_t records) {
  JpegDecoder decoder({});
  std::vector<std::vector<std::byte>> forms(records);
  for (size_t i = 0; i < std::min<size_t>(records, 2); ++i) {
    const MadeForms made = MakeFormsOf(decoder, BytesOf(Photo(i)));
    fuzz::Require(made.seek_index.ok());
    const auto bytes = (*made.seek_index)->bytes();
    forms[i].assign(bytes.begin(), bytes.end());
  }
  const TempDir dir;
  const std::string path = dir.path() + "/seek";
  const auto writer = SeekFileWriter::Create(path, kFingerprint, records,
                                             JpegFormCodec().version);
  fuzz::Require(writer.ok() && (*writer)->Append(forms).ok() &&
                (*writer)->Finish().ok());
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> Seeds() {
  const std::string whole = Written(3);
  return {whole, Written(0), Written(1), whole.substr(0, 200),
          std::string(100, 'x')};
}

const fuzz::Target kTarget({.name = "seek_file",
                            .run = Run,
                            .seeds = Seeds,
                            .runs = 1000,
                            .repair = Repair});

}  // namespace
}  // namespace leat::worker::seek_file_fuzz
