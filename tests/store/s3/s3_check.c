/* A client of the S3 store for test_s3.py: s3_check URL ENDPOINT COMMAND [NAME [SIZE [SEED]]]
 * Exit 0: as it should be; 1: the library answered with an error, printed as "CODE message"; 2: wrong bytes or usage. */
#include "vv_config.h"
#include "vv_test.h"

#if VV_HAVE_CURL
#include "base/err.h"
#include "base/mem.h"
#include "store/s3/s3_priv.h"
#include "store/store.h"
#include <pthread.h>

#define THREADS 8

struct job {
	struct vv_store *store;
	const char *name;
	uint64_t size;
	uint64_t seed;
};

static unsigned setting(const char *name, unsigned otherwise)
{
	const char *v = getenv(name);

	return v ? (unsigned)strtoul(v, NULL, 10) : otherwise;
}

static uint8_t pattern(uint64_t seed, uint64_t at)
{
	uint64_t x = (at / 8 + seed * 1000003 + 1) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint8_t)(x >> (8 * (at % 8)) ^ x >> 37);
}

static void fill(uint8_t *p, uint64_t seed, uint64_t from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = pattern(seed, from + i);
}

static void compare(const uint8_t *p, uint64_t seed, uint64_t from, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] != pattern(seed, from + i)) {
			fprintf(stderr, "byte %llu is wrong\n", (unsigned long long)(from + i));
			exit(2);
		}
	}
}

static void wait_for_line(const char *word)
{
	char line[16];

	printf("%s\n", word);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		fprintf(stderr, "nobody answers\n");
}

/* In pieces of an odd size, two to a call; at half, somebody may want to do something to the server. */
static int write_pattern(const struct job *j, struct vv_put *put, bool wait)
{
	size_t piece = 100003;
	uint8_t *p = malloc(2 * piece);
	int rc = 0;

	CHECK(p);
	for (uint64_t at = 0; rc == 0 && at < j->size;) {
		size_t n = j->size - at < 2 * piece ? (size_t)(j->size - at) : 2 * piece;
		struct iovec iov[2] = { { p, n / 3 }, { p + n / 3, n - n / 3 } };

		fill(p, j->seed, at, n);
		rc = vv_store_put_write(put, iov, 2);
		if (wait && at < j->size / 2 && at + n >= j->size / 2)
			wait_for_line("half");
		at += n;
	}
	free(p);
	return rc;
}

static int put_object(const struct job *j, bool wait)
{
	struct vv_put *put = NULL;
	int rc = vv_store_put_open(j->store, j->name, setting("S3_CHECK_HINT", 0), &put);

	if (rc)
		return rc;
	rc = write_pattern(j, put, wait);
	if (rc) {
		vv_store_put_abort(put);
		return rc;
	}
	return vv_store_put_commit(put);
}

static int put(const struct job *j)
{
	return put_object(j, false);
}

static int put_half(const struct job *j)
{
	return put_object(j, true);
}

static int put_abort(const struct job *j)
{
	struct vv_put *p = NULL;
	int rc = vv_store_put_open(j->store, j->name, 0, &p);

	if (rc)
		return rc;
	rc = write_pattern(j, p, false);
	vv_store_put_abort(p);
	return rc;
}

static int get(const struct job *j)
{
	struct vv_get *g = NULL;
	int rc = vv_store_get_open(j->store, j->name, &g);
	size_t piece = (size_t)j->size / 3 + 1;
	uint8_t *p = malloc(piece), byte;

	CHECK(p);
	if (rc == 0 && g->size != j->size) {
		fprintf(stderr, "size is %llu\n", (unsigned long long)g->size);
		exit(2);
	}
	for (uint64_t at = 0; rc == 0 && at < j->size; at += piece) {
		size_t n = j->size - at < piece ? (size_t)(j->size - at) : piece;

		rc = vv_store_get_read(g, at, p, n);
		if (rc == 0)
			compare(p, j->seed, at, n);
	}
	if (rc == 0) {
		CHECK_EQ(vv_store_get_read(g, j->size, &byte, 0), 0);
		CHECK_EQ(vv_store_get_read(g, j->size, &byte, 1), VV_EDAMAGED);
	}
	vv_store_get_close(g);
	free(p);
	return rc;
}

