/*
 * Records the pages that a program references: a plugin of QEMU's user-mode emulation (qemu-user, 7.2 or newer).
 *
 *   qemu-x86_64 -plugin references.so,folder=DIR[,code=on][,misses_of=BYTES] PROGRAM ...
 *
 * A list of the 32 pages used last absorbs nearly all references. A page that is not in the list enters it, and the
 * page used least recently leaves it; each such exchange is one record of 16 bytes. The order of leaving is the order
 * of recency, so the reader (simulator/src/references/records) computes exact stack distances. Each thread has a list.
 * Nearly all of the recording's time is spent in access_counted, or access_data in programs with several threads.
 *
 * DIR gets the file `control` (counters of all processes) and files with the records, one after the other for each
 * thread. They are written through mappings, so a killed program loses nothing but its lists, and no descriptor stays
 * open, since the program may close all of them. A forked process inherits `control`, and writes files of its own.
 *
 * The declarations below are our own, after the documented interface of QEMU's plugins.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- Interface of QEMU -------------------------------------------------------------------------------------- */

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info {
	const char *target_name;
	struct {
		int min, cur;
	} version;
	bool system_emulation;
};
enum { NO_REGISTERS = 0 };
enum { LOADS_AND_STORES = 3 }; /* 7.2 confuses its filters for one of them */
enum { ADD = 0 };

typedef void on_vcpu(plugin_id, unsigned vcpu);
typedef void on_translation(plugin_id, struct qemu_plugin_tb *);
typedef void on_block(unsigned vcpu, void *data);
typedef void on_access(unsigned vcpu, uint32_t info, uint64_t address, void *data);
typedef void on_call(plugin_id, unsigned, int64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
		     uint64_t);
typedef void on_return(plugin_id, unsigned vcpu, int64_t number, int64_t result);
typedef void on_end(plugin_id, void *data);

void qemu_plugin_register_vcpu_init_cb(plugin_id, on_vcpu *);
void qemu_plugin_register_vcpu_exit_cb(plugin_id, on_vcpu *);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, on_translation *);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, on_block *, int flags, void *data);
/* QEMU 7.2 to 8.2: adds to one counter for all threads, without a call. */
__attribute__((weak)) void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int operation,
								    void *counter, uint64_t number);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, on_access *, int flags, int accesses, void *data);
