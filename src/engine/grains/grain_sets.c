#include "engine/grains/grain_sets.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/read/device_restore.h"
#include "engine/grains/repeats.h"
#include "engine/options.h"
#include "engine/lost_memory.h"
#include "engine/grains/written_pages.h"
#include "track/write_protect.h"
#include "track/memory.h"
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum {
	GRAIN_DEVICE = 256, /* bytes, the default */
	NAMED = 4,          /* regions named in a message */
};

/* ---- the choice of regions and methods ------------------------------------------------------- */

static bool same_key(const struct vv_fine_key *a, const struct vv_fine_key *b)
{
	return a->space == b->space && a->device == b->device && a->method == b->method && a->grain == b->grain;
}

int vv_grain_sets_method(const char *name)
{
	for (int m = VV_METHOD_FULL; m <= VV_METHOD_RUN; m++)
		if (strcmp(vv_grain_method_name((enum vv_method)m), name) == 0)
			return m;
	return -1;
}

int vv_grain_sets_check(const char *what, uint64_t grain)
{
	if (grain >= VV_GRAIN_MIN && grain <= VV_GRAIN_MAX && (grain & (grain - 1)) == 0)
		return 0;
	return vv_err_set(VV_EINVAL, "%s: a grain has %d to %d bytes, a power of two, not %" PRIu64, what, VV_GRAIN_MIN, VV_GRAIN_MAX, grain);
}

int vv_grain_sets_choose(struct varve *v, const struct vv_region *r, const char *name, const void *p, size_t len,
		     struct vv_fine_key *key)
{
	const struct vv_space *space;
	uint64_t grain = r && r->refined ? r->grain : v->ctx.grain;

	*key = (struct vv_fine_key){ .space = vv_space_host() };
	key->method = (enum vv_method)(r && r->refined ? r->method : v->ctx.method);
	space = vv_device_restore_space(p, len, &key->device);
	if (space && !grain)
		grain = GRAIN_DEVICE;
	key->space = space ? space : key->space;
	key->grain = (uint32_t)grain;
	return grain ? vv_grain_sets_check(name, grain) : 0;
}

void vv_grain_sets_leave(struct vv_region *r)
{
	struct vv_fine *f = r->fine;

	if (!f)
		return;
	if (f->set)
		f->set->region[f->k] = NULL;
	vv_written_pages_end(f);
	vv_shared_runs_unref(f->table);
	vv_shared_runs_unref(f->next);
	vv_mem_unmap(f->host_copy, f->host_copy_len);
	vv_mem_free(f);
	r->fine = NULL;
	r->space = NULL;
}

static int make_grains(struct varve *v)
{
	if (v->grains)
		return 0;
	v->grains = vv_mem_new(1, sizeof(*v->grains));
	if (!v->grains)
		return VV_ENOMEM;
	vv_new_data_init(&v->grains->new_data, v);
	return 0;
}

int vv_grain_sets_assign(struct varve *v, struct vv_region *r, const struct vv_fine_key *key)
{
	struct vv_fine *f = r->fine;

	if (f && same_key(&f->key, key))
		return 0;
	if (!key->grain) {
		vv_grain_sets_leave(r);
		return 0;
	}
	if (make_grains(v) < 0)
		return VV_ENOMEM;
	f = vv_mem_new(1, sizeof(*f));
	if (!f)
		return VV_ENOMEM;
	vv_grain_sets_leave(r);
	f->key = *key;
	f->id = ++v->grains->last_id;
	r->fine = f;
	r->space = key->space;
	r->device = key->device;
	return 0;
}

static void forget_places(struct vv_set *s)
{
	for (size_t i = 0; i < s->n_locations; i++)
		vv_shared_runs_unref(s->location[i].shared_runs);
	s->n_locations = 0;
}

void vv_grain_sets_close_sieve(struct vv_set *s)
{
	if (s->sieve)
		s->space->close(s->sieve);
	s->sieve = NULL;
	s->space = s->key.space;
	s->is_rehashing = false;
	forget_places(s);
}

