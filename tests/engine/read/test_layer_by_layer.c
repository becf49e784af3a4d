// ctest: TIMEOUT 600 COST 9
/* Restarts layer by layer and by merged tables give the same bytes: random histories in all methods, with content that comes back, moves and goes, regions that appear,
 * grow and shrink; what is damaged, coded or cannot be written is left to the other way, with its words; sessions go on from either. */
#include "base/err.h"
#include "base/mem.h"
#include "core/format/name.h"
#include "engine/lineage/layer_file.h"
#include "engine/read/newest_page.h"
#include "engine/read/layer_by_layer.h"
#include "engine/read/copy_mapped.h"
#include "support/coded.h"
#include "support/gen.h"
#include "support/place.h"
#include "support/settle.h"
#include "vv_test.h"
#include <sys/mman.h>
#include <varve/varve.h>

enum {
	EPOCHS = 6,
	REGIONS = 3,
	GUARD = 64,
	BIG = (28 << 20) + 777,
	ROOM = 29 << 20,
	CHANGED = 3 << 19, /* bytes in an epoch: layers that are smaller than a MiB are not mapped */
};

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

struct content {
	uint8_t *p; /* NULL: the region was not there */
	size_t n;
};

struct world {
	char store[PLACE_MAX];
	uint64_t state;
	struct content now[REGIONS], was[EPOCHS + 1][REGIONS];
	struct vv_store *s;
	struct vv_lineage lineage;
	struct vv_pool *pool;
};

static const char *const region_name[REGIONS] = { "big", "small", "moody" };

/* A piece becomes new, zero, what is elsewhere now, or what was here some epochs ago. */
static void change(struct world *w, uint64_t epoch, size_t grain)
{
	struct content *c = &w->now[0], *old = &w->was[1 + gen_below(&w->state, epoch - 1)][0];
	size_t at = (size_t)gen_below(&w->state, c->n / grain) * grain, len = (1 + (size_t)gen_below(&w->state, 3)) * grain;

	len = len < c->n - at ? len : c->n - at;
	switch (gen_below(&w->state, 12)) {
	case 0:
		memset(c->p + at, 0, len);
		break;
	case 1:
		memmove(c->p + at, c->p + (size_t)gen_below(&w->state, (c->n - len) / grain) * grain, len);
		break;
	case 2:
		memcpy(c->p + at, old->p + at, len);
		break;
	default:
		gen_bytes(&w->state, c->p + at, len);
	}
}

static void change_all(struct world *w, uint64_t epoch, size_t grain)
{
	uint8_t *from = w->now[0].p + (2 << 20), *a = w->was[1][0].p + (2 << 20);

	for (size_t done = 0; epoch > 1 && done < (grain < 4096 ? CHANGED : 2 * CHANGED); done += 2 * grain)
		change(w, epoch, grain);
	if (epoch > 2) /* a stretch that is A in every second epoch */
		memcpy(from, a, 10000);
	if (epoch % 2 == 0)
		gen_bytes(&w->state, from, 10000);
	gen_bytes(&w->state, w->now[1].p, w->now[1].n);
}

/* It is not there at first, and has another length in every second epoch. */
static void reshape(struct world *w, varve *v, uint64_t epoch)
{
	struct content *c = &w->now[2];

	if (epoch < 2 || epoch % 2)
		return;
	if (c->n)
		ok(varve_unprotect(v, region_name[2]));
	c->n = 100 + (size_t)gen_below(&w->state, 200000);
	gen_bytes(&w->state, c->p, c->n / 2);
	ok(varve_protect(v, region_name[2], c->p, c->n));
}

static void remember(struct world *w, uint64_t epoch)
{
	for (int i = 0; i < REGIONS; i++) {
		struct content *c = &w->was[epoch][i];

		c->n = w->now[i].n;
		c->p = c->n ? malloc(c->n) : NULL;
		if (c->p)
			memcpy(c->p, w->now[i].p, c->n);
	}
}

