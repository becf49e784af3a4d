// ctest: TIMEOUT 120 PROCESSORS 2
// The sieve of the host's memory against the model, by one thread and by several.
#include "base/mem.h"
#include "base/pool.h"
#include "support/sieve_suite.h"
#include "vv_test.h"

static void plain_operations(void)
{
	const struct vv_space *host = vv_space_host();
	struct vv_sieve_options opt = { .method = VV_METHOD_RUN, .chunk = 128, .digest_kind = VV_DIGEST_XXH3 };
	struct vv_sieve *s;
	uint8_t *p = host->rent(10000), q[100];
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
	CHECK_EQ(host->settle(0, NULL), 0);
	host->give_back(p, 10000);
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

int main(void)
{
	struct sieve_suite s = { .space = vv_space_host(), .get = malloc, .put = free, .seed = 5, .rounds = 20 };

	plain_operations();
	sieve_suite_run(&s);
	CHECK_EQ(vv_pool_new(3, &s.pool), 0);
	s.seed = 6;
	sieve_suite_run(&s);
	sieve_suite_slices(&s);
	vv_pool_free(s.pool);
	return 0;
}
