/* Rounds before a home rank against a brute-force model: random ranks, contents and gaps, with plenty to remember and with little. Then messages that cannot
 * be, and want of memory. */
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/ranks/owner_stream.h"
#include "support/owner_trial.h"
#include "support/gen.h"
#include "vv_test.h"

enum { MAX_RANKS = 9, CONTENTS = 400, CAP = 60, ROUNDS = 40, NONE = UINT32_MAX };

struct place {
	uint32_t rank;
	uint64_t pos;
	unsigned round; /* it was stored in */
};

struct claim {
	uint32_t content, segment;
	uint64_t decision;
};

struct model {
	struct vv_owner_stream stream;
	uint32_t ranks;
	struct claim now[MAX_RANKS][CAP], before[MAX_RANKS][CAP];
	size_t n_now[MAX_RANKS], n_before[MAX_RANKS];
	struct place place[CONTENTS];
	uint64_t end[MAX_RANKS]; /* of each rank's payload */
	uint64_t length[MAX_RANKS];
	struct vv_buf said;
};

static void claim(struct model *m, uint64_t *state, uint32_t rank)
{
	m->n_now[rank] = gen_below(state, 4) ? gen_below(state, CAP) : 0;
	for (size_t i = 0; i < m->n_now[rank]; i++)
		m->now[rank][i] = (struct claim){ (uint32_t)gen_below(state, CONTENTS), (uint32_t)gen_below(state, 5), 0 };
}

static void say(struct model *m, uint32_t rank, uint64_t more)
{
	size_t from = m->said.n;

	vv_buf_add(&m->said, &more, sizeof(more));
	for (size_t i = 0; i < m->n_before[rank]; i++)
		if (vv_owner_stream_kind(m->before[rank][i].decision) == VV_OWNER_STREAM_STORE)
			vv_buf_add(&m->said, &m->place[m->before[rank][i].content].pos, sizeof(uint64_t));
	for (size_t i = 0; i < m->n_now[rank]; i++) {
		struct vv_digest d = owner_trial_digest(m->now[rank][i].content);

		vv_buf_add(&m->said, &d, sizeof(d));
		vv_buf_add(&m->said, &m->now[rank][i].segment, sizeof(uint32_t));
	}
	m->length[rank] = m->said.n - from;
}

/* Of those who claim it, the first from the one on that the segment of the lowest rank suggests. */
static uint32_t owner_of(const struct model *m, uint32_t content)
{
	bool claims[MAX_RANKS] = { false };
	uint32_t from = NONE;

	for (uint32_t r = 0; r < m->ranks; r++)
		for (size_t i = 0; i < m->n_now[r]; i++)
			if (m->now[r][i].content == content) {
				claims[r] = true;
				from = from == NONE ? m->now[r][i].segment % m->ranks : from;
			}
	while (!claims[from])
		from = (from + 1) % m->ranks;
	return from;
}

/* What the rank was promised has come; what it claims now is well decided. */
static void check_rank(struct model *m, uint32_t rank, const uint64_t **word, bool exact, unsigned round)
{
	for (size_t i = 0; i < m->n_before[rank]; i++) {
		const struct claim *c = &m->before[rank][i];

		if (vv_owner_stream_kind(c->decision) != VV_OWNER_STREAM_PENDING)
			continue;
		CHECK_EQ(**word, vv_owner_stream_decision(VV_OWNER_STREAM_STORED, m->place[c->content].rank, m->place[c->content].pos));
		CHECK_EQ(vv_owner_stream_rank(*(*word)++), vv_owner_stream_rank(c->decision));
	}
	for (size_t i = 0; i < m->n_now[rank]; i++) {
		struct claim *c = &m->now[rank][i];
		const struct place *p = &m->place[c->content];
		bool known = p->rank != NONE && p->round < round;

		c->decision = *(*word)++;
		CHECK(vv_owner_stream_is_valid(c->decision, rank, m->ranks));
		if (vv_owner_stream_kind(c->decision) == VV_OWNER_STREAM_STORED) {
			CHECK(known);
			CHECK_EQ(c->decision, vv_owner_stream_decision(VV_OWNER_STREAM_STORED, p->rank, p->pos));
		} else {
			CHECK(!known || !exact);
			CHECK_EQ(vv_owner_stream_rank(c->decision), owner_of(m, c->content));
		}
	}
}

/* Who is to store something does, some of it twice. */
static void store(struct model *m, unsigned round)
{
	for (uint32_t r = 0; r < m->ranks; r++)
		for (size_t i = 0; i < m->n_now[r]; i++) {
			struct place *p = &m->place[m->now[r][i].content];

			if (vv_owner_stream_kind(m->now[r][i].decision) == VV_OWNER_STREAM_STORE && (p->rank == NONE || p->round < round)) {
				*p = (struct place){ r, m->end[r], round };
				m->end[r] += 4096 + r;
			}
		}
	memcpy(m->before, m->now, sizeof(m->now));
	memcpy(m->n_before, m->n_now, sizeof(m->n_now));
}