void qemu_plugin_register_vcpu_syscall_cb(plugin_id, on_call *);
void qemu_plugin_register_vcpu_syscall_ret_cb(plugin_id, on_return *);
void qemu_plugin_register_atexit_cb(plugin_id, on_end *, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
unsigned qemu_plugin_mem_size_shift(uint32_t info);
bool qemu_plugin_mem_is_store(uint32_t info);

#define EXPORTED __attribute__((visibility("default")))
/* QEMU reads the version after the constructor has run. QEMU 9 refuses version 1, and 7.2 knows no other; the functions
 * above are the same in both. */
EXPORTED int qemu_plugin_version = 1;
__attribute__((constructor)) static void choose_version(void)
{
	if (dlsym(RTLD_DEFAULT, "qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu"))
		qemu_plugin_version = 2;
}

/* --- Files -------------------------------------------------------------------------------------------------- */

#define MAGIC "GLNRREC2"
enum {
	PLACES = 32,
	HINTS = 4096,
	PAGE_SHIFT = 12,
	PAGE_BITS = 36,
	MOST_VCPUS = 1 << 16,
	FIRST_FILE_BYTES = 1 << 16,
	LARGEST_FILE_BYTES = 1 << 22,
	WINDOW_INSTRUCTIONS = 1 << 20,
};
/* Kinds of records. EXCHANGE: a page enters and another leaves. WINDOWS: `enter` windows of instructions have passed.
 * TOUCH: first reference in a window to a page of the list. MORE: `enter` × 65,536 further references to the page that
 * leaves in the next record. FREE: `leave` pages from `enter` on are freed. */
enum { EXCHANGE, ENTER, LEAVE, TOUCH, WINDOWS, MORE, FREE };

/* Counters of all processes. */
struct control {
	char magic[8];
	_Atomic uint64_t sequence, files, processes, ended, replaced, instructions, references, lost;
	_Atomic int64_t error; /* errno of the first file that could not be made */
	uint64_t is_misses, cache_bytes, has_code;
};

struct file {
	char magic[8];
	uint32_t process, vcpu;
	_Atomic uint64_t used;
	uint64_t unused[5];
	uint64_t records[][2];
};

static struct control *control;
static char folder[4000];
static uint32_t process;
static bool has_code;
static uint64_t cache_bytes;

/* --- Caches in front of the list, for recordings of misses: least recently used, two ways -------------------- */

enum { FIRST_LEVEL_BYTES = 32 << 10, FIRST_LINE_SHIFT = 5, SECOND_LINE_SHIFT = 7 };
struct cache {
	uint64_t (*sets)[2];
	uint64_t mask;
};

static struct cache cache_of(uint64_t bytes, int line_shift)
{
	struct cache cache = { .mask = (bytes >> line_shift) / 2 - 1 };
	cache.sets = calloc(cache.mask + 1, sizeof *cache.sets);
	return cache;
}

static inline bool misses(struct cache *cache, uint64_t line)
{
	uint64_t *set = cache->sets[line & cache->mask];
	line++; /* 0 is an empty way */
	if (set[0] == line)
		return false;
	bool is_miss = set[1] != line;
	set[1] = set[0];
	set[0] = line;
	return is_miss;
}

/* --- List of a thread ---------------------------------------------------------------------------------------- */

#define UNTOUCHED (1ull << 63) /* flag of a key: no reference in this window so far */
#define NO_PAGE UINT64_MAX

/* A page of the list, in half a line of the processor's cache. `used` is the clock at the last reference; loads and
 * stores are counted apart, so that a store costs no more than a load and marks the page as written. */
enum { LOAD, STORE };
struct place {
	uint64_t key, used, count[2];
};

struct list {
	struct place places[PLACES];
	uint64_t clock, instructions, window_end; /* the clock counts references */
	uint16_t hint[HINTS]; /* offset of the place of the last page with these low bits */
	uint64_t reported_clock, reported_instructions;
	struct file *file;
	uint64_t records, capacity;
	unsigned files;
	bool is_lost;
	struct cache data, code, second;
	uint64_t remapped[3]; /* arguments of the thread's last mremap */
};
/* Accesses by QEMU's number for their kind, and lists by thread: all that the callback of an access reads, at one
 * address that it gets as an argument. QEMU keeps the layout of the number for itself, so it is asked for all numbers
 * once. They have 18 bits so far. */
enum { ACCESS_KINDS = 1 << 18 };
static struct shared {
	struct {
		uint8_t further_bytes, is_store;
	} accesses[ACCESS_KINDS];
	struct list *lists[MOST_VCPUS];
	/* Counted by QEMU: instructions of the only thread that are not in its list yet, and their number at the window's
	 * end. */
	uint64_t instructions, window_end;
} shared;
/* True while a process has one thread: QEMU then counts its instructions, which saves a call for each block. */
static bool is_counted_by_qemu;
static unsigned lists_end;

static void lose(struct list *list, int error)
{
	int64_t none = 0;
	atomic_compare_exchange_strong(&control->error, &none, error);
	atomic_fetch_add(&control->lost, 1);
	list->is_lost = true;
	list->file = NULL;
}

static size_t file_bytes(const struct list *list)
{
	return sizeof(struct file) + list->capacity * 16;
}

/* Begins the list's next file. The disk's blocks are allocated, since a mapped file on a full disk is a SIGBUS. */
static void begin_file(struct list *list, unsigned vcpu)
{
	char path[sizeof folder + 32];
	size_t bytes = list->files < 6 ? (size_t)FIRST_FILE_BYTES << list->files : LARGEST_FILE_BYTES;
	if (list->file)
		munmap(list->file, file_bytes(list));
	snprintf(path, sizeof path, "%s/%012llx", folder, (unsigned long long)atomic_fetch_add(&control->files, 1));
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return lose(list, errno);
	int error = posix_fallocate(fd, 0, bytes);
	struct file *file = error ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!error && file == MAP_FAILED)
		error = errno;
	close(fd);
	if (error)
		return lose(list, error);
	file->process = process;
	file->vcpu = vcpu;
	memcpy(file->magic, MAGIC, 8);
	list->file = file;
	list->files++;
	list->records = 0;
	list->capacity = (bytes - sizeof *file) / 16;
}

