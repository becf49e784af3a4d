/* Allocation with an error message, and a countdown by which a test reaches every failure path.
 *
 * Large blocks come from the kernel and return to it at once. An allocator would keep such blocks
 * in the heap of the freeing thread, where other threads cannot use them. It would copy a block to
 * grow it. Untouched memory costs nothing, so tables may have room to grow. */
#include "base/mem.h"
#include "base/err.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GROUP_PATH = 4096 };

static atomic_long asked;
static atomic_long fail_at;
static atomic_ullong pretended; /* 0: nothing is */

static atomic_uint inside, came_out; /* threads in the allocator; number of returns from it */

static void enter(void)
{
	atomic_fetch_add_explicit(&inside, 1, memory_order_relaxed);
}

static void *leave(void *p)
{
	atomic_fetch_add_explicit(&came_out, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&inside, 1, memory_order_relaxed);
	return p;
}

bool vv_mem_is_inside(unsigned *outs)
{
	*outs = atomic_load(&came_out);
	return atomic_load(&inside) != 0;
}

/* Precedes every block. */
struct mem_head {
	size_t mapped; /* bytes mapped for it, including this head; 0: from the allocator */
	union {
		size_t len;         /* bytes requested from the allocator, including this head */
		struct mem_head *next;  /* in the list of kept blocks */
	};
};

static struct mem_head *head_of(void *p)
{
	return (struct mem_head *)p - 1;
}

/* Blocks from this size on are large. Sanitizers know only the allocator's blocks, so there they
 * never are. */
static size_t large(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return SIZE_MAX;
#else
	return 256 << 10;
#endif
}

static size_t whole_pages(size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (n + page - 1) & ~(page - 1);
}

/* Blocks that the kernel refuses to unmap. Unmapping would split a mapping, and a program with
 * scattered write-protected memory may have reached its limit of mappings. Such a block keeps only
 * its first page and is used again. No thread waits for the lock: if it is taken, the thread
 * proceeds without a kept block. */
static struct mem_head *_Atomic kept;
static pthread_mutex_t keeping = PTHREAD_MUTEX_INITIALIZER;

/* p and n are multiples of a page. */
static void unmap(void *p, size_t n)
{
	struct mem_head *h = p;

	if (munmap(p, n) == 0 || madvise(p, n, MADV_DONTNEED) < 0 || pthread_mutex_trylock(&keeping) != 0)
		return;
	*h = (struct mem_head){ .mapped = n, .next = kept };
	kept = h;
	pthread_mutex_unlock(&keeping);
}

/* Takes a kept block of at least n bytes; tries to unmap all others again. */
static struct mem_head *kept_block(size_t n)
{
	struct mem_head *list, *found = NULL;

	if (!kept || pthread_mutex_trylock(&keeping) != 0)
		return NULL;
	list = kept;
	kept = NULL;
	while (list) {
		struct mem_head *h = list;

		list = h->next;
		if (!found && h->mapped >= n) {
			found = h;
		} else if (munmap(h, h->mapped) < 0) {
			h->next = kept;
			kept = h;
		}
	}
	pthread_mutex_unlock(&keeping);
	return found;
}

static struct mem_head *mapped(size_t n)
{
	size_t len = whole_pages(n);
	struct mem_head *h = kept_block(len);
	void *at = h ? h : mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	len = h ? h->mapped : len;
	h = at;
	*h = (struct mem_head){ .mapped = len };
	return h;
}

/* Resizes a large block to n bytes, including its head. A block that is not one mapping any more,
 * because of madvise on a part of it, cannot be resized. */
static struct mem_head *remapped(struct mem_head *old, size_t n)
{
	size_t len = whole_pages(n), had = old->mapped;
	void *at = mremap(old, had, len, MREMAP_MAYMOVE);
	struct mem_head *h = at == MAP_FAILED ? mapped(n) : at;

	if (at == MAP_FAILED && h) {
		memcpy(h + 1, old + 1, (had < len ? had : len) - sizeof(*h));
		unmap(old, had);
	}
	if (at != MAP_FAILED)
		h->mapped = len; /* a kept block has its own size */
	return h;
}

static void give_back(struct mem_head *h)
{
	if (h->mapped) {
		unmap(h, h->mapped);
		return;
	}
	enter();
	free(h);
	leave(NULL);
}

