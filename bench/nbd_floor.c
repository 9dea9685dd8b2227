// A minimal NBD server, the baseline of bench/nbd.py. One thread per connection, blocking calls, memory read and written in place, one
// export, no costly checks, no batching. Not for use as a server.
//   cc -O2 -pthread -o nbd_floor nbd_floor.c; nbd_floor PORT|PATH BYTES
#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

static char *memory;
static uint64_t size;

static int whole(int fd, void *into, size_t length) {
  for (char *at = into; length > 0;) {
    ssize_t count = read(fd, at, length);
    if (count <= 0) return 0;
    at += count, length -= count;
  }
  return 1;
}

static int out(int fd, const void *from, size_t length) {
  for (const char *at = from; length > 0;) {
    ssize_t count = write(fd, at, length);
    if (count <= 0) return 0;
    at += count, length -= count;
  }
  return 1;
}

struct __attribute__((packed)) option { uint64_t magic; uint32_t number, length; };
struct __attribute__((packed)) option_reply { uint64_t magic; uint32_t number, kind, length; };
struct __attribute__((packed)) request { uint32_t magic; uint16_t flags, command; uint64_t cookie, offset; uint32_t length; };
struct __attribute__((packed)) reply { uint32_t magic, error; uint64_t cookie; };
struct __attribute__((packed)) fact { uint16_t kind; uint64_t size; uint16_t flags; };

static int answer(int fd, uint32_t number, uint32_t kind, const void *data, uint32_t length) {
  struct option_reply reply = {htobe64(0x3e889045565a9), number, htobe32(kind), htobe32(length)};
  return out(fd, &reply, sizeof reply) && out(fd, data, length);
}

static int greet(int fd) {
  uint32_t flags;
  if (!out(fd, "NBDMAGICIHAVEOPT\0\3", 18) || !whole(fd, &flags, 4)) return 0;
  for (;;) {
    struct option option;
    char data[4096];
    if (!whole(fd, &option, sizeof option) || be32toh(option.length) > sizeof data || !whole(fd, data, be32toh(option.length))) return 0;
    if (be32toh(option.number) != 7 && be32toh(option.number) != 6) {
      if (!answer(fd, option.number, 0x80000001, NULL, 0)) return 0;
      continue;
    }
    struct fact fact = {0, htobe64(size), htobe16(1 | 4 | 8 | 256)};
    if (!answer(fd, option.number, 3, &fact, sizeof fact) || !answer(fd, option.number, 1, NULL, 0)) return 0;
    if (be32toh(option.number) == 7) return 1;
  }
}

static void *serve(void *argument) {
  int fd = (int)(intptr_t)argument, on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  struct request request;
  if (greet(fd))
    while (whole(fd, &request, sizeof request)) {
      uint64_t offset = be64toh(request.offset);
      uint32_t length = be32toh(request.length);
      struct reply reply = {htobe32(0x67446698), 0, request.cookie};
      int command = be16toh(request.command);
      if (command == 2 || (command < 2 && offset + length > size)) break;
      if (command == 1 && !whole(fd, memory + offset, length)) break;
      struct iovec both[2] = {{&reply, sizeof reply}, {memory + offset, command == 0 ? length : 0}};
      ssize_t count = writev(fd, both, 2), total = sizeof reply + both[1].iov_len;
      if (count < 0) break;
      if (count < (ssize_t)sizeof reply) abort();
      if (count < total && !out(fd, memory + offset + count - sizeof reply, total - count)) break;
    }
  close(fd);
  return NULL;
}

int main(int count, char **arguments) {
  if (count != 3) return fprintf(stderr, "nbd_floor PORT|PATH BYTES\n"), 2;
  size = strtoull(arguments[2], NULL, 10);
  memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return perror("mmap"), 1;
  madvise(memory, size, MADV_HUGEPAGE);
  signal(SIGPIPE, SIG_IGN);
  int on = 1, listener;
  if (strchr(arguments[1], '/')) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    strncpy(at.sun_path, arguments[1], sizeof at.sun_path - 1);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (void *)&at, sizeof at)) return perror("bind"), 1;
  } else {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (void *)&at, sizeof at)) return perror("bind"), 1;
  }
  if (listen(listener, 16)) return perror("listen"), 1;
  for (;;) {
    int fd = accept(listener, NULL, NULL);
    pthread_t thread;
    if (fd >= 0 && !pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd)) pthread_detach(thread);
  }
}
