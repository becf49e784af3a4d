/* Finds written pages in the kernel's page tables. In WP_ASYNC mode, userfaultfd lets the first
 * write to a protected page continue and drops its mark. PAGEMAP_SCAN finds pages without the mark,
 * and can set it again in the same step. */
#include "track/scan.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/own_fds.h"
#include "base/fd_identity.h"
#include "track/marks.h"
#include "track/memory.h"
#include "track/registered_memory.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define FLAG_USER_MODE_ONLY    1

/* Up to one written page in so many, protecting the written pages again run by run is cheaper than
 * by the scan. The scan flushes address translations for each 2 MiB: arm64 page by page, x86_64 all
 * at once. Measured on a GiB at 1 %: 4 ms against 22 on arm64, 7.4 ms against 1.7 on x86_64. */
#ifdef __x86_64__
enum { SPARSE = 400 };
#else
enum { SPARSE = 50 };
#endif

/* Bytes: the size of the parts for several threads. One thread protects one or two parts as fast as
 * several threads. */
enum { PART = 8 << 20 };

static const double FAULT_COST = 1.5e-6; /* seconds, if it cannot be measured */

struct vv_scan {
	int uffd, pagemap;
	struct vv_fd_identity uffd_stamp, pagemap_stamp;
	pid_t owner; /* in a child of fork both descriptors refer to the parent's memory */
	double fault_cost; /* seconds */
	bool hides_dropped; /* the kernel does not report a dropped 2 MiB, whose page table is gone */
	struct vv_marks_found found[VV_MARKS_AT_ONCE];
};

typedef void seen_fn(void *arg, uintptr_t lo, uintptr_t hi);

static int err_not_attached(void)
{
	return vv_err_set(VV_EMISMATCH, "watched memory was unmapped, moved or mapped again, or belongs to the parent process");
}

/* Returns 0 or an errno. fresh: none of the pages was watched before. Then PAGEMAP_SCAN takes half
 * of the time. It does not examine the state of each page. Where it protects 512 pages together, it
 * flushes all address translations at once. UFFDIO_WRITEPROTECT flushes them one by one, and all
 * cores wait for that. */
static int try_protect(const struct vv_scan *s, bool fresh, uintptr_t lo, uintptr_t hi)
{
	struct uffdio_writeprotect w = {.range = {lo, hi - lo}, .mode = UFFDIO_WRITEPROTECT_MODE_WP};
	int rc;

	if (fresh)
		return vv_marks_set(s->pagemap, lo, hi);
	do
		rc = ioctl(s->uffd, UFFDIO_WRITEPROTECT, &w);
	while (rc != 0 && errno == EAGAIN);
	return rc == 0 ? 0 : errno;
}

static int not_protected(int err)
{
	return err == ENOENT || err == EPERM ? err_not_attached() : vv_err_sys(err, "userfaultfd: cannot watch pages");
}

static int protect(const struct vv_scan *s, bool fresh, uintptr_t lo, uintptr_t hi)
{
	int err = try_protect(s, fresh, lo, hi);

	return err ? not_protected(err) : 0;
}

struct scan_parts {
	const struct vv_scan *scan;
	uintptr_t lo, hi;
	atomic_int err; /* of any part */
};

static void protect_part(void *arg, size_t i)
{
	struct scan_parts *p = arg;
	uintptr_t lo = p->lo + i * PART, left = p->hi - lo;
	int err = try_protect(p->scan, true, lo, lo + (left < PART ? left : PART));

	if (err)
		atomic_store(&p->err, err);
}

/* To the scan, a hole in the address space looks like unwritten pages. A call of msync finds holes
 * by reading the mappings, and MS_ASYNC starts no writing. */
static int check_mapped(const struct vv_scan *s, uintptr_t lo, uintptr_t hi)
{
	if (s->owner != getpid() || msync((void *)lo, hi - lo, MS_ASYNC) != 0)
		return err_not_attached();
	return 0;
}

/* The kernel takes the lock of the mappings only for reading, so threads do not wait for each
 * other. */
static int protect_fresh(struct vv_scan *s, const struct vv_parallel_for *loop, uintptr_t lo, uintptr_t hi)
{
	struct scan_parts p = {.scan = s, .lo = lo, .hi = hi};
	int rc = check_mapped(s, lo, hi);

	if (rc)
		return rc;
	if (!loop || !loop->each || hi - lo < 2 * (uintptr_t)PART)
		return protect(s, true, lo, hi);
	vv_parallel_for_each(loop, (hi - lo + PART - 1) / PART, protect_part, &p);
	return p.err ? not_protected(p.err) : 0;
}