static void lay_down(struct world *w, const char *name, const char *options)
{
	const char *grains = strstr(options, "grain=");
	size_t grain = grains ? (size_t)atoi(grains + strlen("grain=")) : 4096;
	struct vv_store_options opt = { 0 };
	varve *v = NULL;

	*w = (struct world){ .state = strlen(options) + grain };
	place_path(w->store, name);
	for (int i = 0; i < REGIONS; i++)
		CHECK((w->now[i].p = calloc(1, ROOM)));
	w->now[0].n = BIG;
	w->now[1].n = 1001;
	gen_bytes(&w->state, w->now[0].p, BIG);
	memset(w->now[0].p + (1 << 20), 0, 1 << 19);
	ok(varve_open(w->store, "L", options, &v));
	ok(varve_protect(v, region_name[0], w->now[0].p, w->now[0].n));
	ok(varve_protect(v, region_name[1], w->now[1].p, w->now[1].n));
	for (uint64_t e = 1; e <= EPOCHS; e++) {
		change_all(w, e, grain);
		reshape(w, v, e);
		ok(settle_checkpoint(v));
		remember(w, e);
	}
	ok(varve_close(v));
	ok(vv_store_open(w->store, &opt, &w->s));
	ok(vv_catalog_open(w->s, "L", false, &w->lineage));
	ok(vv_pool_new(2, &w->pool));
}

/* Is a file of the store mapped? */
static bool is_mapped(const char *store)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[2 * PLACE_MAX];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, store);
	if (f)
		fclose(f);
	return found;
}

static void tear_down(struct world *w)
{
	for (int i = 0; i < REGIONS; i++)
		free(w->now[i].p);
	for (int e = 1; e <= EPOCHS; e++)
		for (int i = 0; i < REGIONS; i++)
			free(w->was[e][i].p);
	vv_pool_free(w->pool);
	vv_store_close(w->s);
	CHECK(!is_mapped(w->store));
	place_remove(w->store);
}

/* All regions of an epoch, each with a margin around it. */
struct target {
	uint8_t *to[REGIONS];
	struct vv_want want[REGIONS];
	size_t n;
};

static void aim(const struct world *w, const struct vv_run_table *t, uint64_t epoch, struct target *g)
{
	*g = (struct target){ 0 };
	for (int i = 0; i < REGIONS; i++) {
		const struct content *c = &w->was[epoch][i];
		size_t k = vv_run_table_find(t, region_name[i]);

		CHECK_EQ(k < t->n, c->n > 0);
		if (!c->n)
			continue;
		CHECK((g->to[i] = malloc(c->n + 2 * GUARD)));
		memset(g->to[i], 0xa5, c->n + 2 * GUARD);
		g->want[g->n++] = (struct vv_want){ &t->region[k].runs, 0, c->n, g->to[i] + GUARD, region_name[i] };
	}
}

static void check_target(const struct world *w, uint64_t epoch, const struct target *g, bool filled)
{
	for (int i = 0; i < REGIONS; i++) {
		const struct content *c = &w->was[epoch][i];

		for (size_t k = 0; g->to[i] && k < GUARD; k++)
			CHECK(g->to[i][k] == 0xa5 && g->to[i][GUARD + c->n + k] == 0xa5);
		CHECK(!filled || !g->to[i] || memcmp(g->to[i] + GUARD, c->p, c->n) == 0);
	}
}

static void drop_target(struct target *g)
{
	for (int i = 0; i < REGIONS; i++)
		free(g->to[i]);
}

