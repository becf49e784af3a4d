#include "support/script.h"
#include "support/gen.h"
#include "support/settle.h"
#include "vv_test.h"
#include <malloc.h>

enum { GRID, VECTOR, TAIL, GUEST, BIG, COMB };
enum {
	CHUNK = 512,
	GRID_CHUNKS = 48,
	VECTOR_BYTES = 2400,
	TAIL_MAX = 32 << 10,
	GUEST_BYTES = 3000,
	BIG_BYTES = 4500 << 10,
	COMB_BYTES = 192 << 10,
	TOOTH = 32, /* bytes of something, and as many of nothing */
};

static const char *const names[SCRIPT_REGIONS] = { "grid", "vector", "tail", "guest", "big", "comb" };

/* 0: the region is not there in this step. */
static size_t length_of(const struct script *s, int region, unsigned step)
{
	switch (region) {
	case GRID:
		return GRID_CHUNKS * CHUNK;
	case VECTOR:
		return VECTOR_BYTES;
	case TAIL:
		return 1000 + 700 * (step % 32 / 2);
	case GUEST:
		return step % 5 ? GUEST_BYTES : 0;
	case BIG:
		return s->big ? BIG_BYTES : 0;
	default:
		return s->delta ? COMB_BYTES : 0;
	}
}

/* Content number `id`: half of it repeats, so that it can be coded; never zero. */
static void fill_chunk(uint8_t *p, uint64_t id)
{
	uint64_t state = id * 977 + 1;

	for (int i = 0; i < CHUNK; i += 8) {
		uint64_t w = i % 16 ? id : gen_next(&state) | 1;

		memcpy(p + i, &w, sizeof(w));
	}
}

static void grid_chunk(uint8_t *p, unsigned i, unsigned step)
{
	uint64_t place = (uint64_t)i << 32;

	switch (i % 6) {
	case 0: /* never changes */
		fill_chunk(p, place | 1);
		break;
	case 1: /* always new */
		fill_chunk(p, place | (1000 + step));
		break;
	case 2: /* new in every third step */
		fill_chunk(p, place | (1000 + step / 3));
		break;
	case 3: /* comes back after four steps: its epochs were dropped by then */
		fill_chunk(p, place | (2000 + step % 4));
		break;
	case 4:
		if ((step + i / 6) % 2)
			memset(p, 0, CHUNK);
		else
			fill_chunk(p, place | (3000 + step / 2));
		break;
	default: /* the same as its neighbour but four */
		grid_chunk(p, i - 4, step);
	}
}

/* A few teeth change in every step. */
static void fill_comb(uint8_t *p, unsigned step)
{
	for (uint32_t at = 0; at < COMB_BYTES; at += 2 * TOOTH) {
		uint32_t word[2] = { at + 1, at / 64 % 128 == 5 ? step : 0 };

		for (int i = 0; i < TOOTH; i += 8)
			memcpy(p + at + i, word, sizeof(word));
	}
}

static void expect(const struct script *s, int region, unsigned step, uint8_t *p)
{
	size_t n = length_of(s, region, step);

	memset(p, 0, n);
	if (region == GRID)
		for (unsigned i = 0; i < GRID_CHUNKS; i++)
			grid_chunk(p + (size_t)i * CHUNK, i, step);
	else if (region == VECTOR)
		for (size_t i = 0; i < n / sizeof(double); i++)
			memcpy(p + i * sizeof(double), &(double){ (double)step + (double)i / 7 }, sizeof(double));
	else if (region == GUEST && n)
		memset(p, 'g', n - 7);
	else if (region == COMB && n)
		fill_comb(p, step);
	else if (n)
		p[3] = (uint8_t)step;
}

