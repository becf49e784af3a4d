/* Access rights are read from /proc/thread-self/maps and restored from it. Memory that is
 * write-protected for a checkpoint looks the same there. So that protection is removed first. */
#include "track/make_writable.h"
#include "base/err.h"
#include "base/mem.h"
#include "track/write_protect.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct vv_make_writable_piece {
	uintptr_t lo, hi;
	int rights;
};

struct reopen_search {
	struct vv_make_writable *writable;
	struct vv_memory_range *bad;
	int rc;
};

static int cannot(struct reopen_search *s, uintptr_t lo, uintptr_t hi, const char *why)
{
	*s->bad = (struct vv_memory_range){ lo, hi, false };
	return vv_err_set(VV_EINVAL, "%zu bytes at %p %s", (size_t)(hi - lo), (void *)lo, why);
}

static int rights_of(const struct vv_memory_map *m)
{
	return (m->mode[0] == 'r' ? PROT_READ : 0) | (m->mode[1] == 'w' ? PROT_WRITE : 0) | (m->mode[2] == 'x' ? PROT_EXEC : 0);
}

static bool add_protected(void *arg, uintptr_t lo, uintptr_t hi, const struct vv_memory_map *m)
{
	struct reopen_search *s = arg;
	struct vv_make_writable *l = s->writable;

	if (m && vv_memory_is_writable(m))
		return true;
	if (!m)
		s->rc = cannot(s, lo, hi, "are not mapped");
	else if (m->mode[3] != 'p')
		s->rc = cannot(s, lo, hi, "may not be written: they are mapped shared, and read-only");
	else
		s->rc = vv_mem_room(&l->v, l->n, &l->cap, sizeof(*l->v));
	if (s->rc == 0)
		l->v[l->n++] = (struct vv_make_writable_piece){ lo, hi, rights_of(m) };
	return s->rc == 0;
}

/* Some systems do not allow memory to be both writable and executable. */
static int open_piece(struct reopen_search *s, const struct vv_make_writable_piece *p)
{
	int open = PROT_READ | PROT_WRITE, error;
	char why[128];

	if (vv_memory_set_rights(p->lo, p->hi, open | p->rights) == 0 || vv_memory_set_rights(p->lo, p->hi, open) == 0)
		return 0;
	error = errno;
	snprintf(why, sizeof(why), "may not be written: mprotect: %s", strerror(error));
	return cannot(s, p->lo, p->hi, why);
}

static int protect_piece(const struct vv_make_writable_piece *p)
{
	if (p->rights & PROT_EXEC)
		__builtin___clear_cache((char *)p->lo, (char *)p->hi);
	return vv_memory_set_rights(p->lo, p->hi, p->rights);
}

static void find(struct reopen_search *s, const struct vv_memory_range *r, size_t n)
{
	s->rc = 0;
	vv_memory_walk(r, n, add_protected, s);
}

int vv_make_writable_begin(struct vv_make_writable *l, struct vv_memory_range *r, size_t n, struct vv_memory_range *bad)
{
	struct reopen_search s = { .writable = l, .bad = bad };
	size_t before = l->n, opened = before;

	n = vv_memory_tidy(r, n);
	find(&s, r, n);
	if (s.rc == 0 && l->n > before) {
		vv_write_protect_begin_syscall((void *)l->v[before].lo, l->v[l->n - 1].hi - l->v[before].lo);
		l->entered++;
		l->n = before;
		find(&s, r, n);
	}
	while (s.rc == 0 && opened < l->n) {
		s.rc = open_piece(&s, &l->v[opened]);
		opened += s.rc == 0;
	}
	while (s.rc && opened > before)
		protect_piece(&l->v[--opened]);
	l->n = opened;
	return s.rc;
}

int vv_make_writable_end(struct vv_make_writable *l)
{
	int rc = 0;

	for (size_t i = l->n; i-- > 0;)
		if (protect_piece(&l->v[i]) != 0)
			rc = vv_err_sys(errno, "%zu bytes at %p stay writable, which they were not: mprotect", (size_t)(l->v[i].hi - l->v[i].lo),
					(void *)l->v[i].lo);
	for (; l->entered; l->entered--)
		vv_write_protect_end_syscall();
	vv_mem_free(l->v);
	*l = (struct vv_make_writable){ 0 };
	return rc;
}
