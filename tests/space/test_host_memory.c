// ctest: COST 2
// The sieve of the host's memory keeps to the memory that it may use, also when all is new in every epoch and while regions change places.
#include "space/host_sieve.h"
#include "support/gen.h"
#include "vv_test.h"
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { C = 64, LEN = 24 << 20, ROOM = 1 << 20, REGIONS = 2, SLACK = 6 << 20 };

static uint8_t *room(void *arg, size_t want, size_t *got)
{
	*got = want < ROOM ? want : ROOM;
	return arg;
}

static int data(void *arg, const uint8_t *p, size_t len)
{
	(void)arg;
	(void)p;
	(void)len;
	return 0;
}

static int pieces(void *arg, const struct vv_piece *piece, size_t n)
{
	(void)arg;
	(void)piece;
	(void)n;
	return 0;
}

static size_t most_resident(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (size_t)u.ru_maxrss * 1024;
}

static void run(enum vv_method method)
{
	uint64_t numbers = REGIONS * LEN / C, memory = numbers * (17 + 64) + numbers / 4 * 64;
	struct vv_sieve_options opt = { .method = method, .chunk = C, .digest_kind = VV_DIGEST_XXH3, .memory = memory };
	struct vv_span span[REGIONS], other[REGIONS];
	uint8_t *to = calloc(1, ROOM);
	struct vv_sink sink = { to, room, data, pieces };
	struct vv_sieve *s;
	uint64_t rng = 1, forgotten = 0;
	size_t before, used, work = numbers * 64 - memory / 4; /* that a slice needs beyond its share: core/dedup/grain.h */

	for (int i = 0; i < REGIONS; i++) {
		span[i] = (struct vv_span){ .id = (uint64_t)i, .p = malloc(LEN), .len = LEN };
		CHECK(span[i].p);
		memset(span[i].p, 1, LEN);
	}
	before = most_resident();
	CHECK_EQ(vv_space_host()->open(&opt, NULL, &s), 0);
	for (uint32_t epoch = 0; epoch < 4; epoch++) {
		for (int i = 0; i < REGIONS; i++) {
			gen_bytes(&rng, span[i].p, LEN);
			other[i] = span[(i + (int)epoch) % REGIONS];
		}
		CHECK_EQ(vv_space_host()->pass(s, other, REGIONS, epoch, &sink), 0);
		forgotten += s->counts.forgotten;
		CHECK(vv_host_sieve_bytes(s) <= memory);
	}
	CHECK(forgotten > numbers);
	used = most_resident() - before;
	vv_space_host()->close(s);
	fprintf(stderr, "%s: %zu bytes used of %zu\n", vv_grain_method_name(method), used, (size_t)memory);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	CHECK(used <= memory + work + SLACK);
#endif
	for (int i = 0; i < REGIONS; i++)
		free(span[i].p);
	free(to);
}

/* Each in a process of its own, which begins with what is there and not with the most that ever was. */
static void run_apart(enum vv_method method)
{
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		run(method);
		exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

int main(void)
{
	run_apart(VV_METHOD_RUN);
	run_apart(VV_METHOD_TREE);
	return 0;
}
