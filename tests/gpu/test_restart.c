// ctest: TIMEOUT 300 RUN_SERIAL
/* Restarts into device memory, through the public calls: of regions large enough that the device checks and places by itself. Every epoch comes back, beside
 * regions of the host's, and damage is told in the words that a restart into the host's memory has for it. */
#include "core/format/name.h"
#include "gpu/regions.h"

enum { EPOCHS = 10, REGIONS = 4 };

static const char *const names[REGIONS] = { "odd", "small", "even", "host" };
static const size_t lens[REGIONS] = { (3 << 20) + 77, 70001, 2 << 20, (1 << 20) + 5 };

static void edit(struct buf *b, size_t unit)
{
	for (size_t k = upto(300); k > 0; k--) {
		size_t at = upto(b->len / unit - 1) * unit, n = unit * (1 + upto(20)), from;

		n = n < b->len - at ? n : b->len - at;
		from = upto((b->len - n) / unit) * unit;
		switch (upto(3)) {
		case 0:
			memset(b->mirror + at, 0, n);
			break;
		case 1:
			memmove(b->mirror + at, b->mirror + from, n);
			break;
		default:
			noise(b->mirror + at, n);
		}
	}
	push(b);
}

static void every_epoch(const char *options, size_t unit)
{
	uint8_t *was[EPOCHS + 1][REGIONS];
	struct buf b[REGIONS];
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("every epoch: %s", options);
	place_path(store, "every");
	OK(varve_open(store, "job", options, &v));
	for (int r = 0; r < REGIONS; r++) {
		get(&b[r], lens[r], r < 3);
		noise(b[r].mirror, lens[r] / 2);
		OK(varve_protect(v, names[r], b[r].p, lens[r]));
	}
	for (int e = 1; e <= EPOCHS; e++)
		for (int r = 0; r < REGIONS; r++) {
			edit(&b[r], unit);
			was[e][r] = malloc(lens[r]);
			MUST(was[e][r]);
			memcpy(was[e][r], b[r].mirror, lens[r]);
			if (r == REGIONS - 1)
				OK(varve_checkpoint(v));
		}
	for (int e = EPOCHS; e > 0; e -= 3) {
		for (int r = 0; r < REGIONS; r++)
			scramble(&b[r]);
		MUST(varve_restart(v, (uint64_t)e) == 1);
		for (int r = 0; r < REGIONS; r++)
			MUST(holds(&b[r], was[e][r]));
		for (int r = 0; r < REGIONS; r++)
			check_stored(v, names[r], was[varve_epoch(v)][r], lens[r]);
	}
	OK(varve_close(v));
	for (int r = 0; r < REGIONS; r++) {
		put(&b[r]);
		for (int e = 1; e <= EPOCHS; e++)
			free(was[e][r]);
	}
	place_remove(store);
}

static void flip(const char *store, uint64_t epoch, size_t at)
{
	char object[VV_NAME_MAX], path[2 * PLACE_MAX];
	uint8_t *bytes;
	size_t n;

	vv_name_layer(object, "job", epoch, 0);
	snprintf(path, sizeof(path), "%s/%s", store, object);
	bytes = place_read(path, &n);
	MUST(at < n);
	bytes[at] ^= 1;
	place_write(path, bytes, n);
	free(bytes);
}

/* The newest epoch is damaged: the one before it comes back. So is that: nothing does, and the program hears of the newest. */
static void damaged(void)
{
	enum { LEN = (3 << 20) + 77, CHANGED = 1 << 20 };
	uint8_t *first = malloc(LEN), *q = malloc(LEN);
	char store[PLACE_MAX], host[700];
	struct buf b;
	varve *v = NULL;
	int rc;

	must_begin("damaged");
	MUST(first && q);
	place_path(store, "damaged");
	get(&b, LEN, true);
	noise(b.mirror, LEN);
	memcpy(first, b.mirror, LEN);
	push(&b);
	OK(varve_open(store, "job", "placing=device grain=128 codec=none mode=sync log=error", &v));
	OK(varve_protect(v, "p", b.p, LEN));
	OK(varve_checkpoint(v));
	noise(b.mirror + 1000, CHANGED);
	push(&b);
	OK(varve_checkpoint(v));
	flip(store, 2, CHANGED / 2);
	rc = varve_restart_region(v, 2, "p", q, LEN);
	snprintf(host, sizeof(host), "%s", varve_last_error());
	MUST(rc == VARVE_EDAMAGED && strstr(host, "checksum mismatch"));
	MUST(varve_restart_region(v, 2, "p", b.p, LEN) == rc && strcmp(varve_last_error(), host) == 0);
	MUST(varve_restart(v, 2) == rc && strcmp(varve_last_error(), host) == 0);
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(varve_epoch(v) == 1 && holds(&b, first));
	flip(store, 1, LEN / 2);
	MUST(varve_restart(v, VARVE_LATEST) == rc && strcmp(varve_last_error(), host) == 0);
	flip(store, 1, LEN / 2);
	flip(store, 2, CHANGED / 2);
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(holds(&b, b.mirror));
	OK(varve_close(v));
	place_remove(store);
	put(&b);
	free(first);
	free(q);
}

int main(void)
{
	space = device_space();
	seed = 88172645463325252ull;
	every_epoch("placing=device grain=128 codec=none", 128);
	every_epoch("placing=host grain=128 codec=none", 128);
	every_epoch("placing=device grain=32 codec=none chunk=1000 method=list", 32);
	every_epoch("placing=device grain=256 codec=auto", 256);
	every_epoch("placing=device grain=4096 codec=none keep=20 threads=1", 4096);
	damaged();
	return 0;
}
