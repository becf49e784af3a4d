/* The input as what ranks tell a home rank, round after round: a byte for the number of ranks, one for what is remembered; then for each rank of a round a byte
 * that says how many claims it makes and whether its message is as long as it should be, places of a byte, and claims of two. Whatever they say, it is refused,
 * or every claim gets a decision that can be true. */
#include "base/buf.h"
#include "base/err.h"
#include "core/ranks/owner_stream.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RANKS = 4, CLAIMS = 8, ROUNDS = 64, ODD = 0x80, LAST = 0x40 };

struct input {
	const uint8_t *p, *end;
};

static void insist(int true_thing)
{
	if (!true_thing)
		abort();
}

static uint8_t next(struct input *in)
{
	return in->p < in->end ? *in->p++ : 0;
}

static void add_number(struct vv_buf *b, uint64_t v)
{
	vv_buf_add(b, &v, sizeof(v));
}

static void add_claim(struct vv_buf *b, uint8_t content, uint32_t segment)
{
	struct vv_digest d;

	memset(&d, content, sizeof(d));
	vv_buf_add(b, &d, sizeof(d));
	vv_buf_add(b, &segment, sizeof(segment));
}

/* What the rank says. Positions that cannot be come of bytes above 0xf0. */
static void say(struct input *in, const struct vv_owner_stream *d, uint32_t rank, struct vv_buf *b)
{
	uint8_t how = next(in);
	size_t n = how % CLAIMS, places = d->awaited.of[rank];

	add_number(b, !(how & LAST));
	if (how & ODD)
		places = next(in);
	for (size_t i = 0; i < places; i++) {
		uint8_t at = next(in);

		add_number(b, at > 0xf0 ? VV_OWNER_INDEX_POS_MAX + at : (uint64_t)at * 4096);
	}
	for (size_t i = 0; i < n; i++) {
		uint8_t content = next(in);

		add_claim(b, content, next(in));
	}
	if (how & ODD)
		b->n -= next(in) % 8;
}

/* 0, or VV_EPEER. */
static int hold_round(struct input *in, struct vv_owner_stream *d)
{
	uint64_t len[RANKS], lead[RANKS], owed[RANKS];
	struct vv_buf b = { 0 };
	const uint64_t *word;
	int rc;

	for (uint32_t r = 0; r < d->ranks; r++) {
		size_t before = b.n;

		owed[r] = d->owed.of[r];
		lead[r] = sizeof(uint64_t) * (1 + d->awaited.of[r]);
		say(in, d, r, &b);
		len[r] = b.n - before;
	}
	insist(vv_buf_check(&b) == 0);
	rc = vv_owner_stream_run(d, b.p, len);
	insist(rc == 0 || rc == VV_EPEER);
	word = d->reply;
	for (uint32_t r = 0; rc == 0 && r < d->ranks; r++) {
		uint64_t claims = (len[r] - lead[r]) / VV_OWNER_STREAM_CLAIM;

		insist(len[r] == lead[r] + claims * VV_OWNER_STREAM_CLAIM && d->reply_len[r] == (owed[r] + claims) * sizeof(*word));
		for (uint64_t i = 0; i < owed[r]; i++, word++)
			insist(vv_owner_stream_kind(*word) == VV_OWNER_STREAM_STORED && vv_owner_stream_rank(*word) < d->ranks);
		for (uint64_t i = 0; i < claims; i++, word++)
			insist(vv_owner_stream_is_valid(*word, r, d->ranks));
	}
	insist(rc || d->more <= d->ranks);
	vv_buf_fini(&b);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, data + size };
	uint32_t ranks = 1 + next(&in) % RANKS;
	size_t limit = next(&in);
	struct vv_owner_stream d;

	insist(vv_owner_stream_init(&d, ranks, limit) == 0);
	for (int round = 0; round < ROUNDS && in.p < in.end; round++)
		if (hold_round(&in, &d) < 0)
			break;
	vv_owner_stream_fini(&d);
	return 0;
}