static void *block(struct mem_head *h)
{
	return h ? h + 1 : NULL;
}

static void *zeroed(size_t bytes)
{
	size_t n = bytes + sizeof(struct mem_head);
	struct mem_head *h;

	if (n >= large())
		return block(mapped(n));
	enter();
	h = leave(calloc(1, n));
	if (h)
		h->len = n;
	return block(h);
}

/* Moves a block that becomes large to mapped memory. */
static struct mem_head *moved_out(struct mem_head *old, size_t n)
{
	struct mem_head *h = mapped(n);

	if (h && old) {
		memcpy(h + 1, old + 1, old->len - sizeof(*old));
		give_back(old);
	}
	return h;
}

static void *resized(void *p, size_t bytes)
{
	struct mem_head *old = p ? head_of(p) : NULL, *h;
	size_t n = bytes + sizeof(*old);

	if (old && old->mapped)
		return block(remapped(old, n));
	if (n >= large())
		return block(moved_out(old, n));
	enter();
	h = leave(realloc(old, n));
	if (h)
		*h = (struct mem_head){ .len = n };
	return block(h);
}

static int refused(size_t n, size_t size)
{
	long k = atomic_fetch_add_explicit(&asked, 1, memory_order_relaxed) + 1;
	long at = atomic_load_explicit(&fail_at, memory_order_relaxed);

	return (at && k == at) || (size && n > (SIZE_MAX / 2) / size);
}

static void *checked(void *p, size_t n, size_t size)
{
	if (!p)
		vv_err_set(VV_ENOMEM, "out of memory (%zu x %zu bytes wanted)", n, size);
	return p;
}

void *vv_mem_new(size_t n, size_t size)
{
	return checked(refused(n, size) ? NULL : zeroed(n * size), n, size);
}

void *vv_mem_grow(void *p, size_t n, size_t size)
{
	return checked(refused(n, size) ? NULL : resized(p, n * size), n, size);
}

int vv_mem_room(void *v, size_t n, size_t *cap, size_t size)
{
	size_t want = *cap ? *cap * 2 : 16;
	void *p;

	if (n < *cap)
		return 0;
	memcpy(&p, v, sizeof(p));
	p = vv_mem_grow(p, want, size);
	if (!p)
		return VV_ENOMEM;
	memcpy(v, &p, sizeof(p));
	*cap = want;
	return 0;
}

char *vv_mem_strdup(const char *s)
{
	size_t n = strlen(s) + 1;
	char *copy = vv_mem_new(n, 1);

	if (copy)
		memcpy(copy, s, n);
	return copy;
}