/* One epoch: layer by layer; then the table is settled, is the one that is made at once, and reads the same. */
static bool both_ways(const struct world *w, uint64_t epoch)
{
	struct vv_run_table t = { 0 }, whole = { 0 };
	struct target g;
	bool yes;

	ok(vv_run_table_load(&w->lineage, epoch, 0, NULL, &whole));
	ok(vv_run_table_load(&w->lineage, epoch, 0, &(struct vv_run_table_how){ .pool = w->pool, .runs = VV_RUN_TABLE_LATE }, &t));
	aim(w, &t, epoch, &g);
	yes = vv_layer_by_layer_read(&w->lineage, w->pool, &t, g.want, g.n);
	check_target(w, epoch, &g, yes);
	ok(vv_run_table_merge(&t, w->pool));
	ok(vv_run_table_merge(&t, w->pool));
	CHECK(t.n == whole.n && !t.chain);
	for (size_t i = 0; i < t.n; i++) {
		const struct vv_runs *a = &t.region[i].runs, *b = &whole.region[i].runs;

		CHECK(!t.region[i].unmerged);
		CHECK_EQ(a->n, b->n);
		CHECK(memcmp(a->v, b->v, a->n * sizeof(*a->v)) == 0);
	}
	ok(vv_restore_read(&w->lineage, w->pool, g.want, g.n));
	check_target(w, epoch, &g, true);
	drop_target(&g);
	vv_run_table_fini(&t);
	vv_run_table_fini(&whole);
	return yes;
}

/* The largest region as one stripe of many windows, and as small ones that begin and end anywhere: a page, a block and a piece may lie across their ends. Or page by page, where
 * all of a stripe is whole pages. Returns how many were filled, up to the first that was not. */
static size_t in_stripes(const struct world *w, uint64_t epoch, uint64_t stripe, bool by_page)
{
	const struct content *c = &w->was[epoch][0];
	struct vv_open_layers *warm = calloc(1, sizeof(*warm));
	uint8_t *to = malloc(c->n + 2 * GUARD);
	const struct vv_run_table_unmerged *s;
	struct vv_run_table t = { 0 };
	size_t filled = 0;
	bool yes = true;

	CHECK(warm && to);
	ok(vv_run_table_load(&w->lineage, epoch, 0, &(struct vv_run_table_how){ .pool = w->pool, .runs = VV_RUN_TABLE_LATE }, &t));
	s = t.region[vv_run_table_find(&t, region_name[0])].unmerged;
	for (uint64_t e = 1; e <= epoch; e++, warm->n++)
		ok(vv_open_layers_open(warm, warm->n, &w->lineage, NULL, vv_run_layer(e, 0), 1 << 30, 0));
	vv_open_layers_build_index(warm);
	warm->all = true;
	memset(to, 0xa5, c->n + 2 * GUARD);
	for (uint64_t at = 0, len; s && yes && at < c->n; at += len) {
		struct vv_want part;
		uint64_t got;

		len = c->n - at < stripe ? c->n - at : stripe;
		part = (struct vv_want){ NULL, at, len, to + GUARD + at, NULL };
		yes = by_page ? vv_newest_page_copy(warm, s->runs, s->n, &part) : vv_copy_mapped_replay(warm, s->runs, s->n, &part, &got);
		CHECK(!by_page || len % VV_NEWEST_PAGE_PAGE == 0 || !yes);
		CHECK(!yes || memcmp(to + GUARD + at, c->p + at, len) == 0);
		filled += yes;
		for (size_t k = 0; k < GUARD; k++)
			CHECK(to[GUARD + at + len + k] == 0xa5);
	}
	CHECK(to[GUARD - 1] == 0xa5 && (!s || !yes || memcmp(to + GUARD, c->p, c->n) == 0));
	for (size_t i = 0; i < warm->n; i++)
		vv_open_layers_close(warm, i);
	vv_run_table_fini(&t);
	free(warm);
	free(to);
	return filled;
}

static bool pays(const struct world *w, uint64_t epoch)
{
	struct vv_run_table t = { 0 };
	struct target g;
	bool yes;

	ok(vv_run_table_load(&w->lineage, epoch, 0, &(struct vv_run_table_how){ .pool = w->pool, .runs = VV_RUN_TABLE_LATE }, &t));
	aim(w, &t, epoch, &g);
	yes = vv_layer_by_layer_pays(&t, g.want, g.n);
	drop_target(&g);
	vv_run_table_fini(&t); /* a table that was never settled */
	return yes;
}

