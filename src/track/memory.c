/* Reads the mappings of the process and their limit without malloc, since this also happens while
 * memory is being write-protected. The files are those of /proc/thread-self. /proc/self is that of
 * the first thread, and is empty once that thread has ended. A line is "lo-hi rwxp offset dev inode
 * path". The path may have any length, and the inode is 0 if there is no file. */
#include "track/memory.h"
#include "base/search.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Mappings are reserved for the program while pages are write-protected: libraries, stacks,
 * arenas. */
#define RESERVED_SHARE 4u /* one part in so many is reserved for the program */
#define DEFAULT_MAX_MAPS 65530u

#define ADVICE_POPULATE_WRITE 23 /* newer than some kernel headers */

size_t vv_memory_page(void)
{
	static _Atomic size_t page;
	size_t n = atomic_load_explicit(&page, memory_order_relaxed);

	if (n == 0) {
		n = (size_t)sysconf(_SC_PAGESIZE);
		atomic_store_explicit(&page, n, memory_order_relaxed);
	}
	return n;
}

bool vv_memory_pages(const void *p, size_t len, uintptr_t *lo, uintptr_t *hi)
{
	uintptr_t mask = vv_memory_page() - 1, first = (uintptr_t)p, last;

	if (len > UINTPTR_MAX - first || first > UINTPTR_MAX - mask)
		return false;
	last = (first + len) & ~mask;
	first = (first + mask) & ~mask;
	if (first >= last)
		return false;
	*lo = first;
	*hi = last;
	return true;
}

struct lines {
	int fd;
	size_t at, n;
	char buf[8192];
};

static ssize_t read_again(int fd, void *p, size_t n)
{
	ssize_t got;

	do
		got = read(fd, p, n);
	while (got < 0 && errno == EINTR);
	return got;
}

static int next_char(struct lines *in)
{
	if (in->at == in->n) {
		ssize_t got = read_again(in->fd, in->buf, sizeof(in->buf));

		if (got <= 0)
			return -1;
		in->at = 0;
		in->n = (size_t)got;
	}
	return (unsigned char)in->buf[in->at++];
}

/* Reads the next line without its end, truncated to cap. Returns false at the end of the file. */
static bool next_line(struct lines *in, char *line, size_t cap)
{
	size_t n = 0;
	int c = next_char(in);

	if (c < 0)
		return false;
	for (; c >= 0 && c != '\n'; c = next_char(in))
		if (n + 1 < cap)
			line[n++] = (char)c;
	line[n] = '\0';
	return true;
}

enum { FILE_NAME = 48 };

/* Copies the device and inode of a mapping as one text. Returns false if the mapping has no
 * file. */
static bool file_of(const char *text, char name[FILE_NAME])
{
	size_t n = strcspn(text, " "), all = n + strspn(text + n, " ");
	bool none = strtoull(text + all, NULL, 10) == 0;

	all += strcspn(text + all, " ");
	if (none || all >= FILE_NAME)
		return !none;
	memcpy(name, text, all);
	name[all] = '\0';
	return true;
}

/* m points into the line. image: the last file that was mapped executable. The data of programs and
 * libraries follow their code. */
static bool parse(char *line, char image[FILE_NAME], struct vv_memory_map *m)
{
	char *p, file[FILE_NAME] = "";

	m->lo = strtoull(line, &p, 16);
	if (p == line || *p != '-')
		return false;
	m->hi = strtoull(p + 1, &p, 16);
	if (*p != ' ' || strlen(p) < 6)
		return false;
	m->mode = p + 1;
	m->of_file = false;
	for (int fields = 0; fields < 5 && *p; fields++) {
		p += 1 + strcspn(p + 1, " ");
		if (fields == 1 && *p)
			m->of_file = file_of(p + 1, file);
	}
	m->path = p + strspn(p, " ");
	if (m->of_file && m->mode[2] == 'x')
		memcpy(image, file, sizeof(file));
	if (m->of_file && file[0] && strcmp(file, image) == 0)
		m->of_file = false;
	return true;
}