int vv_scan_attach(struct vv_scan *s, const struct vv_parallel_for *loop, uintptr_t lo, uintptr_t hi)
{
	uint64_t ioctls;
	int rc;

	if (s->owner != getpid())
		return vv_err_set(VV_EINVAL, "the scan belongs to the parent process");
	vv_memory_keep_mergeable(lo);
	rc = vv_registered_memory_add(s->uffd, lo, hi, &ioctls);
	if (rc)
		return vv_err_set(VV_ENOTSUP, "userfaultfd does not take this memory: %s", strerror(rc));
	rc = protect_fresh(s, loop, lo, hi);
	if (rc)
		vv_scan_detach(s, lo, hi);
	return rc;
}

void vv_scan_detach(struct vv_scan *s, uintptr_t lo, uintptr_t hi)
{
	if (s->owner == getpid())
		vv_registered_memory_remove(s->uffd, lo, hi);
}

/* Finds pages of [*lo, hi) that have the categories `are` and lack `are_not`. Stops after
 * VV_MARKS_AT_ONCE ranges or max_pages pages (0: no limit). Sets *n to the number of ranges, and
 * *lo to the address to continue at, or to hi at the end. */
static int scan(struct vv_scan *s, uintptr_t *lo, uintptr_t hi, uint64_t flags, uint64_t are, uint64_t are_not, uint64_t max_pages, size_t *n)
{
	struct vv_marks_query q = {.flags = flags | VV_MARKS_CHECK, .all = are, .none = are_not, .max_pages = max_pages};
	uint64_t at = *lo;
	int err = vv_marks_find(s->pagemap, &q, &at, hi, s->found, n);

	*lo = (uintptr_t)at;
	if (err)
		return err == EPERM ? err_not_attached() : vv_err_sys(err, "cannot scan for written pages");
	return 0;
}

/* Only searches (flags 0), or searches and protects again in one step (VV_MARKS_SET). */
static int sweep(struct vv_scan *s, uintptr_t lo, uintptr_t hi, uint64_t flags, uint64_t are, uint64_t are_not, seen_fn *seen, void *arg)
{
	while (lo < hi) {
		size_t n;
		int rc = scan(s, &lo, hi, flags, are, are_not, 0, &n);

		if (rc)
			return rc;
		for (size_t i = 0; i < n; i++)
			seen(arg, s->found[i].lo, s->found[i].hi);
	}
	return 0;
}

/* A page that is read is there again, and without a mark it counts as written. */
static void touch(void *arg, uintptr_t lo, uintptr_t hi)
{
	(void)arg;
	for (size_t page = vv_memory_page(); lo < hi; lo += page)
		(void)*(volatile const char *)lo;
}

/* Watched pages that are not there have marks. So a page without anything was dropped
 * (MADV_DONTNEED). Linux reports it as written, but some releases since 6.7 miss it if its page
 * table is gone. */
static int find_dropped(struct vv_scan *s, uintptr_t lo, uintptr_t hi)
{
	int rc = check_mapped(s, lo, hi);

	if (rc || !s->hides_dropped)
		return rc;
	return sweep(s, lo, hi, 0, 0, VV_MARKS_WRITTEN | VV_MARKS_PRESENT | VV_MARKS_SWAPPED, touch, NULL);
}

void vv_scan_search_dropped(struct vv_scan *s, bool on)
{
	s->hides_dropped = on;
}

int vv_scan_peek(struct vv_scan *s, uintptr_t lo, uintptr_t hi, seen_fn *seen, void *arg)
{
	int rc = find_dropped(s, lo, hi);

	return rc ? rc : sweep(s, lo, hi, 0, VV_MARKS_WRITTEN, 0, seen, arg);
}

int vv_scan_peek_dropped(struct vv_scan *s, uintptr_t lo, uintptr_t hi, seen_fn *seen, void *arg)
{
	int rc = check_mapped(s, lo, hi);

	if (rc == 0)
		rc = sweep(s, lo, hi, 0, VV_MARKS_WRITTEN, VV_MARKS_PRESENT | VV_MARKS_SWAPPED, seen, arg);
	return rc ? rc : sweep(s, lo, hi, 0, VV_MARKS_WRITTEN | VV_MARKS_PRESENT | VV_MARKS_ZERO, 0, seen, arg);
}