void vv_grain_sets_forget(struct varve *v)
{
	for (size_t i = 0; v->grains && i < v->grains->n; i++)
		vv_grain_sets_close_sieve(v->grains->set[i]);
	for (size_t i = 0; i < v->n_regions; i++)
		if (v->region[i]->fine)
			v->region[i]->fine->tail_known = false;
}

static void free_set(struct vv_set *s)
{
	vv_grain_sets_close_sieve(s);
	vv_run_fini(&s->now.found);
	vv_mem_free(s->location);
	vv_mem_free(s->region);
	vv_mem_free(s->span);
	vv_mem_free(s->now.piece);
	vv_mem_free(s->now.repeat);
	vv_mem_free(s);
}

void vv_grain_sets_free(struct varve *v)
{
	struct vv_grain_sets *g = v->grains;
	bool mine = v->entry.pid == getpid();

	if (!g)
		return;
	for (size_t i = 0; i < v->n_regions; i++) {
		struct vv_fine *f = v->region[i]->fine;

		if (!f)
			continue;
		f->set = NULL;
		f->scan = mine ? f->scan : NULL;
		vv_written_pages_end(f);
	}
	for (size_t i = 0; i < g->n; i++) {
		const struct vv_set *s = g->set[i];

		/* A device is not usable in a child of fork. A sieve that the parent's thread was
		 * working on is not consistent there. So neither is freed. */
		if (mine || (s->space == vv_space_host() && !s->is_rehashing))
			free_set(g->set[i]);
	}
	vv_mem_free(g->set);
	if (mine || g->new_data.space == vv_space_host())
		vv_new_data_fini(&g->new_data);
	vv_mem_free(g);
	v->grains = NULL;
}

/* ---- sets ------------------------------------------------------------------------------------ */

/* Sets with large grains come first, so that the data of each set begin at a multiple of its
 * grain. */
static int add_set(struct vv_grain_sets *g, const struct vv_fine_key *key, struct vv_set **out)
{
	struct vv_set *s;
	size_t at = 0;

	if (vv_mem_room(&g->set, g->n, &g->cap, sizeof(struct vv_set *)) < 0)
		return VV_ENOMEM;
	s = vv_mem_new(1, sizeof(*s));
	if (!s)
		return VV_ENOMEM;
	s->key = *key;
	s->space = key->space;
	while (at < g->n && g->set[at]->key.grain >= key->grain)
		at++;
	memmove(&g->set[at + 1], &g->set[at], (g->n - at) * sizeof(struct vv_set *));
	g->set[at] = s;
	g->n++;
	*out = s;
	return 0;
}

static int join_set(struct varve *v, struct vv_region *r)
{
	struct vv_grain_sets *g = v->grains;
	struct vv_set *s = NULL;
	size_t cap;

	for (size_t i = 0; i < g->n; i++)
		if (same_key(&g->set[i]->key, &r->fine->key))
			s = g->set[i];
	if (!s && add_set(g, &r->fine->key, &s) < 0)
		return VV_ENOMEM;
	cap = s->cap;
	if (vv_mem_room(&s->region, s->n, &cap, sizeof(struct vv_region *)) < 0)
		return VV_ENOMEM;
	if (vv_mem_room(&s->span, s->n, &s->cap, sizeof(*s->span)) < 0)
		return VV_ENOMEM;
	s->span[s->n] = (struct vv_span){ .id = r->fine->id, .p = r->p, .len = r->shape.len };
	r->fine->set = s;
	r->fine->k = s->n;
	s->region[s->n++] = r;
	return 0;
}

/* Drops a set without regions. */
static void drop_set(struct vv_grain_sets *g, size_t i)
{
	free_set(g->set[i]);
	memmove(&g->set[i], &g->set[i + 1], (g->n - i - 1) * sizeof(struct vv_set *));
	g->n--;
}

int vv_grain_sets_gather(struct varve *v)
{
	struct vv_grain_sets *g = v->grains;
	int rc = 0;

	for (size_t i = 0; i < g->n; i++)
		g->set[i]->n = 0;
	for (size_t i = 0; rc == 0 && i < v->n_regions; i++)
		if (v->region[i]->fine)
			rc = join_set(v, v->region[i]);
	for (size_t i = g->n; rc == 0 && i-- > 0;)
		if (g->set[i]->n == 0)
			drop_set(g, i);
	for (size_t i = 0; rc == 0 && i < g->n; i++)
		rc = vv_grain_number_spans(g->set[i]->span, g->set[i]->n, g->set[i]->key.grain, &g->set[i]->end);
	return rc;
}

