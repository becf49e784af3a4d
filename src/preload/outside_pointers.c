#include "preload/outside_pointers.h"
#include "base/env.h"
#include "base/log.h"
#include "base/search.h"
#include "engine/run_protocol.h"
#include "preload/alloc.h"
#include "track/memory.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	WINDOW = 1 << 16,
	MOST_MAPS = 1024,
	MOST_OWNERS = 16,
	MOST_OF_CHUNK = 64, /* words */
	MOST_OF_OBJECT = 1 << 20,
	MOST_OF_REGION = 1 << 24,
	MOST_OF_LOOK = 1 << 26,
};

/* Mapped memory that is not saved. */
struct outside_pointers_map {
	uintptr_t lo, hi;
	bool reserved; /* without rights: CUDA reserves such addresses, and places device memory there */
	char path[96]; /* "": memory of the C library's malloc, or reserved */
};

static struct outside_pointers_map map[MOST_MAPS]; /* ascending */
static size_t n_maps;
static char owner[MOST_OWNERS][96]; /* already reported */
static size_t n_owners;
static bool (*exempt)(uintptr_t at, uintptr_t target);

static unsigned long checkpoints, next_pass = 1;
static unsigned lane = VV_HEAP_LANES; /* position of the pass; VV_HEAP_LANES: it has ended */
static size_t offset;

static uintptr_t window[WINDOW / sizeof(uintptr_t)];
static uintptr_t window_at;
static size_t n_window;

/* Reads memory that the program may have protected, or that another thread may be unmapping.
 * Bypasses our own process_vm_readv. */
static size_t read_safely(uintptr_t at, void *out, size_t n)
{
	struct iovec to = { out, n }, from = { (void *)at, n };
	long got = syscall(SYS_process_vm_readv, getpid(), &to, 1UL, &from, 1UL, 0UL);

	return got > 0 ? (size_t)got : 0;
}

/* ---- memory that is not saved ---------------------------------------------------------------- */

/* Returns 0 if CUDA knows the memory at p: device, host or managed memory. NULL: the
 * program has not loaded CUDA. */
static int (*cuda_pointer_attribute)(void *out, int attribute, uintptr_t p);

static void find_cuda(void)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

	cuda_pointer_attribute = cuda ? (int (*)(void *, int, uintptr_t))dlsym(cuda, "cuPointerGetAttribute") : NULL;
	if (cuda)
		dlclose(cuda);
}

static bool is_of_cuda(uintptr_t p)
{
	enum { MEMORY_TYPE = 2 }; /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
	unsigned type;

	return cuda_pointer_attribute && cuda_pointer_attribute(&type, MEMORY_TYPE, p) == 0;
}

static bool is_device_or_shared(const char *path)
{
	return strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/memfd:", 7) == 0 || strncmp(path, "/SYSV", 5) == 0 || strncmp(path, "anon_inode:", 11) == 0;
}

static bool note_map(void *arg, uintptr_t lo, uintptr_t hi, const struct vv_memory_map *m)
{
	bool outside = m && is_device_or_shared(m->path), writable = m && m->mode[0] == 'r' && m->mode[1] == 'w';
	bool reserved = m && cuda_pointer_attribute && m->path[0] == 0 && m->mode[0] == '-' && m->mode[1] == '-';

	(void)arg;
	if (outside || reserved || (writable && (m->path[0] == 0 || strcmp(m->path, "[heap]") == 0))) {
		map[n_maps] = (struct outside_pointers_map){ .lo = lo, .hi = hi, .reserved = reserved };
		if (outside)
			snprintf(map[n_maps].path, sizeof(map[n_maps].path), "%s", m->path);
		n_maps++;
	}
	return n_maps < MOST_MAPS;
}

