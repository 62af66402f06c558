// SPDX-License-Identifier: Apache-2.0
//
// jpeg_limit SECONDS THREADS: how many JPEG files per second bare libjpeg-turbo
// decodes to RGB, from memory to memory: the yardstick of the peers' table.
//
// The files' names come on the standard input, one per line. As many as fit in
// 2 GiB are read first. Then each thread decodes every THREADS-th file,
// beginning again after the last, with the library's defaults (accurate DCT,
// smooth chroma). Prints "rate IMAGES_PER_SECOND". A file that is not a JPEG is
// not counted. Exit codes: 0; 1 nothing to decode; 2 wrong use.
#include <turbojpeg.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMaxBytes = size_t{2} << 30;

std::vector<std::string> ReadFiles(std::istream& names) {
  std::vector<std::string> files;
  size_t bytes = 0;
  for (std::string name; bytes < kMaxBytes && std::getline(names, name);) {
    std::ifstream in(name, std::ios::binary);
    std::string file{std::istreambuf_iterator<char>(in), {}};
    if (file.empty()) {
      std::fprintf(stderr, "jpeg_limit: cannot read %s\n", name.c_str());
      continue;
    }
    bytes += file.size();
    files.push_back(std::move(file));
  }
  return files;
}

// Decodes `file` into `pixels`, which grows as needed. False: it is damaged.
bool Decode(tjhandle decoder, const std::string& file,
            std::vector<unsigned char>* pixels) {
  const auto* data = reinterpret_cast<const unsigned char*>(file.data());
  int width = 0, height = 0, subsampling = 0, color = 0;
  if (tjDecompressHeader3(decoder, data, file.size(), &width, &height,
                          &subsampling, &color) != 0)
    return false;
  const size_t size = size_t{3} * width * height;
  if (pixels->size() < size) pixels->resize(size);
  return tjDecompress2(decoder, data, file.size(), pixels->data(), width, 0,
                       height, TJPF_RGB, 0) == 0;
}

// Returns the number of images that this thread decoded until `end`.
size_t DecodeUntil(Clock::time_point end, const std::vector<std::string>& files,
                   size_t first, size_t step) {
  const tjhandle decoder = tjInitDecompress();
  std::vector<unsigned char> pixels;
  size_t images = 0;
  for (size_t next = first; Clock::now() < end; next += step)
    images += Decode(decoder, files[next % files.size()], &pixels) ? 1 : 0;
  tjDestroy(decoder);
  return images;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc == 3 ? std::atof(argv[1]) : 0;
  const int count = argc == 3 ? std::atoi(argv[2]) : 0;
  if (!(seconds > 0) || count < 1 || count > 4096) {
    std::fprintf(stderr, "usage: jpeg_limit SECONDS THREADS <NAMES\n");
    return 2;
  }
  const std::vector<std::string> files = ReadFiles(std::cin);
  if (files.empty()) {
    std::fprintf(stderr, "jpeg_limit: want names of files on the input\n");
    return 1;
  }
  std::vector<size_t> images(count);
  std::vector<std::thread> threads;
  const Clock::time_point start = Clock::now();
  const auto end = start + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(seconds));
  for (int thread = 0; thread < count; ++thread)
    threads.emplace_back([&, thread] {
      images[thread] = DecodeUntil(end, files, thread, count);
    });
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  const size_t total = std::accumulate(images.begin(), images.end(), size_t{0});
  if (total == 0) {
    std::fprintf(stderr, "jpeg_limit: none of %zu files is a JPEG\n",
                 files.size());
    return 1;
  }
  std::printf("rate %.1f\n", static_cast<double>(total) / elapsed.count());
}