/* ---- sieves ---------------------------------------------------------------------------------- */

/* Is the history option a share of the regions, and not a fixed size? */
static bool shares(const struct varve *v)
{
	return vv_options_history(&v->ctx.conf, 0, 0) != vv_options_history(&v->ctx.conf, 0, UINT32_MAX);
}

/* The memory that a set may use in addition to its regions. A set that has grown much gets a new
 * sieve. */
static uint64_t budget_of(const struct varve *v, const struct vv_set *s)
{
	enum { LEAST_SHARE = 64 << 20 };
	uint64_t bytes = 0, budget;

	for (size_t i = 0; i < s->n; i++)
		bytes += s->span[i].len;
	budget = vv_options_history(&v->ctx.conf, 0, bytes);
	return shares(v) && budget < LEAST_SHARE ? LEAST_SHARE : budget;
}

static int try_sieve(struct varve *v, struct vv_set *s, const struct vv_space *space)
{
	enum { STATES = 4 }; /* the minimum of a share is large for a small set */
	struct vv_sieve_options opt = {
		.method = s->key.method,
		.chunk = s->key.grain,
		.digest_kind = v->ctx.digest_kind,
		.memory = s->budget,
		.states = shares(v) ? STATES : 0,
		.compare = strcmp(vv_conf_text(&v->ctx.conf, "verify"), "bytes") == 0,
		.device = s->key.device,
		.guard = vv_write_protect_try_read,
	};

	s->space = space;
	return space->open(&opt, v->ctx.pool, &s->sieve);
}

/* If a device lacks memory or the chosen digest, the host does the work. */
int vv_grain_sets_fall_back(struct varve *v, struct vv_set *s)
{
	vv_log_warn("regions on device %d are copied to the host whole at every checkpoint: %s", s->key.device, vv_err_last());
	vv_grain_sets_close_sieve(s);
	return try_sieve(v, s, vv_space_host());
}

int vv_grain_sets_open_sieve(struct varve *v, struct vv_set *s, bool reopen)
{
	uint64_t budget = budget_of(v, s);
	int rc;

	if (s->sieve && (budget / 2 > s->budget || (reopen && s->space != s->key.space)))
		vv_grain_sets_close_sieve(s);
	if (s->sieve)
		return 0;
	s->budget = budget;
	rc = try_sieve(v, s, s->key.space);
	if ((rc == VV_ENOMEM || rc == VV_ENOTSUP) && s->key.space != vv_space_host())
		rc = vv_grain_sets_fall_back(v, s);
	return rc;
}

/* ---- new data -------------------------------------------------------------------------------- */

struct grain_sets_taking {
	struct vv_new_data *stream;
	struct vv_set *set;
};

static uint8_t *take_room(void *arg, size_t want, size_t *got)
{
	struct grain_sets_taking *t = arg;

	return vv_new_data_room(t->stream, want, got);
}

static int take_data(void *arg, const uint8_t *p, size_t len)
{
	struct grain_sets_taking *t = arg;

	(void)p;
	vv_new_data_filled(t->stream, len);
	return 0;
}

static int take_pieces(void *arg, const struct vv_piece *piece, size_t n)
{
	struct vv_set *s = ((struct grain_sets_taking *)arg)->set;

	if (s->now.n_pieces + n > s->now.pieces_cap) {
		size_t cap = s->now.n_pieces + n + s->now.pieces_cap / 2;
		struct vv_piece *v = vv_mem_grow(s->now.piece, cap, sizeof(*v));

		if (!v)
			return VV_ENOMEM;
		s->now.piece = v;
		s->now.pieces_cap = cap;
	}
	if (n)
		memcpy(s->now.piece + s->now.n_pieces, piece, n * sizeof(*piece));
	s->now.n_pieces += n;
	return 0;
}

