// Times faults on swapped-out pages, for bench/swap.py: fills more memory than its control group allows, then reads the pages in random
// order, each once per pass, and prints the nanoseconds of every access that the kernel counted as a major fault. With `write` every page
// is then written, so that it has to be swapped out again; otherwise its copy on the device stays valid.
//   cc -O2 -o swap_faults swap_faults.c; swap_faults read|write BYTES SECONDS
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

enum { PAGE = 4096, MOST = 1 << 20 };

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static long major_faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_majflt;
}

// Content of each page: all differ, so that a wrong page is detected.
static uint64_t mark(uint64_t page) { return (page + 1) * 0x9e3779b97f4a7c15ull; }

int main(int count, char **arguments) {
  if (count != 4) return fprintf(stderr, "swap_faults read|write BYTES SECONDS\n"), 2;
  int is_writing = strcmp(arguments[1], "write") == 0;
  uint64_t pages = strtoull(arguments[2], NULL, 10) / PAGE, random = 88172645463325252ull;
  char *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  uint32_t *order = malloc(pages * sizeof *order), *faults_ns = malloc(MOST * sizeof *faults_ns), faults = 0;
  if (memory == MAP_FAILED || !order || !faults_ns) return perror("memory"), 1;
  // The program's own tables stay in memory; only the measured pages are swapped.
  if (madvise(memory, pages * PAGE, MADV_NOHUGEPAGE)) return perror("madvise"), 1;
  for (uint32_t page = 0; page < MOST; page++) faults_ns[page] = 0;
  for (uint64_t page = 0; page < pages; page++) order[page] = page;
  if (mlock(order, pages * sizeof *order) || mlock(faults_ns, MOST * sizeof *faults_ns)) return perror("mlock"), 1;
  for (uint64_t page = 0; page < pages; page++) *(uint64_t *)(memory + page * PAGE) = mark(page);
  fprintf(stderr, "filled\n");
  uint64_t until_ns = now_ns() + strtoull(arguments[3], NULL, 10) * 1000000000ull;
  while (now_ns() < until_ns && faults < MOST) {
    for (uint64_t left = pages; left > 1; left--) { // Fisher–Yates shuffle
      random ^= random << 13, random ^= random >> 7, random ^= random << 17;
      uint64_t other = random % left;
      uint32_t swapped = order[left - 1];
      order[left - 1] = order[other], order[other] = swapped;
    }
    for (uint64_t i = 0; i < pages && faults < MOST && now_ns() < until_ns; i++) {
      volatile uint64_t *page = (uint64_t *)(memory + (uint64_t)order[i] * PAGE);
      long before = major_faults();
      uint64_t began_ns = now_ns(), found = *page, took_ns = now_ns() - began_ns;
      if (found != mark(order[i])) return fprintf(stderr, "page %u is wrong\n", order[i]), 1;
      if (major_faults() > before) faults_ns[faults++] = took_ns;
      if (is_writing) *page = found;
    }
  }
  for (uint32_t i = 0; i < faults; i++) printf("%u\n", faults_ns[i]);
}
