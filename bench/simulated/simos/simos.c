// Runs a program of sort.py on four processors: simos PROGRAM MEMORY_MIB RECORDS
//   cc -O2 -o simos simos.c cpu.c caches.c
// All processors begin at address 4096 with a0 = number, a1 = begin of their part of memory, a2 = RECORDS, a3 = CPUs, sp = end of their part. They
// run in turns of 64 instructions until each has halted. Prints each processor's a0 and a1 and its counters; 0 if every a0 is 0.
#include <stdio.h>
#include <stdlib.h>
#include "machine.h"

enum { PROGRAM = 4096, PARTS_BEGIN = 1 << 20, TURN = 64 };

static bool loaded(struct machine *machine, const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return false;
  size_t bytes = fread(machine->memory + PROGRAM, 1, PARTS_BEGIN - PROGRAM, file);
  bool is_whole = bytes > 0 && !ferror(file) && feof(file);
  fclose(file);
  return is_whole;
}

static void reset(struct machine *machine, uint32_t records) {
  uint32_t part = (machine->bytes - PARTS_BEGIN) / CPUS & ~4095u;
  for (int i = 0; i < CPUS; i++) {
    struct cpu *cpu = &machine->cpus[i];
    cpu->instructions = cache_of(FIRST_LEVEL_BYTES), cpu->data = cache_of(FIRST_LEVEL_BYTES), cpu->second = cache_of(SECOND_LEVEL_BYTES);
    cpu->pc = PROGRAM;
    cpu->registers[10] = (uint32_t)i, cpu->registers[11] = PARTS_BEGIN + (uint32_t)i * part;
    cpu->registers[12] = records, cpu->registers[13] = CPUS;
    cpu->registers[2] = PARTS_BEGIN + (uint32_t)(i + 1) * part;
  }
}

static bool report(const struct cpu *cpu, int number) {
  const struct counters *c = &cpu->counters;
  printf("cpu %d: status %u value %08x instructions %llu cycles %llu reads %llu writes %llu first-level misses %llu second-level misses %llu "
         "invalidations %llu write-backs %llu\n", number, cpu->registers[10], cpu->registers[11], (unsigned long long)c->instructions,
         (unsigned long long)c->cycles, (unsigned long long)c->reads, (unsigned long long)c->writes, (unsigned long long)c->first_misses,
         (unsigned long long)c->second_misses, (unsigned long long)c->invalidations, (unsigned long long)c->write_backs);
  if (cpu->fault) fprintf(stderr, "simos: cpu %d: %s at %08x\n", number, cpu->fault, cpu->pc);
  return !cpu->fault && cpu->registers[10] == 0;
}

int main(int count, char **arguments) {
  unsigned long mib = count == 4 ? strtoul(arguments[2], NULL, 10) : 0;
  if (mib < 2 || mib > 1024) return fprintf(stderr, "simos PROGRAM MEMORY_MIB RECORDS (2 to 1024 MiB)\n"), 2;
  struct machine machine = {.bytes = (uint32_t)mib << 20};
  machine.memory = calloc(machine.bytes, 1);
  machine.lines = calloc(machine.bytes >> LINE_SHIFT, sizeof *machine.lines);
  if (!machine.memory || !machine.lines) return perror("simos: memory"), 1;
  if (!loaded(&machine, arguments[1])) return fprintf(stderr, "simos: cannot read a program from %s\n", arguments[1]), 1;
  reset(&machine, (uint32_t)strtoul(arguments[3], NULL, 10));
  for (bool is_running = true; is_running;) {
    is_running = false;
    for (int i = 0; i < CPUS; i++) {
      run(&machine, i, TURN);
      is_running |= !machine.cpus[i].is_halted;
    }
  }
  bool is_right = true;
  for (int i = 0; i < CPUS; i++) is_right &= report(&machine.cpus[i], i);
  return is_right ? 0 : 1;
}
