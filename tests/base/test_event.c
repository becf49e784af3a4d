/* The bell: whoever has looked before it rings does not sleep through it, however late he goes to sleep; and handlers run while he sleeps. */
#include "base/event.h"
#include "vv_test.h"
#include <math.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

enum { SLEEPERS = 4, TURNS = 20000 };

static struct vv_event bell;
static atomic_int turn, there;

static void *follow(void *arg)
{
	(void)arg;
	for (int t = 1; t <= TURNS; t++) {
		for (;;) {
			uint32_t looked = vv_event_count(&bell);

			if (atomic_load(&turn) >= t)
				break;
			vv_event_wait_for(&bell, looked, INFINITY);
		}
		atomic_fetch_add(&there, 1);
		vv_event_signal(&bell);
	}
	return NULL;
}

static void nobody_sleeps_through(void)
{
	pthread_t thread[SLEEPERS];

	for (int i = 0; i < SLEEPERS; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, follow, NULL), 0);
	for (int t = 1; t <= TURNS; t++) {
		atomic_store(&turn, t);
		vv_event_signal(&bell);
		for (;;) {
			uint32_t looked = vv_event_count(&bell);

			if (atomic_load(&there) == SLEEPERS * t)
				break;
			vv_event_wait_for(&bell, looked, INFINITY);
		}
	}
	for (int i = 0; i < SLEEPERS; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
}

static void on_alarm(int sig)
{
	(void)sig;
	vv_event_signal(&bell);
}

static void handlers_ring(void)
{
	uint32_t looked;

	CHECK(signal(SIGALRM, on_alarm) != SIG_ERR);
	looked = vv_event_count(&bell);
	ualarm(20000, 0);
	errno = ERANGE;
	while (vv_event_count(&bell) == looked)
		vv_event_wait_for(&bell, looked, INFINITY);
	CHECK_EQ(errno, ERANGE);
}

int main(void)
{
	nobody_sleeps_through();
	handlers_ring();
	return 0;
}
