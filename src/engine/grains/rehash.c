/* After a restart the bytes are restored, but hashing two million grains takes longer than that. So
 * the program continues, and memory is hashed in the background. The kernel reports pages written
 * meanwhile (engine/grains/written_pages.h). These are read again from the restored epoch. */
#include "engine/grains/rehash.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/lineage/run_table.h"
#include "engine/read/device_buffers.h"
#include "engine/threads.h"
#include "engine/ranks/group.h"
#include "engine/read/restore.h"
#include "engine/grains/written_pages.h"
#include "engine/grains/grain_runs.h"
#include <stdatomic.h>
#include <string.h>

enum {
	BLOCK = 4096,      /* of vv_fine.maybe */
	/* Bytes that are hashed before the kernel is asked for written pages. */
	STEP = 8 << 20,
	AGAIN = 32 << 20,  /* bytes that are read again at a time */
};

/* ---- usable grains of the tables ------------------------------------------------------------- */

struct relearn_ranges {
	struct vv_number_range *v;
	size_t n, cap;
};

static int add_range(struct relearn_ranges *out, uint32_t at, uint32_t n)
{
	struct vv_number_range *last = out->n ? &out->v[out->n - 1] : NULL;

	if (last && last->at + last->len == at) {
		last->len += n;
		return 0;
	}
	if (vv_mem_room(&out->v, out->n, &out->cap, sizeof(*out->v)) < 0)
		return VV_ENOMEM;
	out->v[out->n++] = (struct vv_number_range){ at, n };
	return 0;
}

/* The complete grains of a nonzero run are usable, under their own numbers. */
static int use_run(const struct vv_set *s, const struct vv_span *span, const struct vv_run *run, struct relearn_ranges *out)
{
	uint64_t c = s->key.grain, lo = (run->at + c - 1) / c, hi = (run->at + run->len) / c;

	hi = hi < span->n ? hi : span->n;
	if (!run->layer || lo >= hi)
		return 0;
	return add_range(out, span->first + (uint32_t)lo, (uint32_t)(hi - lo));
}

struct use { /* some runs of a region's table */
	const struct vv_span *span;
	const struct vv_run *run;
	size_t n;
	struct relearn_ranges found;
	int rc;
};

struct uses {
	const struct vv_set *set;
	struct use *v;
	size_t n, cap;
};

static void use_some(void *arg, size_t i)
{
	struct uses *all = arg;
	struct use *u = &all->v[i];

	for (size_t k = 0; u->rc == 0 && k < u->n; k++)
		u->rc = use_run(all->set, u->span, &u->run[k], &u->found);
}

static int cut_tables(struct uses *all)
{
	enum { SHARE = 32 << 10 };
	const struct vv_set *s = all->set;

	for (size_t i = 0; i < s->n; i++) {
		const struct vv_shared_runs *table = s->region[i] ? s->region[i]->fine->table : NULL;

		for (size_t k = 0; table && k < table->runs.n; k += SHARE) {
			size_t n = table->runs.n - k < SHARE ? table->runs.n - k : SHARE;

			if (vv_mem_room(&all->v, all->n, &all->cap, sizeof(*all->v)) < 0)
				return VV_ENOMEM;
			all->v[all->n++] = (struct use){ .span = &s->span[i], .run = &table->runs.v[k], .n = n };
		}
	}
	return 0;
}

/* Concatenates the ranges. A range that was split is joined again. */
static int join_ranges(const struct uses *all, struct relearn_ranges *out)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++) {
		if (all->v[i].rc)
			return vv_err_set(VV_ENOMEM, "out of memory (grains of %zu runs)", all->v[i].n);
		n += all->v[i].found.n;
	}
	out->v = vv_mem_grow(NULL, n, sizeof(*out->v));
	if (!out->v)
		return VV_ENOMEM;
	out->cap = n;
	for (size_t i = 0; i < all->n; i++) {
		const struct relearn_ranges *r = &all->v[i].found;

		if (r->n == 0)
			continue;
		add_range(out, r->v[0].at, r->v[0].len); /* there is room for all */
		memcpy(out->v + out->n, r->v + 1, (r->n - 1) * sizeof(*r->v));
		out->n += r->n - 1;
	}
	return 0;
}

/* Finds the usable grains of the tables. */
static int use_tables(const struct vv_set *s, struct vv_pool *pool, struct relearn_ranges *out)
{
	struct vv_parallel_for loop = vv_pool_loop(pool);
	struct uses all = { .set = s };
	int rc = cut_tables(&all);

	if (rc == 0) {
		vv_parallel_for_each(&loop, all.n, use_some, &all);
		rc = join_ranges(&all, out);
	}
	for (size_t i = 0; i < all.n; i++)
		vv_mem_free(all.v[i].found.v);
	vv_mem_free(all.v);
	return rc;
}