static void record(struct list *list, unsigned vcpu, unsigned kind, uint64_t enter, uint64_t leave, uint64_t written,
		   uint64_t count)
{
	if (list->is_lost)
		return;
	if (!list->file || list->records == list->capacity) {
		begin_file(list, vcpu);
		if (list->is_lost)
			return;
	}
	uint64_t sequence = atomic_fetch_add_explicit(&control->sequence, 1, memory_order_relaxed);
	uint64_t *words = list->file->records[list->records++];
	words[0] = enter << 28 | (sequence & 0xfffffff);
	words[1] = leave << 28 | (sequence >> 28 & 0xff) << 20 | (uint64_t)kind << 17 | written << 16 | (count & 0xffff);
	atomic_store_explicit(&list->file->used, list->records, memory_order_release);
}

static void empty(struct list *list)
{
	memset(list->hint, 0, sizeof list->hint);
	for (int i = 0; i < PLACES; i++)
		list->places[i] = (struct place){ .key = NO_PAGE };
}

static struct place *oldest(struct list *list)
{
	struct place *oldest = list->places;
	for (struct place *place = oldest + 1; place < list->places + PLACES; place++)
		if (place->used < oldest->used)
			oldest = place;
	return oldest;
}

/* Records that a page leaves the list, for one that enters (EXCHANGE), or alone (LEAVE). */
static void record_leaving(struct list *list, unsigned vcpu, unsigned kind, uint64_t enter, const struct place *place)
{
	uint64_t leaves = place->key & ~UNTOUCHED, count = place->count[LOAD] + place->count[STORE];
	if (count >> 16)
		record(list, vcpu, MORE, count >> 16, leaves, 0, 0);
	record(list, vcpu, kind, enter, leaves, place->count[STORE] > 0, count);
}

/* A reference to a page that is not in the list, or not yet in this window. */
static __attribute__((noinline)) void reference_other(struct list *list, unsigned vcpu, uint64_t page, bool is_write)
{
	struct place *place = list->places, *end = place + PLACES;
	while (place < end && (place->key & ~UNTOUCHED) != page)
		place++;
	if (place == end) {
		place = oldest(list);
		if (place->key == NO_PAGE)
			record(list, vcpu, ENTER, page, 0, 0, 0);
		else
			record_leaving(list, vcpu, EXCHANGE, page, place);
		place->count[LOAD] = place->count[STORE] = 0;
	} else if (place->key & UNTOUCHED) {
		record(list, vcpu, TOUCH, page, 0, 0, 0);
	}
	place->key = page;
	place->used = list->clock;
	place->count[is_write]++;
	list->hint[page % HINTS] = (char *)place - (char *)list;
}

/* Place of the page, if it is in the list and no other page with the same low bits came after it. */
static inline struct place *hinted(struct list *list, uint64_t page)
{
	return (struct place *)((char *)list + list->hint[page % HINTS]);
}

static inline void reference(struct list *list, unsigned vcpu, uint64_t page, bool is_write)
{
	struct place *place = hinted(list, page);
	if (__builtin_expect(place->key == page, 1)) {
		place->used = list->clock;
		place->count[is_write]++;
		return;
	}
	if (__builtin_expect(page >> PAGE_BITS, 0))
		return lose(list, EOVERFLOW);
	reference_other(list, vcpu, page, is_write);
}

