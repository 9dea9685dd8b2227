// Model of a hard disk with one arm, an nbdkit plugin for bench/disk.py. Contents are in memory; the model computes the time of each
// request: command, seek, wait for the sector by the platter's position at that moment, and transfer. The cache has segments that read
// ahead, and a part for writes that the disk writes back later; a flush, and a request with FUA, wait until the arm has written their data.
// Requests that need the arm wait in one queue: by offset upwards and then from the lowest again (queue=elevator, as a kernel sorts for a
// disk without a queue of its own; after EXPIRY_NS the oldest is next), or in the order of arrival (queue=fcfs).
// Not modelled: zones of different rates, the order of writes by angle, bad sectors.
//   cc -O2 -shared -fPIC -pthread -o disk.so disk.c -lm; nbdkit ./disk.so [KEY=VALUE ...]
#define NBDKIT_API_VERSION 2
#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL
#include <errno.h>
#include <math.h>
#include <nbdkit-plugin.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

enum { BLOCK = 4096, SECTOR = 512, MOST_SEGMENTS = 64, RUN = 128 << 10, MOST_DIRTY = 1 << 16 };
// Longest wait for requests that the elevator takes first; pause of requests before the disk writes back; wait that is not slept but spun.
static const uint64_t EXPIRY_NS = 500000000, IDLE_NS = 10000000, SPIN_NS = 100000;

// Keys of the configuration, with the defaults of a WD800JD: 80 GB, 7200 turns a minute, 8 MB, 50 MB/s, SATA at 150 MB/s. The seek over a
// share d of the disk takes track + root * sqrt(d) + linear * d: 8.9 ms on average over the whole disk, and 3.86 ms over 10 GB. The 2 ms to
// the next track, the time of a hit in the cache (hit-us) and the rate of the bus are assumed. `span`: bytes of the disk on which the
// export lies, for seeks; an export that is a sixteenth of the real one keeps the real one's seeks by span=10G.
static int64_t size = 9999998976, span = 0, disk_bytes = 80000000000, cache = 8 << 20, write_cache = 4 << 20;
static unsigned rpm = 7200, segments = 8, rate_mb = 50, bus_mb = 150, command_us = 188, hit_us = 60;
static unsigned track_seek_us = 2000, root_seek_us = 8183, linear_seek_us = 7607;
static int is_elevator = 1;
static const char *log_path; // log=FILE: the modelled time of each read there, in us, one a line

struct segment { uint64_t begin, end, read_to, used_ns; }; // cached bytes, end of the client's last read in them, last use
struct dirty { uint64_t block, age; };
struct job { struct job *next; uint64_t begin, end, arrived_ns, done_ns; int is_served; };

static char *memory;
static FILE *modelled;
static pthread_t arm_thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work, changed; // for the arm; for the threads of requests
static struct segment segment[MOST_SEGMENTS];
static struct dirty dirty[MOST_DIRTY], flight; // sorted by block; flight: the oldest of the blocks that the arm is writing
static uint64_t flight_begin, flight_end, dirty_count, age, last_request_ns, turn_ns, track_bytes;
static uint64_t head, arm_ns;         // byte behind the head, and the time at which the arm reached it
static uint64_t ahead_ns;             // time at which the read-ahead of `stream` begins; 0: the arm does not read ahead
static int stream = -1, is_moving;    // segment that is read ahead; the arm has not rested since arm_ns
static unsigned writers, flushers, is_ending; // threads that wait for room in the cache, and for the arm to write
static struct job *jobs;

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static struct timespec moment(uint64_t ns) { return (struct timespec){ns / 1000000000, ns % 1000000000}; }

static void sleep_until(uint64_t ns) {
  static __thread int is_exact;
  if (!is_exact) is_exact = prctl(PR_SET_TIMERSLACK, 1) == 0;
  struct timespec at = moment(ns);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) continue;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t transfer_ns(uint64_t bytes) { return bytes * 1000 / rate_mb; }
static uint64_t hit_ns(uint64_t bytes) { return hit_us * 1000ull + bytes * 1000 / bus_mb; }
static uint64_t segment_bytes(void) { return (cache - write_cache) / segments; }