/* can: all that is needed for it is in the layers. */
static void histories(const char *name, const char *options, bool can)
{
	struct world w;
	size_t yes = 0, over;

	lay_down(&w, name, options);
	for (uint64_t e = 1; e <= EPOCHS; e++)
		yes += both_ways(&w, e);
	in_stripes(&w, EPOCHS, BIG, false);
	in_stripes(&w, EPOCHS, (3 << 20) + 12345, false);
	over = in_stripes(&w, EPOCHS - 1, 1 << 20, false);
	in_stripes(&w, EPOCHS - 1, 999999, false);
	in_stripes(&w, EPOCHS - 1, BIG, true);
	if (strcmp(options, "codec=none") == 0) /* all but what is less than a page */
		CHECK_EQ(in_stripes(&w, EPOCHS - 1, 1 << 20, true), over ? over - 1 : 0);
	in_stripes(&w, EPOCHS - 2, 3 * VV_NEWEST_PAGE_PAGE, true);
	in_stripes(&w, EPOCHS - 1, 1000, true);
	CHECK(can || yes == 0);
	if (can && !yes)
		fprintf(stderr, "%s: no layer could be read from the page cache\n", options); /* files of others, say */
	tear_down(&w);
}

/* ---- sessions ---------------------------------------------------------------------------------------------------------------------- */

static varve *open_session(const struct world *w, const char *options, uint8_t *big, uint8_t *small)
{
	varve *v = NULL;

	ok(varve_open(w->store, "L", options, &v));
	ok(varve_protect(v, region_name[0], big, BIG));
	ok(varve_protect(v, region_name[1], small, 1001));
	return v;
}

/* What is hashed behind the return of a restart, and was written meanwhile, is read again. The sanitizer cannot know that. */
__attribute__((no_sanitize("thread"))) static void scribble(struct world *w, uint8_t *p, size_t n, int times)
{
	for (int i = 0; i < times; i++)
		p[gen_below(&w->state, n)]++;
}

/* Restarted, written to at once, stored, and restarted again: from a new session and from the same, which has a history by then. */
static void sessions(const char *name, const char *options)
{
	uint8_t *big = malloc(BIG), *copy = malloc(BIG), *again = malloc(BIG), small[1001], small_again[1001];
	struct world w;
	varve *v;

	CHECK(big && copy && again);
	lay_down(&w, name, options);
	CHECK(pays(&w, EPOCHS - 1)); /* the last may have a table of its own */
	for (uint64_t e = EPOCHS; e >= EPOCHS - 2; e--) {
		v = open_session(&w, options, big, small);
		memset(big, 0x11, BIG);
		CHECK_EQ(varve_restart(v, e), 1);
		CHECK(memcmp(big, w.was[e][0].p, BIG) == 0 && memcmp(small, w.was[e][1].p, sizeof(small)) == 0);
		scribble(&w, big, BIG, 3000);
		memcpy(copy, big, BIG);
		ok(settle_checkpoint(v));
		memset(big, 0x22, BIG);
		CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
		CHECK(memcmp(big, copy, BIG) == 0);
		scribble(&w, big + 4096, 128, 100);
		memcpy(copy, big, BIG);
		ok(settle_checkpoint(v));
		ok(varve_close(v));
		v = open_session(&w, options, again, small_again);
		CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
		ok(varve_close(v)); /* at once */
		CHECK(memcmp(again, copy, BIG) == 0);
	}
	free(big);
	free(copy);
	free(again);
	tear_down(&w);
}

