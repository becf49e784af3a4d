// ctest: TIMEOUT 300 RUN_SERIAL
/* Device memory as regions, through the public calls: beside the host's in one session, by every method, size and mode; the same history
 * makes the same layers wherever its regions lie; restarts, streams, want of memory, failures, other ranks and a fork do no harm. */
#include "base/err.h"
#include "engine/layerio.h"
#include "engine/verify.h"
#include "support/device.h"
#include "support/must.h"
#include "support/place.h"
#include "support/threadcomm.h"
#include "vv_test.h"
#include <fcntl.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define OK(call) MUST((call) >= 0)

static uint64_t seed;

static uint64_t rng(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static size_t upto(size_t n)
{
	return (size_t)(rng() % (n + 1));
}

static void noise(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(rng() >> 24);
}

/* ---- memory ------------------------------------------------------------------------------------------------------------------- */

static const struct vv_space *space;

struct buf {
	size_t len;
	bool device;
	uint8_t *p;      /* what is protected */
	uint8_t *mirror; /* what it is to hold */
};

static void get(struct buf *b, size_t len, bool device)
{
	*b = (struct buf){ len, device, device ? device_get_odd(len) : malloc(len), malloc(len) };
	MUST(b->p && b->mirror);
	memset(b->mirror, 0x5a, len);
}

static void put(struct buf *b)
{
	(b->device ? device_put_odd : free)(b->p);
	free(b->mirror);
}

static void push(const struct buf *b)
{
	if (b->device)
		OK(space->copy_in(b->p, b->mirror, b->len));
	else
		memcpy(b->p, b->mirror, b->len);
}

static bool holds(const struct buf *b, const uint8_t *what)
{
	uint8_t *is = malloc(b->len);
	bool same;

	MUST(is);
	if (b->device)
		OK(space->copy_out(is, b->p, b->len));
	same = memcmp(b->device ? is : b->p, what, b->len) == 0;
	free(is);
	return same;
}

static void scramble(const struct buf *b)
{
	uint8_t *junk = malloc(b->len);

	MUST(junk);
	memset(junk, 0xc3, b->len);
	if (b->device)
		OK(space->copy_in(b->p, junk, b->len));
	else
		memcpy(b->p, junk, b->len);
	free(junk);
}

static uint64_t new_bytes(varve *v)
{
	struct varve_stats st;

	OK(varve_checkpoint(v));
	OK(varve_stats(v, &st));
	MUST(st.bytes_memory == st.bytes_unchanged + st.bytes_zero + st.bytes_dup_time + st.bytes_dup_space +
					st.bytes_dup_ranks + st.bytes_new);
	return st.bytes_new;
}

/* What the newest epoch has of the region, read into the host's memory and into the device's. */
static void check_stored(varve *v, const char *name, const uint8_t *want, size_t len)
{
	for (int device = 0; device < 2; device++) {
		struct buf b;

		get(&b, len, device);
		OK(varve_restart_region(v, varve_epoch(v), name, b.p, len));
		MUST(holds(&b, want));
		put(&b);
	}
}

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

static void edit(struct buf *b)
{
	uint8_t *p = b->mirror;
	size_t at = upto(b->len - 1), n = 1 + upto(b->len - at - 1), from;

	switch (upto(6)) {
	case 0:
		noise(p + at, n < 3000 ? n : 3000);
		break;
	case 1:
		memset(p + at, 0, n);
		break;
	case 2: /* the same thing over and over */
		for (size_t i = 0; i < n; i++)
			p[at + i] = p[at + i % (1 + upto(3) * 64)];
		break;
	case 3: /* moved by whole grains, or not */
		from = upto(b->len - n);
		memmove(p + (upto(1) ? at / 512 * 512 : at), p + from, n / 2);
		break;
	case 4:
		p[at]++;
		break;
	default:
		for (int k = 0; k < 20; k++)
			p[upto(b->len - 1)] ^= 1;
	}
}

static void edit_some(struct buf *b)
{
	for (size_t k = upto(8); k > 0; k--) {
		struct buf *x = &b[upto(REGIONS - 1)];

		if (x->len)
			edit(x);
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

static void same_section(struct vv_layerio *a, struct vv_layerio *b, int kind)
{
	struct vv_section_bytes x, y;

	OK(vv_layerio_section(a, vv_layer_section(&a->frame, (enum vv_section_kind)kind), &x));
	OK(vv_layerio_section(b, vv_layer_section(&b->frame, (enum vv_section_kind)kind), &y));
	MUST(x.n == y.n && (x.n == 0 || memcmp(x.p, y.p, x.n) == 0));
	free(x.own);
	free(y.own);
}

static void same_payload(struct vv_layerio *a, struct vv_layerio *b)
{
	MUST(a->head.payload == b->head.payload && a->blocks.n == b->blocks.n);
	for (size_t i = 0; i < a->blocks.n; i++) {
		size_t n = a->blocks.v[i].raw_len;
		uint8_t *x = malloc(n + 1), *y = malloc(n + 1), *scratch = malloc(2 * n + 65536);

		MUST(x && y && scratch && n == b->blocks.v[i].raw_len);
		OK(vv_layerio_read_block(a, i, x, scratch));
		OK(vv_layerio_read_block(b, i, y, scratch));
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
		struct vv_layerio *f = NULL, *g = NULL;

		OK(vv_layerio_open(&a, vv_run_layer(e, 0), VV_LAYERIO_HEAD | VV_LAYERIO_BLOCKS, &f));
		OK(vv_layerio_open(&b, vv_run_layer(e, 0), VV_LAYERIO_HEAD | VV_LAYERIO_BLOCKS, &g));
		same_section(f, g, VV_SECTION_RUNS);
		same_section(f, g, VV_SECTION_BLOCKS);
		same_payload(f, g);
		vv_layerio_close(f);
		vv_layerio_close(g);
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

/* ---- only what is new --------------------------------------------------------------------------------------------------------------- */

static void only_new(void)
{
	enum { LEN = 2 << 20, GRAIN = 256 };
	struct buf b;
	uint8_t *first = malloc(LEN);
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("only what is new");
	place_path(store, "new");
	get(&b, LEN, true);
	noise(b.mirror, LEN);
	memcpy(first, b.mirror, LEN);
	push(&b);
	OK(varve_open(store, "job", NULL, &v)); /* nobody said anything of grains */
	OK(varve_protect(v, "p", b.p, LEN));
	MUST(new_bytes(v) == LEN);
	MUST(new_bytes(v) == 0);
	b.mirror[77777]++;
	push(&b);
	MUST(new_bytes(v) == GRAIN);
	noise(b.mirror, LEN);
	push(&b);
	MUST(new_bytes(v) == LEN);
	memcpy(b.mirror, first, LEN); /* A, B, A */
	memmove(b.mirror + GRAIN, b.mirror, LEN / 2);
	push(&b);
	MUST(new_bytes(v) == 0);
	OK(varve_close(v));

	scramble(&b);
	OK(varve_open(store, "job", NULL, &v));
	OK(varve_protect(v, "p", b.p, LEN));
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(holds(&b, b.mirror));
	MUST(new_bytes(v) == 0);
	b.mirror[5]++;
	b.mirror[LEN - 1]++;
	push(&b);
	MUST(new_bytes(v) == 2 * GRAIN);
	memmove(b.mirror + LEN / 2, b.mirror, LEN / 2);
	push(&b);
	MUST(new_bytes(v) == 0);
	check_stored(v, "p", b.mirror, LEN);
	MUST(varve_refine(v, "p", "tree", 0) == 0); /* device memory has grains whatever is asked for */
	b.mirror[9]++;
	push(&b);
	OK(varve_checkpoint(v));
	check_stored(v, "p", b.mirror, LEN);
	MUST(varve_restart_region(v, varve_epoch(v), "p", b.p, LEN - 1) == VARVE_EMISMATCH);
	OK(varve_close(v));
	place_remove(store);
	put(&b);
	free(first);
}

/* Old epochs go and are collected; what later ones need of them stays. */
static void kept(const char *options)
{
	enum { LEN = 100000 };
	struct buf b;
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("kept: %s", options);
	place_path(store, "kept");
	get(&b, LEN, true);
	noise(b.mirror, LEN);
	OK(varve_open(store, "job", options, &v));
	OK(varve_protect(v, "p", b.p, LEN));
	for (int e = 1; e <= 40; e++) {
		size_t at = upto(LEN - 20000);

		if (e % 3)
			noise(b.mirror + at, 20000);
		else
			memmove(b.mirror + at / 64 * 64, b.mirror + upto(1000) * 64, 10000);
		push(&b);
		OK(varve_checkpoint(v));
		if (e % 5 == 0)
			check_stored(v, "p", b.mirror, LEN);
	}
	OK(varve_close(v));
	place_remove(store);
	put(&b);
}

/* ---- when things go wrong -------------------------------------------------------------------------------------------------------------- */

static void set_limit(rlim_t bytes)
{
	struct rlimit l;

	CHECK(getrlimit(RLIMIT_FSIZE, &l) == 0);
	l.rlim_cur = bytes;
	CHECK(setrlimit(RLIMIT_FSIZE, &l) == 0);
}

/* A store that takes no more: the epoch does not count, and the next one has all of it. */
static void failed(const char *options)
{
	enum { LEN = (1 << 20) - 3 };
	struct buf b;
	char store[PLACE_MAX];
	varve *v = NULL;
	int rc;

	must_begin("failed: %s", options);
	place_path(store, "failed");
	signal(SIGXFSZ, SIG_IGN);
	get(&b, LEN, true);
	noise(b.mirror, LEN);
	push(&b);
	OK(varve_open(store, "job", options, &v));
	OK(varve_protect(v, "p", b.p, LEN));
	OK(varve_checkpoint(v));
	OK(varve_wait(v, varve_epoch(v)));
	for (int k = 0; k < 3; k++) {
		noise(b.mirror + k * 1000, LEN / 2);
		push(&b);
		set_limit(100000);
		rc = varve_checkpoint(v);
		rc = rc ? rc : varve_wait(v, varve_epoch(v));
		set_limit(RLIM_INFINITY);
		MUST(rc < 0);
		b.mirror[LEN - 1]++;
		push(&b);
		OK(varve_checkpoint(v));
		OK(varve_wait(v, varve_epoch(v)));
		check_stored(v, "p", b.mirror, LEN);
	}
	OK(varve_close(v));
	place_remove(store);
	put(&b);
}

/* More new bytes than may be held, over more than one slice and one window: they are stored meanwhile; and if that fails, nothing of it
 * counts. */
static void much(size_t len)
{
	enum { LIMIT = 70 << 20 };
	struct buf b;
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("%zu bytes, more than the stage holds", len);
	place_path(store, "much");
	get(&b, len, true);
	for (size_t i = 0; i + 8 <= len; i += 8)
		memcpy(b.mirror + i, &(uint64_t){ rng() }, 8);
	push(&b);
	OK(varve_open(store, "job", "grain=128 stage=1MiB codec=none", &v));
	OK(varve_protect(v, "p", b.p, len));
	set_limit(LIMIT);
	MUST(varve_checkpoint(v) < 0);
	MUST(varve_checkpoint(v) < 0);
	set_limit(RLIM_INFINITY);
	OK(varve_checkpoint(v));
	OK(varve_wait(v, varve_epoch(v)));
	b.mirror[len / 2]++;
	push(&b);
	MUST(new_bytes(v) == 128);
	check_stored(v, "p", b.mirror, len);
	scramble(&b);
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(holds(&b, b.mirror));
	MUST(new_bytes(v) == 0);
	OK(varve_close(v));
	place_remove(store);
	put(&b);
}

/* What the library says on stderr while fn runs. */
static void listen(int *kept_fd, const char *path)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);

	fflush(stderr);
	*kept_fd = dup(2);
	CHECK(fd >= 0 && dup2(fd, 2) == 2);
	close(fd);
}

static bool was_said(int kept_fd, const char *path, const char *word)
{
	size_t n;
	char *said;
	bool found;

	fflush(stderr);
	CHECK(dup2(kept_fd, 2) == 2);
	close(kept_fd);
	said = (char *)place_read(path, &n);
	said = realloc(said, n + 1);
	said[n] = 0;
	found = strstr(said, word);
	free(said);
	return found;
}

static void want_of_memory(void)
{
	enum { LEN = 64 << 20, GRAIN = 128 };
	struct buf b;
	char store[PLACE_MAX], said[PLACE_MAX];
	void *hoard;
	varve *v = NULL;
	int fd;

	must_begin("want of memory");
	place_path(store, "want");
	place_path(said, "said");
	get(&b, LEN, true);
	for (size_t i = 0; i < LEN; i += 8)
		memcpy(b.mirror + i, &(uint64_t){ rng() }, 8);
	push(&b);
	OK(varve_open(store, "job", "grain=128 codec=none", &v));
	OK(varve_protect(v, "p", b.p, LEN));
	hoard = device_hoard(4 << 20);
	MUST(hoard);
	listen(&fd, said);
	OK(varve_checkpoint(v));
	MUST(was_said(fd, said, "copied to the host whole"));
	b.mirror[LEN / 3]++;
	push(&b);
	MUST(new_bytes(v) == GRAIN);
	device_put(hoard);
	b.mirror[LEN / 2]++;
	push(&b);
	MUST(new_bytes(v) == GRAIN);
	check_stored(v, "p", b.mirror, LEN);
	scramble(&b);
	listen(&fd, said); /* from here on there is memory enough */
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(holds(&b, b.mirror));
	b.mirror[LEN / 4]++;
	push(&b);
	MUST(new_bytes(v) == GRAIN);
	MUST(!was_said(fd, said, "copied to the host whole"));
	hoard = device_hoard(4 << 20); /* what is there is enough */
	MUST(hoard);
	b.mirror[LEN / 5]++;
	push(&b);
	MUST(new_bytes(v) == GRAIN);
	scramble(&b);
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(holds(&b, b.mirror));
	OK(varve_close(v));
	device_put(hoard);
	hoard = device_hoard(4 << 20);
	scramble(&b);
	listen(&fd, said); /* and a session that finds none to begin with */
	OK(varve_open(store, "job", "grain=128 codec=none", &v));
	OK(varve_protect(v, "p", b.p, LEN));
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(was_said(fd, said, "copied to the host whole"));
	MUST(holds(&b, b.mirror));
	MUST(new_bytes(v) == 0);
	device_put(hoard);
	check_stored(v, "p", b.mirror, LEN);
	OK(varve_close(v));
	place_remove(store);
	put(&b);
}

/* ---- streams ------------------------------------------------------------------------------------------------------------------------- */

static void streams(void)
{
	enum { LEN = (1 << 20) + 77 };
	struct device_gate gate = { .seconds = 0.2 }, busy = { .seconds = 20 }, also = { .seconds = 20 };
	void *work = device_stream(), *other = device_stream();
	struct buf b, from;
	uint8_t *q = malloc(LEN);
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("streams");
	place_path(store, "streams");
	get(&b, LEN, true);
	get(&from, LEN, true);
	noise(from.mirror, LEN);
	push(&from);
	push(&b);
	OK(varve_open(store, "job", "grain=128", &v));
	OK(varve_protect(v, "p", b.p, LEN));
	OK(varve_checkpoint(v));
	device_copy_on(work, b.p, from.p, LEN);
	OK(varve_checkpoint_on_stream(v, work)); /* the history has its full size now; while it grows, the device may have to be waited for */
	/* a chain that begins late: the epoch has what is there at its end */
	device_gate_on(work, &gate);
	device_set_on(work, b.p + 5000, 7, 20000);
	device_copy_on(work, b.p + 9001, from.p, 7000);
	device_copy_on(work, b.p + LEN - 500, from.p + 3, 500);
	device_gate_on(other, &busy);
	device_gate_on(NULL, &also);
	OK(varve_checkpoint_on_stream(v, work));
	MUST(gate.passed && !busy.passed && !also.passed); /* nobody waited for the others */
	memcpy(b.mirror, from.mirror, LEN);
	memset(b.mirror + 5000, 7, 20000);
	memcpy(b.mirror + 9001, from.mirror, 7000);
	memcpy(b.mirror + LEN - 500, from.mirror + 3, 500);
	device_set_on(work, b.p + 5000, 9, 5000); /* it may be changed */
	OK(varve_wait(v, varve_epoch(v)));
	OK(varve_restart_region(v, varve_epoch(v), "p", q, LEN));
	MUST(memcmp(q, b.mirror, LEN) == 0);
	OK(varve_checkpoint_on_stream(v, work));
	MUST(!busy.passed && !also.passed);
	busy.go = also.go = true;
	memset(b.mirror + 5000, 9, 5000);
	check_stored(v, "p", b.mirror, LEN);
	/* without a stream all work counts */
	gate = (struct device_gate){ .seconds = 0.1 };
	device_gate_on(other, &gate);
	device_copy_on(other, b.p, from.p, LEN);
	OK(varve_checkpoint(v));
	MUST(gate.passed);
	check_stored(v, "p", from.mirror, LEN);
	/* neither does a restart overtake it */
	gate = (struct device_gate){ .seconds = 0.1 };
	device_gate_on(other, &gate);
	device_set_on(other, b.p, 1, LEN);
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(holds(&b, from.mirror));
	OK(varve_close(v));
	device_stream_end(work);
	device_stream_end(other);
	place_remove(store);
	put(&b);
	put(&from);
	free(q);
}

/* ---- pointers ------------------------------------------------------------------------------------------------------------------------ */

/* Managed and pinned memory is the host's. */
static void pointers(void)
{
	enum { LEN = 300001 };
	uint8_t *managed = device_get_managed(LEN), *pinned = space->rent(LEN), *was = malloc(LEN), *q = malloc(LEN);
	char store[PLACE_MAX];
	varve *v = NULL;
	int device;

	must_begin("managed and pinned memory");
	place_path(store, "pointers");
	MUST(!space->owns(managed, LEN, &device) && !space->owns(pinned, LEN, &device));
	OK(varve_open(store, "job", NULL, &v));
	OK(varve_protect(v, "managed", managed, LEN));
	OK(varve_protect(v, "pinned", pinned, LEN));
	for (int e = 0; e < 4; e++) {
		noise(managed + e * 1000, LEN / 4);
		memcpy(pinned, managed, LEN / 2);
		memset(pinned + LEN / 2, e, LEN - LEN / 2);
		OK(varve_checkpoint(v));
		memcpy(was, pinned, LEN);
		pinned[e]++;
		OK(varve_restart_region(v, varve_epoch(v), "managed", q, LEN));
		MUST(memcmp(q, managed, LEN) == 0);
		OK(varve_restart_region(v, varve_epoch(v), "pinned", q, LEN));
		MUST(memcmp(q, was, LEN) == 0);
	}
	memcpy(q, managed, LEN);
	memset(managed, 1, LEN);
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(memcmp(managed, q, LEN) == 0 && memcmp(pinned, was, LEN) == 0);
	OK(varve_close(v));
	place_remove(store);
	device_put(managed);
	space->give_back(pinned, LEN);
	free(was);
	free(q);
}

/* Memory that was given back is told of, by name, before it is read or written. */
static void gone(void)
{
	enum { LEN = 8 << 20 };
	uint8_t *p = device_get(LEN), *q = device_get(LEN), *zero = calloc(1, LEN);
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("memory that is gone");
	place_path(store, "gone");
	OK(space->copy_in(p, zero, LEN));
	OK(space->copy_in(q, zero, LEN));
	OK(varve_open(store, "job", NULL, &v));
	OK(varve_protect(v, "p", p, LEN));
	OK(varve_protect(v, "q", q, LEN));
	OK(varve_checkpoint(v));
	device_put(q);
	MUST(varve_checkpoint(v) == VARVE_EINVAL && strstr(varve_last_error(), "'q'"));
	MUST(varve_restart(v, VARVE_LATEST) == VARVE_EINVAL && strstr(varve_last_error(), "'q'"));
	OK(varve_unprotect(v, "q"));
	OK(varve_checkpoint(v));
	OK(varve_wait(v, varve_epoch(v)));
	device_put(p); /* before the session ends: it does not mind */
	OK(varve_close(v));
	place_remove(store);
	free(zero);
}

/* ---- processes, devices, ranks ------------------------------------------------------------------------------------------------------- */

static void child(varve *v, int how)
{
	if (how)
		varve_close(v); /* a session of its parent's: whatever it says, it leaves the device alone */
	_exit(0);
}

static void forked(void)
{
	enum { LEN = 1 << 20 };
	struct buf b;
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("fork");
	place_path(store, "fork");
	get(&b, LEN, true);
	noise(b.mirror, LEN);
	push(&b);
	OK(varve_open(store, "job", "grain=128", &v));
	OK(varve_protect(v, "p", b.p, LEN));
	OK(varve_checkpoint(v));
	for (int how = 0; how < 2; how++) {
		pid_t pid;
		int status = -1;

		OK(varve_wait(v, varve_epoch(v)));
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			child(v, how);
		CHECK(waitpid(pid, &status, 0) == pid);
		MUST(status == 0);
		b.mirror[1000 * how]++;
		push(&b);
		MUST(new_bytes(v) == 128);
		check_stored(v, "p", b.mirror, LEN);
	}
	OK(varve_close(v));
	place_remove(store);
	put(&b);
}

/* Regions of several devices, whichever is the program's current one. */
static void devices(void)
{
	enum { LEN = 500001 };
	struct buf b[2];
	char store[PLACE_MAX];
	varve *v = NULL;

	if (device_count() < 2) {
		fprintf(stderr, "only one device: regions of two are not tried\n");
		return;
	}
	must_begin("two devices");
	place_path(store, "devices");
	OK(varve_open(store, "job", "grain=128", &v));
	for (int i = 0; i < 2; i++) {
		device_choose(i);
		get(&b[i], LEN, true);
		noise(b[i].mirror, LEN);
		push(&b[i]);
		OK(varve_protect(v, i ? "second" : "first", b[i].p, LEN));
	}
	for (int e = 0; e < 4; e++) {
		device_choose(e % 2);
		b[0].mirror[e * 1000]++;
		b[1].mirror[e * 2000]++;
		push(&b[0]);
		push(&b[1]);
		OK(varve_checkpoint(v));
		MUST(device_current() == e % 2);
	}
	for (int i = 0; i < 2; i++)
		scramble(&b[i]);
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	for (int i = 0; i < 2; i++)
		MUST(holds(&b[i], b[i].mirror));
	OK(varve_close(v));
	device_choose(0);
	for (int i = 0; i < 2; i++)
		put(&b[i]);
	place_remove(store);
}

enum { SHARED = 1 << 20, RANKS = 3 };

struct job {
	char store[PLACE_MAX];
	const char *options;
	bool any_thread;
	atomic_uint_least64_t stored;
};

/* All have the same, then each has something of its own. */
static void work(const struct varve_comm *comm, void *arg)
{
	struct job *j = arg;
	struct varve_comm mine = *comm;
	struct varve_stats st;
	uint64_t mix = 7;
	struct buf b;
	varve *v = NULL;

	mine.any_thread = j->any_thread;
	OK(varve_open_comm(&mine, j->store, "job", j->options, &v));
	get(&b, SHARED, comm->rank != 1); /* one has it in the host's memory */
	for (size_t i = 0; i < SHARED; i++)
		b.mirror[i] = (uint8_t)((mix = mix * 6364136223846793005ull + 1442695040888963407ull) >> 33);
	OK(varve_protect(v, "p", b.p, SHARED));
	for (int e = 0; e < 3; e++) {
		if (e == 1)
			b.mirror[1000 * (comm->rank + 1)]++;
		if (e == 2)
			memset(b.mirror + 300000 + 1000 * comm->rank, 7, 5000);
		push(&b);
		OK(varve_checkpoint(v));
		OK(varve_wait(v, varve_epoch(v)));
		OK(varve_stats(v, &st));
		if (e == 0)
			atomic_fetch_add(&j->stored, st.bytes_new);
		check_stored(v, "p", b.mirror, SHARED);
	}
	scramble(&b);
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(holds(&b, b.mirror));
	b.mirror[9]++;
	push(&b);
	OK(varve_checkpoint(v));
	OK(varve_stats(v, &st));
	MUST(st.bytes_new + st.bytes_dup_ranks + st.bytes_dup_time <= 2 * 256);
	OK(varve_close(v));
	put(&b);
}

static void ranks(void)
{
	static const char *const options[] = { "grain=256 mode=sync", "grain=256 mode=async", "grain=128 mode=sync aggregate=2" };

	for (int k = 0; k < 6; k++) {
		struct job j = { .options = options[k % 3], .any_thread = k >= 3 };

		must_begin("ranks: %s", j.options);
		place_path(j.store, "ranks");
		threadcomm_run(RANKS, work, &j);
		MUST(j.stored == SHARED);
		place_remove(j.store);
	}
}

/* ---- all of it, or what is named ------------------------------------------------------------------------------------------------------- */

static void keeps(void)
{
	kept("grain=64 keep=2");
	kept("grain=128 keep=2 method=tree mode=sync");
	kept("grain=32 keep=1 method=list history=1KiB");
}

static void failures(void)
{
	failed("grain=128 mode=sync");
	failed("grain=128 mode=async codec=none");
	failed("grain=128 mode=async method=tree");
	failed("grain=512 mode=sync method=full");
}

static void large(void)
{
	much((size_t)(VV_GRAIN_SLICE + 70000) * 128 + 5);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = {
		{ "new", only_new },    { "kept", keeps },        { "failed", failures }, { "streams", streams }, { "pointers", pointers },
		{ "gone", gone },       { "fork", forked },       { "devices", devices }, { "ranks", ranks },     { "memory", want_of_memory },
		{ "large", large },     { "histories", histories },
	};

	space = device_space();
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		seed = 88172645463325252ull + i;
		if (argc < 2 || strcmp(argv[1], tests[i].name) == 0)
			tests[i].run();
	}
	return 0;
}
