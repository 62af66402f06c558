// SPDX-License-Identifier: Apache-2.0
//
// The protocol by which tests/bench/one_core.py asks a program to measure, line
// by line, so that it can take turns with other libraries' programs.
//
// The program prints its cases ("case NAME") and "ready". Then, for each line
// "NAME<tab>SECONDS" it repeats the case for that long and answers
// "ITEMS<tab>SECONDS", the actual numbers. Seconds are the processor time of
// the whole process, so that other processes do not count.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace leat {

struct MeasuredCase {
  std::string name;
  // Does the work once; returns the number of items.
  std::function<size_t()> pass;
};

inline double ProcessorSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

// Answers until the end of the input. Returns the exit code.
inline int MeasureCases(const std::vector<MeasuredCase>& cases) {
  for (const MeasuredCase& one : cases)
    std::printf("case %s\n", one.name.c_str());
  std::printf("ready\n");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    const size_t tab = line.find('\t');
    const MeasuredCase* found = nullptr;
    for (const MeasuredCase& one : cases)
      if (line.compare(0, tab, one.name) == 0) found = &one;
    if (found == nullptr || tab == std::string::npos) {
      std::fprintf(stderr, "no case \"%s\"\n", line.c_str());
      return 1;
    }
    const double seconds = std::atof(line.c_str() + tab + 1);
    found->pass();  // warms caches and memory
    const double begin = ProcessorSeconds();
    size_t items = 0;
    double elapsed = 0;
    do {
      items += found->pass();
      elapsed = ProcessorSeconds() - begin;
    } while (elapsed < seconds);
    std::printf("%zu\t%.9f\n", items, elapsed);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace leat
