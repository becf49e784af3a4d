/* A thread of the program that writes a page while its tile is hashed continues as soon as the tile is hashed: not later, when
 * something else happens to be stored. */
#include "core/format/digest.h"
#include "engine/context.h"
#include "engine/memory/tiles.h"
#include "support/must.h"
#include "support/place.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <signal.h>
#include <sys/mman.h>

enum { LEN = 4 << 20, WRITTEN = 512 << 10, PATIENT_MS = 300, LATEST_MS = 30000 };

static uint8_t *memory;
static varve *session;
static vv_digest_fn digest;
static size_t n_handlers;
static pthread_t writer;
static atomic_bool has_written;

/* Only a thread without blocked signals waits without limit, and the thread that starts it has blocked some. */
static void *write_once(void *at)
{
	sigset_t none;

	sigemptyset(&none);
	MUST(pthread_sigmask(SIG_SETMASK, &none, NULL) == 0);
	atomic_fetch_add((_Atomic uint64_t *)at, 1);
	atomic_store(&has_written, true);
	return NULL;
}

static size_t in_handler(void)
{
	size_t n;

	pthread_mutex_lock(&session->tiles->lock);
	n = session->tiles->waiters.in_handler;
	pthread_mutex_unlock(&session->tiles->lock);
	return n;
}

static void begin_write(void)
{
	MUST(pthread_create(&writer, NULL, write_once, memory + WRITTEN) == 0);
	for (int ms = 0; ms < 10000 && !in_handler() && !atomic_load(&has_written); ms++)
		must_nap(1);
	n_handlers = in_handler();
	must_nap(PATIENT_MS); /* from then on it waits without limit */
}

static bool is_hashing(void)
{
	const struct vv_tiles *t = session->tiles;
	size_t tile = session->region[0]->tracked->first_tile + WRITTEN / (t->geometry.tile_groups * t->geometry.group_len);
	bool is;

	pthread_mutex_lock(&session->tiles->lock);
	is = t->geometry.tile[tile].flags & VV_TILE_HASHING;
	pthread_mutex_unlock(&session->tiles->lock);
	return is;
}

/* There is one thread that hashes and stores. So nothing is stored while a digest is computed. */
static void note_digest(const void *p, size_t n, struct vv_digest *out)
{
	bool hashing = is_hashing();

	digest(p, n, out);
	if (hashing && !writer)
		begin_write();
	/* No alarm arrives: this thread has blocked signals, and the writer is in a handler. */
	for (int ms = 0; !hashing && writer && !atomic_load(&has_written); ms++) {
		MUST(ms < LATEST_MS);
		must_nap(1);
	}
}

static void run(const char *tracker)
{
	char store[PLACE_MAX], options[200];
	int rc;

	snprintf(options, sizeof(options), "tracker=%s mode=sync digest=sha256 threads=1 codec=none block=64MiB log=error", tracker);
	must_begin("%s", options);
	place_path(store, "store");
	rc = varve_open(store, "run", options, &session);
	if (rc == VARVE_ENOTSUP)
		return;
	MUST(rc == 0 && varve_protect(session, "p", memory, LEN) == 0);
	for (size_t at = 0; at < LEN; at += 8)
		*(uint64_t *)(void *)(memory + at) = at + 8;
	writer = 0;
	n_handlers = 0;
	atomic_store(&has_written, false);
	digest = session->ctx.digest;
	session->ctx.digest = note_digest;
	MUST(varve_checkpoint(session) == 0);
	MUST(n_handlers == 1 && pthread_join(writer, NULL) == 0);
	session->ctx.digest = digest;
	MUST(varve_close(session) == 0);
	place_remove(store);
}

int main(void)
{
#ifdef __SANITIZE_THREAD__
	SKIP("the thread writes what is read, on purpose");
#endif
	memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(memory != MAP_FAILED);
	run("mprotect");
	run("sigbus");
	return 0;
}
