/* A program that knows nothing but the header. `regions FILE`: works, says "ready", waits for a line (its server is killed
 * meanwhile), works on, says "done". Servers come from the environment. */
#include <errno.h>
#include <fcntl.h>
#include <gleaner_regions.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES (1u << 20)
#define THREADS 4

#define MUST(true_it_is) \
	do { \
		if (!(true_it_is)) { \
			fprintf(stderr, "line %d: %s: errno %d, %s\n", __LINE__, #true_it_is, errno, gleaner_merror()); \
			exit(1); \
		} \
	} while (0)

static int md;

/* Each thread has a part of the region for itself. */
static void *part(void *number)
{
	size_t n = (size_t)number, bytes = BYTES / THREADS;
	unsigned char *given = malloc(bytes), *found = malloc(bytes);
	MUST(given && found);
	for (int round = 0; round < 5; round++) {
		memset(given, (int)(16 * n + (size_t)round + 1), bytes);
		MUST(gleaner_mwrite(md, n * bytes, given, bytes) == (ssize_t)bytes);
		memset(found, 0, bytes);
		MUST(gleaner_mread(md, n * bytes, found, bytes) == (ssize_t)bytes);
		MUST(memcmp(given, found, bytes) == 0);
	}
	free(given);
	free(found);
	return NULL;
}

static void work(void)
{
	pthread_t threads[THREADS];
	for (size_t n = 0; n < THREADS; n++)
		MUST(pthread_create(&threads[n], NULL, part, (void *)n) == 0);
	for (size_t n = 0; n < THREADS; n++)
		MUST(pthread_join(threads[n], NULL) == 0);
}

int main(int argc, char **argv)
{
	char line[16], byte = 7;
	MUST(argc == 2);
	MUST(gleaner_mset("nonsense", "1") == -1 && errno == EINVAL && strstr(gleaner_merror(), "refraction_ms"));
	MUST(gleaner_mset(NULL, "1") == -1 && errno == EFAULT);
	MUST(gleaner_mset("patience_ms", "30000") == 0);
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	MUST(fd >= 0);
	MUST(gleaner_mopen(BYTES, -1, 0) == -1 && errno == EBADF);
	MUST(gleaner_mopen(0, fd, 0) == -1 && errno == EINVAL);
	md = gleaner_mopen(BYTES, fd, 4096);
	MUST(md >= 0);
	MUST(close(fd) == 0);
	MUST(gleaner_mset("when_gone", "error") == -1 && errno == EBUSY);
	MUST(gleaner_mremote(md) == 1);
	MUST(gleaner_mread(md, BYTES - 1, line, sizeof line) == 1);
	MUST(gleaner_mwrite(md, BYTES, &byte, 1) == -1 && errno == ENOSPC);
	MUST(gleaner_mread(md, 0, NULL, 1) == -1 && errno == EFAULT);
	MUST(gleaner_mread(md + 1, 0, line, 1) == -1 && errno == EBADF);
	work();
	MUST(gleaner_mremote(md) == 1);
	puts("ready");
	fflush(stdout);
	MUST(fgets(line, sizeof line, stdin));
	work();
	MUST(gleaner_mremote(md) == 0);
	MUST(gleaner_mopen(BYTES, STDIN_FILENO, 0) == -1);
	MUST((fd = open(argv[1], O_RDWR)) >= 0);
	MUST(gleaner_mopen(BYTES, fd, 0) == -1 && errno == ENOMEM);
	MUST(gleaner_mclose(md) == 0);
	MUST(gleaner_mclose(md) == -1 && errno == EBADF);
	MUST(gleaner_mend() == 0);
	MUST(gleaner_mset("when_gone", "error") == 0);
	MUST(pread(fd, &byte, 1, 4096) == 1 && byte == 5);
	puts("done");
	return 0;
}
