// ctest: TIMEOUT 120 PROCESSORS 2 COST 8
// The sieve of the host's memory against the model, by one thread and by several.
#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"
#include "support/sieve_suite.h"
#include "vv_test.h"

static void plain_operations(void)
{
	const struct vv_space *host = vv_space_host();
	struct vv_sieve_options opt = { .method = VV_METHOD_RUN, .chunk = 128, .digest_kind = VV_DIGEST_XXH3 };
	struct vv_sieve *s;
	uint8_t *p = host->rent(0, 10000), q[100];
	int device = -1;

	CHECK(p && (uintptr_t)p % 4096 == 0);
	CHECK(host->owns(p, 10000, &device));
	CHECK_EQ(device, 0);
	CHECK_EQ(host->present(), 0);
	memset(q, 3, sizeof(q));
	CHECK_EQ(host->copy_in(p, q, sizeof(q)), 0);
	memset(q, 0, sizeof(q));
	CHECK_EQ(host->copy_out(q, p, sizeof(q)), 0);
	CHECK_EQ(q[99], 3);
	CHECK_EQ(host->sync(0, NULL), 0);
	host->give_back(0, p, 10000);
	host->close(NULL);
	opt.chunk = 16;
	CHECK(host->open(&opt, NULL, &s) < 0);
	opt.chunk = 96;
	CHECK(host->open(&opt, NULL, &s) < 0);
	opt.chunk = 8192;
	CHECK(host->open(&opt, NULL, &s) < 0);
	opt.chunk = 128;
	opt.digest_kind = 9;
	CHECK(host->open(&opt, NULL, &s) < 0);
}

struct sink {
	uint8_t room[4096];
	size_t bytes;
};

static uint8_t *room(void *arg, size_t want, size_t *got)
{
	*got = want < 4096 ? want : 4096;
	return ((struct sink *)arg)->room;
}

static int data(void *arg, const uint8_t *p, size_t len)
{
	(void)p;
	((struct sink *)arg)->bytes += len;
	return 0;
}

static int pieces(void *arg, const struct vv_piece *piece, size_t n)
{
	(void)arg;
	(void)piece;
	(void)n;
	return 0;
}

/* Each allocation fails once: the pass says so, and the next one tells all, since nothing is known any more. */
static void want_of_memory(enum vv_method method)
{
	static uint8_t bytes[64 * 1000];
	const struct vv_space *host = vv_space_host();
	struct vv_sieve_options opt = { .method = method, .chunk = 64, .digest_kind = VV_DIGEST_XXH3, .memory = 1 << 30 };
	struct vv_span span = { .id = 1, .p = bytes, .len = sizeof(bytes) };
	struct sink s = { .bytes = 0 };
	struct vv_sink sink = { &s, room, data, pieces };
	int failed = 0;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i >> 6) ^ (uint8_t)(i >> 10);
	for (long n = 1;; n++) {
		struct vv_sieve *sieve;
		int rc;

		CHECK_EQ(host->open(&opt, NULL, &sieve), 0);
		vv_mem_fail_at(n);
		rc = host->pass(sieve, &span, 1, 1, &sink);
		vv_mem_fail_at(0);
		s.bytes = 0;
		CHECK(rc == 0 || rc == VV_ENOMEM);
		failed += rc != 0;
		if (rc) {
			CHECK_EQ(host->pass(sieve, &span, 1, 2, &sink), 0);
			CHECK_EQ(sieve->counts.changed, 1000);
			CHECK(s.bytes == sieve->counts.fresh * 64 && s.bytes > 0);
		}
		host->close(sieve);
		if (rc == 0)
			break;
	}
	CHECK(failed >= 4);
}

int main(void)
{
	struct sieve_suite s = { .space = vv_space_host(), .get = malloc, .put = free, .seed = 5, .rounds = 20 };

	plain_operations();
	want_of_memory(VV_METHOD_RUN);
	want_of_memory(VV_METHOD_TREE);
	sieve_suite_run(&s);
	CHECK_EQ(vv_pool_new(3, &s.pool), 0);
	s.seed = 6;
	sieve_suite_run(&s);
	sieve_suite_slices(&s);
	vv_pool_free(s.pool);
	return 0;
}
