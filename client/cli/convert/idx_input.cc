// SPDX-License-Identifier: Apache-2.0
//
// An idx file: two zero bytes, the elements' type, the number of axes, the size
// of each (32 bits, big-endian), the elements. zlib reads files that are not
// gzipped unchanged.
#include "client/cli/convert/idx_input.h"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "client/cli/convert/image_encoder.h"
#include "core/status.h"
#include "fmt/ranges.h"

namespace leat::cli {
namespace {

constexpr uint8_t kUint8 = 8, kIdxInt32 = 12;
constexpr uint64_t kMaxPixels = 100'000'000;  // per image

class IdxFile {
 public:
  static absl::StatusOr<IdxFile> Open(const std::string& path) {
    IdxFile file(path);
    if (file.file_ == nullptr) {
      const int error = errno;
      if (error == ENOENT) return NotFound("{}: no such file", path);
      return FailedPrecondition("{}: {}", path, std::strerror(error));
    }
    uint8_t head[4] = {};
    RETURN_IF_ERROR(file.Read(head, sizeof head, "its head"));
    if (head[0] != 0 || head[1] != 0 || head[3] == 0) {
      return DataLoss(
          "{}: no idx file: it begins with {:02x} {:02x} {:02x} {:02x}", path,
          head[0], head[1], head[2], head[3]);
    }
    file.type_ = head[2];
    for (int i = 0; i < head[3]; ++i) {
      uint8_t size[4];
      RETURN_IF_ERROR(file.Read(size, sizeof size, "its head"));
      file.sizes_.push_back(BigEndian(size));
    }
    return file;
  }

  const std::string& path() const { return path_; }
  uint8_t type() const { return type_; }
  const std::vector<uint32_t>& sizes() const { return sizes_; }
  static uint32_t BigEndian(const uint8_t* bytes) {
    return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 |
           uint32_t{bytes[2]} << 8 | bytes[3];
  }

  // `what`: names the bytes in errors.
  absl::Status Read(uint8_t* into, size_t bytes, std::string_view what) {
    const int got = gzread(file_.get(), into, static_cast<unsigned>(bytes));
    if (got >= 0 && static_cast<size_t>(got) == bytes) return absl::OkStatus();
    return Broken(
        fmt::format("{}: {} of {} bytes", what, std::max(got, 0), bytes));
  }
  absl::Status ExpectEnd() {
    uint8_t more;
    const int got = gzread(file_.get(), &more, 1);
    if (got > 0) {
      return DataLoss("{}: something follows the {} records", path_,
                      sizes_.front());
    }
    int code = Z_OK;  // a gzipped file that was cut off also ends early
    gzerror(file_.get(), &code);
    return got == 0 && code == Z_OK ? absl::OkStatus() : Broken("its end");
  }

 private:
  explicit IdxFile(const std::string& path)
      : path_(path), file_(gzopen(path.c_str(), "rb"), gzclose) {
    if (file_ != nullptr) gzbuffer(file_.get(), 1 << 17);
  }
  absl::Status Broken(std::string_view where) {
    int code = Z_OK;
    const char* const reason = gzerror(file_.get(), &code);
    return DataLoss("{}: {}: {}", path_, where,
                    code == Z_OK      ? "the file ends"
                    : code == Z_ERRNO ? std::strerror(errno)
                                      : reason);
  }

  std::string path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  uint8_t type_ = 0;
  std::vector<uint32_t> sizes_;
};

class IdxInput : public RecordInput {
 public:
  IdxInput(IdxFile images, IdxFile labels, const IdxEncoding& encoding)
      : images_(std::move(images)),
        labels_(std::move(labels)),
        encoding_(encoding),
        pixels_(size_t{images_.sizes()[1]} * images_.sizes()[2]) {}

  absl::StatusOr<bool> Next(Record* record) override {
    if (next_ == images_.sizes().front()) {
      RETURN_IF_ERROR(images_.ExpectEnd());
      RETURN_IF_ERROR(labels_.ExpectEnd());
      return false;
    }
    const std::string what = fmt::format("record {}", next_);
    RETURN_IF_ERROR(images_.Read(pixels_.data(), pixels_.size(), what));
    const size_t label_bytes = labels_.type() == kIdxInt32 ? 4 : 1;
    uint8_t label[4];
    RETURN_IF_ERROR(labels_.Read(label, label_bytes, what));
    const GrayImage image{.width = images_.sizes()[2],
                          .height = images_.sizes()[1],
                          .pixels = pixels_.data()};
    absl::StatusOr<std::string> encoded =
        encoding_.jpeg ? EncodeGrayJpeg(image, encoding_.quality)
                       : EncodeGrayPng(image);
    if (!encoded.ok()) {
      return Annotate(encoded.status(),
                      fmt::format("{}: {}", images_.path(), what));
    }
    record->image = *std::move(encoded);
    record->extension = encoding_.jpeg ? "jpg" : "png";
    record->label = label_bytes == 1
                        ? label[0]
                        : static_cast<int32_t>(IdxFile::BigEndian(label));
    ++next_;
    return true;
  }

 private:
  IdxFile images_, labels_;
  const IdxEncoding encoding_;
  std::vector<uint8_t> pixels_;  // of one image
  uint32_t next_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RecordInput>> OpenIdx(
    const std::string& images_path, const std::string& labels_path,
    const IdxEncoding& encoding) {
  ASSIGN_OR_RETURN(IdxFile images, IdxFile::Open(images_path));
  ASSIGN_OR_RETURN(IdxFile labels, IdxFile::Open(labels_path));
  const auto& size = images.sizes();
  if (images.type() != kUint8 || size.size() != 3 || size[1] == 0 ||
      size[2] == 0 || uint64_t{size[1]} * size[2] > kMaxPixels) {
    return InvalidArgument(
        "{}: {} of type {}; want images: type 8 (uint8), records x height x "
        "width, at most {} pixels",
        images_path, fmt::join(size, " x "), images.type(), kMaxPixels);
  }
  if ((labels.type() != kUint8 && labels.type() != kIdxInt32) ||
      labels.sizes().size() != 1) {
    return InvalidArgument(
        "{}: {} of type {}; want labels: one axis, type 8 (uint8) or 12 "
        "(int32)",
        labels_path, fmt::join(labels.sizes(), " x "), labels.type());
  }
  if (labels.sizes()[0] != size[0]) {
    return InvalidArgument("{} has {} labels, {} has {} images", labels_path,
                           labels.sizes()[0], images_path, size[0]);
  }
  return std::make_unique<IdxInput>(std::move(images), std::move(labels),
                                    encoding);
}

}  // namespace leat::cli