/* A range is ok if all of it is mapped, and `fits` holds for all its mappings. */
void vv_memory_look(struct vv_memory_range *r, size_t n, bool (*fits)(const struct vv_memory_map *m))
{
	struct lines in = {.fd = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC)};
	uintptr_t at = n ? r[0].lo : 0; /* the range is ok up to here */
	char line[512], image[FILE_NAME] = "";
	struct vv_memory_map m;
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		r[i].ok = false;
	if (in.fd < 0)
		return;
	while (k < n && next_line(&in, line, sizeof(line))) {
		if (!parse(line, image, &m))
			continue;
		while (k < n && at < m.hi) {
			bool fine = m.lo <= at && fits(&m);

			if (fine && r[k].hi > m.hi) {
				at = m.hi; /* the next mapping decides */
				break;
			}
			r[k].ok = fine;
			k++;
			at = k < n ? r[k].lo : 0;
		}
	}
	close(in.fd);
}

bool vv_memory_is_watchable(const struct vv_memory_map *m)
{
	uintptr_t here = (uintptr_t)&here;

	return memcmp(m->mode, "rw-p", 4) == 0 && !m->of_file && strncmp(m->path, "[stack", 6) != 0 && !(here >= m->lo && here < m->hi);
}

bool vv_memory_watchable(uintptr_t lo, uintptr_t hi)
{
	struct vv_memory_range r = {.lo = lo, .hi = hi};

	vv_memory_look(&r, 1, vv_memory_is_watchable);
	return r.ok;
}

static bool is_readonly(const struct vv_memory_map *m)
{
	return memcmp(m->mode, "r-", 2) == 0 && m->mode[3] == 'p';
}

/* PROCMAP_QUERY (Linux 6.11) finds the mapping at an address without reading the others, which may
 * be many thousands. Its names in linux/fs.h are newer than many systems' headers. */
struct query {
	uint64_t size, flags, address, lo, hi, mode, page_size, offset, inode;
	uint32_t dev_major, dev_minor, name_size, build_id_size;
	uint64_t name, build_id;
};

#define QUERY_CALL _IOWR('f', 17, struct query)

enum { QUERY_READABLE = 1, QUERY_WRITABLE = 2, QUERY_SHARED = 8 };

/* Returns 1 if all of it is read-only, 0 if not, and -1 if the kernel cannot report it. */
static int query_readonly(int maps, uintptr_t lo, uintptr_t hi)
{
	while (lo < hi) {
		struct query q = {.size = sizeof(q), .address = lo};

		if (ioctl(maps, QUERY_CALL, &q) != 0)
			return errno == ENOENT ? 0 : -1;
		if ((q.mode & (QUERY_READABLE | QUERY_WRITABLE | QUERY_SHARED)) != QUERY_READABLE)
			return 0;
		lo = (uintptr_t)q.hi;
	}
	return 1;
}

bool vv_memory_are_readonly(struct vv_memory_range *r, size_t n)
{
	int maps = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC), readonly = maps < 0 ? -1 : 1;

	for (size_t i = 0; readonly == 1 && i < n; i++)
		readonly = query_readonly(maps, r[i].lo, r[i].hi);
	if (maps >= 0)
		close(maps);
	if (readonly >= 0)
		return readonly;
	vv_memory_look(r, n, is_readonly);
	for (size_t i = 0; i < n; i++)
		if (!r[i].ok)
			return false;
	return true;
}

/* With MS_ASYNC, msync only checks the mappings. */
bool vv_memory_mapped(const void *p, size_t len)
{
	uintptr_t page = vv_memory_page(), lo = (uintptr_t)p & ~(page - 1);

	return len == 0 || msync((void *)lo, (uintptr_t)p + len - lo, MS_ASYNC) == 0 || errno != ENOMEM;
}

const void *vv_memory_first_unmapped(const void *p, size_t len)
{
	uintptr_t page = vv_memory_page(), first = (uintptr_t)p & ~(page - 1), end = (uintptr_t)p + len;
	size_t i;

	if (len && end < (uintptr_t)p)
		end = UINTPTR_MAX;
	if (vv_memory_mapped((void *)first, end - first))
		return NULL;
	VV_SEARCH(i, 0, (end - first - 1) / page, vv_memory_mapped((void *)first, (i + 1) * page));
	return (void *)(first + i * page);
}

