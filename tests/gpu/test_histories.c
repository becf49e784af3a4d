// ctest: TIMEOUT 300 RUN_SERIAL
/* Device memory as regions: the same history, by every method, size and mode, makes the same layers wherever its regions lie, and comes back. */
#include "base/mem.h"
#include "engine/lineage/layer_file.h"
#include "gpu/regions.h"

/* ---- histories ------------------------------------------------------------------------------------------------------------------ */

enum { REGIONS = 6, EPOCHS = 9 };
enum where { HOST, DEVICE, MIXED };

static const char *const names[REGIONS] = { "big", "small", "tiny", "one", "grains", "other" };
static const size_t lens[REGIONS] = { 120007, 5000, 17, 1, 3 * 4096, 70001 };

struct history {
	const char *options;
	enum where where;
	struct varve_stats st[EPOCHS + 1];
	uint8_t *saved[EPOCHS + 1][REGIONS];
	size_t len[EPOCHS + 1][REGIONS]; /* 0: was not there */
};

static bool on_device(enum where w, int r)
{
	return w == DEVICE || (w == MIXED && r % 2 == 0);
}

static void edit_some(struct buf *b)
{
	for (size_t k = upto(8); k > 0; k--) {
		struct buf *x = &b[upto(REGIONS - 1)];

		if (x->len)
			dice_edit(x->mirror, x->len);
	}
	for (int r = 0; r < REGIONS; r++)
		if (b[r].len)
			push(&b[r]);
}

/* It grows, shrinks or only moves. */
static void move(varve *v, struct buf *b, int r)
{
	struct buf now;

	get(&now, 1 + upto(b->len * 2), b->device);
	noise(now.mirror, now.len);
	memcpy(now.mirror, b->mirror, now.len < b->len ? now.len : b->len);
	push(&now);
	OK(varve_protect(v, names[r], now.p, now.len));
	put(b);
	*b = now;
}

static void save(struct history *h, const struct buf *b, uint64_t epoch)
{
	for (int r = 0; r < REGIONS; r++) {
		h->len[epoch][r] = b[r].len;
		h->saved[epoch][r] = malloc(b[r].len + 1);
		memcpy(h->saved[epoch][r], b[r].mirror, b[r].len);
	}
}

/* Back to an epoch, in this session. */
static void go_back(varve *v, const struct history *h, struct buf *b, uint64_t epoch)
{
	for (int r = 0; r < REGIONS; r++) {
		if (b[r].len)
			put(&b[r]);
		b[r].len = 0;
		if (!h->len[epoch][r])
			continue;
		get(&b[r], h->len[epoch][r], on_device(h->where, r));
		scramble(&b[r]);
		OK(varve_protect(v, names[r], b[r].p, b[r].len));
		memcpy(b[r].mirror, h->saved[epoch][r], b[r].len);
	}
	MUST(varve_restart(v, epoch) == 1);
	for (int r = 0; r < REGIONS; r++)
		MUST(!b[r].len || holds(&b[r], b[r].mirror));
}

static void play(const char *store, struct history *h, uint64_t with)
{
	struct buf b[REGIONS] = { 0 };
	varve *v = NULL;

	seed = with;
	OK(varve_open(store, "job", h->options, &v));
	for (int r = 0; r < REGIONS - 1; r++) {
		get(&b[r], lens[r], on_device(h->where, r));
		noise(b[r].mirror, lens[r] / 2);
		OK(varve_protect(v, names[r], b[r].p, lens[r]));
	}
	for (uint64_t e = 1; e <= EPOCHS; e++) {
		if (e == 3) { /* one comes, */
			get(&b[REGIONS - 1], lens[REGIONS - 1], on_device(h->where, REGIONS - 1));
			memcpy(b[REGIONS - 1].mirror, b[0].mirror + b[0].len / 4, b[0].len / 4);
			OK(varve_protect(v, names[REGIONS - 1], b[REGIONS - 1].p, lens[REGIONS - 1]));
		}
		if (e == 8) { /* and one goes */
			OK(varve_unprotect(v, names[1]));
			put(&b[1]);
			b[1].len = 0;
		}
		if (e % 4 == 2)
			move(v, &b[0], 0);
		edit_some(b);
		OK(varve_checkpoint(v));
		MUST(varve_epoch(v) == e);
		save(h, b, e);
		edit_some(b); /* while it is stored */
		OK(varve_stats(v, &h->st[e]));
		if (e == 6)
			go_back(v, h, b, 5);
	}
	OK(varve_close(v));
	for (int r = 0; r < REGIONS; r++)
		if (b[r].len)
			put(&b[r]);
}

/* Every epoch in a session of its own, into memory of `where`; the first checkpoint after it finds next to nothing new. */
static void restore(const char *store, const struct history *h, enum where where, uint64_t epoch)
{
	struct buf b[REGIONS] = { 0 };
	varve *v = NULL;

	OK(varve_open(store, "job", h->options, &v));
	for (int r = 0; r < REGIONS; r++) {
		if (!h->len[epoch][r])
			continue;
		get(&b[r], h->len[epoch][r], on_device(where, r));
		scramble(&b[r]);
		OK(varve_protect(v, names[r], b[r].p, b[r].len));
	}
	MUST(varve_restart(v, epoch) == 1);
	for (int r = 0; r < REGIONS; r++)
		MUST(!b[r].len || holds(&b[r], h->saved[epoch][r]));
	if (epoch == EPOCHS && !strstr(h->options, "full") && where == h->where)
		MUST(new_bytes(v) == 0);
	OK(varve_close(v));
	for (int r = 0; r < REGIONS; r++)
		if (b[r].len)
			put(&b[r]);
}

