#include "support/commsuite.h"
#include "support/gen.h"
#include "vv_test.h"

/* Every rank draws the same from `common`, so each knows what all of them do. */
struct suite {
	struct vv_comm *c;
	uint64_t common;
	uint64_t salt; /* of this round's bytes */
	uint64_t sent;
	size_t max_len;
	uint32_t me, size;
};

static void *room(size_t len)
{
	void *p = calloc(len + 1, 1);

	CHECK(p);
	return p;
}

/* The bytes that `from` has for `to`. */
static void fill(const struct suite *s, void *p, size_t len, uint32_t from, uint32_t to)
{
	uint64_t state = s->salt + ((uint64_t)from << 32 | to);

	state = gen_next(&state);
	gen_bytes(&state, p, len);
}

static void check(const struct suite *s, const void *p, size_t len, uint32_t from, uint32_t to)
{
	void *want = room(len);

	fill(s, want, len, from, to);
	CHECK(memcmp(p, want, len) == 0);
	free(want);
}

static size_t draw_len(struct suite *s)
{
	switch (gen_below(&s->common, 4)) {
	case 0:
		return 0;
	case 1:
		return gen_below(&s->common, 64);
	case 2:
		return gen_below(&s->common, s->max_len / 16 + 1);
	default:
		return gen_below(&s->common, s->max_len + 1);
	}
}

static int finish(struct suite *s, struct vv_comm_op *op, int rc)
{
	CHECK_EQ(rc, 0);
	while (gen_below(&s->common, 3))
		if ((rc = vv_comm_look(s->c, op, false)) != 0)
			return rc;
	return vv_comm_look(s->c, op, true);
}

static void try_bcast(struct suite *s, bool behind)
{
	size_t len = draw_len(s);
	uint32_t root = (uint32_t)gen_below(&s->common, s->size);
	uint64_t restore;
	struct vv_comm_op op;
	size_t all = len + (behind ? VV_COMM_SEAL : 0);
	void *p = room(all);

	if (root == s->me) {
		fill(s, p, len, root, 0);
		s->sent += all * (s->size - 1);
	}
	if (behind) {
		restore = s->common; /* how often it was looked at differs between ranks */
		CHECK_EQ(finish(s, &op, vv_comm_begin_bcast(s->c, p, all, root, &op)), 1);
		s->common = restore;
	} else {
		CHECK_EQ(vv_comm_bcast(s->c, p, len, root), 0);
	}
	check(s, p, len, root, 0);
	free(p);
}

static void try_allgather(struct suite *s, bool behind)
{
	size_t len = draw_len(s), part = len + (behind ? VV_COMM_SEAL : 0);
	uint8_t *mine = room(part), *all = room(part * s->size);
	uint64_t restore;
	struct vv_comm_op op;

	fill(s, mine, len, s->me, 0);
	if (behind) {
		restore = s->common;
		CHECK_EQ(finish(s, &op, vv_comm_begin_allgather(s->c, mine, all, part, &op)), 1);
		s->common = restore;
	} else {
		CHECK_EQ(vv_comm_allgather(s->c, mine, all, len), 0);
	}
	for (uint32_t r = 0; r < s->size; r++)
		check(s, all + r * part, len, r, 0);
	s->sent += part * (s->size - 1);
	free(mine);
	free(all);
}

static void try_allreduce(struct suite *s)
{
	size_t n = draw_len(s) / sizeof(uint64_t);
	enum varve_reduce how = (enum varve_reduce)gen_below(&s->common, 3);
	uint64_t *v = room(n * sizeof(*v)), *other = room(n * sizeof(*v)), *want = room(n * sizeof(*v));

	for (uint32_t r = 0; r < s->size; r++) {
		fill(s, other, n * sizeof(*v), r, 0);
		for (size_t i = 0; i < n; i++) {
			if (r == 0)
				want[i] = other[i];
			else if (how == VARVE_SUM)
				want[i] += other[i];
			else if (how == VARVE_MIN ? other[i] < want[i] : other[i] > want[i])
				want[i] = other[i];
		}
	}
	fill(s, v, n * sizeof(*v), s->me, 0);
	CHECK_EQ(vv_comm_allreduce(s->c, v, n, how), 0);
	CHECK(memcmp(v, want, n * sizeof(*v)) == 0);
	s->sent += n * sizeof(*v) * (s->size - 1);
	free(v);
	free(other);
	free(want);
}

