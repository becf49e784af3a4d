// ctest: TIMEOUT 60
/* Lists of processes: what they name is found, whatever else is in them; damaged ones name nobody that they did not. And numbers of processes that have
 * ended are waited for. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/err.h"
#include "image/criu/pstree_image.h"
#include "support/dice.h"
#include "support/proto.h"
#include "vv_test.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAGIC = 0x50273030, PID = 1, PPID = 2, PGID = 3, SID = 4, THREADS = 5, MOST = 200 };

static void read_exact(const uint8_t *p, size_t n, struct vv_process_tree *t)
{
	uint8_t *exact = malloc(n ? n : 1);

	CHECK(exact);
	if (n)
		memcpy(exact, p, n);
	CHECK_EQ(vv_pstree_image_read(exact, n, t), 0);
	CHECK(t->n <= n / 2);
	for (size_t i = 0; i < t->n; i++)
		CHECK(t->pid[i] > 0);
	free(exact);
}

/* A tree of some processes, each with its threads; in `want` the numbers that it names. */
static size_t make(struct vv_buf *b, pid_t want[MOST])
{
	size_t n = 0;

	proto_magic(b, MAGIC);
	for (size_t i = 0, all = upto(20); i < all; i++) {
		struct vv_buf e = {0};

		want[n] = (pid_t)(1 + upto(upto(1) ? 100 : INT32_MAX - 1));
		proto_number(&e, PID, (uint64_t)want[n++]);
		proto_number(&e, PPID, upto(1 << 22));
		proto_number(&e, PGID, upto(1 << 22));
		proto_number(&e, SID, upto(1 << 22));
		for (size_t k = 0, threads = upto(5); k < threads; k++) {
			want[n] = (pid_t)(1 + upto(1 << 22));
			proto_number(&e, THREADS, (uint64_t)want[n++]);
		}
		if (upto(3) == 0)
			proto_number(&e, THREADS,
				     upto(1) ? 0 : (uint64_t)INT32_MAX + 1 + upto(1000)); /* no numbers of processes */
		proto_number(&e, 6 + (unsigned)upto(1000), rng());
		proto_entry(b, &e);
	}
	return n;
}

static void check_same(const struct vv_process_tree *t, const pid_t *want, size_t n)
{
	CHECK_EQ(t->n, n);
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(t->pid[i], want[i]);
}

static void test_random(void)
{
	for (int round = 0; round < 300; round++) {
		struct vv_process_tree t;
		struct vv_buf b = {0};
		pid_t want[MOST];
		size_t n = make(&b, want);

		read_exact(b.p, b.n, &t);
		check_same(&t, want, n);
		vv_process_tree_fini(&t);
		for (size_t i = 0; i < 20; i++) { /* cut short: the first of them, in their order */
			read_exact(b.p, upto(b.n), &t);
			CHECK(t.n <= n);
			check_same(&t, want, t.n);
			vv_process_tree_fini(&t);
		}
		for (size_t i = 0; i < 50; i++) {
			size_t at = upto(b.n - 1);
			uint8_t was = b.p[at];

			b.p[at] ^= (uint8_t)(1 + upto(254));
			read_exact(b.p, b.n, &t);
			vv_process_tree_fini(&t);
			b.p[at] = was;
		}
		vv_buf_fini(&b);
	}
}

static void test_hostile(void)
{
	static const uint32_t lengths[] = {1, 0x7fffffff, 0x80000000, UINT32_MAX - 3, UINT32_MAX};
	struct vv_process_tree t;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct vv_buf b = {0};

		proto_magic(&b, MAGIC);
		vv_wire_put_u32(&b, lengths[i]);
		read_exact(b.p, b.n, &t);
		CHECK_EQ(t.n, 0);
		vv_process_tree_fini(&t);
		vv_buf_fini(&b);
	}
}

static void test_no_memory(void)
{
	struct vv_buf b = {0}, e = {0};
	struct vv_process_tree t;
	int rc = VV_ENOMEM;
	long at;

	proto_magic(&b, MAGIC);
	for (uint64_t i = 1; i <= 100; i++)
		proto_number(&e, THREADS, i);
	proto_entry(&b, &e);
	for (at = 1; rc; at++) {
		vv_mem_fail_at(at);
		rc = vv_pstree_image_read(b.p, b.n, &t);
		vv_mem_fail_at(0);
		CHECK(rc == 0 || rc == VV_ENOMEM);
		CHECK_EQ(rc == 0, t.n == 100);
		vv_process_tree_fini(&t);
	}
	CHECK(at > 2);
	vv_buf_fini(&b);
}

/* ---- numbers of processes that have ended ---------------------------------------------------------------------------------------- */

static pid_t ended;
static atomic_bool heard;

static void *hear_late(void *arg)
{
	(void)arg;
	vv_clock_sleep(0.1);
	atomic_store(&heard, true);
	CHECK(waitpid(ended, NULL, 0) == ended);
	return NULL;
}

static void test_patience(void)
{
	struct vv_process_tree t = {0};
	pid_t pid[2];
	pthread_t thread;
	siginfo_t info;

	vv_pstree_image_wait(&t); /* of nobody */
	ended = fork();
	if (ended == 0)
		_exit(0);
	CHECK(ended > 0 && waitid(P_PID, (id_t)ended, &info, WEXITED | WNOWAIT) == 0);
	pid[0] = getpid(); /* who lives is not waited for */
	pid[1] = ended;
	t = (struct vv_process_tree){.pid = pid, .n = 2};
	CHECK(pthread_create(&thread, NULL, hear_late, NULL) == 0);
	vv_pstree_image_wait(&t);
	CHECK(atomic_load(&heard) && kill(ended, 0) < 0);
	CHECK(pthread_join(thread, NULL) == 0);
	vv_pstree_image_wait(&t);
}

int main(void)
{
	test_random();
	test_hostile();
	test_no_memory();
	test_patience();
	return 0;
}