static uint64_t seek_ns(uint64_t from, uint64_t to) {
  uint64_t distance = from > to ? from - to : to - from;
  if (from / track_bytes == to / track_bytes) return 0;
  double share = (double)distance / size * span / disk_bytes;
  return 1000 * (track_seek_us + root_seek_us * sqrt(share) + linear_seek_us * share);
}

// Time at which the byte is under the head, if the arm begins at `start_ns`.
static uint64_t reach_ns(uint64_t start_ns, uint64_t offset) {
  if (offset == head && start_ns == arm_ns) return start_ns;
  uint64_t there_ns = start_ns + command_us * 1000ull + seek_ns(head, offset);
  uint64_t angle_ns = offset % track_bytes * turn_ns / track_bytes;
  return there_ns + (angle_ns + turn_ns - there_ns % turn_ns) % turn_ns;
}

// End of a segment's cached bytes now; it grows while the arm reads ahead.
static uint64_t cached_end(int number, uint64_t now) {
  struct segment *s = &segment[number];
  if (number != stream || !ahead_ns || now <= ahead_ns) return s->end;
  uint64_t most_end = least(s->read_to + segment_bytes(), size);
  uint64_t end = s->end + (now - ahead_ns) * rate_mb / 1000 / SECTOR * SECTOR;
  return most(s->end, least(end, most_end));
}

static uint64_t first_dirty(uint64_t block) {
  uint64_t low = 0, high = dirty_count;
  while (low < high) {
    uint64_t middle = (low + high) / 2;
    if (dirty[middle].block < block) low = middle + 1;
    else high = middle;
  }
  return low;
}

static int is_dirty(uint64_t block) {
  uint64_t at = first_dirty(block);
  return (at < dirty_count && dirty[at].block == block) || (block >= flight_begin && block < flight_end);
}

// First byte of a range that is not in the cache; `end` if there is none.
static uint64_t uncached(uint64_t begin, uint64_t end, uint64_t now) {
  for (uint64_t at = begin, before = ~0ull;; before = at) {
    if (at >= end) return end;
    if (at == before) return at;
    before = at;
    for (unsigned i = 0; i < segments; i++) {
      uint64_t until = cached_end(i, now);
      if (segment[i].begin <= at && at < until) {
        segment[i].used_ns = now, segment[i].read_to = most(segment[i].read_to, least(until, end)), at = until;
        if (!ahead_ns) stream = i;
      }
    }
    if (at < end && is_dirty(at / BLOCK)) at = (at / BLOCK + 1) * BLOCK;
  }
}

static void add_dirty(uint64_t block) {
  uint64_t at = first_dirty(block);
  if (at < dirty_count && dirty[at].block == block) return; // keeps its age: an earlier flush waits for the newer contents
  memmove(&dirty[at + 1], &dirty[at], (dirty_count - at) * sizeof *dirty);
  dirty[at] = (struct dirty){block, age}, dirty_count++;
}

static void remove_dirty(uint64_t at, uint64_t count) {
  memmove(&dirty[at], &dirty[at + count], (dirty_count - at - count) * sizeof *dirty), dirty_count -= count;
}

// Ends the read-ahead at `now`.
static void end_read_ahead(uint64_t now) {
  if (!ahead_ns) return;
  uint64_t bytes = cached_end(stream, now) - segment[stream].end;
  struct segment *s = &segment[stream];
  head = s->end += bytes;
  arm_ns = now < ahead_ns ? now : ahead_ns + transfer_ns(bytes);
  s->begin = most(s->begin, s->end > segment_bytes() ? s->end - segment_bytes() : 0);
  ahead_ns = 0;
}

static struct job *next_job(uint64_t now) {
  struct job *first = jobs, *above = NULL, *lowest = NULL;
  if (!first || !is_elevator || now > first->arrived_ns + EXPIRY_NS) return first;
  for (struct job *job = jobs; job; job = job->next) {
    if (job->begin >= head && (!above || job->begin < above->begin)) above = job;
    if (!lowest || job->begin < lowest->begin) lowest = job;
  }
  return above ? above : lowest;
}

