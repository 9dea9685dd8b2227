// The standard library's sort (introsort, as in SGI's library) of random integers, for bench/programs.py.
//   c++ -O2 -o std_sort std_sort.cpp; std_sort MIB FILE
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

int main(int count, char **arguments) {
  if (count != 3) return std::fprintf(stderr, "std_sort MIB FILE\n"), 2;
  std::vector<int32_t> numbers(std::strtoull(arguments[1], nullptr, 10) << 18);
  std::mt19937 random(10);
  for (auto &number : numbers) number = static_cast<int32_t>(random());
  std::sort(numbers.begin(), numbers.end());
  uint64_t sum = 0;
  for (size_t i = 0; i < numbers.size(); i++) sum = sum * 31 + static_cast<uint32_t>(numbers[i]);
  std::FILE *out = std::fopen(arguments[2], "w");
  if (!out) return std::perror(arguments[2]), 1;
  std::fprintf(out, "%d %llu\n", std::is_sorted(numbers.begin(), numbers.end()), static_cast<unsigned long long>(sum));
  return std::fclose(out) ? 1 : 0;
}