static void test_model(uint64_t seed, size_t limit)
{
	struct model *m = calloc(1, sizeof(*m));
	uint64_t state = seed, stores = 0, contents = 0;
	bool exact = limit > 2 * CONTENTS;

	CHECK(m);
	m->ranks = 1 + (uint32_t)gen_below(&state, MAX_RANKS);
	for (size_t i = 0; i < CONTENTS; i++)
		m->place[i].rank = NONE;
	CHECK_EQ(vv_owner_stream_init(&m->stream, m->ranks, limit), 0);
	for (unsigned round = 1; round <= ROUNDS; round++) {
		uint32_t more = 0;
		const uint64_t *word;

		m->said.n = 0;
		for (uint32_t r = 0; r < m->ranks; r++) {
			bool last = gen_below(&state, 3) == 0;

			claim(m, &state, r);
			say(m, r, !last);
			more += !last;
		}
		CHECK_EQ(vv_owner_stream_run(&m->stream, m->said.p, m->length), 0);
		CHECK_EQ(m->stream.more, more);
		word = m->stream.reply;
		for (uint32_t r = 0; r < m->ranks; r++) {
			const uint64_t *from = word;

			check_rank(m, r, &word, exact, round);
			CHECK_EQ((word - from) * 8, m->stream.reply_len[r]);
		}
		store(m, round);
		CHECK(m->stream.young.n + m->stream.old.n <= limit + (size_t)MAX_RANKS * CAP);
	}
	for (size_t i = 0; i < CONTENTS; i++)
		contents += m->place[i].rank != NONE;
	for (uint32_t r = 0; r < m->ranks; r++)
		stores += m->end[r] / (4096 + r);
	CHECK(exact ? stores == contents : stores >= contents);
	CHECK(exact || stores > contents); /* so much is forgotten that the smaller limit was met */
	vv_buf_fini(&m->said);
	vv_owner_stream_fini(&m->stream);
	free(m);
}

/* Two ranks claim one thing each, the same; rank 0 stores it. */
struct small {
	struct vv_owner_stream stream;
	uint8_t said[2 * 8 + 8 + 2 * VV_OWNER_STREAM_CLAIM];
	uint64_t len[2];
};

static int first_round(struct small *s)
{
	struct vv_digest d = owner_trial_digest(7);
	uint64_t more = 1;
	int rc = vv_owner_stream_init(&s->stream, 2, 100);

	memset(s->said, 0, sizeof(s->said));
	for (size_t r = 0; r < 2; r++) {
		memcpy(s->said + r * (8 + VV_OWNER_STREAM_CLAIM), &more, 8);
		memcpy(s->said + r * (8 + VV_OWNER_STREAM_CLAIM) + 8, &d, sizeof(d));
		s->len[r] = 8 + VV_OWNER_STREAM_CLAIM;
	}
	return rc ? rc : vv_owner_stream_run(&s->stream, s->said, s->len);
}

static int second_round(struct small *s, uint64_t pos)
{
	memset(s->said, 0, sizeof(s->said));
	memcpy(s->said + 8, &pos, sizeof(pos));
	s->len[0] = 16;
	s->len[1] = 8;
	return vv_owner_stream_run(&s->stream, s->said, s->len);
}

static void test_cannot_be(void)
{
	static const int64_t off[][2] = { { -1, 0 }, { 1, 0 }, { 0, -8 }, { 0, 8 }, { -8, 8 }, { 0, VV_OWNER_STREAM_CLAIM - 1 }, { -16, 0 } };
	struct small s;

	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
		CHECK_EQ(first_round(&s), 0);
		s.len[0] = (uint64_t)(16 + off[i][0]);
		s.len[1] = (uint64_t)(8 + off[i][1]);
		CHECK_EQ(vv_owner_stream_run(&s.stream, s.said, s.len), VV_EPEER);
		vv_owner_stream_fini(&s.stream);
	}
	CHECK_EQ(first_round(&s), 0);
	CHECK_EQ(second_round(&s, VV_OWNER_INDEX_POS_MAX), VV_EPEER);
	vv_owner_stream_fini(&s.stream);
	CHECK_EQ(first_round(&s), 0);
	CHECK_EQ(second_round(&s, VV_OWNER_INDEX_POS_MAX - 1), 0);
	CHECK_EQ(s.stream.reply_len[0], 0);
	CHECK_EQ(s.stream.reply[0], vv_owner_stream_decision(VV_OWNER_STREAM_STORED, 0, VV_OWNER_INDEX_POS_MAX - 1));
	vv_owner_stream_fini(&s.stream);
	CHECK(!vv_owner_stream_is_valid(vv_owner_stream_decision(VV_OWNER_STREAM_STORE, 1, 0), 0, 2));
	CHECK(!vv_owner_stream_is_valid(vv_owner_stream_decision(VV_OWNER_STREAM_PENDING, 0, 0), 0, 2));
	CHECK(!vv_owner_stream_is_valid(vv_owner_stream_decision(VV_OWNER_STREAM_STORED, 2, 0), 0, 2));
	CHECK(!vv_owner_stream_is_valid(UINT64_MAX, 0, 2));
}

static int both_rounds(struct small *s)
{
	int rc = first_round(s);

	if (rc == 0)
		rc = second_round(s, 5);
	vv_owner_stream_fini(&s->stream);
	return rc;
}

static void test_no_memory(void)
{
	struct small s;
	long asked, failed = 0;

	vv_mem_fail_at(0);
	CHECK_EQ(both_rounds(&s), 0);
	asked = vv_mem_asked();
	for (long at = 1; at <= asked; at++) {
		vv_mem_fail_at(at);
		failed += both_rounds(&s) == VV_ENOMEM;
	}
	vv_mem_fail_at(0);
	CHECK_EQ(failed, asked);
}

int main(void)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		test_model(seed, 1 << 20);
		test_model(seed, 64);
	}
	test_cannot_be();
	test_no_memory();
	return 0;
}