void script_init(struct script *s, bool big, bool delta)
{
	const size_t room[SCRIPT_REGIONS] = { GRID_CHUNKS * CHUNK, VECTOR_BYTES,        TAIL_MAX,
					      GUEST_BYTES,         big ? BIG_BYTES : 1, delta ? COMB_BYTES : 1 };

#ifdef M_MMAP_THRESHOLD /* it does not rise: large buffers always come from the kernel, whose zeros cost nothing until they are written */
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
#endif
	s->big = big;
	s->delta = delta;
	for (int i = 0; i < SCRIPT_REGIONS; i++) {
		s->p[i] = calloc(1, room[i]);
		CHECK(s->p[i]);
	}
}

void script_fini(struct script *s)
{
	for (int i = 0; i < SCRIPT_REGIONS; i++)
		free(s->p[i]);
}

static int declare(varve *v, int region, void *p, size_t n)
{
	static const size_t shape[2] = { 3, VECTOR_BYTES / sizeof(double) / 3 };
	int rc;

	if (region == VECTOR)
		return varve_protect_array(v, names[region], p, VARVE_F64, 2, shape);
	if (n)
		return varve_protect(v, names[region], p, n);
	rc = varve_unprotect(v, names[region]);
	return rc == VARVE_ENOENT ? 0 : rc;
}

int script_set(const struct script *s, varve *v, unsigned step, bool fill)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < SCRIPT_REGIONS; i++) {
		if (fill)
			expect(s, i, step, s->p[i]);
		else
			memset(s->p[i], 0xa5, length_of(s, i, step));
		rc = declare(v, i, s->p[i], length_of(s, i, step));
	}
	return rc;
}

bool script_is(const struct script *s, unsigned step)
{
	bool same = true;

	for (int i = 0; i < SCRIPT_REGIONS; i++) {
		size_t n = length_of(s, i, step);
		uint8_t *want = malloc(n + 1);

		CHECK(want);
		expect(s, i, step, want);
		if (memcmp(want, s->p[i], n) != 0) {
			fprintf(stderr, "region '%s' is not what it was in step %u\n", names[i], step);
			same = false;
		}
		free(want);
	}
	return same;
}

static void tell(script_failed failed, void *arg, const char *call, int rc)
{
	if (!failed) {
		fprintf(stderr, "%s: %s: %s\n", call, varve_strerror(rc), varve_last_error());
		exit(1);
	}
	failed(arg, call, rc);
}

int script_step(const struct script *s, varve *v, unsigned step, struct script_log *log, script_failed failed, void *arg)
{
	int rc = script_set(s, v, step, true);

	log->trying = step;
	if (rc) {
		tell(failed, arg, "varve_protect", rc);
		return rc;
	}
	rc = settle_checkpoint(v);
	if (rc) {
		tell(failed, arg, "a checkpoint", rc);
		settle_idle(v);
		return rc;
	}
	CHECK(log->n < SCRIPT_MAX_EPOCHS);
	log->done[log->n].epoch = varve_epoch(v);
	log->done[log->n].step = step;
	__atomic_store_n(&log->n, log->n + 1, __ATOMIC_SEQ_CST); /* another process or thread may look on */
	settle_idle(v);
	return 0;
}

void script_log_copy(const struct script_log *log, struct script_log *out)
{
	out->n = __atomic_load_n(&log->n, __ATOMIC_SEQ_CST);
	memcpy(out->done, log->done, out->n * sizeof(out->done[0]));
	out->trying = log->trying;
}

varve *script_run(const struct script *s, const char *store, const char *options, unsigned first, unsigned last,
		  struct script_log *log, script_failed failed, void *arg)
{
	varve *v = NULL;
	int rc = varve_open(store, SCRIPT_LINEAGE, options, &v);

	if (rc) {
		tell(failed, arg, "varve_open", rc);
		rc = varve_open(store, SCRIPT_LINEAGE, options, &v);
	}
	if (rc) {
		tell(failed, arg, "varve_open", rc);
		return NULL;
	}
	for (unsigned step = first; step <= last; step++)
		script_step(s, v, step, log, failed, arg);
	return v;
}