static void find_maps(void)
{
	uintptr_t end = vv_heap.records + vv_heap.records_size;
	struct vv_memory_range r[] = { { 1 << 16, vv_heap.lo, false }, { end, (uintptr_t)1 << 56, false } };

	n_maps = 0;
	find_cuda();
	vv_memory_walk(r, 2, note_map, NULL);
}

static const struct outside_pointers_map *find_map(uintptr_t p)
{
	size_t i;

	VV_SEARCH(i, 0, n_maps, map[i].hi <= p);
	return i < n_maps && p >= map[i].lo ? &map[i] : NULL;
}

/* ---- the C library's chunks: the word before one is its length with three flag bits ---------- */

enum { IN_USE = 1, MAPPED = 2, BITS = 7 };

/* Returns the second word of a recently freed chunk that waits for reuse. */
static uintptr_t free_key(void)
{
	static uintptr_t key;
	uintptr_t *p;

	if (key)
		return key;
	p = __libc_malloc(2 * sizeof(*p));
	if (p)
		__libc_free(p);
	return p && read_safely((uintptr_t)(p + 1), &key, sizeof(key)) ? key : 0;
}

/* Returns the length of the allocated chunk that begins here; 0: there is none. Pointers into the
 * middle of a chunk are not recognized. */
static size_t chunk_at(const struct outside_pointers_map *m, uintptr_t p)
{
	/* Length of the previous chunk, length, two words of content. */
	uintptr_t head[4], after = 0;
	size_t n;

	if (p % 16 || p < m->lo + 16 || read_safely(p - 16, head, sizeof(head)) != sizeof(head))
		return 0;
	n = head[1] & ~(uintptr_t)BITS;
	if (n < 32 || n % 16 || n > m->hi - (p - 16))
		return 0;
	if (head[1] & MAPPED)
		return (p - 16) % vv_memory_page() == head[0] && n + head[0] >= vv_memory_page() ? n - 16 : 0;
	if (head[3] == free_key() || p - 8 + n >= m->hi || !read_safely(p - 8 + n, &after, sizeof(after)))
		return 0;
	return after & IN_USE && after > 16 ? n - 8 : 0;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Finds the owner of a chunk. A library's objects point to its code and tables; all objects may
 * point to the C library's. Pointers to the loader are ignored: calls leave them on the stack, and
 * uninitialized memory copies them to the heap. */
static const char *owner_of(uintptr_t p, size_t n)
{
	uintptr_t word[MOST_OF_CHUNK];
	size_t words = read_safely(p, word, n < sizeof(word) ? n : sizeof(word)) / sizeof(word[0]);
	const char *found = NULL;
	Dl_info info;

	for (size_t i = 0; i < words; i++) {
		if (word[i] < 1 << 16 || find_map(word[i]) || vv_heap_owns((void *)word[i]) || !dladdr((void *)word[i], &info))
			continue;
		found = base_name(info.dli_fname);
		if (strncmp(found, "libc.so", 7) != 0)
			break;
	}
	return found && strncmp(found, "ld-linux", 8) != 0 && strncmp(found, "ld64", 4) != 0 ? found : NULL;
}

/* ---- warnings -------------------------------------------------------------------------------- */

static bool is_new(const char *who)
{
	for (size_t i = 0; i < n_owners; i++)
		if (strcmp(owner[i], who) == 0)
			return false;
	if (n_owners == MOST_OWNERS)
		return false;
	snprintf(owner[n_owners++], sizeof(owner[0]), "%s", who);
	return true;
}

/* The examined place: a region, or, without a name, an object of the heap. */
struct outside_pointers_place {
	const char *name;
	uintptr_t lo;
	size_t size;
};

static void warn_pointer(const struct outside_pointers_place *in, uintptr_t at, uintptr_t p, const char *who)
{
	char name[96];

	snprintf(name, sizeof(name), "the object of up to %zu bytes at %#zx", in->size, (size_t)in->lo);
	vv_log_warn("%s, byte %zu, points to %#zx, memory of %s, which is not saved: after a restart the pointer would lead nowhere. Let the program make it again after a restart, or keep it out of the state by varve_except_here. VARVE_RUN_POINTERS=off: this is not looked for",
		    in->name ? in->name : name, (size_t)(at - in->lo), (size_t)p, who);
}

static void examine(const struct outside_pointers_place *in, uintptr_t at, uintptr_t p)
{
	const struct outside_pointers_map *m = find_map(p);
	bool malloced = m && !m->reserved && !m->path[0];
	size_t n = malloced ? chunk_at(m, p) : 0;
	const char *who;

	if (!m || (malloced && !n) || exempt(at, p))
		return;
	who = malloced ? owner_of(p, n) : !m->reserved ? m->path : is_of_cuda(p) ? "CUDA" : NULL;
	if (who && is_new(who))
		warn_pointer(in, at, p, who);
}

/* ---- the search ------------------------------------------------------------------------------ */

static bool see(uintptr_t at)
{
	if (at - window_at < n_window)
		return true;
	window_at = at;
	n_window = read_safely(at, window, sizeof(window)) & ~(sizeof(window[0]) - 1);
	return n_window != 0;
}

/* Examines its first bytes. */
static void look(const struct outside_pointers_place *in, size_t most)
{
	uintptr_t first = n_maps ? map[0].lo : UINTPTR_MAX, end = n_maps ? map[n_maps - 1].hi : 0;

	uintptr_t at = (in->lo + sizeof(at) - 1) & ~(uintptr_t)(sizeof(at) - 1), hi = in->lo + (in->size < most ? in->size : most);

	for (; at + sizeof(at) <= hi && see(at); at += sizeof(at)) {
		uintptr_t p = window[(at - window_at) / sizeof(at)];

		if (p >= first && p < end && !vv_heap_owns((void *)p))
			examine(in, at, p);
	}
}

bool vv_outside_pointers_begin(bool (*is_exempt)(uintptr_t at, uintptr_t target), bool *first)
{
	const char *wanted = vv_env_get(VV_RUN_PROTOCOL_POINTERS);

	if (wanted && strcmp(wanted, "off") == 0)
		return false;
	checkpoints++;
	*first = lane == VV_HEAP_LANES && checkpoints >= next_pass;
	if (*first) {
		next_pass = 2 * checkpoints;
		lane = 0;
		offset = 0;
	}
	if (lane == VV_HEAP_LANES)
		return false;
	exempt = is_exempt;
	n_window = 0;
	find_maps();
	return n_maps != 0;
}

void vv_outside_pointers_look(const char *name, uintptr_t lo, size_t n)
{
	look(&(struct outside_pointers_place){ name, lo, n }, MOST_OF_REGION);
}

/* Examines a lane from `offset` on, within the remaining limit of this search. Returns the
 * remaining limit. */
static size_t look_at_lane(uintptr_t lo, size_t used, size_t left)
{
	uintptr_t end = lo + used, at = vv_heap_next(lo + offset, end);

	while (at < end && left) {
		size_t room = vv_heap_mark_room(*vv_heap_mark((void *)at)), n = room < MOST_OF_OBJECT ? room : MOST_OF_OBJECT;

		look(&(struct outside_pointers_place){ NULL, at, room < end - at ? room : end - at }, MOST_OF_OBJECT);
		left = n < left ? left - n : 0;
		at = at + room < end ? vv_heap_next(at + room, end) : end;
	}
	offset = at - lo;
	return left;
}

void vv_outside_pointers_look_heap(void)
{
	size_t left = MOST_OF_LOOK;

	while (lane < VV_HEAP_LANES && left) {
		size_t used = vv_heap_used(lane);
		uintptr_t lo;

		vv_heap_piece(lane, 0, &lo);
		left = offset < used ? look_at_lane(lo, used, left) : left;
		if (offset >= used) {
			lane++;
			offset = 0;
		}
	}
}