/* Regions one by one, from one table; into memory that may not be written, too: that is opened for the other way. */
static void regions(void)
{
	uint8_t *big = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), small[1001];
	struct varve_region_info info;
	struct world w;
	varve *v = NULL;

	CHECK(big != MAP_FAILED);
	lay_down(&w, "regions", "codec=none grain=128");
	ok(varve_open(w.store, "L", "", &v));
	for (int i = 0; i < 2; i++) {
		memset(big, 0x33, ROOM);
		ok(varve_restart_region(v, EPOCHS, region_name[0], big, BIG));
		CHECK(memcmp(big, w.was[EPOCHS][0].p, BIG) == 0);
		CHECK(big[BIG] == 0x33);
		ok(varve_restart_region(v, EPOCHS, region_name[1], small, sizeof(small)));
		CHECK(memcmp(small, w.was[EPOCHS][1].p, sizeof(small)) == 0);
		ok(varve_region(v, EPOCHS, region_name[2], &info));
		CHECK_EQ(info.bytes, w.was[EPOCHS][2].n);
	}
	memset(big, 0x33, ROOM);
	CHECK_EQ(mprotect(big, ROOM, PROT_READ), 0);
	ok(varve_restart_region(v, EPOCHS, region_name[0], big, BIG));
	CHECK(memcmp(big, w.was[EPOCHS][0].p, BIG) == 0);
	ok(varve_close(v));
	munmap(big, ROOM);
	tear_down(&w);
}

/* ---- damage ------------------------------------------------------------------------------------------------------------------------ */

/* Flips a bit of what a position of a layer holds; done twice all is well. */
static void flip(const struct world *w, uint64_t layer, uint64_t pos)
{
	char object[VV_NAME_MAX], path[2 * PLACE_MAX];
	struct vv_payload_cursor c = { 0 };
	struct vv_layer_file *f = NULL;
	uint64_t at;
	uint8_t *bytes;
	size_t n;

	ok(vv_layer_file_open(&w->lineage, layer, VV_LAYER_FILE_BLOCKS, &f));
	CHECK(vv_payload_locate(&f->blocks, pos, &c));
	at = f->blocks.v[c.block].off + c.before + (pos - f->blocks.extent.v[c.extent].pos);
	vv_layer_file_close(f);
	vv_name_layer(object, "L", vv_run_epoch(layer), vv_run_rank(layer));
	snprintf(path, sizeof(path), "%s/%s", w->store, object);
	bytes = place_read(path, &n);
	bytes[at] ^= 4;
	place_write(path, bytes, n);
	free(bytes);
}

static bool replays(const struct world *w, uint64_t epoch)
{
	struct vv_run_table t = { 0 };
	struct target g;
	bool yes;

	ok(vv_run_table_load(&w->lineage, epoch, 0, &(struct vv_run_table_how){ .pool = w->pool, .runs = VV_RUN_TABLE_LATE }, &t));
	aim(w, &t, epoch, &g);
	yes = vv_layer_by_layer_read(&w->lineage, w->pool, &t, g.want, g.n);
	check_target(w, epoch, &g, yes);
	drop_target(&g);
	vv_run_table_fini(&t);
	return yes;
}

/* Wherever it is: layer by layer nothing is said to be right, and the session says what is wrong. */
static void damage(const char *name, const char *options)
{
	uint8_t *big = malloc(BIG), small[1001];
	struct vv_run_table t = { 0 };
	const struct vv_runs *runs;
	struct world w;

	CHECK(big);
	lay_down(&w, name, options);
	ok(vv_run_table_load(&w.lineage, EPOCHS - 1, 0, NULL, &t));
	runs = &t.region[vv_run_table_find(&t, region_name[0])].runs;
	for (size_t i = 0; i < runs->n; i += runs->n / 8) {
		const struct vv_run *r = &runs->v[i];
		varve *v;

		if (!r->layer)
			continue;
		flip(&w, r->layer, r->pos + r->len - 1);
		CHECK(!replays(&w, EPOCHS - 1));
		v = open_session(&w, options, big, small);
		CHECK_EQ(varve_restart(v, EPOCHS - 1), VARVE_EDAMAGED);
		CHECK(strstr(varve_last_error(), "checksum mismatch"));
		ok(varve_close(v));
		flip(&w, r->layer, r->pos + r->len - 1);
	}
	vv_run_table_fini(&t);
	free(big);
	tear_down(&w);
}

