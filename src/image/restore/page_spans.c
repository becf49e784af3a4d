#include "image/restore/page_spans.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include <string.h>

void vv_page_spans_fini(struct vv_page_spans *s)
{
	vv_mem_free(s->v);
	*s = (struct vv_page_spans){ 0 };
}

/* Returns the first span that ends behind an address. */
static size_t search(const struct vv_page_spans *s, uint64_t addr)
{
	size_t i;

	VV_SEARCH(i, 0, s->n, s->v[i].hi <= addr);
	return i;
}

static int insert(struct vv_page_spans *s, size_t i, struct vv_page_span span)
{
	int rc = vv_mem_room(&s->v, s->n, &s->cap, sizeof(*s->v));

	if (rc)
		return rc;
	memmove(&s->v[i + 1], &s->v[i], (s->n - i) * sizeof(*s->v));
	s->v[i] = span;
	s->n++;
	return 0;
}

static void erase(struct vv_page_spans *s, size_t i, size_t n)
{
	if (n)
		memmove(&s->v[i], &s->v[i + n], (s->n - i - n) * sizeof(*s->v));
	s->n -= n;
}

int vv_page_spans_add(struct vv_page_spans *s, struct vv_page_span span)
{
	if (span.lo >= span.hi || (s->n && s->v[s->n - 1].hi > span.lo))
		return vv_err_set(VV_EINVAL, "stretches of memory are not in order");
	return insert(s, s->n, span);
}

const struct vv_page_span *vv_page_spans_find(const struct vv_page_spans *s, uint64_t addr)
{
	size_t i = search(s, addr);

	return i < s->n && s->v[i].lo <= addr ? &s->v[i] : NULL;
}

/* Splits a span, so that none contains the address in its interior. */
static int split(struct vv_page_spans *s, uint64_t addr)
{
	size_t i = search(s, addr);
	struct vv_page_span x = i < s->n ? s->v[i] : (struct vv_page_span){ 0 };
	int rc;

	if (x.lo >= addr || x.hi <= addr)
		return 0;
	rc = insert(s, i + 1, (struct vv_page_span){ addr, x.hi, x.at + (addr - x.lo) });
	if (rc == 0) /* else nothing has changed */
		s->v[i].hi = addr;
	return rc;
}

int vv_page_spans_drop(struct vv_page_spans *s, uint64_t lo, uint64_t hi)
{
	int rc = split(s, lo);
	size_t first, n = 0;

	if (rc == 0)
		rc = split(s, hi);
	if (rc)
		return rc;
	first = search(s, lo);
	while (first + n < s->n && s->v[first + n].lo < hi)
		n++;
	erase(s, first, n);
	return 0;
}

static int take_out(struct vv_page_spans *s, uint64_t lo, uint64_t hi, struct vv_page_spans *out)
{
	int rc = split(s, lo);

	if (rc == 0)
		rc = split(s, hi);
	for (size_t i = search(s, lo); rc == 0 && i < s->n && s->v[i].lo < hi; i++)
		rc = vv_page_spans_add(out, s->v[i]);
	return rc ? rc : vv_page_spans_drop(s, lo, hi);
}

int vv_page_spans_move(struct vv_page_spans *s, uint64_t from, uint64_t to, uint64_t len)
{
	struct vv_page_spans moved = { 0 };
	int rc = take_out(s, from, from + len, &moved);

	if (rc == 0)
		/* The previous pages there are unmapped. */
		rc = vv_page_spans_drop(s, to, to + len);
	for (size_t i = 0; rc == 0 && i < moved.n; i++) {
		struct vv_page_span x = { moved.v[i].lo - from + to, moved.v[i].hi - from + to, moved.v[i].at };

		rc = insert(s, search(s, x.lo), x);
	}
	vv_page_spans_fini(&moved);
	return rc;
}

int vv_page_spans_copy(const struct vv_page_spans *s, struct vv_page_spans *out)
{
	int rc = 0;

	*out = (struct vv_page_spans){ 0 };
	for (size_t i = 0; rc == 0 && i < s->n; i++)
		rc = vv_page_spans_add(out, s->v[i]);
	if (rc)
		vv_page_spans_fini(out);
	return rc;
}
