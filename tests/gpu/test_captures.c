// ctest: TIMEOUT 300 RUN_SERIAL
/* A program captures graphs while its regions are protected and its checkpoints are stored. Memory that the library takes then, by whichever thread, must not break a capture. */
#include "gpu/regions.h"
#include <pthread.h>
#include <unistd.h>

enum { LEN = 32 << 20, SMALL = 4096, EPOCHS = 6 };

/* Captures work on the stream for as long as busy says so. */
static void capture_while(void *stream, void *p, bool (*busy)(void *arg), void *arg)
{
	bool more;

	do {
		device_capture_begin(stream);
		for (int i = 0; i < 20; i++) {
			device_set_on(stream, p, i, SMALL);
			usleep(100);
		}
		more = busy(arg);
		MUST(device_capture_end(stream));
	} while (more);
}

static bool in_progress(void *v)
{
	int rc = varve_test(v, varve_epoch(v));

	OK(rc);
	return rc == 0;
}

/* The epoch is stored by the threads of the library. */
static void while_stored(void *stream, void *small, const char *options)
{
	struct buf b;
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("captured while stored");
	place_path(store, "stored");
	get(&b, LEN, true);
	OK(varve_open(store, "job", options, &v));
	OK(varve_protect(v, "p", b.p, LEN));
	for (int e = 0; e < EPOCHS; e++) {
		noise(b.mirror, e % 2 ? LEN / 8 : LEN);
		push(&b);
		OK(varve_checkpoint(v));
		capture_while(stream, small, in_progress, v);
		check_stored(v, "p", b.mirror, LEN);
	}
	OK(varve_close(v));
	place_remove(store);
	put(&b);
}

struct thread {
	atomic_bool done;
	void *stream;
	uint8_t *p;
};

static void *run_session(void *arg)
{
	struct thread *t = arg;
	char store[PLACE_MAX];
	varve *v = NULL;

	place_path(store, "thread");
	OK(varve_open(store, "job", NULL, &v));
	OK(varve_protect(v, "p", t->p, LEN));
	for (int e = 0; e < 2; e++) {
		OK(varve_checkpoint_on_stream(v, t->stream));
		OK(varve_wait(v, varve_epoch(v)));
	}
	OK(varve_close(v));
	place_remove(store);
	atomic_store(&t->done, true);
	return NULL;
}

static bool runs(void *arg)
{
	return !atomic_load(&((struct thread *)arg)->done);
}

/* A thread with a session of its own opens, protects and stores. */
static void while_another_thread_stores(void *stream, void *small)
{
	struct thread t = { .stream = device_stream() };
	struct buf b;
	pthread_t thread;

	must_begin("captured while another thread stores");
	get(&b, LEN, true);
	noise(b.mirror, LEN);
	push(&b);
	t.p = b.p;
	CHECK(pthread_create(&thread, NULL, run_session, &t) == 0);
	capture_while(stream, small, runs, &t);
	CHECK(pthread_join(thread, NULL) == 0);
	device_stream_end(t.stream);
	put(&b);
}

int main(void)
{
	void *stream, *small;

	space = device_space();
	seed = 88172645463325252ull;
	stream = device_stream();
	small = device_get(SMALL);
	while_stored(stream, small, NULL);
	while_stored(stream, small, "codec=zstd stage=8MiB");
	while_another_thread_stores(stream, small);
	device_put(small);
	device_stream_end(stream);
	return 0;
}
