/* A program whose memory references are recorded. The first argument says how it behaves. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 4 << 20, PART = 1 << 20, PARTS = BYTES / PART, THREADS = 8 };
static _Alignas(4096) uint32_t numbers[1 << 20];
static _Alignas(4096) char parts[THREADS][PART];

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

static char *fill_part(char *part)
{
	for (size_t i = 0; i < PART; i += 512)
		((volatile char *)part)[i]++;
	return part;
}

static char *new_part(void)
{
	return fill_part(mmap(NULL, PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

/* Fills a part, and then, four times, another part that is freed. Then fills the first one again. */
static void fill_and_free(const char *how)
{
	fill_part(parts[0]);
	for (int i = 0; i < PARTS; i++) {
		char *part = (char *)numbers + i * PART;
		if (!strcmp(how, "discard")) {
			madvise(fill_part(part), PART, MADV_DONTNEED);
		} else if (!strcmp(how, "unmap")) {
			munmap(fill_part(part), PART);
		} else if (!strcmp(how, "replace")) {
			mmap(fill_part(part), PART, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		} else if (!strcmp(how, "break")) {
			fill_part(sbrk(PART));
			sbrk(-PART);
		} else if (!strcmp(how, "shrink")) {
			munmap(mremap(new_part(), PART, 4096, 0), 4096);
		} else if (!strcmp(how, "move")) {
			part = mremap(new_part(), PART, PART, MREMAP_MAYMOVE | MREMAP_FIXED, parts[1]);
			munmap(fill_part(part), PART);
		} else if (!strcmp(how, "fork-and-end")) {
			pid_t child = fork();
			if (!child) {
				fill_part(part);
				exit(0);
			}
			waitpid(child, NULL, 0);
		}
	}
	fill_part(parts[0]);
}

static pthread_barrier_t all_run;

static void *fill(void *part)
{
	pthread_barrier_wait(&all_run);
	for (int round = 0; round < 3; round++)
		fill_part(part);
	return NULL;
}

/* Waits without the CPU, much longer in the first run: as a program does that reads its files from a disk. */
static void wait_for_file(const char *path)
{
	int is_first = access(path, F_OK);
	if (is_first)
		fclose(fopen(path, "w"));
	usleep(is_first ? 3000000 : 300000);
}

int main(int count, char **arguments)
{
	const char *how = count > 1 ? arguments[1] : "walk";
	pthread_t threads[THREADS];
	if (count > 2 && !strcmp(how, "free")) {
		fill_and_free(arguments[2]);
		return 0;
	}
	if (count > 2 && !strcmp(how, "wait"))
		wait_for_file(arguments[2]);
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