/* ---- known content from the tables ----------------------------------------------------------- */

/* Sets the locations of the set's data from the tables. */
static int place_tables(struct vv_set *s)
{
	uint64_t c = s->key.grain;
	int rc = 0;

	vv_grain_runs_forget_locations(s, 0);
	for (size_t i = 0; rc == 0 && i < s->n; i++) {
		const struct vv_span *span = &s->span[i];

		if (s->region[i] && s->region[i]->fine->table && span->n)
			rc = vv_grain_runs_place(s, span->first * c, (span->first + (uint64_t)span->n) * c, s->region[i]->fine->table);
	}
	return rc;
}

/* Replaces all knowledge of the set by the content of its regions' tables, as the data of one more
 * epoch. */
static int base_on_tables(struct varve *v, struct vv_set *s)
{
	struct relearn_ranges usable = { 0 };
	int rc = vv_threads_start(&v->ctx);

	if (rc == 0)
		rc = vv_run_table_merge(v->tip.table, v->ctx.pool);
	if (rc == 0)
		rc = use_tables(s, v->ctx.pool, &usable);
	s->ordinal++;
	if (rc == 0)
		rc = s->space->adopt(s->sieve, s->ordinal, usable.v, usable.n);
	if (rc == 0)
		rc = place_tables(s);
	vv_mem_free(usable.v);
	return rc;
}

void vv_rehash_after_gc(struct varve *v)
{
	for (size_t i = 0; v->grains && i < v->grains->n; i++) {
		struct vv_set *s = v->grains->set[i];

		if (s->sieve && base_on_tables(v, s) < 0) {
			vv_log_warn("the next checkpoint stores everything again: %s", vv_err_last());
			vv_grain_sets_forget(v);
			return;
		}
	}
}

/* ---- after the return of a restart ----------------------------------------------------------- */

struct grain_list {
	struct vv_grain_bytes *v;
	size_t n, cap;
};

static int add_grain_bytes(struct grain_list *l, uint32_t at, uint32_t len, const uint8_t *bytes)
{
	if (len == 0)
		return 0;
	if (vv_mem_room(&l->v, l->n, &l->cap, sizeof(*l->v)) < 0)
		return VV_ENOMEM;
	l->v[l->n++] = (struct vv_grain_bytes){ at, len, bytes };
	return 0;
}

/* Was the hashing cancelled? */
static bool given_up(const struct varve *v)
{
	return atomic_load(&v->grains->given_up);
}

/* Hashes first and asks then. The kernel removes a page's mark before it lets the first write
 * continue. So a page that still has its mark after it was read was read before any write. Digests
 * of other pages, mixed or torn, are discarded. The atomic counter keeps the reads before the
 * query. It releases, and the kernel acquires the lock of the page table. */
static int hash_memory(const struct varve *v, struct vv_set *s, struct vv_region *r)
{
	const struct vv_fine *f = r->fine;
	const struct vv_span *span = &s->span[f->k];
	uint32_t c = s->key.grain, n;
	int rc = 0;

	for (uint32_t at = f->unhashed; rc == 0 && at < f->unhashed_end && !given_up(v); at += n) {
		struct vv_grain_bytes lesson = { span->first + at, f->unhashed_end - at, span->p + (uint64_t)at * c };

		lesson.len = n = lesson.len < STEP / c ? lesson.len : STEP / c;
		rc = s->space->learn(s->sieve, &lesson, 1);
		atomic_fetch_add(&v->grains->asked, 1);
		if (rc == 0)
			rc = vv_written_pages_peek(r, (uint64_t)at * c, (uint64_t)(at + n) * c);
	}
	return rc;
}

struct again { /* some bytes of a region, read again */
	struct vv_set *set;
	struct vv_region *region;
	struct vv_runs runs;   /* their runs, concatenated */
	struct grain_list lessons;
	uint64_t len;
	uint8_t *room;
};

/* If the bytes cannot be read, they are unknown, and the next checkpoint stores them again. */
static int read_again(struct varve *v, struct again *a)
{
	struct vv_want want = { &a->runs, 0, a->len, a->room, NULL };
	int rc = a->len ? vv_restore_read(&v->ctx.lineage, v->ctx.pool, &want, 1) : 0;

	if (rc) {
		vv_log_info("%llu bytes of region '%s' will be stored once more: %s", (unsigned long long)a->len, a->region->name, vv_err_last());
		vv_err_clear();
	}
	for (size_t i = 0; rc && i < a->lessons.n; i++)
		a->lessons.v[i].bytes = NULL;
	rc = a->set->space->learn(a->set->sieve, a->lessons.v, a->lessons.n);
	a->runs.n = a->lessons.n = 0;
	a->len = 0;
	return rc;
}