static bool needs(const struct vv_runs *runs, uint64_t layer, uint64_t pos, uint64_t len)
{
	for (size_t i = 0; i < runs->n; i++)
		if (runs->v[i].layer == layer && runs->v[i].pos < pos + len && runs->v[i].pos + runs->v[i].len > pos)
			return true;
	return false;
}

/* A page that only an older table names: read in vain, and so its damage is nobody's trouble. */
static void damage_below(void)
{
	uint8_t *big = malloc(BIG), small[1001];
	const uint64_t page = 4096;
	struct vv_run_table t = { 0 };
	struct world w;
	size_t done = 0;

	CHECK(big);
	lay_down(&w, "below", "codec=none grain=1024");
	ok(vv_run_table_load(&w.lineage, EPOCHS, 0, NULL, &t));
	for (uint64_t layer = vv_run_layer(2, 0), pos = 0; pos < page * 200 && done < 3; pos += page) {
		const struct vv_runs *runs = &t.region[vv_run_table_find(&t, region_name[0])].runs;
		varve *v;

		if (needs(runs, layer, pos, page))
			continue;
		flip(&w, layer, pos + 5);
		replays(&w, EPOCHS); /* whatever it says, it is right */
		v = open_session(&w, "codec=none grain=1024", big, small);
		CHECK_EQ(varve_restart(v, EPOCHS), 1);
		CHECK(memcmp(big, w.was[EPOCHS][0].p, BIG) == 0);
		ok(varve_close(v));
		flip(&w, layer, pos + 5);
		done++;
	}
	vv_run_table_fini(&t);
	free(big);
	tear_down(&w);
}

/* Whichever allocation fails. */
static void no_memory(const char *name, const char *options)
{
	struct world w;

	lay_down(&w, name, options);
	for (long k = 1, asked = k; asked >= k; k += 1 + k / 8) {
		struct vv_run_table t = { 0 };
		struct target g = { 0 };
		bool yes = false;
		int rc;

		vv_mem_fail_at(k);
		rc = vv_run_table_load(&w.lineage, EPOCHS - 1, 0, &(struct vv_run_table_how){ .pool = w.pool, .runs = VV_RUN_TABLE_LATE }, &t);
		if (rc == 0) {
			aim(&w, &t, EPOCHS - 1, &g);
			yes = vv_layer_by_layer_read(&w.lineage, w.pool, &t, g.want, g.n);
			rc = vv_run_table_merge(&t, w.pool);
		}
		asked = vv_mem_asked();
		vv_mem_fail_at(0);
		CHECK(rc == 0 || (rc == VV_ENOMEM && strstr(varve_last_error(), "out of memory")));
		check_target(&w, EPOCHS - 1, &g, yes);
		ok(vv_run_table_merge(&t, w.pool)); /* it may be tried again */
		drop_target(&g);
		vv_run_table_fini(&t);
	}
	tear_down(&w);
}

int main(void)
{
	static const char *const method[] = { "full", "basic", "list", "tree", "run" };
	static const int grain[] = { 32, 64, 128, 512, 4096 };
	char options[100];

	for (size_t i = 0; i < 5; i++) {
		snprintf(options, sizeof(options), "codec=none method=%s grain=%d", method[i], grain[(i + 2) % 5]);
		histories(method[i], options, true);
	}
	histories("chunks", "codec=none grain=128 chunk=1000 block=100000", true);
	histories("blocks", "codec=none grain=128 block=300000", true);
	histories("pages", "codec=none", true);
	histories("coded", CODED_FAST " grain=128", true); /* much of it cannot be made smaller */
	histories("sha", "codec=none grain=128 digest=sha256", false);
	sessions("session", "codec=none grain=128");
	sessions("session pages", "codec=none");
	regions();
	damage("damage", "codec=none grain=128");
	damage("damage pages", "codec=none");
	damage_below();
	no_memory("memory", "codec=none grain=256");
	no_memory("memory pages", "codec=none");
	return 0;
}