static uint64_t pages_found(const struct vv_scan *s, size_t n)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += s->found[i].hi - s->found[i].lo;
	return bytes / vv_memory_page();
}

int vv_scan_rearm(struct vv_scan *s, uintptr_t lo, uintptr_t hi)
{
	int rc = check_mapped(s, lo, hi);

	return rc ? rc : protect(s, false, lo, hi);
}

/* Protects the n found ranges, then reports them. Writes continue meanwhile, and none is lost. A
 * found page may be written before it is protected, but it is reported and read after that. A write
 * to another page leaves that page unmarked, and the next scan finds it. */
static int rearm_found(struct vv_scan *s, size_t n, seen_fn *seen, void *arg)
{
	for (size_t i = 0; i < n; i++) {
		int rc = protect(s, false, s->found[i].lo, s->found[i].hi);

		if (rc)
			return rc;
		seen(arg, s->found[i].lo, s->found[i].hi);
	}
	return 0;
}

/* Protects run by run as long as few pages were written. Once there are many, the scan protects
 * them itself. */
int vv_scan_collect(struct vv_scan *s, uintptr_t lo, uintptr_t hi, seen_fn *seen, void *arg)
{
	uint64_t few = (hi - lo) / vv_memory_page() / SPARSE;
	int rc = find_dropped(s, lo, hi);

	while (rc == 0 && lo < hi) {
		uintptr_t next = lo;
		uint64_t pages;
		size_t n;

		rc = scan(s, &next, hi, 0, VV_MARKS_WRITTEN, 0, few + 1, &n);
		if (rc)
			break;
		pages = pages_found(s, n);
		/* The share so far is extrapolated to the rest of the range. */
		if ((double)pages * (double)(hi - lo) > (double)few * (double)(next - lo))
			return sweep(s, lo, hi, VV_MARKS_SET, VV_MARKS_WRITTEN, 0, seen, arg);
		rc = rearm_found(s, n, seen, arg);
		few -= pages;
		lo = next;
	}
	return rc;
}

/* ---- availability */

static int open_userfault(struct vv_scan *s)
{
	struct utsname u = {.release = "?"};

	vv_own_fds_make();
	s->uffd = vv_own_fds_made((int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | FLAG_USER_MODE_ONLY));
	if (s->uffd < 0)
		return vv_err_set(VV_ENOTSUP, "userfaultfd: %s%s", strerror(errno),
				  errno == EPERM ? " (see vm.unprivileged_userfaultfd, or a seccomp filter)" : "");
	s->uffd_stamp = vv_fd_identity_of(s->uffd);
	if (vv_marks_begin(s->uffd) == 0)
		return 0;
	uname(&u);
	return vv_err_set(VV_ENOTSUP, "the kernel, %s, has no userfaultfd WP_ASYNC (Linux >= 6.7)", u.release);
}

static void count(void *arg, uintptr_t lo, uintptr_t hi)
{
	*(size_t *)arg += (hi - lo) / vv_memory_page();
}

/* Takes the better of two measurements, since the first one includes one-time costs. */
static void try_faults(struct vv_scan *s)
{
	enum { PAGES = 32 };
	size_t page = vv_memory_page(), len = PAGES * page;
	volatile char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	uintptr_t lo = (uintptr_t)p;

	s->fault_cost = FAULT_COST;
	if (p == MAP_FAILED)
		return;
	for (int round = 0, rc = vv_scan_attach(s, NULL, lo, lo + len); rc == 0 && round < 2; round++) {
		double start = vv_clock_own_s(), cost;

		for (size_t i = 0; i < PAGES; i++)
			p[i * page] = 1;
		cost = (vv_clock_own_s() - start) / PAGES;
		s->fault_cost = round == 0 || cost < s->fault_cost ? cost : s->fault_cost;
		rc = vv_scan_rearm(s, lo, lo + len);
	}
	vv_scan_detach(s, lo, lo + len);
	munmap((void *)lo, len);
}

double vv_scan_fault_cost(const struct vv_scan *s)
{
	return s->fault_cost;
}