/* Empties the list into the records, the least recently used page first. */
static void flush(struct list *list, unsigned vcpu)
{
	for (int i = 0; i < PLACES; i++) {
		struct place *place = oldest(list);
		if (place->key != NO_PAGE)
			record_leaving(list, vcpu, LEAVE, 0, place);
		place->key = NO_PAGE;
		place->used = UINT64_MAX;
	}
	empty(list);
}

static uint64_t pages_of(uint64_t bytes)
{
	return (bytes >> PAGE_SHIFT) + (bytes % (1 << PAGE_SHIFT) != 0);
}

/* Frees pages: the program no longer has them, or they are zeroes from now on. Other threads' lists keep them. */
static void free_pages(struct list *list, unsigned vcpu, uint64_t address, uint64_t bytes)
{
	uint64_t first = address >> PAGE_SHIFT, count = pages_of(bytes);
	if (address % (1 << PAGE_SHIFT) || !count || first >> PAGE_BITS || count >> PAGE_BITS)
		return;
	for (struct place *place = list->places; place < list->places + PLACES; place++) {
		if (place->key == NO_PAGE || (place->key & ~UNTOUCHED) - first >= count)
			continue;
		record_leaving(list, vcpu, LEAVE, 0, place);
		*place = (struct place){ .key = NO_PAGE };
	}
	record(list, vcpu, FREE, first, count, 0, 0);
}

/* Adds the instructions that QEMU has counted to the only thread's list. */
static void add_instructions(struct list *list)
{
	list->instructions += shared.instructions;
	shared.instructions = 0;
	shared.window_end = list->window_end > list->instructions ? list->window_end - list->instructions : 0;
}

static void report(struct list *list)
{
	atomic_fetch_add(&control->instructions, list->instructions - list->reported_instructions);
	atomic_fetch_add(&control->references, list->clock - list->reported_clock);
	list->reported_clock = list->clock;
	list->reported_instructions = list->instructions;
}

static void end_window(struct list *list, unsigned vcpu)
{
	add_instructions(list);
	uint64_t windows = (list->instructions - list->window_end) / WINDOW_INSTRUCTIONS + 1;
	list->window_end += windows * WINDOW_INSTRUCTIONS;
	add_instructions(list);
	for (int i = 0; i < PLACES; i++)
		list->places[i].key |= UNTOUCHED; /* NO_PAGE has the flag already */
	record(list, vcpu, WINDOWS, windows, 0, 0, 0);
	report(list);
}

/* --- Callbacks ------------------------------------------------------------------------------------------------ */

static inline void access_lines(struct list *list, unsigned vcpu, struct cache *first, uint64_t address, uint64_t bytes,
				bool is_write)
{
	uint64_t last = (address + bytes - 1) >> FIRST_LINE_SHIFT;
	for (uint64_t line = address >> FIRST_LINE_SHIFT; line <= last; line++)
		if (misses(first, line) && misses(&list->second, line >> (SECOND_LINE_SHIFT - FIRST_LINE_SHIFT)))
			reference(list, vcpu, line >> (PAGE_SHIFT - FIRST_LINE_SHIFT), is_write);
}

static void access_cache(unsigned vcpu, uint32_t info, uint64_t address, void *data)
{
	(void)data;
	struct list *list = shared.lists[vcpu];
	list->clock++;
	access_lines(list, vcpu, &list->data, address, 1ull << qemu_plugin_mem_size_shift(info),
		     qemu_plugin_mem_is_store(info));
}

static __attribute__((noinline)) void access_other(unsigned vcpu, uint32_t info, uint64_t address)
{
	struct list *list = shared.lists[vcpu];
	bool is_write = qemu_plugin_mem_is_store(info);
	uint64_t last = address + (1ull << qemu_plugin_mem_size_shift(info)) - 1;
	for (uint64_t page = address >> PAGE_SHIFT; page <= last >> PAGE_SHIFT; page++)
		reference(list, vcpu, page, is_write);
}

