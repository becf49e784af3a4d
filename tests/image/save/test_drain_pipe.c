/* Bytes through pipes, written in pieces of any length, taken in pieces of any other, skipped in between: those that were taken are in memory, in order,
 * each once. */
#include "base/clock.h"
#include "base/err.h"
#include "image/save/drain_pipe.h"
#include "support/dice.h"
#include "vv_test.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

enum { MOST = 6 << 20, ROUNDS = 12, PIECE = 300000 };

static uint8_t want[MOST], have[MOST];

struct source {
	int fd;
	size_t n;
	uint64_t seed;
};

static void *keep_writing(void *arg)
{
	struct source *s = arg;
	size_t at = 0;

	seed ^= s->seed;
	while (at < s->n) {
		size_t some = 1 + upto(upto(1) ? 5000 : PIECE);
		ssize_t got = write(s->fd, want + at, some < s->n - at ? some : s->n - at);

		CHECK(got > 0);
		at += (size_t)got;
	}
	close(s->fd);
	return NULL;
}

static void wait_for_some(int fd)
{
	struct pollfd p = {fd, POLLIN, 0};

	CHECK(poll(&p, 1, 60000) == 1);
}

/* What is skipped stays zero in `have`. */
static void drain(struct vv_drain_pipe *d, int fd, size_t n)
{
	size_t at = 0, took = 1;

	while (took) {
		bool skip = upto(7) == 0;
		size_t room = n - at, some = 1 + upto(PIECE);
		int rc;

		some = some < room ? some : room + 1; /* one more than there are, for the end to be seen */
		rc = skip ? vv_drain_pipe_skip(d, fd, &took) : vv_drain_pipe_take(d, fd, have + at, some, &took);
		CHECK(rc == 0 || rc == 1);
		if (rc == 0) {
			took = 1;
			wait_for_some(fd);
			continue;
		}
		CHECK(took <= n - at && (skip || took <= some));
		if (skip)
			memset(want + at, 0, took);
		at += took;
		if (upto(9) == 0)
			CHECK_EQ(vv_drain_pipe_wait(d), 0);
	}
	CHECK_EQ(at, n);
	CHECK_EQ(vv_drain_pipe_wait(d), 0);
}

static void test_random(struct vv_drain_pipe *d)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct source s = {.n = upto(upto(2) ? MOST : 3), .seed = rng()};
		pthread_t thread;
		int end[2];

		noise(want, s.n);
		memset(have, 0, s.n);
		CHECK(pipe2(end, O_CLOEXEC) == 0);
		s.fd = end[1];
		CHECK(pthread_create(&thread, NULL, keep_writing, &s) == 0);
		drain(d, end[0], s.n);
		CHECK(pthread_join(thread, NULL) == 0);
		CHECK(memcmp(have, want, s.n) == 0);
		close(end[0]);
	}
}

static void test_nothing_yet(struct vv_drain_pipe *d)
{
	size_t took = 99;
	int end[2];

	CHECK(pipe2(end, O_CLOEXEC) == 0);
	CHECK_EQ(vv_drain_pipe_take(d, end[0], have, 10, &took), 0);
	CHECK_EQ(vv_drain_pipe_skip(d, end[0], &took), 0);
	CHECK_EQ(took, 99);
	CHECK_EQ(write(end[1], "abc", 3), 3);
	CHECK_EQ(vv_drain_pipe_take(d, end[0], have, 2, &took), 1);
	CHECK_EQ(took, 2);
	CHECK_EQ(vv_drain_pipe_skip(d, end[0], &took), 1);
	CHECK_EQ(took, 1);
	CHECK_EQ(vv_drain_pipe_take(d, end[0], have, 2, &took), 0);
	close(end[1]);
	CHECK_EQ(vv_drain_pipe_take(d, end[0], have, 2, &took), 1);
	CHECK_EQ(took, 0);
	CHECK_EQ(vv_drain_pipe_skip(d, end[0], &took), 1);
	CHECK_EQ(took, 0);
	CHECK_EQ(vv_drain_pipe_wait(d), 0);
	CHECK(memcmp(have, "ab", 2) == 0);
	close(end[0]);
	CHECK(vv_drain_pipe_take(d, end[0], have, 2, &took) < 0); /* no pipe at all */
	CHECK(vv_drain_pipe_skip(d, end[0], &took) < 0);
}

/* Closed while copies are under way: they end first. */
static void test_close(void)
{
	for (int i = 0; i < 20; i++) {
		struct vv_drain_pipe *d;
		size_t took = 0, all = 0;
		int end[2];

		CHECK_EQ(vv_drain_pipe_open(&d), 0);
		CHECK(pipe2(end, O_CLOEXEC) == 0);
		for (int k = 0; k < 16; k++) {
			CHECK_EQ(write(end[1], want + all, 60000), 60000);
			CHECK_EQ(vv_drain_pipe_take(d, end[0], have + all, 60000, &took), 1);
			all += took;
			while (took < 60000) { /* the pipe of ours held less */
				size_t more;

				CHECK_EQ(vv_drain_pipe_take(d, end[0], have + all, 60000 - took, &more), 1);
				took += more;
				all += more;
			}
		}
		vv_drain_pipe_close(d);
		CHECK(memcmp(have, want, all) == 0);
		memset(have, 0, all);
		close(end[0]);
		close(end[1]);
	}
	vv_drain_pipe_close(NULL);
}

int main(void)
{
	struct vv_drain_pipe *d;

	CHECK_EQ(vv_drain_pipe_open(&d), 0);
	CHECK(vv_drain_pipe_pool(d) != NULL);
	test_random(d);
	test_nothing_yet(d);
	vv_drain_pipe_close(d);
	noise(want, MOST);
	test_close();
	return 0;
}