/* Some containers and emulators accept the calls and do nothing. */
static int probe(struct vv_scan *s)
{
	size_t page = vv_memory_page(), before = 0, after = 0, again = 0;
	volatile char *p = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t lo = (uintptr_t)p, hi = lo + 3 * page;
	int rc;

	if (p == MAP_FAILED)
		return vv_err_sys(errno, "no memory to try PAGEMAP_SCAN");
	p[0] = 1;
	rc = vv_scan_attach(s, NULL, lo, hi);
	if (rc == 0)
		rc = vv_scan_peek(s, lo, hi, count, &before);
	p[page] = 1;
	if (rc == 0)
		rc = vv_scan_collect(s, lo, hi, count, &after);
	if (rc == 0)
		rc = vv_scan_peek(s, lo, hi, count, &again);
	vv_scan_detach(s, lo, hi);
	munmap((void *)lo, 3 * page);
	if (rc)
		return vv_err_set(VV_ENOTSUP, "the kernel does not watch memory by PAGEMAP_SCAN (Linux >= 6.7): %s", vv_err_last());
	if (before != 0 || after != 1 || again != 0)
		return vv_err_set(VV_ENOTSUP, "PAGEMAP_SCAN of this kernel does not tell which pages were written");
	return 0;
}

/* Drops 2 MiB of watched memory, with a large page where there are some. */
static int drop_and_collect(struct vv_scan *s, uintptr_t lo, size_t len, bool large, size_t *found)
{
	int rc;

	madvise((void *)lo, len, large ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	*(volatile char *)lo = 1;
	rc = vv_scan_attach(s, NULL, lo, lo + len);
	*found = 0;
	/* not by the program's calls, which may be interposed */
	if (rc == 0 && syscall(SYS_madvise, lo, len, MADV_DONTNEED) != 0)
		rc = vv_err_sys(errno, "madvise");
	if (rc == 0)
		rc = vv_scan_collect(s, lo, lo + len, count, found);
	vv_scan_detach(s, lo, lo + len);
	return rc;
}

static int sees_dropped(struct vv_scan *s, bool *sees)
{
	enum { LEN = 2 << 20 };
	size_t found = 0, pages = LEN / vv_memory_page();
	uint8_t *p = mmap(NULL, 2 * LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uintptr_t lo = ((uintptr_t)p + LEN - 1) / LEN * LEN;
	int rc = 0;

	if (p == MAP_FAILED)
		return vv_err_sys(errno, "no memory to try PAGEMAP_SCAN");
	*sees = true;
	for (int large = 0; rc == 0 && *sees && large < 2; large++) {
		rc = drop_and_collect(s, lo, LEN, large, &found);
		*sees = found == pages;
	}
	munmap(p, 2 * LEN);
	return rc;
}

static int probe_dropped(struct vv_scan *s)
{
	bool sees = false;
	int rc = sees_dropped(s, &sees);

	if (rc == 0 && !sees) {
		s->hides_dropped = true;
		rc = sees_dropped(s, &sees);
	}
	if (rc || !sees)
		return vv_err_set(VV_ENOTSUP, "PAGEMAP_SCAN of this kernel does not tell which pages were dropped%s%s", rc ? ": " : "", rc ? vv_err_last() : "");
	return 0;
}

int vv_scan_open(struct vv_scan **out)
{
	struct vv_scan *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return vv_err_set(VV_ENOMEM, "no memory to scan for written pages");
	s->owner = getpid();
	s->pagemap = -1;
	rc = open_userfault(s);
	if (rc == 0) {
		s->pagemap = vv_own_fds_open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC, 0);
		s->pagemap_stamp = vv_fd_identity_of(s->pagemap);
		rc = s->pagemap < 0 ? vv_err_set(VV_ENOTSUP, "/proc/thread-self/pagemap: %s", strerror(errno)) : probe(s);
	}
	if (rc == 0)
		rc = probe_dropped(s);
	if (rc == 0)
		try_faults(s);
	if (rc) {
		vv_scan_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

int vv_scan_check(const struct vv_scan *s)
{
	int rc = vv_fd_identity_check(&s->uffd_stamp, s->uffd, "watch memory");

	return rc ? rc : vv_fd_identity_check(&s->pagemap_stamp, s->pagemap, "watch memory");
}

/* The kernel drops the registrations when the last copy of the descriptor is closed. A child may
 * still have one. */
void vv_scan_close(struct vv_scan *s)
{
	if (!s)
		return;
	vv_registered_memory_forget(s->uffd);
	vv_fd_identity_close(&s->uffd_stamp, s->uffd);
	vv_fd_identity_close(&s->pagemap_stamp, s->pagemap);
	free(s);
}
