// Quicksort of random numbers, for bench/validate.py: median of three, the larger part by the loop, insertion for short ranges.
//   cc -O2 -o quicksort quicksort.c; quicksort MIB
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void swap(uint64_t *a, uint64_t *b) {
  uint64_t held = *a;
  *a = *b, *b = held;
}

static void sort(uint64_t *begin, uint64_t *end) {
  while (end - begin > 16) {
    uint64_t *middle = begin + (end - begin) / 2, *last = end - 1;
    if (*middle < *begin) swap(middle, begin);
    if (*last < *begin) swap(last, begin);
    if (*last < *middle) swap(last, middle);
    uint64_t pivot = *middle, *left = begin, *right = last;
    while (left <= right) {
      while (*left < pivot) left++;
      while (*right > pivot) right--;
      if (left <= right) swap(left++, right--);
    }
    if (right + 1 - begin < end - left) sort(begin, right + 1), begin = left;
    else sort(left, end), end = right + 1;
  }
  for (uint64_t *next = begin + 1; next < end; next++)
    for (uint64_t *at = next; at > begin && at[-1] > *at; at--) swap(at - 1, at);
}

int main(int count, char **arguments) {
  if (count != 2) return fprintf(stderr, "quicksort MIB\n"), 2;
  uint64_t numbers = strtoull(arguments[1], NULL, 10) << 17, random = 88172645463325252ull;
  uint64_t *memory = malloc(numbers * sizeof *memory);
  if (!memory) return perror("memory"), 1;
  for (uint64_t i = 0; i < numbers; i++) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    memory[i] = random;
  }
  sort(memory, memory + numbers);
  for (uint64_t i = 1; i < numbers; i++)
    if (memory[i - 1] > memory[i]) return fprintf(stderr, "not sorted\n"), 1;
}
