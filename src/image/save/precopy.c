/* Why a marked page equals its copy: the mark was set before the page was read, any write removes
 * it, and nothing sets it again. The mark also belongs to the address. Memory that is mapped or
 * moved there later is not watched by us (PAGE_IS_WPALLOWED). A page that is released and touched
 * again has no mark. That is true for anonymous memory only: in a private mapping of a file, the
 * kernel keeps the mark of a released page. Absent pages are not marked: that would need page
 * tables for all memory that a program has ever reserved. */
#include "image/save/precopy.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/search.h"
#include "image/process/inject_syscall.h"
#include "image/process/copy_memory.h"
#include "image/process/process_tree.h"
#include "image/check/precopy_check.h"
#include "track/marks.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	LEAST = 16 << 20,  /* minimum bytes of a process */
	WORTH = 2,         /* minimum valid part of a copy: 1/WORTH of the process's memory */
	PIECES = 1 << 20,  /* limit: each piece needs memory, too */
	STEP = 256 << 10,  /* a multiple of any page size */
};

static const char no_room[] = "there is not the memory for a copy of it";

static void drop(struct vv_precopy_process *one)
{
	if (one->uffd >= 0)
		close(one->uffd);
	vv_mem_free(one->span);
	*one = (struct vv_precopy_process){ .uffd = -1 };
}

