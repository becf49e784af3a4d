/* Every request is made in one of the rounds, and no rank sends or receives much more in a round than its share. */
#include "core/ranks/request_rounds.h"
#include "vv_test.h"
#include <string.h>

enum { RANKS = 512, ROUNDS_MAX = 40, MOST = 256 << 10 };

static uint64_t asks[ROUNDS_MAX][RANKS], answers[ROUNDS_MAX][RANKS];

/* n requests of `len` bytes from one rank to another */
static void request(uint32_t from, uint32_t to, unsigned n, uint64_t len, uint64_t rounds)
{
	struct vv_request_rounds p = { .from = from, .to = to, .bytes = n * len, .rounds = rounds };
	uint64_t asked = 0;

	for (uint64_t round = 0; round < rounds; round++)
		for (; asked < p.bytes && vv_request_rounds_is_due(&p, asked, len, round); asked += len) {
			asks[round][from] += len;
			answers[round][to] += len;
		}
	CHECK_EQ(asked, p.bytes);
}

/* Each rank has n requests to every other one. */
static void check_all_pairs(unsigned n, uint64_t len, uint64_t rounds)
{
	uint64_t share = (RANKS - 1) * n * len / rounds;

	memset(asks, 0, sizeof(asks));
	memset(answers, 0, sizeof(answers));
	for (uint32_t from = 0; from < RANKS; from++)
		for (uint32_t to = 0; to < RANKS; to++)
			if (from != to)
				request(from, to, n, len, rounds);
	for (uint64_t round = 0; round < rounds; round++)
		for (uint32_t r = 0; r < RANKS; r++) {
			CHECK(asks[round][r] <= share + share / 8 + len);
			CHECK(answers[round][r] <= share + share / 8 + len);
		}
}

int main(void)
{
	for (uint64_t rounds = 1; rounds <= ROUNDS_MAX; rounds += rounds < 4 ? 1 : 12)
		for (unsigned n = 1; n <= 5; n += 2)
			check_all_pairs(n, MOST, rounds);
	check_all_pairs(1, 1, 7);
	check_all_pairs(50, 4096, 16);
	return 0;
}
