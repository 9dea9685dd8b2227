/* Reads and writes pages of 24 MiB in random order: a program that is measured with less memory. */
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>

enum { PAGES = 6144, PAGE_WORDS = 512, REFERENCES = 20000 };
static uint64_t memory[PAGES][PAGE_WORDS];

int main(void)
{
	uint32_t state = 1;
	uint64_t sum = 0;
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	for (int page = 0; page < PAGES; page++)
		memory[page][0] = page;
	for (int i = 0; i < REFERENCES; i++) {
		state = state * 1664525 + 1013904223;
		sum += memory[(state >> 8) % PAGES][0]++;
	}
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
