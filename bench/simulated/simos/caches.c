// Two levels of caches a processor, kept coherent by a directory (MESI). The second level includes the first.
#include <stdio.h>
#include <stdlib.h>
#include "machine.h"

struct cache cache_of(uint32_t bytes) {
  struct cache cache = {.sets = (bytes >> LINE_SHIFT) / WAYS};
  cache.ways = calloc((size_t)cache.sets * WAYS, sizeof *cache.ways);
  if (!cache.ways) perror("simos: memory"), exit(1);
  return cache;
}

static struct way *set_of(struct cache *cache, uint32_t line) { return cache->ways + (size_t)(line & (cache->sets - 1)) * WAYS; }

static struct way *found(struct cache *cache, uint32_t line) {
  struct way *set = set_of(cache, line);
  for (int i = 0; i < WAYS; i++)
    if (set[i].state != INVALID && set[i].line == line) {
      set[i].used = ++cache->clock;
      return &set[i];
    }
  return NULL;
}

// The way that takes a new line: an invalid one, or that used least recently.
static struct way *victim(struct cache *cache, uint32_t line) {
  struct way *set = set_of(cache, line), *oldest = set;
  for (int i = 0; i < WAYS; i++) {
    if (set[i].state == INVALID) return &set[i];
    if (set[i].used < oldest->used) oldest = &set[i];
  }
  return oldest;
}

static struct way *filled(struct cache *cache, struct way *way, uint32_t line, enum state state) {
  *way = (struct way){line, ++cache->clock, state};
  return way;
}

static void set_state(struct cpu *cpu, uint32_t line, enum state state) {
  struct cache *caches[] = {&cpu->instructions, &cpu->data, &cpu->second};
  for (int i = 0; i < 3; i++) {
    struct way *way = found(caches[i], line);
    if (way) way->state = state;
  }
}

// Removes a line from all other processors' caches. Returns whether one had modified it.
static bool invalidate_others(struct machine *machine, int cpu, uint32_t line) {
  struct line *entry = &machine->lines[line];
  bool was_modified = entry->is_modified && !(entry->holders >> cpu & 1);
  for (int other = 0; other < CPUS; other++)
    if (other != cpu && entry->holders >> other & 1) {
      set_state(&machine->cpus[other], line, INVALID);
      machine->cpus[other].counters.invalidations++;
      entry->invalidations++;
    }
  entry->holders &= 1u << cpu;
  if (was_modified) entry->is_modified = false;
  return was_modified;
}

// Makes all other processors' copies shared. Returns whether one had modified the line.
static bool share(struct machine *machine, int cpu, uint32_t line) {
  struct line *entry = &machine->lines[line];
  bool was_modified = entry->is_modified;
  for (int other = 0; other < CPUS; other++)
    if (other != cpu && entry->holders >> other & 1) {
      set_state(&machine->cpus[other], line, SHARED);
      if (was_modified) machine->cpus[other].counters.write_backs++;
    }
  entry->is_modified = false;
  return was_modified;
}

static void evict(struct machine *machine, int number, struct way *way) {
  struct cpu *cpu = &machine->cpus[number];
  struct line *entry = &machine->lines[way->line];
  if (way->state == MODIFIED) cpu->counters.write_backs++, entry->is_modified = false;
  entry->holders &= ~(1u << number);
  set_state(cpu, way->line, INVALID);
}

// Brings a line into the second level.
static struct way *fetched(struct machine *machine, int number, uint32_t line, bool is_write) {
  struct cpu *cpu = &machine->cpus[number];
  struct line *entry = &machine->lines[line];
  struct way *way = victim(&cpu->second, line);
  if (way->state != INVALID) evict(machine, number, way);
  bool was_modified = is_write ? invalidate_others(machine, number, line) : share(machine, number, line);
  cpu->counters.second_misses++;
  cpu->counters.cycles += was_modified ? OTHER_CPU_CYCLES : MEMORY_CYCLES;
  entry->misses++;
  enum state state = is_write ? MODIFIED : entry->holders ? SHARED : EXCLUSIVE;
  entry->holders |= 1u << number;
  entry->is_modified = is_write;
  return filled(&cpu->second, way, line, state);
}

// Gives a processor the only copy of a line that it holds.
static void own(struct machine *machine, int number, uint32_t line, enum state before) {
  if (before == SHARED) {
    invalidate_others(machine, number, line);
    machine->cpus[number].counters.cycles += MEMORY_CYCLES;
  }
  set_state(&machine->cpus[number], line, MODIFIED);
  machine->lines[line].is_modified = true;
}

void access_memory(struct machine *machine, int number, uint32_t address, bool is_write, bool is_fetch) {
  struct cpu *cpu = &machine->cpus[number];
  struct cache *first = is_fetch ? &cpu->instructions : &cpu->data;
  uint32_t line = address >> LINE_SHIFT;
  if (!is_fetch) *(is_write ? &cpu->counters.writes : &cpu->counters.reads) += 1;
  struct way *way = found(first, line);
  if (!way) {
    cpu->counters.first_misses++;
    struct way *second = found(&cpu->second, line);
    cpu->counters.cycles += SECOND_CYCLES;
    if (!second) second = fetched(machine, number, line, is_write);
    way = filled(first, victim(first, line), line, second->state);
  }
  if (is_write && way->state != MODIFIED) own(machine, number, line, way->state);
}
