/* Requests of other ranks for layers of this store: a layer of another copy of the lineage is refused, also if that is known only after a read failed. */
#include "base/err.h"
#include "base/mem.h"
#include "core/format/run.h"
#include "engine/lineage/layer_file.h"
#include "engine/lineage/provenance.h"
#include "engine/ranks/remote_serve.h"
#include "support/gen.h"
#include "support/place.h"
#include "vv_test.h"
#include <varve/varve.h>

enum { LEN = 64 << 10, EPOCHS = 2, PIECE = 4096 };

static char url[PLACE_MAX];
static uint8_t bytes[LEN];

/* Each epoch by a session of its own, so each has an era of its own; the last refers to the first. */
static void write_epochs(void)
{
	uint64_t state = 5;

	gen_bytes(&state, bytes, LEN);
	for (int e = 1; e <= EPOCHS; e++) {
		varve *v = NULL;

		CHECK_EQ(varve_open(url, "L", "mode=sync codec=none log=error", &v), 0);
		CHECK_EQ(varve_protect(v, "m", bytes, LEN), 0);
		CHECK_EQ(varve_restart(v, VARVE_LATEST), e > 1);
		gen_bytes(&state, bytes, PIECE);
		CHECK_EQ(varve_checkpoint(v), 0);
		CHECK_EQ(varve_close(v), 0);
	}
}

static void open_lineage(struct vv_store **s, struct vv_lineage *lin)
{
	struct vv_store_options opt = { 0 };

	CHECK_EQ(vv_store_open(url, &opt, s), 0);
	CHECK_EQ(vv_catalog_open(*s, "L", false, lin), 0);
}

static void read_tokens(uint64_t *token)
{
	struct vv_store *s = NULL;
	struct vv_lineage lin;

	open_lineage(&s, &lin);
	CHECK_EQ(vv_layer_file_read_eras(&lin, vv_run_layer(EPOCHS, 0)), 0);
	for (uint64_t e = 1; e <= EPOCHS; e++) {
		token[e] = vv_provenance_token(&lin, e);
		CHECK(token[e]);
	}
	vv_store_close(s);
}

static void remove_first_layer(void)
{
	char path[PLACE_MAX + 64];

	snprintf(path, sizeof(path), "%s/L/00000000/0000000001.r0.layer", url);
	CHECK(remove(path) == 0);
}

/* Two requests: for the first layer, with that token, and for the start of the last one. */
static void serve(const uint64_t *token, uint64_t first_token, size_t n_bad)
{
	struct vv_request q[] = {
		{ vv_run_layer(1, 0), PIECE, PIECE, first_token },
		{ vv_run_layer(EPOCHS, 0), 0, PIECE, token[EPOCHS] },
	};
	uint64_t in_len = sizeof(q), len = 0;
	struct vv_exchange ask = { .in = (uint8_t *)q, .in_len = &in_len, .in_sum = sizeof(q) };
	struct vv_salvage_needs bad = { 0 };
	struct vv_warned warned = { 0 };
	uint8_t to[2 * PIECE] = { 0 };
	struct vv_pool *pool = NULL;
	struct vv_store *s = NULL;
	struct vv_lineage lin;

	open_lineage(&s, &lin);
	CHECK_EQ(vv_pool_new(1, &pool), 0);
	CHECK_EQ(vv_remote_serve_check(&ask, 1, &len), 0);
	CHECK_EQ(len, sizeof(to));
	CHECK_EQ(vv_remote_serve_read(&lin, pool, &ask, to, &bad, &warned), 0);
	CHECK_EQ(bad.n, n_bad);
	if (n_bad)
		CHECK(bad.v[0].layer == q[0].layer && bad.v[0].pos == PIECE && bad.v[0].len == PIECE && bad.v[0].to == to);
	else
		CHECK(memcmp(to, bytes + PIECE, PIECE) == 0);
	CHECK(memcmp(to + PIECE, bytes, PIECE) == 0);
	vv_salvage_fini(&bad);
	vv_mem_free(warned.layer);
	vv_pool_free(pool);
	vv_store_close(s);
}

int main(void)
{
	uint64_t token[EPOCHS + 1];

	place_path(url, "store");
	write_epochs();
	read_tokens(token);
	serve(token, token[1], 0);
	serve(token, ~token[1], 1);
	remove_first_layer();
	serve(token, token[1], 1);
	serve(token, ~token[1], 1);
	return 0;
}
