/* varve_set_log: the program's function gets each sentence with its level, on whatever thread; the option `log` chooses the levels; what it does to the last
 * error is undone; it may not call into a session; NULL brings stderr back. */
#include "base/err.h"
#include "base/log.h"
#include "support/place.h"
#include "support/settle.h"
#include "vv_test.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>
#include <varve/varve_read.h>

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

struct record {
	char text[2000];
	int level, n;
	atomic_int inside;
};

static varve *session;

static void note(void *arg, int level, const char *sentence)
{
	struct record *r = arg;

	CHECK_EQ(atomic_fetch_add(&r->inside, 1), 0);
	snprintf(r->text, sizeof(r->text), "%s", sentence);
	r->level = level;
	r->n++;
	CHECK_EQ(varve_epoch(session) > 1000, 0); /* the one call without a lock */
	CHECK_EQ(varve_test(session, 1), VARVE_EINVAL);
	CHECK(strstr(varve_last_error(), "varve_set_log"));
	atomic_fetch_sub(&r->inside, 1);
}

static void *warn_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < 1000; i++) {
		vv_err_set(VV_EINVAL, "mine");
		vv_log_warn("%d", i);
		CHECK_STR(vv_err_last(), "mine");
	}
	return NULL;
}

/* A damaged epoch is skipped with a warning: on the program's thread, in a call. */
static void check_restart(struct record *r)
{
	char url[PLACE_MAX], path[PLACE_MAX + 64];
	static uint64_t values[4096];
	uint8_t *bytes;
	size_t n;

	ok(varve_open(place_path(url, "store"), "l", "mode=sync codec=none", &session));
	ok(varve_protect(session, "values", values, sizeof(values)));
	for (uint64_t e = 1; e <= 2; e++) {
		for (size_t i = 0; i < 4096; i++)
			values[i] = e * i;
		ok(varve_checkpoint(session));
	}
	snprintf(path, sizeof(path), "%s/l/00000000/0000000002.r0.layer", url);
	bytes = place_read(path, &n);
	bytes[100] ^= 1;
	place_write(path, bytes, n);
	free(bytes);
	r->n = 0;
	CHECK_EQ(varve_restart(session, VARVE_LATEST), 1);
	CHECK(values[5] == 5);
	CHECK(r->n == 1 && r->level == VARVE_LOG_WARN);
	CHECK(strstr(r->text, "epoch 2 of 'l' cannot be restored") == r->text);
	ok(varve_close(session));
	session = NULL;
}

int main(void)
{
	struct record r = { .n = 0 }, other = { .n = 0 };
	pthread_t thread[4];
	pid_t child;
	int status;

	ok(varve_open("mem:log", "l", "log=warn", &session));
	ok(varve_set_log(note, &r));
	vv_log_warn("a %s", "b");
	CHECK_EQ(r.n, 1);
	CHECK_EQ(r.level, VARVE_LOG_WARN);
	CHECK_STR(r.text, "a b");
	vv_log_info("quiet");
	CHECK_EQ(r.n, 1);
	vv_log_set_level(VV_LOG_INFO);
	vv_log_info("loud");
	CHECK(r.n == 2 && r.level == VARVE_LOG_INFO);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&thread[i], NULL, warn_often, NULL) == 0);
	for (int i = 0; i < 200; i++)
		ok(varve_set_log(note, i % 2 ? &r : &other));
	for (int i = 0; i < 4; i++) {
		child = fork(); /* whose threads hold no lock */
		if (child == 0) {
			vv_log_warn("child");
			_exit(0);
		}
		CHECK(waitpid(child, &status, 0) == child && status == 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	CHECK_EQ(r.n + other.n, 4002);
	ok(varve_set_log(note, &r));
	ok(varve_close(session));
	check_restart(&r);
	ok(varve_set_log(NULL, NULL));
	r.n = 0;
	vv_log_warn("this line belongs on stderr");
	CHECK_EQ(r.n, 0);
	return 0;
}
