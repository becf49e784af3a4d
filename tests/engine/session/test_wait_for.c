/* varve_wait_for: an epoch that is not durable in time is no error; one that fails has its error; the time is kept. */
#include "base/clock.h"
#include "store/dir/dir.h"
#include "support/gatefs.h"
#include "support/place.h"
#include "support/threadcomm.h"
#include "vv_test.h"
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <unistd.h>
#include <varve/varve.h>

static uint64_t values[1 << 16];

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

static void *open_gate(void *arg)
{
	(void)arg;
	usleep(200000);
	gatefs_pass();
	return NULL;
}

/* Each rank by itself: the commit advances in these calls, if the ranks communicate in calls alone. */
static void one_rank(const struct varve_comm *comm, void *arg)
{
	static uint64_t mine[4][4096];
	struct varve_comm plug = *comm;
	varve *v = NULL;
	int rc = 0;

	plug.any_thread = *(int *)arg;
	ok(varve_open_comm(&plug, "mem:ranks", plug.any_thread ? "threaded" : "calls", "mode=async log=error", &v));
	ok(varve_protect(v, "mine", mine[comm->rank], sizeof(mine[0])));
	for (uint64_t e = 1; e <= 3; e++) {
		mine[comm->rank][e] = e + comm->rank;
		ok(varve_checkpoint(v));
		for (int tries = 0; rc == 0 && tries < 3000; tries++)
			ok(rc = varve_wait_for(v, e, 0.02));
		CHECK_EQ(rc, 1);
		CHECK_EQ(varve_test(v, e), 1);
		rc = 0;
	}
	ok(varve_close(v));
}

int main(void)
{
	char url[PLACE_MAX];
	pthread_t opener;
	varve *v = NULL;
	double begin;

	vv_dir_set_fs(gatefs());
	ok(varve_open(place_path(url, "store"), "l", "mode=async log=error", &v));
	ok(varve_protect(v, "values", values, sizeof(values)));
	CHECK_EQ(varve_wait_for(v, VARVE_LATEST, 0.5), 1); /* no epoch */
	CHECK_EQ(varve_wait_for(v, 1, 0), VARVE_ENOENT);
	CHECK_EQ(varve_wait_for(v, 1, NAN), VARVE_EINVAL);
	CHECK_EQ(varve_wait_for(NULL, 1, 1), VARVE_EINVAL);

	gatefs_hold(GATE_RENAME);
	values[7] = 1;
	ok(varve_checkpoint(v));
	gatefs_await();
	begin = vv_clock_s();
	CHECK_EQ(varve_wait_for(v, 1, 0), 0);
	CHECK_EQ(varve_wait_for(v, 1, -1), 0);
	CHECK_EQ(varve_wait_for(v, VARVE_LATEST, 0.1), 0);
	CHECK_EQ(varve_wait_for(v, 1, 0.1), 0);
	CHECK_EQ(varve_wait_for(v, 77, 0.1), 0); /* nobody can know yet */
	CHECK(vv_clock_s() - begin >= 0.3);
	CHECK(pthread_create(&opener, NULL, open_gate, NULL) == 0);
	CHECK_EQ(varve_wait_for(v, 1, INFINITY), 1);
	pthread_join(opener, NULL);
	CHECK_EQ(varve_wait_for(v, 1, 100), 1);
	CHECK_EQ(varve_wait_for(v, VARVE_LATEST, 0), 1);
	CHECK_EQ(varve_wait_for(v, 77, 0.1), VARVE_ENOENT);

	gatefs_fail(GATE_RENAME, ENOSPC);
	values[7] = 2;
	ok(varve_checkpoint(v));
	CHECK_EQ(varve_wait_for(v, 2, 100), VARVE_ENOSPC);
	CHECK_EQ(varve_wait_for(v, 1, 100), 1);
	gatefs_pass();
	ok(varve_checkpoint(v));
	CHECK_EQ(varve_wait_for(v, VARVE_LATEST, 100), 1);
	ok(varve_close(v));
	for (int threaded = 0; threaded < 2; threaded++)
		threadcomm_run(3, one_rank, &threaded);
	return 0;
}
