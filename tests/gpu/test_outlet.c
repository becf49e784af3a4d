/* Data on their way from the device into rooms of the sink, of any size: all arrive, in order, and the sink hears of a room when its data are there. The
 * same for the method full, whose pieces name all grains. Whatever fails, nothing is written into a room after the end. Without a device. */
#include "base/err.h"
#include "gpu/full.h"
#include "gpu/outlet.h"
#include "host_runtime.h"

enum { CHUNK = 32, GRAINS = 4000, ROUNDS = 150, SPANS = 8 };

/* ---- the sink -------------------------------------------------------------------------------------------------------------------- */

static struct sink {
	uint8_t *room[VV_SINK_ROOMS]; /* that were asked for, oldest first */
	size_t n_rooms, most_rooms;
	uint8_t data[2 * GRAINS * CHUNK];
	size_t n;
	struct vv_piece piece[64];
	size_t n_pieces;
	long fail_at, calls;
	size_t largest; /* room */
} sink;

static bool gives_up(void)
{
	return ++sink.calls == sink.fail_at;
}

static uint8_t *take_room(void *arg, size_t want, size_t *got)
{
	uint8_t *p;

	(void)arg;
	if (gives_up()) {
		vv_err_set(VV_EIO, "no room");
		return NULL;
	}
	CHECK(want > 0 && sink.n_rooms < VV_OUTLET_ROOMS);
	*got = CHUNK + upto(sink.largest);
	*got = *got < want ? *got : want;
	p = malloc(*got);
	CHECK(p);
	memset(p, 0xee, *got);
	sink.room[sink.n_rooms++] = p;
	sink.most_rooms = sink.n_rooms > sink.most_rooms ? sink.n_rooms : sink.most_rooms;
	return p;
}

static int take_data(void *arg, const uint8_t *p, size_t len)
{
	(void)arg;
	if (gives_up())
		return vv_err_set(VV_EIO, "no more data");
	CHECK(sink.n_rooms > 0 && p == sink.room[0] && sink.n + len <= sizeof(sink.data));
	memcpy(sink.data + sink.n, p, len);
	sink.n += len;
	free(sink.room[0]);
	sink.n_rooms--;
	memmove(sink.room, sink.room + 1, sink.n_rooms * sizeof(*sink.room));
	return 0;
}

static int take_pieces(void *arg, const struct vv_piece *piece, size_t n)
{
	(void)arg;
	if (gives_up())
		return vv_err_set(VV_EIO, "no more pieces");
	CHECK(sink.n_pieces + n <= 64);
	memcpy(sink.piece + sink.n_pieces, piece, n * sizeof(*piece));
	sink.n_pieces += n;
	return 0;
}

static const struct vv_sink ops = {NULL, take_room, take_data, take_pieces};

/* Rooms that it never hears of; who still writes there is found out. */
static void clear_sink(void)
{
	for (size_t i = 0; i < sink.n_rooms; i++)
		free(sink.room[i]);
	memset(&sink, 0, sizeof(sink));
	sink.largest = upto(1) ? 3 * CHUNK : 300 * CHUNK;
}

/* ---- the device ------------------------------------------------------------------------------------------------------------------ */

static uint8_t device[GRAINS * CHUNK], stages[VV_OUTLET_STAGES][5 * CHUNK];

struct gathering {
	const uint32_t *number;
	uint32_t n;
	uint8_t *to;
};

static void gather(void *arg)
{
	const struct gathering *g = arg;

	for (uint32_t i = 0; i < g->n; i++)
		memcpy(g->to + (size_t)i * CHUNK, device + (size_t)g->number[i] * CHUNK, CHUNK);
}

int vv_found_pieces_gather(const struct vv_gpu_numbers *of, const uint32_t *number, uint32_t n, uint8_t *to,
			   cudaStream_t stream)
{
	struct gathering g = {number, n, to};

	CHECK(of->chunk == CHUNK && n <= 5);
	return host_launch(stream, gather, &g, sizeof(g));
}

static const struct vv_gpu_numbers of = {.chunk = CHUNK};

/* ---- the outlet ------------------------------------------------------------------------------------------------------------------ */

static int make(struct vv_outlet *o)
{
	int rc;

	*o = (struct vv_outlet){0};
	rc = vv_outlet_init(o);
	o->sink = &ops;
	o->of = &of;
	for (int i = 0; i < VV_OUTLET_STAGES; i++)
		o->stage[i] = stages[i];
	o->stage_len = sizeof(stages[0]);
	return rc;
}

/* So many grains, announced together, brought in parts, of numbers or as they lie; what is to come of it goes to want. */
static int bring(struct vv_outlet *o, const uint32_t *number, size_t n, uint8_t *want)
{
	int rc = 0;

	vv_outlet_expect(o, (uint64_t)n * CHUNK);
	for (size_t at = 0, some; rc == 0 && at < n; at += some) {
		some = 1 + upto(upto(1) ? 30 : 3);
		some = some < n - at ? some : n - at;
		if (upto(1)) {
			for (size_t i = 0; i < some; i++)
				memcpy(want + (at + i) * CHUNK, device + (size_t)number[at + i] * CHUNK, CHUNK);
			rc = vv_outlet_gather(o, number + at, some);
		} else {
			size_t from = upto(GRAINS - some);

			memcpy(want + at * CHUNK, device + from * CHUNK, some * CHUNK);
			rc = vv_outlet_copy(o, device + from * CHUNK, some * CHUNK);
		}
		if (rc == 0 && upto(3) == 0)
			rc = vv_outlet_deliver(o, (unsigned)upto(VV_OUTLET_ROOMS));
	}
	return rc;
}