// Moves the arm until `arm_ns`; others may change everything but the arm meanwhile.
static void move(void) {
  is_moving = 1;
  pthread_mutex_unlock(&lock);
  sleep_until(arm_ns);
  pthread_mutex_lock(&lock);
}

static void serve(struct job *job, uint64_t now) {
  struct job **link = &jobs;
  while (*link != job) link = &(*link)->next;
  *link = job->next;
  uint64_t begin = uncached(job->begin, job->end, now), bytes = job->end - begin;
  job->done_ns = job->arrived_ns + hit_ns(job->end - job->begin);
  if (bytes) {
    uint64_t start_ns = is_moving && begin == head ? arm_ns : most(arm_ns, job->arrived_ns);
    arm_ns = reach_ns(start_ns, begin) + transfer_ns(bytes), head = job->end;
    job->done_ns = most(job->done_ns, arm_ns);
  }
  // The job is its thread's, which may return once it is served.
  uint64_t end = job->end;
  job->is_served = 1;
  pthread_cond_broadcast(&changed);
  if (!bytes) return;
  move();
  int chosen = 0;
  for (unsigned i = 0; i < segments; i++) {
    if (segment[i].end == begin && segment[i].begin < begin) { chosen = i; break; }
    if (segment[i].used_ns < segment[chosen].used_ns) chosen = i;
  }
  struct segment *s = &segment[chosen];
  if (s->end != begin) s->begin = begin;
  s->end = s->read_to = end, s->used_ns = now, stream = chosen;
  s->begin = most(s->begin, end > segment_bytes() ? end - segment_bytes() : 0);
}

// Writes one run of adjacent blocks from the cache: the next above the head, or else the lowest.
static void write_back(uint64_t now) {
  uint64_t at = first_dirty(head / BLOCK), count = 1;
  if (at == dirty_count) at = 0;
  flight = dirty[at];
  while (at + count < dirty_count && dirty[at + count].block == dirty[at].block + count && count < RUN / BLOCK)
    flight.age = least(flight.age, dirty[at + count].age), count++;
  flight_begin = dirty[at].block, flight_end = flight_begin + count;
  remove_dirty(at, count);
  arm_ns = reach_ns(is_moving ? arm_ns : most(arm_ns, now), flight_begin * BLOCK) + transfer_ns(count * BLOCK);
  head = flight_end * BLOCK;
  move();
  flight_begin = flight_end = 0;
  pthread_cond_broadcast(&changed);
}

static int wants_read_ahead(void) {
  if (stream < 0) return 0;
  struct segment *s = &segment[stream];
  uint64_t room = is_moving ? segment_bytes() : segment_bytes() / 2;
  return s->end > s->begin && s->end < least(s->read_to + room, size);
}

static void read_ahead(uint64_t now) {
  struct segment *s = &segment[stream];
  uint64_t begin_ns = reach_ns(is_moving ? arm_ns : most(arm_ns, now), s->end);
  uint64_t end_ns = begin_ns + transfer_ns(least(s->read_to + segment_bytes(), size) - s->end);
  ahead_ns = begin_ns, is_moving = 1;
  struct timespec until = moment(end_ns);
  while (!jobs && !writers && !flushers && !is_ending && now_ns() < end_ns) pthread_cond_timedwait(&work, &lock, &until);
  end_read_ahead(jobs ? most(jobs->arrived_ns, arm_ns) : least(now_ns(), end_ns));
}

static void *arm(void *unused) {
  int was_write = 0;
  pthread_mutex_lock(&lock);
  while (!is_ending) {
    uint64_t now = now_ns();
    struct job *job = next_job(now);
    int must_write = dirty_count && (writers || flushers), is_idle = now > last_request_ns + IDLE_NS;
    if (must_write && !(job && was_write)) write_back(now), was_write = 1;
    else if (job) serve(job, now), was_write = 0;
    else if (wants_read_ahead()) read_ahead(now);
    else if (dirty_count && (is_idle || dirty_count * BLOCK > (uint64_t)write_cache / 2)) write_back(now);
    else {
      is_moving = 0;
      struct timespec until = moment(dirty_count ? last_request_ns + IDLE_NS + 1000 : now + 1000000000);
      pthread_cond_timedwait(&work, &lock, &until);
    }
  }
  pthread_mutex_unlock(&lock);
  return unused;
}