/* Is this really the /proc/thread-self/maps of this process? Then it reports the stack as
 * writable. */
static bool can_read_maps(void)
{
	struct vv_memory_range here = {.lo = (uintptr_t)&here, .hi = (uintptr_t)(&here + 1)};

	vv_memory_look(&here, 1, vv_memory_is_writable);
	return here.ok;
}

bool vv_memory_is_writable(const struct vv_memory_map *m)
{
	return m->mode[1] == 'w';
}

/* Reports the rest of the range, from *at on, in the mapping and in the hole before it. */
static bool walk_range(const struct vv_memory_range *r, uintptr_t *at, const struct vv_memory_map *m, vv_memory_stretch *fn, void *arg)
{
	uintptr_t hole = m->lo < r->hi ? m->lo : r->hi, end = m->hi < r->hi ? m->hi : r->hi;

	if (*at < hole && !fn(arg, *at, hole, NULL))
		return false;
	*at = *at < hole ? hole : *at;
	if (*at < end && !fn(arg, *at, end, m))
		return false;
	*at = *at < end ? end : *at;
	return true;
}

void vv_memory_walk(const struct vv_memory_range *r, size_t n, vv_memory_stretch *fn, void *arg)
{
	struct lines in = {.fd = n && can_read_maps() ? open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC) : -1};
	char line[512], image[FILE_NAME] = "";
	uintptr_t at = n ? r[0].lo : 0;
	struct vv_memory_map m;
	bool more = true;
	size_t k = 0;

	if (in.fd < 0)
		return;
	while (more && k < n && next_line(&in, line, sizeof(line))) {
		if (!parse(line, image, &m))
			continue;
		while (more && k < n && at < m.hi) {
			more = walk_range(&r[k], &at, &m, fn, arg);
			if (at < r[k].hi)
				break; /* the next mapping decides */
			k++;
			at = k < n ? r[k].lo : 0;
		}
	}
	close(in.fd);
	for (; more && k < n; k++, at = k < n ? r[k].lo : 0) /* beyond all mappings */
		more = fn(arg, at, r[k].hi, NULL);
}

static int by_lo(const void *a, const void *b)
{
	const struct vv_memory_range *x = a, *y = b;

	return (x->lo > y->lo) - (x->lo < y->lo);
}

size_t vv_memory_tidy(struct vv_memory_range *r, size_t n)
{
	uintptr_t mask = vv_memory_page() - 1;
	size_t kept = 0;

	if (n > 1)
		qsort(r, n, sizeof(*r), by_lo);
	for (size_t i = 0; i < n; i++) {
		uintptr_t lo = r[i].lo & ~mask, hi = (r[i].hi + mask) & ~mask;

		if (kept && lo <= r[kept - 1].hi)
			r[kept - 1].hi = hi > r[kept - 1].hi ? hi : r[kept - 1].hi;
		else
			r[kept++] = (struct vv_memory_range){lo, hi, false};
	}
	return kept;
}

/* Does not call the C library's function. The program's calls of it are wrapped
 * (src/preload/wrap/wrap_memory.c). */
int vv_memory_set_rights(uintptr_t lo, uintptr_t hi, int rights)
{
	return (int)syscall(SYS_mprotect, lo, hi - lo, rights);
}

void vv_memory_keep_mergeable(uintptr_t page)
{
	madvise((void *)page, vv_memory_page(), ADVICE_POPULATE_WRITE);
}

static size_t max_maps(void)
{
	char text[32];
	int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read_again(fd, text, sizeof(text) - 1);
	unsigned long long value = 0;

	if (fd >= 0)
		close(fd);
	if (n > 0) {
		text[n] = '\0';
		value = strtoull(text, NULL, 10);
	}
	return value > 0 ? (size_t)value : DEFAULT_MAX_MAPS;
}

size_t vv_memory_map_room(void)
{
	struct lines in = {.fd = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC)};
	size_t max = max_maps(), n = max / RESERVED_SHARE;
	char line[16];

	if (in.fd < 0)
		return 0;
	while (next_line(&in, line, sizeof(line)))
		n++;
	close(in.fd);
	return n < max ? max - n : 0;
}