/* failing: 0: nothing; 1: a call of the runtime; 2: the sink. */
static void try(int failing)
{
	static uint32_t number[GRAINS];
	static uint8_t want[2 * GRAINS * CHUNK];
	struct vv_outlet o;
	size_t n = 0;
	int rc = 0;

	clear_sink();
	CHECK_EQ(make(&o), 0);
	for (size_t i = 0; i < GRAINS; i++)
		number[i] = (uint32_t)upto(GRAINS - 1);
	host_fail(failing == 1 ? 1 + (long)upto(300) : 0);
	sink.fail_at = failing == 2 ? 1 + (long)upto(60) : 0;
	for (int i = 0; rc == 0 && i < 3; i++) {
		size_t some = upto(upto(1) ? 700 : 5);

		rc = bring(&o, number, some, want + n * CHUNK);
		if (rc == 0 && upto(1))
			rc = vv_outlet_deliver(&o, 0);
		n += some;
	}
	if (rc == 0)
		rc = vv_outlet_deliver(&o, 0);
	host_fail(0);
	CHECK(failing || rc == 0);
	if (rc) {
		vv_outlet_stop(&o);
		CHECK_EQ(o.n, 0);
		clear_sink();
		host_run_all(); /* which writes nowhere any more */
	} else {
		CHECK(sink.n_rooms == 0 && sink.n == n * CHUNK && memcmp(sink.data, want, sink.n) == 0);
		CHECK(sink.most_rooms <= VV_OUTLET_ROOMS);
	}
	vv_outlet_fini(&o);
	host_end();
}

static uint8_t *take_little(void *arg, size_t want, size_t *got)
{
	(void)want;
	*got = CHUNK - 1;
	return arg;
}

static void test_odd(void)
{
	static uint8_t little[CHUNK];
	const struct vv_sink small = {little, take_little, take_data, take_pieces};
	struct vv_outlet o;
	int rc = VV_EIO;

	for (long at = 1; rc; at++) { /* whichever call fails at the beginning */
		host_fail(at);
		rc = make(&o);
		host_fail(0);
		vv_outlet_fini(&o);
		CHECK_EQ(host_handles, 0);
		host_end();
	}
	CHECK_EQ(make(&o), 0);
	o.sink = &small;
	vv_outlet_expect(&o, CHUNK);
	CHECK_EQ(vv_outlet_copy(&o, device, CHUNK), VV_EINVAL);
	vv_outlet_stop(&o);
	vv_outlet_fini(&o);
	host_end();
}

/* ---- the method full ------------------------------------------------------------------------------------------------------------- */

/* Spans here and there, some over the border of a slice; returns how many grains they have. */
static size_t choose(struct vv_span span[SPANS], size_t n, uint32_t *end)
{
	uint32_t at = 0;
	size_t all = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t border = (at / VV_GRAIN_SLICE + 1) * VV_GRAIN_SLICE;

		if (upto(2) == 0)
			at = border - VV_GRAIN_TILE * (uint32_t)upto(5);
		span[i] = (struct vv_span){
			.id = i, .p = device + upto(GRAINS - 200) * CHUNK, .first = at, .n = (uint32_t)upto(200)};
		at += (span[i].n + VV_GRAIN_TILE - 1) / VV_GRAIN_TILE * VV_GRAIN_TILE;
		all += span[i].n;
	}
	*end = at;
	return all;
}

/* Pieces and data against the grains themselves, one after the other. */
static void check_full(const struct vv_span *span, size_t n)
{
	size_t data = 0, piece = 0, used = 0;

	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < span[i].n; k++, data++, used++) {
			const struct vv_piece *p;

			if (piece < sink.n_pieces && used == sink.piece[piece].len) {
				piece++;
				used = 0;
			}
			CHECK(piece < sink.n_pieces);
			p = &sink.piece[piece];
			CHECK_EQ(p->at + used, span[i].first + k);
			CHECK_EQ(p->at / VV_GRAIN_SLICE, (p->at + p->len - 1) / VV_GRAIN_SLICE);
			CHECK_EQ(p->from, vv_grain_from(VV_PIECE_NEW, 0, data - used));
			CHECK(memcmp(sink.data + data * CHUNK, span[i].p + (size_t)k * CHUNK, CHUNK) == 0);
		}
	CHECK_EQ(sink.n, data * CHUNK);
	CHECK(data == 0 ? sink.n_pieces == 0 : piece + 1 == sink.n_pieces && used == sink.piece[piece].len);
}

static void try_full(int failing)
{
	struct vv_sieve_counts counts = {0};
	struct vv_span span[SPANS];
	size_t n = upto(SPANS), grains;
	struct vv_outlet o;
	uint32_t end;
	int rc;

	clear_sink();
	CHECK_EQ(make(&o), 0);
	grains = choose(span, n, &end);
	host_fail(failing == 1 ? 1 + (long)upto(100) : 0);
	sink.fail_at = failing == 2 ? 1 + (long)upto(30) : 0;
	rc = vv_full_pass(&o, span, n, end, &counts);
	host_fail(0);
	CHECK(failing || rc == 0);
	if (rc == 0) {
		CHECK(counts.fresh == grains && counts.changed == grains && sink.n_rooms == 0);
		check_full(span, n);
	}
	vv_outlet_stop(&o);
	clear_sink();
	vv_outlet_fini(&o);
	host_end();
}

int main(void)
{
	noise(device, sizeof(device));
	test_odd();
	for (int i = 0; i < ROUNDS; i++) {
		try(i % 3);
		try_full(i % 3);
	}
	return 0;
}
