/* A program whose memory references are recorded. The first argument says how it behaves. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 4 << 20, THREADS = 8 };
static uint32_t numbers[1 << 20];
static char parts[THREADS][1 << 20];

/* Writes all of the 4 MiB, then reads and writes at random places. */
static uint64_t walk(int rounds)
{
	uint32_t state = 1;
	uint64_t sum = 0;
	for (int round = 0; round < rounds; round++) {
		for (size_t i = 0; i < BYTES / sizeof *numbers; i++) {
			state = state * 1664525 + 1013904223;
			numbers[i] = state;
		}
		for (int i = 0; i < 300000; i++) {
			state = state * 1664525 + 1013904223;
			sum += numbers[state >> 12];
			numbers[state >> 13 & 0xffff] ^= sum;
		}
	}
	return sum;
}

/* Reads and writes at random places of one MiB: few accesses, for tools that print each. */
static uint64_t sample(void)
{
	uint32_t state = 1;
	uint64_t sum = 0;
	for (int i = 0; i < 60000; i++) {
		state = state * 1664525 + 1013904223;
		if (state >> 31)
			sum += numbers[state >> 14 & 0x3ffff];
		else
			numbers[state >> 16 & 0x7fff] = sum;
	}
	return sum;
}

static pthread_barrier_t all_run;

static void *fill(void *part)
{
	pthread_barrier_wait(&all_run);
	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < sizeof parts[0]; i += 512)
			((volatile char *)part)[i]++;
	return NULL;
}

int main(int count, char **arguments)
{
	const char *how = count > 1 ? arguments[1] : "walk";
	pthread_t threads[THREADS];
	if (!strcmp(how, "close"))
		syscall(SYS_close_range, 3, ~0u, 0);
	if (!strcmp(how, "fork")) {
		pid_t child = fork();
		if (!child) {
			walk(1);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	if (!strcmp(how, "threads")) {
		pthread_barrier_init(&all_run, NULL, THREADS);
		for (int i = 0; i < THREADS; i++)
			pthread_create(&threads[i], NULL, fill, parts[i]);
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
	}
	printf("%llu\n", (unsigned long long)(strcmp(how, "sample") ? walk(2) : sample()));
	fflush(stdout);
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	if (!strcmp(how, "exec"))
		execl("/bin/true", "true", NULL);
	return 0;
}
