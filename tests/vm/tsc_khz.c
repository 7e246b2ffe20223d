// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Prints the kernel's argument for the rate of this machine's time stamp
// counter, which is that of the machines emulated on it.
#include <stdint.h>
#include <stdio.h>
#include <threads.h>
#include <time.h>
#include <x86intrin.h>

static int64_t NowNs(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int main(void) {
  const struct timespec wait = {.tv_nsec = 200000000};
  const int64_t begin_ns = NowNs();
  const uint64_t begin = __rdtsc();
  thrd_sleep(&wait, NULL);
  const int64_t spent_ns = NowNs() - begin_ns;
  const uint64_t ticks = __rdtsc() - begin;
  printf("tsc_early_khz=%llu\n",
         (unsigned long long)(ticks * 1000000 / (uint64_t)spent_ns));
  return 0;
}