int vv_grain_sets_copy_to_host(struct vv_set *s)
{
	for (size_t i = 0; s->space != s->key.space && i < s->n; i++) {
		struct vv_fine *f = s->region[i]->fine;
		int rc;

		if (f->host_copy_len != s->span[i].len) {
			vv_mem_unmap(f->host_copy, f->host_copy_len);
			f->host_copy = vv_mem_map((size_t)s->span[i].len);
			f->host_copy_len = f->host_copy ? (size_t)s->span[i].len : 0;
			if (!f->host_copy && s->span[i].len)
				return VV_ENOMEM;
		}
		rc = s->key.space->copy_out(f->host_copy, s->region[i]->p, f->host_copy_len);
		if (rc)
			return rc;
		s->span[i].p = f->host_copy;
	}
	return 0;
}

/* Finds the pages that may have been written since the last call, and starts again. */
static void look_at_pages(struct varve *v, struct vv_set *s)
{
	for (size_t i = 0; s->key.space == vv_space_host() && i < s->n; i++)
		s->span[i].maybe = vv_written_pages_collect(v, s->region[i]);
}

void vv_grain_sets_stop_watching(struct varve *v)
{
	for (size_t i = 0; i < v->n_regions; i++)
		if (v->region[i]->fine)
			vv_written_pages_end(v->region[i]->fine);
}

static void touch(void *arg)
{
	const struct vv_region *r = arg;

	for (uint64_t at = 0; at < r->shape.len; at += vv_memory_page())
		(void)*(volatile const uint8_t *)(r->p + at);
}

/* Finds the region whose memory could not be read. */
static int blame(struct vv_set *s, int rc)
{
	struct vv_err_state error;

	vv_err_save(rc, &error);
	for (size_t i = 0; s->key.space == vv_space_host() && i < s->n; i++)
		if (vv_write_protect_try_read(touch, s->region[i]) < 0)
			return vv_lost_memory_error(s->region[i]);
	rc = vv_err_restore(&error);
	for (size_t i = 0; rc == VV_EDAMAGED && i < s->n && i < NAMED; i++)
		vv_err_context(rc, "region %" PRIu64 " is '%s'", s->span[i].id, s->region[i]->name);
	return rc;
}

static uint8_t common_type(const struct vv_set *s)
{
	for (size_t i = 1; i < s->n; i++)
		if (s->region[i]->shape.type != s->region[0]->shape.type)
			return VV_TYPE_BYTES;
	return s->region[0]->shape.type;
}

static int pass(struct varve *v, struct vv_set *s)
{
	struct grain_sets_taking t = { &v->grains->new_data, s };
	struct vv_sink sink = { &t, take_room, take_data, take_pieces };
	int rc = vv_grain_sets_open_sieve(v, s, false);

	if (rc == 0)
		rc = vv_grain_sets_copy_to_host(s);
	if (rc)
		return rc;
	look_at_pages(v, s);
	s->now.passed = true;
	s->now.n_pieces = 0;
	s->now.type = common_type(s);
	s->now.data_end = UINT64_MAX;
	t.stream->failed = 0;
	s->now.data = t.stream->len;
	rc = s->space->pass(s->sieve, s->span, s->n, ++s->ordinal, &sink);
	s->now.data_end = t.stream->len;
	if (rc == 0)
		return 0;
	return t.stream->failed ? t.stream->failed : blame(s, rc);
}

/* If the device runs out of memory during the pass, nothing of value is lost. The host begins again
 * with all data. */
static int take_set(struct varve *v, struct vv_set *s)
{
	struct vv_new_data *stream = &v->grains->new_data;
	uint64_t len = stream->len;
	int rc;

	if (s->ordinal + 2 >= VV_GRAIN_ORDINALS) {
		vv_grain_sets_close_sieve(s);
		s->ordinal = 0;
	}
	rc = pass(v, s);
	if (rc == VV_ENOMEM && s->space != vv_space_host()) {
		vv_new_data_rewind(stream, len);
		rc = vv_grain_sets_fall_back(v, s);
		if (rc == 0)
			rc = pass(v, s);
	}
	return rc;
}

static void count(struct vv_layer_writer *p, const struct vv_set *s)
{
	const struct vv_sieve_counts *c = &s->sieve->counts;

	p->st.bytes_dirty += c->changed * s->key.grain;
	p->st.bytes_zero += c->zero * s->key.grain;
	p->st.bytes_dup_space += c->known_here * s->key.grain;
	p->st.bytes_dup_time += (c->known - c->known_here) * s->key.grain;
}