static int open_of(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* ---- marking --------------------------------------------------------------------------------- */

struct area {
	uint64_t lo, hi;
};

struct marking {
	struct vv_precopy_process *one;
	int pagemap;
	struct area *area; /* watched and readable */
	size_t n_areas, areas_cap;
	struct vv_copy_memory lift; /* marked pages, to be copied */
	uint8_t *room;
	size_t n, used;
	struct vv_marks_found found[VV_MARKS_AT_ONCE];
};

/* Marks the present pages and allocates buffer space for them. Skips memory that has been mapped
 * again meanwhile. */
static int mark_pages(struct marking *m, uint64_t lo, uint64_t hi)
{
	static const struct vv_marks_query there = {
		.flags = VV_MARKS_SET, .all = VV_MARKS_WATCHED, .none = VV_MARKS_FILE | VV_MARKS_ZERO, .any = VV_MARKS_PRESENT | VV_MARKS_SWAPPED,
	};
	int rc = 0;

	while (rc == 0 && lo < hi) {
		size_t n = 0;

		if (m->lift.n > PIECES)
			return vv_err_set(VV_ENOTSUP, "its memory is in too many pieces");
		/* The process has ended. */
		if (vv_marks_find(m->pagemap, &there, &lo, hi, m->found, &n))
			return 0;
		for (size_t i = 0; rc == 0 && i < n; i++) {
			size_t len = (size_t)(m->found[i].hi - m->found[i].lo);

			if (len > m->n - m->used)
				return vv_err_set(VV_ENOTSUP, "%s", no_room);
			rc = vv_copy_memory_add(&m->lift, m->found[i].lo, m->room + m->used, len);
			m->used += len;
		}
	}
	return rc;
}

/* Parses "FROM-TO MODE OFFSET DEVICE INODE [NAME]". */
static bool is_own_memory(const char *line, struct area *out, bool *readable)
{
	unsigned long long from, to, inode;
	char mode[5];
	int at = 0;

	if (sscanf(line, "%llx-%llx %4s %*x %*x:%*x %llu%n", &from, &to, mode, &inode, &at) != 4 || !at)
		return false;
	*out = (struct area){ from, to };
	*readable = mode[0] == 'r';
	line += at + strspn(line + at, " ");
	return inode == 0 && mode[3] == 'p' && strncmp(line, "[v", 2) != 0;
}

/* Unreadable memory is watched as well: once it is readable, the kernel must be able to merge it
 * with its neighbours. Memory that cannot be watched is read when the process is frozen. */
static int watch(struct marking *m, int uffd, const char *line)
{
	struct area a;
	bool readable;
	int err = is_own_memory(line, &a, &readable) ? vv_marks_watch(uffd, a.lo, a.hi) : EINVAL;

	if (err == EBUSY)
		return vv_err_set(VV_ENOTSUP, "another process watches its memory (userfaultfd)");
	if (err || !readable)
		return 0;
	if (vv_mem_room(&m->area, m->n_areas, &m->areas_cap, sizeof(*m->area)) < 0)
		return VV_ENOMEM;
	m->area[m->n_areas++] = a;
	return 0;
}

/* All threads are stopped, so complete areas are watched. mremap(2) works on one area only. So the
 * process could not move or grow an area that was split, or that is watched only in part. */
static int watch_all(void *arg, int uffd)
{
	struct marking *m = arg;
	char line[512];
	int fd, rc = vv_marks_begin(uffd) ? vv_err_set(VV_ENOTSUP, "the kernel has no userfaultfd WP_ASYNC (Linux >= 6.7)") : 0;
	bool whole = true; /* the previous line was complete; names may exceed the buffer */
	FILE *f;

	if (rc)
		return rc;
	fd = open_of(m->one->pid, "maps");
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (fd >= 0 && !f)
		close(fd);
	while (rc == 0 && f && fgets(line, sizeof(line), f)) {
		rc = whole ? watch(m, uffd, line) : 0;
		whole = strchr(line, '\n');
	}
	if (f)
		fclose(f);
	return rc;
}

/* Old marks are cleared first, because of the kernel (6.18). It stops watching two areas when one
 * is moved beside the other. Then it removes no mark and lets marked pages be written; a page with
 * a mark would not be protected again. A part of an area may be unwatched, because it was moved or
 * mapped again meanwhile. Then the rest is marked in steps of at least STEP. */
static int mark_area(struct marking *m, uint64_t lo, uint64_t hi)
{
	uint64_t mid = lo + (hi - lo) / 2 / STEP * STEP;
	int rc;

	if (vv_marks_clear(m->one->uffd, lo, hi) == 0)
		return mark_pages(m, lo, hi);
	if (mid == lo)
		return 0;
	rc = mark_area(m, lo, mid);
	return rc ? rc : mark_area(m, mid, hi);
}

static int mark_all(struct marking *m)
{
	int rc = 0;

	m->pagemap = open_of(m->one->pid, "pagemap");
	if (m->pagemap < 0)
		return vv_err_set(VV_ENOTSUP, "it has ended");
	for (size_t i = 0; rc == 0 && i < m->n_areas; i++)
		rc = mark_area(m, m->area[i].lo, m->area[i].hi);
	return rc;
}

/* ---- copying --------------------------------------------------------------------------------- */

static int add_span(struct vv_precopy_process *one, struct vv_precopy_span s)
{
	struct vv_precopy_span *last = one->n ? &one->span[one->n - 1] : NULL;

	if (last && last->hi == s.lo && last->from + (size_t)(last->hi - last->lo) == s.from && last->is_unchanged == s.is_unchanged) {
		last->hi = s.hi;
		return 0;
	}
	if (vv_mem_room(&one->span, one->n, &one->cap, sizeof(*one->span)) < 0)
		return VV_ENOMEM;
	one->span[one->n++] = s;
	return 0;
}

static int copy(struct marking *m, struct vv_pool *pool)
{
	int rc = 0;

	vv_copy_memory_run(&m->lift, pool);
	for (size_t i = 0; rc == 0 && i < m->lift.n; i++) {
		const struct vv_copy_memory_piece *x = &m->lift.v[i];

		if (!x->missing)
			rc = add_span(m->one, (struct vv_precopy_span){ x->addr, x->addr + x->n, (size_t)(x->to - m->room), true });
	}
	return rc;
}

static int copy_one(struct vv_precopy *p, struct marking *m, struct vv_pool *pool)
{
	pid_t pid = m->one->pid;
	double stopped_s = 0;
	int rc = vv_process_tree_own(pid) > m->n - m->used ? vv_err_set(VV_ENOTSUP, "%s", no_room) : vv_precopy_check_check(pid);

	if (rc == 0)
		rc = vv_inject_syscall_userfault(pid, watch_all, m, &m->one->uffd, &stopped_s);
	if (rc == 0)
		rc = mark_all(m);
	if (rc == 0)
		rc = vv_inject_syscall_wait_pending(pid, &stopped_s);
	p->stopped_s = stopped_s > p->stopped_s ? stopped_s : p->stopped_s;
	return rc ? rc : copy(m, pool);
}

static int try_one(struct vv_precopy *p, pid_t pid, struct vv_pool *pool, uint8_t *room, size_t n, size_t *used)
{
	struct marking *m = vv_mem_new(1, sizeof(*m));
	int rc = m ? vv_mem_room(&p->process, p->n, &p->cap, sizeof(*p->process)) : VV_ENOMEM;

	if (rc == 0) {
		m->one = &p->process[p->n];
		*m->one = (struct vv_precopy_process){ .pid = pid, .uffd = -1, .from = *used };
		m->pagemap = -1;
		m->lift.pid = pid;
		m->room = room;
		m->n = n;
		m->used = *used;
		rc = copy_one(p, m, pool);
		m->one->len = m->used - *used;
		if (m->pagemap >= 0)
			close(m->pagemap);
		vv_copy_memory_fini(&m->lift);
		vv_mem_free(m->area);
		if (rc) {
			drop(m->one);
		} else {
			*used = m->used;
			p->n++;
		}
	}
	vv_mem_free(m);
	return rc;
}

static void note(struct vv_precopy *p, pid_t pid)
{
	vv_log_info("process %d is not copied before it is frozen: %s", (int)pid, vv_err_last());
	if (!p->why[0])
		snprintf(p->why, sizeof(p->why), "process %d: %s", (int)pid, vv_err_last());
	vv_err_clear();
}

void vv_precopy_run(struct vv_precopy *p, pid_t root, struct vv_pool *pool, uint8_t *room, size_t n, size_t *used)
{
	struct vv_process_tree all = { 0 };

	*p = (struct vv_precopy){ 0 };
	*used = 0;
	if (vv_process_tree_list(root, &all) < 0)
		note(p, root);
	for (size_t i = 0; i < all.n; i++)
		if (vv_process_tree_own(all.pid[i]) >= LEAST && try_one(p, all.pid[i], pool, room, n, used) < 0)
			note(p, all.pid[i]);
	if (!p->n && !p->why[0])
		snprintf(p->why, sizeof(p->why), "there is little to copy");
	vv_process_tree_fini(&all);
}

/* ---- after the freeze ------------------------------------------------------------------------ */

/* Splits a span of the copy into changed and unchanged parts. `whole` is the span; `holds` are the
 * unchanged ranges, ascending. */
static int cut(struct vv_precopy_process *out, struct vv_precopy_span whole, const struct vv_marks_found **holds, const struct vv_marks_found *end)
{
	uint64_t at = whole.lo;
	int rc = 0;

	while (rc == 0 && at < whole.hi) {
		uint64_t lo, hi;

		while (*holds < end && (*holds)->hi <= at)
			++*holds;
		lo = *holds < end && (*holds)->lo < whole.hi ? (*holds)->lo : whole.hi;
		hi = lo < whole.hi && (*holds)->hi < whole.hi ? (*holds)->hi : whole.hi;
		if (at < lo)
			rc = add_span(out, (struct vv_precopy_span){ at, lo, whole.from + (size_t)(at - whole.lo), false });
		at = lo > at ? lo : at;
		if (rc == 0 && at < hi)
			rc = add_span(out, (struct vv_precopy_span){ at, hi, whole.from + (size_t)(at - whole.lo), true });
		at = hi;
	}
	return rc;
}

/* Finds the marked pages of the copied range; *out is new memory. A process number may be reused,
 * but a mark there is always ours. */
static int find_marked(const struct vv_precopy_process *one, struct vv_marks_found **out, size_t *n)
{
	static const struct vv_marks_query marked = {
		.all = VV_MARKS_WATCHED, .none = VV_MARKS_WRITTEN | VV_MARKS_FILE | VV_MARKS_ZERO, .any = VV_MARKS_PRESENT | VV_MARKS_SWAPPED,
	};
	uint64_t lo = one->span[0].lo, hi = one->span[one->n - 1].hi;
	int pagemap = open_of(one->pid, "pagemap"), rc = pagemap < 0 ? vv_err_set(VV_ENOTSUP, "it has ended") : 0;
	size_t cap = 0, got;

	while (rc == 0 && lo < hi) {
		if (*n > PIECES)
			rc = vv_err_set(VV_ENOTSUP, "what holds of the copy is in too many pieces");
		while (rc == 0 && cap < *n + VV_MARKS_AT_ONCE)
			rc = vv_mem_room(out, cap, &cap, sizeof(**out));
		if (rc == 0 && vv_marks_find(pagemap, &marked, &lo, hi, *out + *n, &got))
			rc = vv_err_set(VV_ENOTSUP, "its pages cannot be looked at");
		*n += rc ? 0 : got;
	}
	if (pagemap >= 0)
		close(pagemap);
	return rc;
}

static int look(struct vv_precopy_process *one)
{
	struct vv_precopy_process cuts = { .pid = one->pid, .uffd = -1 };
	struct vv_marks_found *marked = NULL;
	const struct vv_marks_found *at;
	size_t n = 0, held = 0;
	int rc = one->n ? find_marked(one, &marked, &n) : vv_err_set(VV_ENOTSUP, "nothing of it could be copied, or the copy had to make room");

	at = marked;
	for (size_t i = 0; rc == 0 && i < one->n; i++)
		rc = cut(&cuts, one->span[i], &at, marked + n);
	for (size_t i = 0; i < cuts.n; i++)
		held += cuts.span[i].is_unchanged ? (size_t)(cuts.span[i].hi - cuts.span[i].lo) : 0;
	vv_mem_free(marked);
	if (rc == 0 && held < vv_process_tree_own(one->pid) / WORTH)
		rc = vv_err_set(VV_ENOTSUP, "too little of its copy still holds: it writes faster than it can be copied, or has changed altogether");
	if (rc == 0) {
		vv_mem_free(one->span);
		one->span = cuts.span;
		one->n = cuts.n;
		one->cap = cuts.cap;
	} else {
		vv_mem_free(cuts.span);
	}
	return rc;
}

const struct vv_precopy_process *vv_precopy_check(struct vv_precopy *p, pid_t pid, size_t *from, size_t *len)
{
	size_t i = 0;

	*from = *len = 0;
	while (i < p->n && p->process[i].pid != pid)
		i++;
	if (i == p->n)
		return NULL;
	if (look(&p->process[i]) == 0)
		return &p->process[i];
	note(p, pid);
	*from = p->process[i].from;
	*len = p->process[i].len;
	drop(&p->process[i]);
	return NULL;
}

const struct vv_precopy_span *vv_precopy_find(const struct vv_precopy_process *one, uint64_t addr)
{
	size_t i;

	VV_SEARCH(i, 0, one->n, one->span[i].hi <= addr);
	return i < one->n ? &one->span[i] : NULL;
}

/* ---- closing --------------------------------------------------------------------------------- */

void vv_precopy_forget(struct vv_precopy *p)
{
	for (size_t i = 0; i < p->n; i++)
		p->process[i].n = p->process[i].len = 0;
}

void vv_precopy_disarm(struct vv_precopy *p)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->process[i].uffd >= 0)
			close(p->process[i].uffd);
		p->process[i].uffd = -1;
	}
}

void vv_precopy_close(struct vv_precopy *p)
{
	for (size_t i = 0; i < p->n; i++)
		drop(&p->process[i]);
	vv_mem_free(p->process);
	*p = (struct vv_precopy){ 0 };
}
