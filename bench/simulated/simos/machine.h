// A machine of four RV32I processors with caches, simulated for bench/simulated. simos.c has its command.
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { CPUS = 4, LINE_SHIFT = 6, WAYS = 2 };
enum { FIRST_LEVEL_BYTES = 16 << 10, SECOND_LEVEL_BYTES = 256 << 10 };
// Cycles of an access by the place that had the line.
enum { FIRST_CYCLES = 0, SECOND_CYCLES = 9, MEMORY_CYCLES = 60, OTHER_CPU_CYCLES = 80 };

enum state { INVALID, SHARED, EXCLUSIVE, MODIFIED };
struct way {
  uint32_t line, used;
  uint8_t state;
};
struct cache {
  struct way *ways;
  uint32_t sets, clock; // sets: a power of two
};

// Entry of the directory: CPUs that hold the line, and the line's counters.
struct line {
  uint8_t holders;
  bool is_modified; // by the only holder
  uint16_t invalidations;
  uint32_t misses;
};

struct counters {
  uint64_t instructions, cycles, reads, writes, first_misses, second_misses, invalidations, write_backs;
};

struct cpu {
  uint32_t registers[32], pc;
  bool is_halted;
  const char *fault; // NULL unless an instruction failed
  struct cache instructions, data, second;
  struct counters counters;
};

struct machine {
  uint8_t *memory;
  uint32_t bytes;
  struct line *lines;
  struct cpu cpus[CPUS];
};

// Counts an access of `cpu`, moves the line through its caches, and adds the access's cycles.
void access_memory(struct machine *machine, int cpu, uint32_t address, bool is_write, bool is_fetch);
struct cache cache_of(uint32_t bytes);

// Executes up to `count` instructions. An ecall halts the processor.
void run(struct machine *machine, int cpu, int count);