char *vv_mem_printf(const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	s = vv_mem_new((size_t)(n < 0 ? 0 : n) + 1, 1);
	if (!s || n < 0)
		return s;
	va_start(ap, fmt);
	vsnprintf(s, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return s;
}

void vv_mem_free(void *p)
{
	if (p)
		give_back(head_of(p));
}

void *vv_mem_lend(void *unused, size_t n)
{
	(void)unused;
	return resized(NULL, n);
}

void vv_mem_take_back(void *unused, void *p)
{
	(void)unused;
	vv_mem_free(p);
}

void *vv_mem_map(size_t n)
{
	void *p = refused(n, 1) ? MAP_FAILED : mmap(NULL, n ? n : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return checked(p == MAP_FAILED ? NULL : p, n, 1);
}

void *vv_mem_map_wide(size_t n)
{
	void *p = vv_mem_map(n);

	if (p)
		(void)madvise(p, n, MADV_HUGEPAGE); /* failure only makes access slower */
	return p;
}

void vv_mem_widen(void *p, size_t n)
{
	enum { LARGE = 4 << 20 }; /* contains a large page for any start address */
	struct mem_head *h = p ? head_of(p) : NULL;

	if (h && n >= LARGE && h->mapped)
		/* the whole block, so that it stays one mapping */
		(void)madvise(h, h->mapped, MADV_HUGEPAGE);
}

void vv_mem_populate(void *p, size_t n)
{
	/* fails on Linux before 5.14: pages then come at first access */
	(void)madvise(p, n, MADV_POPULATE_WRITE);
}

void vv_mem_unmap(void *p, size_t n)
{
	if (p)
		unmap(p, whole_pages(n ? n : 1));
}

void vv_mem_discard(void *p, size_t n)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = ((uintptr_t)p + page - 1) & ~(page - 1), end = ((uintptr_t)p + n) & ~(page - 1);

	if (begin < end)
		(void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* The number behind `name` in a file of lines; the first number if name is empty. UINT64_MAX:
 * none. */
static uint64_t number_in(const char *path, const char *name)
{
	char line[256];
	uint64_t n = UINT64_MAX;
	FILE *f = fopen(path, "re");

	while (f && n == UINT64_MAX && fgets(line, sizeof(line), f)) {
		char *digits = line + strlen(name), *end;

		if (strncmp(line, name, strlen(name)) != 0)
			continue;
		n = strtoull(digits, &end, 10);
		n = end == digits ? UINT64_MAX : n;
	}
	if (f)
		fclose(f);
	return n;
}

uint64_t vv_mem_left_in_group(const char *group)
{
	static const char *const reclaimable[] = { "inactive_file ", "active_file ", "slab_reclaimable " };
	char path[GROUP_PATH + 32];
	uint64_t most, used;

	snprintf(path, sizeof(path), "%s/memory.max", group);
	most = number_in(path, "");
	snprintf(path, sizeof(path), "%s/memory.current", group);
	used = number_in(path, "");
	if (most == UINT64_MAX || used == UINT64_MAX)
		return UINT64_MAX;
	snprintf(path, sizeof(path), "%s/memory.stat", group);
	for (size_t i = 0; i < sizeof(reclaimable) / sizeof(reclaimable[0]); i++) {
		uint64_t n = number_in(path, reclaimable[i]);

		used -= n < used ? n : 0;
	}
	return used < most ? most - used : 1; /* 0 means unknown */
}

/* The least memory that any control group of this process leaves. */
static uint64_t left_in_groups(void)
{
	char line[GROUP_PATH - 32] = "", path[GROUP_PATH];
	uint64_t least = UINT64_MAX;
	FILE *f = fopen("/proc/self/cgroup", "re");

	while (f && fgets(line, sizeof(line), f) && strncmp(line, "0::/", 4) != 0)
		;
	if (f)
		fclose(f);
	if (strncmp(line, "0::/", 4) != 0)
		return least;
	line[strcspn(line, "\n")] = '\0';
	for (char *end = line + strlen(line); end > line + 3; end = strrchr(line + 3, '/')) {
		uint64_t left;

		*end = '\0';
		snprintf(path, sizeof(path), "/sys/fs/cgroup%s", line + 3);
		left = vv_mem_left_in_group(path);
		least = left < least ? left : least;
	}
	return least;
}

uint64_t vv_mem_available(void)
{
	uint64_t said = atomic_load_explicit(&pretended, memory_order_relaxed), kib, least;

	if (said)
		return said;
	kib = number_in("/proc/meminfo", "MemAvailable:");
	least = left_in_groups();
	if (kib == UINT64_MAX)
		return least == UINT64_MAX ? 0 : least;
	return kib << 10 < least ? kib << 10 : least;
}

int vv_mem_check_available(uint64_t n, uint64_t *available)
{
	if (n <= VV_MEM_SMALL)
		return 0;
	if (!*available)
		*available = vv_mem_available();
	if (!*available)
		*available = UINT64_MAX;
	if (n <= *available)
		return 0;
	return vv_err_set(VV_ENOMEM, "out of memory (%" PRIu64 " MiB wanted, %" PRIu64 " MiB available)", n >> 20, *available >> 20);
}

void vv_mem_pretend_available(uint64_t n)
{
	atomic_store(&pretended, n);
}

void vv_mem_fail_at(long n)
{
	atomic_store(&asked, 0);
	atomic_store(&fail_at, n);
}

long vv_mem_asked(void)
{
	return atomic_load(&asked);
}

void vv_mem_zero(void *p, size_t n)
{
	enum { PAGE = 4096 };
	uint8_t *at = p;

	for (size_t len; n; at += len, n -= len) {
		len = PAGE - (uintptr_t)at % PAGE;
		len = len < n ? len : n;
		if (at[0] || (len > 1 && memcmp(at, at + 1, len - 1) != 0))
			memset(at, 0, len);
	}
}