static void describe_accesses(void)
{
	for (uint32_t info = 0; info < ACCESS_KINDS; info++) {
		unsigned shift = qemu_plugin_mem_size_shift(info);
		shared.accesses[info].further_bytes = shift < 8 ? (1u << shift) - 1 : UINT8_MAX; /* QEMU has none above 64 bytes */
		shared.accesses[info].is_store = qemu_plugin_mem_is_store(info);
	}
}

/* The common case of an access calls nothing, and a store runs as a load does. Returns false in all other cases. */
static inline __attribute__((always_inline)) bool is_common(unsigned vcpu, uint32_t info, uint64_t address,
							    const struct shared *shared)
{
	struct list *list = shared->lists[vcpu];
	uint64_t page = address >> PAGE_SHIFT;
	struct place *place = hinted(list, page);
	list->clock++;
	if (__builtin_expect(info >= ACCESS_KINDS || place->key != page, 0))
		return false;
	if (__builtin_expect((address + shared->accesses[info].further_bytes) >> PAGE_SHIFT != page, 0))
		return false;
	place->used = list->clock;
	place->count[shared->accesses[info].is_store]++;
	return true;
}

static void access_data(unsigned vcpu, uint32_t info, uint64_t address, void *data)
{
	if (!is_common(vcpu, info, address, data))
		access_other(vcpu, info, address);
}

static __attribute__((noinline)) void access_next_window(unsigned vcpu, uint32_t info, uint64_t address, void *data)
{
	end_window(shared.lists[vcpu], vcpu);
	access_data(vcpu, info, address, data);
}

/* The same while QEMU counts the instructions, which it does at the begin of each block, before its accesses. */
static void access_counted(unsigned vcpu, uint32_t info, uint64_t address, void *data)
{
	const struct shared *shared = data;
	if (__builtin_expect(shared->instructions >= shared->window_end, 0))
		return access_next_window(vcpu, info, address, data);
	if (!is_common(vcpu, info, address, data))
		access_other(vcpu, info, address);
}

struct block {
	uint64_t instructions, address, bytes;
};

static void run_code(unsigned vcpu, void *data)
{
	const struct block *block = data;
	struct list *list = shared.lists[vcpu];
	if (cache_bytes) {
		access_lines(list, vcpu, &list->code, block->address, block->bytes, false);
	} else {
		uint64_t last = (block->address + block->bytes - 1) >> PAGE_SHIFT;
		for (uint64_t page = block->address >> PAGE_SHIFT; page <= last; page++)
			reference(list, vcpu, page, false);
	}
	list->instructions += block->instructions;
	if (list->instructions >= list->window_end)
		end_window(list, vcpu);
}

static void run(unsigned vcpu, void *data)
{
	struct list *list = shared.lists[vcpu];
	list->instructions += (uintptr_t)data;
	if (__builtin_expect(list->instructions >= list->window_end, 0))
		end_window(list, vcpu);
}

static void translate(plugin_id id, struct qemu_plugin_tb *tb)
{
	(void)id;
	size_t instructions = qemu_plugin_tb_n_insns(tb);
	if (has_code || cache_bytes) {
		/* Blocks are translated again and again in few programs; the memory lives as long as the process. */
		struct block *block = malloc(sizeof *block);
		struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, instructions - 1);
		block->instructions = instructions;
		block->address = qemu_plugin_tb_vaddr(tb);
		block->bytes = qemu_plugin_insn_vaddr(last) + qemu_plugin_insn_size(last) - block->address;
		qemu_plugin_register_vcpu_tb_exec_cb(tb, run_code, NO_REGISTERS, block);
	} else if (is_counted_by_qemu) {
		qemu_plugin_register_vcpu_tb_exec_inline(tb, ADD, &shared.instructions, instructions);
	} else {
		qemu_plugin_register_vcpu_tb_exec_cb(tb, run, NO_REGISTERS, (void *)(uintptr_t)instructions);
	}
	on_access *access = cache_bytes ? access_cache : is_counted_by_qemu ? access_counted : access_data;
	for (size_t i = 0; i < instructions; i++)
		qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), access, NO_REGISTERS, LOADS_AND_STORES,
						 &shared);
}