/* Adds the region's bytes at..end. */
static int add_again(struct varve *v, struct again *a, uint64_t at, uint64_t end)
{
	const struct vv_fine *f = a->region->fine;
	uint32_t c = a->set->key.grain, first = a->set->span[f->k].first;
	int rc = 0;

	while (rc == 0 && at < end) {
		uint64_t n = end - at < AGAIN - a->len ? end - at : AGAIN - a->len;

		rc = vv_grain_runs_transfer(&f->table->runs, at, n, a->len, &a->runs);
		if (rc == 0)
			rc = add_grain_bytes(&a->lessons, first + (uint32_t)(at / c), (uint32_t)(n / c), a->room + a->len);
		a->len += n;
		at += n;
		if (rc == 0 && a->len == AGAIN)
			rc = read_again(v, a);
	}
	return rc;
}

static bool is_written(const struct vv_fine *f, uint64_t block)
{
	return f->maybe[block / 64] >> block % 64 & 1;
}

/* Hashes from the store all bytes that were, or may have been, written before they were hashed. */
static int hash_stored(struct varve *v, struct vv_set *s, struct vv_region *r, bool all)
{
	const struct vv_fine *f = r->fine;
	uint64_t c = s->key.grain, from = f->unhashed * c, to = f->unhashed_end * c, n;
	struct again a = { .set = s, .region = r, .room = vv_mem_map(AGAIN) };
	int rc = a.room ? 0 : VV_ENOMEM;

	for (uint64_t at = from; rc == 0 && at < to && !given_up(v); at += n) {
		n = BLOCK - at % BLOCK < to - at ? BLOCK - at % BLOCK : to - at;
		if (all || is_written(f, at / BLOCK))
			rc = add_again(v, &a, at, at + n);
	}
	if (rc == 0)
		rc = read_again(v, &a);
	vv_run_fini(&a.runs);
	vv_mem_free(a.lessons.v);
	vv_mem_unmap(a.room, AGAIN);
	return rc;
}

static int hash_region(struct varve *v, struct vv_set *s, struct vv_region *r)
{
	int rc = hash_memory(v, s, r);

	/* The memory is gone or was replaced. The next checkpoint will report it. */
	if (rc)
		vv_err_clear();
	return hash_stored(v, s, r, rc != 0);
}

static int rehash_set(struct varve *v, struct vv_set *s)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->n; i++)
		if (s->region[i]->fine->unhashed < s->region[i]->fine->unhashed_end)
			rc = hash_region(v, s, s->region[i]);
	return rc || given_up(v) ? rc : base_on_tables(v, s);
}

/* Frees the device memory of the restore first, before more of it is needed. */
void vv_rehash_run(struct varve *v)
{
	int rc = 0;

	if (v->device_buffers)
		vv_device_buffers_finish_close(v->device_buffers);
	if (!given_up(v))
		rc = vv_run_table_merge(v->tip.table, v->ctx.pool);
	for (size_t i = 0; i < v->grains->n; i++) {
		struct vv_set *s = v->grains->set[i];

		if (s->is_rehashing && (rc < 0 || rehash_set(v, s) < 0 || given_up(v))) {
			vv_grain_sets_close_sieve(s);
			if (!given_up(v))
				vv_log_warn("the next checkpoint stores regions in grains of %u bytes again: %s", s->key.grain, vv_err_last());
			vv_err_clear();
		}
		s->is_rehashing = false;
	}
}

void vv_rehash_cancel(struct varve *v)
{
	if (v->grains)
		atomic_store(&v->grains->given_up, true);
}

/* ---- before the return of a restart ---------------------------------------------------------- */

/* A region that was not completely read by its table does not take part: all of it is new. */
static int take_table(struct varve *v, struct vv_region *r)
{
	size_t k = vv_run_table_find(v->tip.table, r->name);
	struct vv_fine *f = r->fine;

	f->tail_known = false;
	vv_shared_runs_unref(f->table);
	f->table = NULL;
	f->len = 0;
	if (k == v->tip.table->n || !r->restored)
		return 0;
	f->table = vv_run_table_share(&v->tip.table->region[k]);
	if (!f->table)
		return VV_ENOMEM;
	f->len = r->shape.len;
	return 0;
}

