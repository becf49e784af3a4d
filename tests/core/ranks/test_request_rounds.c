/* Every request is made in one of the rounds, and no rank sends or receives much more in a round than its share, also if it has
 * requests only to every n-th rank. */
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

/* The round of a single request is as if drawn: six standard deviations above the mean do not occur. */
static void check_even(uint64_t requests, uint64_t len, uint64_t rounds)
{
	uint64_t mean = requests / rounds + 1, spread = 6;

	while (spread * spread < 36 * mean)
		spread++;
	for (uint64_t round = 0; round < rounds; round++)
		for (uint32_t r = 0; r < RANKS; r++) {
			CHECK(asks[round][r] <= (mean + spread) * len);
			CHECK(answers[round][r] <= (mean + spread) * len);
		}
}

/* Each rank has n requests to every other one whose number and its own have a sum divisible by `step`. */
static void check_pairs(unsigned n, uint64_t len, uint64_t rounds, uint32_t step)
{
	memset(asks, 0, sizeof(asks));
	memset(answers, 0, sizeof(answers));
	for (uint32_t from = 0; from < RANKS; from++)
		for (uint32_t to = 0; to < RANKS; to++)
			if (from != to && (from + to) % step == 0)
				request(from, to, n, len, rounds);
	check_even((RANKS / step + 1) * (uint64_t)n, len, rounds);
}

int main(void)
{
	for (uint64_t rounds = 1; rounds <= ROUNDS_MAX; rounds += rounds < 4 ? 1 : 12)
		for (unsigned n = 1; n <= 5; n += 2) {
			check_pairs(n, MOST, rounds, 1);
			check_pairs(n, MOST, rounds, (uint32_t)rounds);
		}
	check_pairs(1, 1, 7, 1);
	check_pairs(50, 4096, 16, 1);
	check_pairs(3, 4096, 16, 16);
	return 0;
}