/* Before a process has its second thread, QEMU translates all blocks anew, since they need atomic instructions then. */
static void count_by_calls(struct list *list)
{
	add_instructions(list);
	is_counted_by_qemu = false;
	shared.window_end = UINT64_MAX;
}

static void begin_thread(plugin_id id, unsigned vcpu)
{
	(void)id;
	if (vcpu >= MOST_VCPUS) {
		fprintf(stderr, "references.so: more than %d threads at a time\n", MOST_VCPUS);
		_exit(125);
	}
	/* A thread that has ended leaves its list, empty, to the next one with its number. */
	if (shared.lists[vcpu])
		return;
	/* Whole lines of the processor's cache. */
	struct list *list = aligned_alloc(64, (sizeof *list + 63) / 64 * 64);
	memset(list, 0, sizeof *list);
	empty(list);
	list->window_end = WINDOW_INSTRUCTIONS;
	if (!lists_end)
		add_instructions(list);
	if (cache_bytes) {
		list->data = cache_of(FIRST_LEVEL_BYTES, FIRST_LINE_SHIFT);
		list->code = cache_of(FIRST_LEVEL_BYTES, FIRST_LINE_SHIFT);
		list->second = cache_of(cache_bytes, SECOND_LINE_SHIFT);
	}
	shared.lists[vcpu] = list;
	if (vcpu >= lists_end)
		lists_end = vcpu + 1;
}

static void end_thread(plugin_id id, unsigned vcpu)
{
	(void)id;
	struct list *list = shared.lists[vcpu];
	add_instructions(list);
	if (list->instructions >= list->window_end)
		end_window(list, vcpu);
	flush(list, vcpu);
	report(list);
}

static void end_process(plugin_id id, void *data)
{
	(void)data;
	for (unsigned vcpu = 0; vcpu < lists_end; vcpu++)
		if (shared.lists[vcpu])
			end_thread(id, vcpu);
	if (lists_end && control->processes > 1) /* for the others */
		free_pages(shared.lists[0], 0, 0, ((1ull << PAGE_BITS) - 1) << PAGE_SHIFT);
	atomic_fetch_add(&control->ended, 1);
}

/* In the child of a fork: another process number, and files of its own. */
static void begin_child(void)
{
	process = atomic_fetch_add(&control->processes, 1);
	for (unsigned vcpu = 0; vcpu < lists_end; vcpu++) {
		struct list *list = shared.lists[vcpu];
		if (!list)
			continue;
		if (list->file)
			munmap(list->file, file_bytes(list));
		list->file = NULL;
		list->files = 0;
		list->is_lost = false;
		empty(list);
		/* The parent reports what was counted before. */
		add_instructions(list);
		list->reported_clock = list->clock;
		list->reported_instructions = list->instructions;
	}
}

/* Numbers of system calls: x86-64's, and those of all newer architectures. A process leaves the emulation by execve and
 * execveat. QEMU lacks clone3. */
struct calls {
	int64_t map, unmap, remap, advise, brk, clone, exec, exec_at;
};
static const struct calls X86_64 = { 9, 11, 25, 28, 12, 56, 59, 322 };
static const struct calls NEWER = { 222, 215, 216, 233, 214, 220, 221, 281 };
static struct calls calls;
static uint64_t program_break;

static bool is_exec(int64_t number)
{
	return number == calls.exec || number == calls.exec_at;
}

static void call(plugin_id id, unsigned vcpu, int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
		 uint64_t f, uint64_t g, uint64_t h)
{
	(void)e, (void)f, (void)g, (void)h;
	struct list *list = shared.lists[vcpu];
	/* QEMU runs a vfork as a fork. */
	if (number == calls.clone && (a & (CLONE_VM | CLONE_VFORK)) == CLONE_VM)
		count_by_calls(list);
	if (number == calls.unmap || (number == calls.map && d & MAP_FIXED) ||
	    (number == calls.advise && (c == MADV_DONTNEED || c == MADV_FREE)))
		free_pages(list, vcpu, a, b);
	if (number == calls.remap)
		memcpy(list->remapped, (uint64_t[]){ a, b, c }, sizeof list->remapped);
	if (!is_exec(number))
		return;
	end_thread(id, vcpu);
	atomic_fetch_add(&control->replaced, 1);
}