static void try_alltoall(struct suite *s)
{
	size_t len = draw_len(s);
	uint8_t *to = room(len * s->size), *from = room(len * s->size);

	for (uint32_t r = 0; r < s->size; r++)
		fill(s, to + r * len, len, s->me, r);
	CHECK_EQ(vv_comm_alltoall(s->c, to, from, len), 0);
	for (uint32_t r = 0; r < s->size; r++)
		check(s, from + r * len, len, r, s->me);
	s->sent += len * (s->size - 1);
	free(to);
	free(from);
}

static void try_alltoallv(struct suite *s)
{
	uint64_t *to_len = room(s->size * sizeof(*to_len)), *from_len = room(s->size * sizeof(*from_len));
	size_t to_all = 0, from_all = 0, at = 0;
	uint8_t *to, *from;

	for (uint32_t a = 0; a < s->size; a++)
		for (uint32_t b = 0; b < s->size; b++) {
			size_t len = draw_len(s);

			if (a == s->me)
				to_all += to_len[b] = len;
			if (b == s->me)
				from_all += from_len[a] = len;
		}
	to = room(to_all);
	from = room(from_all);
	for (uint32_t r = 0; r < s->size; at += to_len[r++])
		fill(s, to + at, to_len[r], s->me, r);
	CHECK_EQ(vv_comm_alltoallv(s->c, to, to_len, from, from_len), 0);
	at = 0;
	for (uint32_t r = 0; r < s->size; at += from_len[r++])
		check(s, from + at, from_len[r], r, s->me);
	s->sent += to_all - to_len[s->me];
	free(to_len);
	free(from_len);
	free(to);
	free(from);
}

/* All shift by the same distance, 0 included; some send nothing. */
static void try_sendrecv(struct suite *s)
{
	uint32_t shift = (uint32_t)gen_below(&s->common, s->size);
	uint32_t to = (s->me + shift) % s->size, from = (s->me + s->size - shift) % s->size;
	size_t out_len = 0, in_len = 0;
	void *out, *in;

	for (uint32_t r = 0; r < s->size; r++) {
		size_t len = draw_len(s);
		bool sends = gen_below(&s->common, 4) != 0;

		if (r == from) {
			in_len = sends ? len : 0;
			from = sends ? from : VARVE_NOBODY;
		}
		if (r == s->me) {
			out_len = sends ? len : 0;
			to = sends ? to : VARVE_NOBODY;
		}
	}
	out = room(out_len);
	in = room(in_len);
	fill(s, out, out_len, s->me, 0);
	CHECK_EQ(vv_comm_sendrecv(s->c, out, out_len, to, in, in_len, from), 0);
	check(s, in, in_len, from, 0);
	s->sent += to == s->me ? 0 : out_len;
	free(out);
	free(in);
}

void commsuite_run(struct vv_comm *c, uint64_t seed, int rounds, size_t max_len)
{
	struct suite s = { .c = c, .common = seed, .max_len = max_len, .me = c->plug.rank, .size = c->plug.size };
	uint64_t sent = c->sent;

	for (int i = 0; i < rounds; i++) {
		s.salt = gen_next(&s.common);
		switch (gen_below(&s.common, 8)) {
		case 0:
		case 1:
			try_bcast(&s, i & 1);
			break;
		case 2:
		case 3:
			try_allgather(&s, i & 1);
			break;
		case 4:
			try_allreduce(&s);
			break;
		case 5:
			try_alltoall(&s);
			break;
		case 6:
			try_alltoallv(&s);
			break;
		default:
			try_sendrecv(&s);
		}
	}
	CHECK_EQ(c->sent - sent, s.size > 1 ? s.sent : 0);
}