// Waits until the arm has written those of these blocks that were dirty at that age.
static void await_written(uint64_t begin, uint64_t end, uint64_t oldest_new_age) {
  flushers++;
  for (;;) {
    int is_waiting = flight_begin < end && flight_end > begin && flight.age < oldest_new_age;
    for (uint64_t at = first_dirty(begin); at < dirty_count && dirty[at].block < end; at++)
      is_waiting |= dirty[at].age < oldest_new_age;
    if (!is_waiting) break;
    pthread_cond_signal(&work);
    pthread_cond_wait(&changed, &lock);
  }
  flushers--;
}

static int disk_pread(void *handle, void *into, uint32_t count, uint64_t offset, uint32_t flags) {
  struct job job = {.begin = offset, .end = offset + count, .arrived_ns = now_ns()};
  pthread_mutex_lock(&lock);
  last_request_ns = job.arrived_ns;
  if (uncached(job.begin, job.end, job.arrived_ns) == job.end) {
    job.done_ns = job.arrived_ns + hit_ns(count);
    pthread_cond_signal(&work);
  } else {
    struct job **last = &jobs;
    while (*last) last = &(*last)->next;
    *last = &job;
    pthread_cond_signal(&work);
    while (!job.is_served) pthread_cond_wait(&changed, &lock);
  }
  if (modelled) fprintf(modelled, "%.1f\n", (job.done_ns - job.arrived_ns) / 1e3);
  pthread_mutex_unlock(&lock);
  // Timers fire late by some 50 us here: the end of a wait for the arm is spun, which costs 1 % of a CPU at 120 requests a second.
  sleep_until(job.is_served ? job.done_ns - SPIN_NS : job.done_ns);
  while (now_ns() < job.done_ns) continue;
  memcpy(into, memory + offset, count);
  return 0;
}

static int disk_pwrite(void *handle, const void *from, uint32_t count, uint64_t offset, uint32_t flags) {
  uint64_t begin = offset / BLOCK, end = (offset + count + BLOCK - 1) / BLOCK, room = write_cache / BLOCK;
  uint64_t done_ns = now_ns() + hit_ns(count);
  memcpy(memory + offset, from, count);
  pthread_mutex_lock(&lock);
  for (uint64_t block = begin; block < end; block++) {
    writers++;
    while (dirty_count + (flight_end - flight_begin) >= room && !is_dirty(block)) {
      pthread_cond_signal(&work);
      pthread_cond_wait(&changed, &lock);
    }
    writers--;
    add_dirty(block);
  }
  last_request_ns = now_ns();
  age++;
  if (flags & NBDKIT_FLAG_FUA) await_written(begin, end, age);
  else pthread_cond_signal(&work);
  pthread_mutex_unlock(&lock);
  sleep_until(done_ns);
  return 0;
}

static int disk_flush(void *handle, uint32_t flags) {
  pthread_mutex_lock(&lock);
  await_written(0, size / BLOCK + 1, age);
  pthread_mutex_unlock(&lock);
  return 0;
}

// Frees memory, at no cost: the modelled disk knows no trim, but a swap area uses it.
static int disk_trim(void *handle, uint32_t count, uint64_t offset, uint32_t flags) {
  uint64_t begin = (offset + BLOCK - 1) / BLOCK, end = (offset + count) / BLOCK;
  if (begin >= end) return 0;
  pthread_mutex_lock(&lock);
  uint64_t first = first_dirty(begin);
  remove_dirty(first, first_dirty(end) - first);
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return madvise(memory + begin * BLOCK, (end - begin) * BLOCK, MADV_DONTNEED);
}