struct reader {
	const struct job *job;
	struct vv_get *get;
	unsigned number;
	struct vv_err_state st;
};

static void *read_ranges(void *arg)
{
	struct reader *r = arg;
	uint64_t x = r->number * 7919 + 1;
	uint8_t *p = malloc(1 << 20);
	int rc = 0;

	CHECK(p);
	for (int i = 0; rc == 0 && i < 20; i++) {
		uint64_t from;
		size_t n;

		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
		from = (x >> 20) % r->job->size;
		n = (size_t)(x >> 11) % (1 << 20) + 1;
		n = n < r->job->size - from ? n : (size_t)(r->job->size - from);
		rc = vv_store_get_read(r->get, from, p, n);
		if (rc == 0)
			compare(p, r->job->seed, from, n);
	}
	vv_err_save(rc, &r->st);
	free(p);
	return NULL;
}

static int get_threads(const struct job *j)
{
	struct reader readers[THREADS];
	pthread_t threads[THREADS];
	struct vv_get *g = NULL;
	int rc = vv_store_get_open(j->store, j->name, &g);

	if (rc)
		return rc;
	for (unsigned i = 0; i < THREADS; i++) {
		readers[i] = (struct reader){ .job = j, .get = g, .number = i };
		CHECK_EQ(pthread_create(&threads[i], NULL, read_ranges, &readers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		if (rc == 0 && readers[i].st.code)
			rc = vv_err_restore(&readers[i].st);
	}
	vv_store_get_close(g);
	return rc;
}

/* SIZE small objects NAME/00000 ..., and NAME/sub/x. */
static void *put_share(void *arg)
{
	struct reader *r = arg;
	char name[256];
	int rc = 0;

	for (uint64_t i = r->number; rc == 0 && i < r->job->size; i += THREADS) {
		snprintf(name, sizeof(name), "%s/%05llu", r->job->name, (unsigned long long)i);
		rc = vv_store_put(r->job->store, name, name, strlen(name));
	}
	vv_err_save(rc, &r->st);
	return NULL;
}

static int put_many(const struct job *j)
{
	struct reader w[THREADS];
	pthread_t threads[THREADS];
	char name[256];
	int rc = 0;

	for (unsigned i = 0; i < THREADS; i++) {
		w[i] = (struct reader){ .job = j, .number = i };
		CHECK_EQ(pthread_create(&threads[i], NULL, put_share, &w[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		if (rc == 0 && w[i].st.code)
			rc = vv_err_restore(&w[i].st);
	}
	snprintf(name, sizeof(name), "%s/sub/x", j->name);
	return rc ? rc : vv_store_put(j->store, name, "x", 1);
}

static int list(const struct job *j)
{
	struct vv_names v = { 0 };
	int rc = vv_store_list(j->store, j->name, &v);

	for (size_t i = 0; rc == 0 && i < v.n; i++)
		printf("%s%s %llu\n", v.v[i].name, v.v[i].is_dir ? "/" : "", (unsigned long long)v.v[i].size);
	vv_names_fini(&v);
	return rc;
}

/* Reads half, lets the object be replaced by one of the same size, and wants the rest: never the new bytes. */
static int replace_open(const struct job *j)
{
	struct job other = *j;
	struct vv_get *g = NULL;
	size_t half = (size_t)j->size / 2;
	uint8_t *p = malloc(half);
	int rc = vv_store_get_open(j->store, j->name, &g);

	CHECK(p);
	if (rc == 0)
		rc = vv_store_get_read(g, 0, p, half);
	other.seed++;
	if (rc == 0)
		rc = put(&other);
	if (rc == 0)
		rc = vv_store_get_read(g, half, p, half);
	if (rc == 0)
		compare(p, j->seed, half, half);
	vv_store_get_close(g);
	free(p);
	return rc;
}

static int remove_it(const struct job *j)
{
	return vv_store_remove(j->store, j->name);
}

static int lock_it(const struct job *j)
{
	struct vv_lock *l = NULL;
	int rc = vv_store_lock(j->store, j->name, &l);

	if (rc)
		return rc;
	wait_for_line("held");
	vv_store_unlock(l);
	return 0;
}

static int sweep(const struct job *j)
{
	return vv_store_sweep(j->store, j->name);
}

static int lock_briefly(const struct job *j)
{
	struct vv_lock *l = NULL;
	int rc = vv_store_lock(j->store, j->name, &l);

	vv_store_unlock(l);
	return rc;
}

/* Every single allocation of every operation fails once: the answer is that, and nothing else goes wrong. */
static int short_of_memory(const struct job *j)
{
	static int (*const operations[])(const struct job *j) = { put,       get,          list,     sweep,
								  put_abort, lock_briefly, remove_it };

	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		for (long n = 1;; n++) {
			long asked;
			int rc;

			vv_mem_fail_at(n);
			rc = operations[i](j);
			asked = vv_mem_asked();
			vv_mem_fail_at(0);
			if (operations[i] == lock_briefly)
				CHECK_EQ(remove_it(j), 0); /* an unlock may have failed */
			if (rc && rc != VV_ENOMEM) {
				fprintf(stderr, "operation %zu, allocation %ld: %d %s\n", i, n, rc, vv_err_last());
				exit(2);
			}
			if (asked < n)
				break;
		}
		if (operations[i] == put_abort)
			CHECK_EQ(remove_it(j), 0);
	}
	return 0;
}

static int nothing(const struct job *j)
{
	(void)j;
	return 0;
}

static const struct {
	const char *name;
	int (*run)(const struct job *j);
} commands[] = {
	{ "open", nothing },        { "put", put },      { "put-half", put_half },
	{ "put-abort", put_abort }, { "get", get },      { "threads", get_threads },
	{ "many", put_many },       { "list", list },    { "replace", replace_open },
	{ "remove", remove_it },    { "lock", lock_it }, { "sweep", sweep },
	{ "oom", short_of_memory },
};

static int open_store(const char *url, const char *endpoint, struct vv_store **out)
{
	struct vv_store_options opt = {
		.create = setting("S3_CHECK_CREATE", 1) != 0,
		.s3_endpoint = endpoint,
		.s3_retries = setting("S3_CHECK_RETRIES", 3),
		.s3_part_bytes = 5 << 20,
	};
	int rc = vv_store_open(url, &opt, out);

	if (rc == 0) {
		struct vv_s3_conf *c = &((struct vv_s3 *)*out)->conf;

		c->stall_s = setting("S3_CHECK_STALL_S", c->stall_s);
		c->sweep_age_s = setting("S3_CHECK_SWEEP_AGE_S", (unsigned)c->sweep_age_s);
		c->settle_ms = setting("S3_CHECK_SETTLE_MS", c->settle_ms);
		c->part_bytes = setting("S3_CHECK_PART", (unsigned)c->part_bytes); /* less than S3 would take */
	}
	return rc;
}

int main(int argc, char **argv)
{
	struct job j = { .name = argc > 4 ? argv[4] : "" };
	int rc = VV_EINVAL;

	if (argc < 4)
		return 2;
	j.size = argc > 5 ? strtoull(argv[5], NULL, 10) : 0;
	j.seed = argc > 6 ? strtoull(argv[6], NULL, 10) : 0;
	rc = open_store(argv[1], argv[2], &j.store);
	for (size_t i = 0; rc == 0 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(argv[3], commands[i].name) == 0)
			rc = commands[i].run(&j);
	if (rc)
		printf("%d %s\n", rc, vv_err_last());
	vv_store_close(j.store);
	return rc ? 1 : 0;
}
#else
int main(void)
{
	SKIP("built without libcurl");
}
#endif