static int adopt_tail(struct varve *v, struct vv_region *r)
{
	struct vv_fine *f = r->fine;
	uint8_t bytes[VV_GRAIN_MAX];
	size_t n;
	int rc = vv_grain_sets_read_tail(r, bytes, &n);

	if (rc == 0 && n) {
		v->ctx.digest(bytes, n, &f->tail);
		f->tail_known = true;
	}
	return rc;
}

/* Can its memory be hashed after the return, because it is watched? This holds for grains in its
 * own pages. If ranks have local stores, one rank alone could not read written pages again. */
static void make_late(struct varve *v, const struct vv_set *s, struct vv_region *r)
{
	struct vv_fine *f = r->fine;
	uintptr_t p = (uintptr_t)r->p;
	uint32_t c = f->key.grain;

	f->unhashed = f->unhashed_end = 0;
	if (!s->is_rehashing || s->key.space != vv_space_host() || (v->ctx.group && v->ctx.group->has_local_stores) || f->key.method == VV_METHOD_FULL || !vv_written_pages_start(v, r))
		return;
	f->unhashed = (uint32_t)((f->lo - p + c - 1) / c);
	f->unhashed_end = (uint32_t)((f->hi - p) / c);
	if (f->unhashed >= f->unhashed_end)
		f->unhashed = f->unhashed_end = 0;
}

/* Hashes the memory that cannot be hashed later. */
static int hash_now(struct varve *v, struct vv_set *s)
{
	struct grain_list l = { 0 };
	int rc = s->space->begin(s->sieve, s->span, s->n);

	for (size_t i = 0; rc == 0 && i < s->n; i++) {
		const struct vv_span *span = &s->span[i];
		const struct vv_fine *f = s->region[i]->fine;

		make_late(v, s, s->region[i]);
		rc = add_grain_bytes(&l, span->first, f->unhashed, span->p);
		if (rc == 0)
			rc = add_grain_bytes(&l, span->first + f->unhashed_end, span->n - f->unhashed_end, span->p + (uint64_t)f->unhashed_end * s->key.grain);
	}
	if (rc == 0)
		rc = s->space->learn(s->sieve, l.v, l.n);
	vv_mem_free(l.v);
	return rc;
}

/* Makes the regions' content known to the sieve, now or later. */
static int adopt_memory(struct varve *v, struct vv_set *s, bool may_be_late)
{
	int rc = vv_grain_sets_copy_to_host(s);

	if (rc)
		return rc;
	s->is_rehashing = may_be_late;
	rc = hash_now(v, s);
	return rc || s->is_rehashing ? rc : base_on_tables(v, s);
}

static int adopt_set(struct varve *v, struct vv_set *s, bool may_be_late)
{
	size_t kept = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->n; i++) {
		struct vv_region *r = s->region[i];

		rc = take_table(v, r);
		if (rc || !r->fine->len) {
			r->fine->set = NULL;
			continue;
		}
		rc = adopt_tail(v, r);
		s->span[kept] = s->span[i];
		s->region[kept] = r;
		r->fine->k = kept++;
	}
	s->n = kept;
	if (rc == 0)
		rc = vv_grain_number_spans(s->span, s->n, s->key.grain, &s->end);
	if (rc == 0)
		rc = vv_grain_sets_open_sieve(v, s, true);
	if (rc == 0)
		rc = adopt_memory(v, s, may_be_late);
	if (rc == VV_ENOMEM && s->space != vv_space_host()) {
		rc = vv_grain_sets_fall_back(v, s);
		if (rc == 0)
			rc = adopt_memory(v, s, may_be_late);
	}
	return rc;
}

/* Forgets all known content. The bytes are restored, though, so only an error of a device is
 * returned. */
static int forget_all(struct varve *v, const struct vv_space *space, int rc)
{
	vv_grain_sets_forget(v);
	if (space != vv_space_host())
		return rc;
	vv_log_warn("the next checkpoint stores everything again: %s", vv_err_last());
	vv_err_clear();
	return 0;
}

int vv_rehash_begin(struct varve *v, bool may_be_late)
{
	struct vv_grain_sets *g = v->grains;
	int rc = g ? vv_grain_sets_gather(v) : 0;

	if (rc)
		return forget_all(v, vv_space_host(), rc);
	for (size_t i = 0; g && i < g->n; i++) {
		rc = adopt_set(v, g->set[i], may_be_late);
		if (rc)
			return forget_all(v, g->set[i]->key.space, rc);
	}
	return 0;
}

bool vv_rehash_is_pending(const struct varve *v)
{
	bool late = false;

	for (size_t i = 0; v->grains && i < v->grains->n; i++)
		late |= v->grains->set[i]->is_rehashing;
	return late;
}

void vv_rehash_drop(struct varve *v)
{
	if (vv_rehash_is_pending(v))
		vv_grain_sets_forget(v);
}