static int disk_config(const char *key, const char *value) {
  struct { const char *key; int64_t *bytes; } sizes[] = {
      {"size", &size}, {"span", &span}, {"disk", &disk_bytes}, {"cache", &cache}, {"write-cache", &write_cache}};
  struct { const char *key; unsigned *number; } numbers[] = {
      {"rpm", &rpm}, {"segments", &segments}, {"rate-mb", &rate_mb}, {"bus-mb", &bus_mb},
      {"command-us", &command_us}, {"hit-us", &hit_us},
      {"track-seek-us", &track_seek_us}, {"root-seek-us", &root_seek_us}, {"linear-seek-us", &linear_seek_us}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (!strcmp(key, sizes[i].key)) return (*sizes[i].bytes = nbdkit_parse_size(value)) < 0 ? -1 : 0;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (!strcmp(key, numbers[i].key)) return nbdkit_parse_unsigned(key, value, numbers[i].number);
  if (!strcmp(key, "queue") && (!strcmp(value, "elevator") || !strcmp(value, "fcfs"))) return is_elevator = value[0] == 'e', 0;
  if (!strcmp(key, "log")) return log_path = value, 0;
  nbdkit_error("%s=%s: no such key, or a queue that is neither elevator nor fcfs", key, value);
  return -1;
}

static int disk_config_complete(void) {
  size -= size % BLOCK;
  if (!span) span = size;
  if (size <= 0 || span <= 0 || span > disk_bytes) return nbdkit_error("size and span are above 0, and span at most disk"), -1;
  if (!rpm || !rate_mb || !bus_mb) return nbdkit_error("rpm, rate-mb and bus-mb are at least 1"), -1;
  if (!segments || segments > MOST_SEGMENTS) return nbdkit_error("segments: 1 to %d", MOST_SEGMENTS), -1;
  if (write_cache < BLOCK || write_cache / BLOCK >= MOST_DIRTY)
    return nbdkit_error("write-cache: %d to %d bytes", BLOCK, (MOST_DIRTY - 1) * BLOCK), -1;
  if (cache - write_cache < (int64_t)segments * RUN)
    return nbdkit_error("cache: write-cache and %d bytes for each segment at least", RUN), -1;
  turn_ns = 60000000000ull / rpm;
  track_bytes = rate_mb * turn_ns / 1000 / SECTOR * SECTOR;
  return 0;
}

static int disk_get_ready(void) {
  memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nbdkit_error("memory for %jd bytes: %m", (intmax_t)size), -1;
  if (log_path && !(modelled = fopen(log_path, "w"))) return nbdkit_error("log=%s: %m", log_path), -1;
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&work, &monotonic);
  pthread_cond_init(&changed, NULL);
  return 0;
}

static int disk_after_fork(void) {
  return pthread_create(&arm_thread, NULL, arm, NULL) ? (nbdkit_error("no thread for the arm"), -1) : 0;
}

static void disk_cleanup(void) {
  pthread_mutex_lock(&lock);
  is_ending = 1;
  pthread_cond_signal(&work);
  pthread_mutex_unlock(&lock);
  pthread_join(arm_thread, NULL);
  if (modelled) fclose(modelled);
}

static void *disk_open(int is_readonly) { return NBDKIT_HANDLE_NOT_NEEDED; }
static int64_t disk_get_size(void *handle) { return size; }
static int disk_yes(void *handle) { return 1; }
static int disk_can_fua(void *handle) { return NBDKIT_FUA_NATIVE; }

static struct nbdkit_plugin plugin = {
    .name = "disk",
    .description = "model of a hard disk",
    .config = disk_config,
    .config_complete = disk_config_complete,
    .config_help = "size, span, disk, cache, write-cache=BYTES; rate-mb, bus-mb=MB/s; rpm, segments=N; queue=elevator|fcfs; log=FILE;\n"
                   "command-us, hit-us, track-seek-us, root-seek-us, linear-seek-us=US",
    .get_ready = disk_get_ready,
    .after_fork = disk_after_fork,
    .cleanup = disk_cleanup,
    .open = disk_open,
    .get_size = disk_get_size,
    .can_multi_conn = disk_yes,
    .can_flush = disk_yes,
    .can_trim = disk_yes,
    .can_fua = disk_can_fua,
    .pread = disk_pread,
    .pwrite = disk_pwrite,
    .flush = disk_flush,
    .trim = disk_trim,
};
NBDKIT_REGISTER_PLUGIN(plugin)
