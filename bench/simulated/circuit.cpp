// Simulates the circuit of netlist.py with random inputs: circuit SEED CYCLES. Prints a checksum of its outputs.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include "Vcircuit.h"

double sc_time_stamp() { return 0; }

int main(int count, char **arguments) {
  if (count != 3) return fprintf(stderr, "circuit SEED CYCLES\n"), 2;
  uint64_t random = strtoull(arguments[1], nullptr, 10) * 0x9e3779b97f4a7c15ull | 1, sum = 0;
  VerilatedContext context;
  Vcircuit circuit{&context};
  for (uint64_t cycles = strtoull(arguments[2], nullptr, 10); cycles > 0; cycles--) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    circuit.in = random;
    circuit.clk = 0, circuit.eval();
    circuit.clk = 1, circuit.eval();
    sum = sum * 31 + circuit.out;
  }
  circuit.final();
  printf("%016llx\n", (unsigned long long)sum);
}