struct grain_sets_reading {
	const struct vv_region *region;
	uint8_t *to;
	size_t n;
	int rc;
};

static void read_end(void *arg)
{
	struct grain_sets_reading *x = arg;

	x->rc = x->region->fine->key.space->copy_out(x->to, x->region->p + x->region->shape.len - x->n, x->n);
}

int vv_grain_sets_read_tail(const struct vv_region *r, uint8_t bytes[VV_GRAIN_MAX], size_t *n)
{
	struct grain_sets_reading x = { r, bytes, (size_t)(r->shape.len % r->fine->key.grain), 0 };
	int rc = x.n ? vv_write_protect_try_read(read_end, &x) : 0;

	*n = x.n;
	return rc ? rc : x.rc;
}

/* A tail of less than a grain is compared as one unit. */
static int take_tail(struct vv_layer_writer *p, struct vv_region *r)
{
	static const uint8_t zero[VV_GRAIN_MAX];
	struct vv_new_data *stream = &p->v->grains->new_data;
	struct vv_fine *f = r->fine;
	uint8_t bytes[VV_GRAIN_MAX];
	struct vv_digest d;
	size_t n;
	int rc = vv_grain_sets_read_tail(r, bytes, &n);

	f->tail_is = VV_TAIL_SAME;
	if (rc || !n)
		return rc;
	p->v->ctx.digest(bytes, n, &d);
	if (f->tail_known && f->len == r->shape.len && vv_digest_equal(&d, &f->tail))
		return 0;
	f->tail = d;
	f->tail_known = true;
	f->tail_at = stream->len;
	f->tail_is = memcmp(bytes, zero, n) == 0 ? VV_TAIL_ZERO : VV_TAIL_NEW;
	p->st.bytes_dirty += n;
	if (f->tail_is == VV_TAIL_NEW)
		return vv_new_data_append(stream, bytes, n);
	p->st.bytes_zero += n;
	return 0;
}

static const struct vv_space *most_special(const struct vv_grain_sets *g, int *device)
{
	const struct vv_space *space = vv_space_host();

	*device = 0;
	for (size_t i = 0; i < g->n; i++) {
		if (g->set[i]->key.space == vv_space_host())
			continue;
		space = g->set[i]->key.space;
		*device = g->set[i]->key.device;
	}
	return space;
}

static int check_mapped(const struct varve *v)
{
	for (size_t i = 0; i < v->n_regions; i++) {
		const struct vv_region *r = v->region[i];
		bool host = r->fine && r->fine->key.space == vv_space_host();

		if ((host && !vv_memory_mapped(r->p, r->shape.len)) || vv_lost_memory_on_device(r))
			return vv_lost_memory_error(r);
	}
	return 0;
}

static int take_all(struct vv_layer_writer *p)
{
	struct varve *v = p->v;
	struct vv_grain_sets *g = v->grains;
	const struct vv_space *space;
	int device, rc = check_mapped(v);

	if (rc == 0)
		rc = vv_grain_sets_gather(v);
	space = most_special(g, &device);
	if (rc == 0)
		rc = vv_new_data_begin(p, space, device);
	for (size_t i = 0; rc == 0 && i < g->n; i++) {
		struct vv_set *s = g->set[i];

		rc = s->key.space->sync(s->key.device, g->cuda_stream);
		if (rc == 0)
			rc = take_set(v, s);
		if (rc == 0)
			count(p, s);
	}
	for (size_t i = 0; rc == 0 && i < g->n; i++)
		rc = vv_repeats_find(p, g->set[i]);
	for (size_t i = 0; rc == 0 && i < v->n_regions; i++)
		if (v->region[i]->fine)
			rc = take_tail(p, v->region[i]);
	if (rc == 0)
		rc = vv_new_data_end(&g->new_data);
	p->chunks += g->new_data.pages.n_chunks;
	p->st.bytes_copied += g->new_data.len;
	return rc;
}

int vv_grain_sets_take(struct vv_layer_writer *p)
{
	return p->v->grains ? take_all(p) : 0;
}