static void drop(struct history *h)
{
	for (uint64_t e = 1; e <= EPOCHS; e++)
		for (int r = 0; r < REGIONS; r++)
			free(h->saved[e][r]);
}

/* ---- the same layers -------------------------------------------------------------------------------------------------------------- */

static struct vv_store *open_store(const char *path, struct vv_lineage *lin)
{
	struct vv_store_options opt = { 0 };
	struct vv_store *s = NULL;

	OK(vv_store_open(path, &opt, &s));
	OK(vv_catalog_open(s, "job", false, lin));
	return s;
}

static void same_section(struct vv_layer_file *a, struct vv_layer_file *b, int kind)
{
	struct vv_section_bytes x, y;

	OK(vv_layer_file_section(a, vv_layer_section(&a->frame, (enum vv_section_kind)kind), &x));
	OK(vv_layer_file_section(b, vv_layer_section(&b->frame, (enum vv_section_kind)kind), &y));
	MUST(x.n == y.n && (x.n == 0 || memcmp(x.p, y.p, x.n) == 0));
	vv_mem_free(x.own);
	vv_mem_free(y.own);
}

static void same_payload(struct vv_layer_file *a, struct vv_layer_file *b)
{
	MUST(a->head.payload == b->head.payload && a->blocks.n == b->blocks.n);
	for (size_t i = 0; i < a->blocks.n; i++) {
		size_t n = a->blocks.v[i].raw_len;
		uint8_t *x = malloc(n + 1), *y = malloc(n + 1), *scratch = malloc(2 * n + 65536);

		MUST(x && y && scratch && n == b->blocks.v[i].raw_len);
		OK(vv_layer_file_read_block(a, i, x, scratch));
		OK(vv_layer_file_read_block(b, i, y, scratch));
		MUST(memcmp(x, y, n) == 0);
		free(x);
		free(y);
		free(scratch);
	}
}

static void compare(const char *one, const char *other)
{
	struct vv_lineage a, b;
	struct vv_store *x = open_store(one, &a), *y = open_store(other, &b);

	for (uint64_t e = 1; e <= EPOCHS; e++) {
		struct vv_layer_file *f = NULL, *g = NULL;

		OK(vv_layer_file_open(&a, vv_run_layer(e, 0), VV_LAYER_FILE_HEAD | VV_LAYER_FILE_BLOCKS, &f));
		OK(vv_layer_file_open(&b, vv_run_layer(e, 0), VV_LAYER_FILE_HEAD | VV_LAYER_FILE_BLOCKS, &g));
		same_section(f, g, VV_SECTION_RUNS);
		same_section(f, g, VV_SECTION_BLOCKS);
		same_payload(f, g);
		vv_layer_file_close(f);
		vv_layer_file_close(g);
	}
	vv_store_close(x);
	vv_store_close(y);
}

static void history(const char *options)
{
	static struct history on[3];
	char store[3][PLACE_MAX];
	uint64_t with = 88172645463325252ull + rng();

	for (int w = HOST; w <= MIXED; w++) {
		static const char *const where[] = { "host", "device", "mixed" };

		must_begin("history: %s, %s", options, where[w]);
		place_path(store[w], where[w]);
		on[w] = (struct history){ .options = options, .where = (enum where)w };
		play(store[w], &on[w], with);
		for (int e = EPOCHS; e > 0; e -= 2)
			restore(store[w], &on[w], (enum where)((w + e) % 3), (uint64_t)e);
	}
	must_begin("compared: %s", options);
	for (uint64_t e = 1; e <= EPOCHS; e++) {
		MUST(on[HOST].st[e].bytes_new == on[DEVICE].st[e].bytes_new);
		MUST(on[HOST].st[e].bytes_zero == on[DEVICE].st[e].bytes_zero);
		MUST(on[HOST].st[e].bytes_dup_time == on[DEVICE].st[e].bytes_dup_time);
		MUST(on[HOST].st[e].bytes_dup_space == on[DEVICE].st[e].bytes_dup_space);
	}
	compare(store[HOST], store[DEVICE]);
	for (int w = HOST; w <= MIXED; w++) {
		drop(&on[w]);
		place_remove(store[w]);
	}
}

static void histories(void)
{
	static const char *const method[] = { "run", "tree", "list", "basic", "full" };
	static const char *const more[] = { "mode=sync codec=none", "mode=async codec=auto", "mode=sync history=1KiB verify=bytes",
					    "mode=async digest=sha256 log=error" };
	char options[200];

	for (unsigned m = 0; m < 5; m++)
		for (unsigned g = 0; g < 4; g++) {
			snprintf(options, sizeof(options), "method=%s grain=%u %s", method[m], (unsigned[]){ 32, 128, 512, 4096 }[(g + m) % 4],
				 more[g]);
			history(options);
		}
	history("method=run grain=256 mode=sync");
	history("method=run grain=64 mode=sync threads=1");
}

int main(void)
{
	space = device_space();
	seed = 88172645463325252ull;
	histories();
	return 0;
}
