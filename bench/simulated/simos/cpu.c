// Interpreter of RV32I (The RISC-V Instruction Set Manual, volume I, version 20191213, chapter 2), without misaligned accesses.
#include <string.h>
#include "machine.h"

static uint32_t bits(uint32_t word, int from, int count) { return word >> from & ((1u << count) - 1); }
static int32_t extended(uint32_t value, int width) { return (int32_t)(value << (32 - width)) >> (32 - width); }

static int32_t store_offset(uint32_t word) { return extended(bits(word, 25, 7) << 5 | bits(word, 7, 5), 12); }
static int32_t branch_offset(uint32_t word) {
  return extended(bits(word, 31, 1) << 12 | bits(word, 7, 1) << 11 | bits(word, 25, 6) << 5 | bits(word, 8, 4) << 1, 13);
}
static int32_t jump_offset(uint32_t word) {
  return extended(bits(word, 31, 1) << 20 | bits(word, 12, 8) << 12 | bits(word, 20, 1) << 11 | bits(word, 21, 10) << 1, 21);
}

static void fail(struct cpu *cpu, const char *fault) { cpu->fault = fault, cpu->is_halted = true; }

// True if the access lies in memory and is aligned; else the processor fails.
static bool is_valid(struct machine *machine, struct cpu *cpu, uint32_t address, uint32_t bytes) {
  if (address % bytes) return fail(cpu, "misaligned access"), false;
  if (address > machine->bytes - bytes) return fail(cpu, "access beyond memory"), false;
  return true;
}

static uint32_t computed(uint32_t function, bool is_alternate, uint32_t a, uint32_t b) {
  switch (function) {
    case 0: return is_alternate ? a - b : a + b;
    case 1: return a << (b & 31);
    case 2: return (int32_t)a < (int32_t)b;
    case 3: return a < b;
    case 4: return a ^ b;
    case 5: return is_alternate ? (uint32_t)((int32_t)a >> (b & 31)) : a >> (b & 31);
    case 6: return a | b;
    default: return a & b;
  }
}

static bool is_taken(struct cpu *cpu, uint32_t function, uint32_t a, uint32_t b) {
  switch (function) {
    case 0: return a == b;
    case 1: return a != b;
    case 4: return (int32_t)a < (int32_t)b;
    case 5: return (int32_t)a >= (int32_t)b;
    case 6: return a < b;
    case 7: return a >= b;
    default: return fail(cpu, "unknown branch"), false;
  }
}

static uint32_t loaded(struct machine *machine, int number, uint32_t function, uint32_t address) {
  struct cpu *cpu = &machine->cpus[number];
  uint32_t width = bits(function, 0, 2), value = 0;
  if (width == 3 || function > 5) return fail(cpu, "unknown load"), 0;
  if (!is_valid(machine, cpu, address, 1u << width)) return 0;
  access_memory(machine, number, address, false, false);
  memcpy(&value, machine->memory + address, 1u << width); // host and guest are little-endian
  return function == 0 ? (uint32_t)extended(value, 8) : function == 1 ? (uint32_t)extended(value, 16) : value;
}

static void stored(struct machine *machine, int number, uint32_t function, uint32_t address, uint32_t value) {
  struct cpu *cpu = &machine->cpus[number];
  if (function > 2) fail(cpu, "unknown store");
  if (cpu->is_halted || !is_valid(machine, cpu, address, 1u << function)) return;
  access_memory(machine, number, address, true, false);
  memcpy(machine->memory + address, &value, 1u << function);
}

static void step(struct machine *machine, int number) {
  struct cpu *cpu = &machine->cpus[number];
  uint32_t word, pc = cpu->pc, next = pc + 4;
  if (!is_valid(machine, cpu, pc, 4)) return;
  access_memory(machine, number, pc, false, true);
  memcpy(&word, machine->memory + pc, 4);
  uint32_t to = bits(word, 7, 5), function = bits(word, 12, 3), *registers = cpu->registers;
  uint32_t a = registers[bits(word, 15, 5)], b = registers[bits(word, 20, 5)], result = registers[to];
  int32_t immediate = extended(word >> 20, 12);
  switch (word & 127) {
    case 0x37: result = word & 0xfffff000; break;                                                     // lui
    case 0x17: result = pc + (word & 0xfffff000); break;                                              // auipc
    case 0x6f: result = next, next = pc + (uint32_t)jump_offset(word); break;                         // jal
    case 0x67: result = next, next = (a + (uint32_t)immediate) & ~1u; break;                          // jalr
    case 0x03: result = loaded(machine, number, function, a + (uint32_t)immediate); break;
    case 0x13: result = computed(function, function == 5 && bits(word, 30, 1), a, (uint32_t)immediate); break;
    case 0x33: result = computed(function, bits(word, 30, 1), a, b); break;
    case 0x0f: break;                                                                                 // fence: accesses are in order
    case 0x23: stored(machine, number, function, a + (uint32_t)store_offset(word), b), to = 0; break;
    case 0x63: to = 0, next = is_taken(cpu, function, a, b) ? pc + (uint32_t)branch_offset(word) : next; break;
    case 0x73: to = 0, cpu->is_halted = true; break;                                                  // ecall
    default: fail(cpu, "unknown instruction");
  }
  if (to && !cpu->fault) registers[to] = result;
  if (!cpu->is_halted) cpu->pc = next;
  cpu->counters.instructions++, cpu->counters.cycles++;
}

void run(struct machine *machine, int number, int count) {
  for (; count > 0 && !machine->cpus[number].is_halted; count--) step(machine, number);
}