/* After mremap: the former place of pages that were moved, and the contents of their new place before; or the end that
 * was cut off. Pages that were moved are new ones. */
static void free_remapped(struct list *list, unsigned vcpu, uint64_t to)
{
	uint64_t from = list->remapped[0], before = list->remapped[1], now = list->remapped[2];
	if (to != from) {
		free_pages(list, vcpu, from, before);
		free_pages(list, vcpu, to, now);
	} else if (now < before) {
		uint64_t kept = pages_of(now) << PAGE_SHIFT;
		if (kept < before)
			free_pages(list, vcpu, to + kept, before - kept);
	}
}

static void answer(plugin_id id, unsigned vcpu, int64_t number, int64_t result)
{
	(void)id;
	struct list *list = shared.lists[vcpu];
	if (is_exec(number))
		atomic_fetch_sub(&control->replaced, 1);
	if (number == calls.remap && (result >= 0 || result < -4095)) /* an errno is at most 4095 */
		free_remapped(list, vcpu, result);
	if (number == calls.brk) {
		uint64_t kept = pages_of(result) << PAGE_SHIFT;
		if (kept < program_break)
			free_pages(list, vcpu, kept, program_break - kept);
		program_break = result;
	}
}

static int refuse(const char *fault, const char *detail)
{
	fprintf(stderr, "references.so: %s%s\n", fault, detail);
	return -1;
}

static int begin_control(void)
{
	char path[sizeof folder + 16];
	snprintf(path, sizeof path, "%s/control", folder);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int error = fd < 0 ? errno : posix_fallocate(fd, 0, sizeof *control);
	if (error)
		return refuse("cannot make control in the folder: ", strerror(error));
	control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (control == MAP_FAILED)
		return refuse("cannot map control: ", strerror(errno));
	control->is_misses = cache_bytes != 0;
	control->cache_bytes = cache_bytes;
	control->has_code = has_code;
	control->processes = 1;
	memcpy(control->magic, MAGIC, 8);
	return 0;
}

EXPORTED int qemu_plugin_install(plugin_id id, const struct qemu_info *info, int count, char **settings)
{
	for (int i = 0; i < count; i++) {
		const char *setting = settings[i];
		if (!strncmp(setting, "folder=", 7) && strlen(setting + 7) < sizeof folder)
			strcpy(folder, setting + 7);
		else if (!strcmp(setting, "code=on"))
			has_code = true;
		else if (!strncmp(setting, "misses_of=", 10))
			cache_bytes = strtoull(setting + 10, NULL, 10);
		else
			return refuse("unknown or too long setting: ", setting);
	}
	if (folder[0] != '/')
		return refuse("folder= is no absolute path", "");
	if (info->system_emulation)
		return refuse("only programs are recorded, no systems: ", info->target_name);
	if (cache_bytes && (cache_bytes & (cache_bytes - 1) || cache_bytes < 4096 || cache_bytes > 1ull << 32))
		return refuse("misses_of= is no power of two from 4096 to 4294967296", "");
	calls = strcmp(info->target_name, "x86_64") ? NEWER : X86_64;
	is_counted_by_qemu = qemu_plugin_register_vcpu_tb_exec_inline && !has_code && !cache_bytes;
	describe_accesses();
	if (begin_control() || pthread_atfork(NULL, NULL, begin_child))
		return -1;
	qemu_plugin_register_vcpu_init_cb(id, begin_thread);
	qemu_plugin_register_vcpu_exit_cb(id, end_thread);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	qemu_plugin_register_vcpu_syscall_cb(id, call);
	qemu_plugin_register_vcpu_syscall_ret_cb(id, answer);
	qemu_plugin_register_atexit_cb(id, end_process, NULL);
	return 0;
}
