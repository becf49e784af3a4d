/* varve_checkpoint_here: the only call that a program needs. It opens the session that `varve run`
 * describes in the environment. The first call restores the state if there is one; later calls take
 * checkpoints. */
#include "base/env.h"
#include "base/err.h"
#include "base/block_signals.h"
#include "base/own_fds.h"
#include "base/log.h"
#include "engine/ranks/group.h"
#include "engine/context.h"
#include "engine/run_protocol.h"
#include "engine/epoch/retention.h"
#include "preload/libc_memory_fortran.h"
#include "preload/heap.h"
#include "preload/state.h"
#include "preload/unreachable.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <varve/varve.h>

/* looked up by varve/varve_here.h */
VARVE_API int varve_checkpoint_here(void);
VARVE_API int varve_protect_here(const char *name, void *p, size_t len);
VARVE_API int varve_except_here(void *p, size_t len);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct varve *session;
static _Atomic(pid_t) owner; /* the process of the session, not its children */
static __thread bool inside; /* this thread is in a call */
static int unable;           /* error code if there is no session; `reason` has the message */
static struct vv_err_state reason;
static int events = -1;

/* ---- events ---------------------------------------------------------------------------------- */

/* Writes an event; false: there is no reader. Then the caller reports an error on the program's own
 * output; otherwise the reader reports it, in the same words. */
static bool write_event(const char *word, uint64_t epoch, const char *sentence)
{
	char line[1200];
	int n = snprintf(line, sizeof(line), "%s %" PRIu64 "%s%.1024s\n", word, epoch, *sentence ? " " : "", sentence);

	if (events < 0 || n <= 0)
		return false;
	if (session && session->ctx.rank != 0)
		return true; /* rank 0 does */
	for (int i = 0; i < n - 1; i++)
		line[i] = line[i] == '\n' ? ' ' : line[i];
	return write(events, line, (size_t)n) == n;
}

/* The event of a failure was written, and the next call returns the error once more. */
static atomic_bool failure_reported;

static void write_result(void *arg, uint64_t epoch, int rc)
{
	(void)arg;
	if (write_event(rc ? "failed" : "durable", epoch, rc ? varve_last_error() : "") && rc)
		atomic_store(&failure_reported, true);
}

static void open_events(void)
{
	const char *path = vv_env_get(VV_RUN_PROTOCOL_EVENTS);

	if (path && *path)
		events = vv_own_fds_open(path, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
}

/* ---- the session (struct varve) -------------------------------------------------------------- */

static void close_it(void)
{
	struct varve *v = session;

	if (!v)
		return;
	if (varve_close(v) != 0)
		vv_log_warn("%s", varve_last_error());
	session = NULL;
	unable = vv_err_set(VV_EINVAL, "varve_checkpoint_here: the program is at its end");
	vv_err_save(unable, &reason);
}

/* A signal handler may end the program during a call of this thread: the call is not finished, and
 * nothing waits for it. A call of another thread is waited for. */
static void close_session(void)
{
	if (owner != getpid() || inside)
		return;
	pthread_mutex_lock(&lock);
	close_it();
	pthread_mutex_unlock(&lock);
}

static void at_end(void *arg)
{
	(void)arg;
	close_session();
}

/* The session ends before MPI does. Inside of MPI_Finalize, where at_end is called, MPICH 4.0
 * miscounts its locks if two threads use it. A program whose call does not come here (Fortran with
 * Open MPI) relies on at_end. */
int MPI_Finalize(void) __attribute__((visibility("default")));

int MPI_Finalize(void)
{
	int (*finalize)(void) = (int (*)(void))dlsym(RTLD_NEXT, "MPI_Finalize");
	int failed = 16; /* MPI_ERR_OTHER, or similar */

	if (session && session->ctx.group)
		close_session();
	return finalize ? finalize() : failed;
}

/* Returns whether the program uses MPI now, without being linked with it. */
static bool speaks_mpi(void)
{
	int (*initialized)(int *) = (int (*)(int *))dlsym(RTLD_DEFAULT, "MPI_Initialized");
	int (*finalized)(int *) = (int (*)(int *))dlsym(RTLD_DEFAULT, "MPI_Finalized");
	int yes = 0, over = 0;

	return initialized && finalized && initialized(&yes) == 0 && yes && finalized(&over) == 0 && !over;
}

/* An interpreter keeps its state on its own stack, which is in the process's stack, and in mapped
 * memory. Only half of it would be restored, and it would fail. */
static bool is_python(void)
{
	int (*initialized)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsInitialized");

	return initialized && initialized();
}

/* Looks beside this library, then in the loader's folders. */
static void *load_mpi(void)
{
	static const char name[] = "libvarve_preload_mpi.so";
	char path[PATH_MAX];
	const char *slash;
	Dl_info self;

	if (dladdr((void *)&load_mpi, &self) && (slash = strrchr(self.dli_fname, '/'))) {
		snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - self.dli_fname), self.dli_fname, name);
		if (access(path, R_OK) == 0)
			return dlopen(path, RTLD_NOW);
	}
	return dlopen(name, RTLD_NOW);
}

static int open_mpi(const char *store, const char *lineage)
{
	void *library = load_mpi();
	int (*open_world)(const char *, const char *, const char *, void (*)(void *), void *, varve **);

	open_world = library ? (__typeof__(open_world))dlsym(library, "varve_open_world") : NULL;
	if (!open_world) {
		const char *why = dlerror();

		return vv_err_set(VV_ENOTSUP, "this is an MPI program, and libvarve_preload_mpi cannot be loaded: %s", why ? why : "an older one");
	}
	return open_world(store, lineage, NULL, at_end, NULL, &session);
}

/* A heap differs from an array: memory is freed and reused, and much of a page is new before long.
 * So tracking pages is more expensive than comparing them, until measurements show otherwise.
 * Copying them is cheaper than write-protecting them. */
static int suit_heap(void)
{
	session->tracking.late = true;
	return strcmp(vv_conf_origin(&session->ctx.conf, "buffer"), "default") == 0 ? vv_conf_set(&session->ctx.conf, "buffer", "128MiB", "varve run") : 0;
}

static int open_session(void)
{
	const char *store = vv_env_get(VV_RUN_PROTOCOL_STORE), *lineage = vv_env_get(VV_RUN_PROTOCOL_LINEAGE);
	int rc;

	if (!store || !*store || !lineage || !*lineage)
		return vv_err_set(VV_EINVAL, "varve_checkpoint_here: no store is named; start the program by `varve run`");
	if (is_python())
		return vv_err_set(VV_ENOTSUP, "a Python interpreter has more than its heap to save: save the whole process (varve image)");
	rc = speaks_mpi() ? open_mpi(store, lineage) : varve_open(store, lineage, NULL, &session);
	if (rc == 0)
		rc = suit_heap();
	if (rc == 0)
		varve_on_done(session, write_result, NULL);
	return rc;
}

/* ---- the first call -------------------------------------------------------------------------- */

static int which_epoch(uint64_t *epoch, bool *none)
{
	const char *text = vv_env_get(VV_RUN_PROTOCOL_RESTART);
	char *end = NULL;

	*epoch = VARVE_LATEST;
	*none = text && strcmp(text, "none") == 0;
	if (!text || !*text || *none || strcmp(text, "latest") == 0)
		return 0;
	*epoch = strtoull(text, &end, 10);
	return *end == 0 && *epoch && *epoch != VARVE_LATEST ?
		       0 : vv_err_set(VV_EINVAL, VV_RUN_PROTOCOL_RESTART "=%.40s: latest, none or the number of an epoch", text);
}

/* The program must not continue from its start: its new epochs would cover those that it could not
 * read. */
static void refuse(int rc, uint64_t epoch)
{
	const char *word = rc == VV_EDAMAGED || rc == VV_ENOENT ? "damaged" : rc == VV_EIO ? "unread" : "refused";

	if (!write_event(word, epoch, varve_last_error()) && (!session || session->ctx.rank == 0))
		fprintf(stderr, "varve: epoch %" PRIu64 " cannot be restored: %s\n", epoch, varve_last_error());
	_exit(VV_RUN_PROTOCOL_REFUSED);
}

static bool is_set(const char *name)
{
	const char *text = vv_env_get(name);

	return text && strcmp(text, "1") == 0;
}

/* Below this nobody need be told. */
enum { UNREACHABLE_BYTES = 1 << 20, UNREACHABLE_PERCENT = 1 };

static void describe_unreachable(const struct vv_unreachable *u, bool freed, char *out, size_t size)
{
	double mib = (double)u->bytes / (1 << 20);

	out[0] = '\0';
	if (freed && u->objects)
		snprintf(out, size, "%.1f MiB of its heap in unreachable objects (%" PRIu64 ") are free again", mib, u->objects);
	else if (u->bytes >= UNREACHABLE_BYTES && u->bytes / UNREACHABLE_PERCENT >= u->heap / 100)
		snprintf(out, size, "%.1f MiB of its heap are in objects (%" PRIu64 ") that no pointer in the saved state leads to, for instance "
			 "objects of the stack: each restart may add as much. Free such objects before varve_checkpoint_here, or let a restart do it: "
			 "varve run --free-unreachable", mib, u->objects);
}

static void report_restored(const struct vv_unreachable *unreachable, bool freed)
{
	char sentence[400];

	describe_unreachable(unreachable, freed, sentence, sizeof(sentence));
	if (!write_event("restored", varve_epoch(session), sentence) && sentence[0])
		vv_log_warn("epoch %" PRIu64 " is restored; %s", varve_epoch(session), sentence);
}

static int restore(void)
{
	bool none = false, free_them = is_set(VV_RUN_PROTOCOL_FREE_UNREACHABLE);
	struct vv_unreachable unreachable = { 0 };
	uint64_t epoch = VARVE_LATEST;
	int rc = which_epoch(&epoch, &none);

	if (rc == 0 && !none)
		rc = vv_state_restore(session, epoch, free_them, &unreachable);
	if (rc > 0 && epoch != VARVE_LATEST) {
		int spared = vv_retention_exempt_above(session, epoch);

		rc = spared < 0 ? spared : rc;
	}
	if (rc < 0)
		refuse(rc, epoch == VARVE_LATEST ? varve_epoch(session) : epoch);
	if (rc > 0)
		report_restored(&unreachable, free_them);
	return rc;
}

/* Disables checkpoints, for this reason. */
static int disable(int rc)
{
	vv_err_save(rc, &reason);
	if (!write_event("unable", 0, reason.message))
		vv_log_warn("no checkpoints are taken: %s", reason.message);
	varve_close(session);
	session = NULL;
	unable = rc;
	return vv_err_restore(&reason);
}

static int begin(void)
{
	int rc;

	vv_libc_memory_fortran_ask(); /* its library may have been loaded late */
	open_events();
	rc = open_session();
	if (rc == 0)
		rc = vv_state_begin(session, is_set(VV_RUN_PROTOCOL_GLOBALS));
	if (rc)
		return disable(rc);
	/* Ranks end by MPI_Finalize; one that ends otherwise must not wait for others. */
	if (!session->ctx.group)
		atexit(close_session);
	rc = restore();
	if (rc)
		return rc;
	rc = vv_state_start(session);
	if (rc)
		return disable(rc);
	write_event("fresh", 0, "");
	return 0;
}

/* ---- later calls ----------------------------------------------------------------------------- */

/* If only the calling thread may use MPI, the ranks agree on the epoch only at their next call. */
static const char *when_committed(void)
{
	return session->ctx.group && session->ctx.async && !session->ctx.group->threaded ? "committed at the next call" : "";
}

static int take(void)
{
	int rc = vv_state_declare(session);

	vv_heap_keep_freed(true);
	if (rc == 0)
		rc = varve_checkpoint(session);
	vv_heap_keep_freed(false);
	if (rc == 0) {
		write_event("taken", varve_epoch(session), when_committed());
		if (session->ctx.rank == 0)
			vv_state_look();
	} else if (!atomic_exchange(&failure_reported, false) && !write_event("failed", 0, varve_last_error())) {
		vv_log_warn("no checkpoint was taken: %s", varve_last_error());
	}
	return rc;
}

/* Signals are blocked while the heap is restored or saved: a handler would find an incomplete heap
 * and locked locks. */
struct quiet {
	bool is;
	sigset_t before;
};

static void block_signals(struct quiet *q)
{
	if (!q->is)
		vv_block_signals_begin(&q->before);
	q->is = true;
}

static int call(struct quiet *q)
{
	int rc = 0;

	if (unable)
		return vv_err_restore(&reason);
	if (!session) {
		block_signals(q);
		rc = begin();
		if (rc)
			return rc;
	}
	rc = varve_due(session);
	if (rc <= 0)
		return rc;
	block_signals(q);
	return take();
}

/* A child may have been created while another thread was in this function; the child must not wait
 * for it. So the owner is set before the lock is taken. */
int varve_checkpoint_here(void)
{
	struct quiet q = { .is = false };
	pid_t nobody = 0;
	int rc, cancel;

	if (!atomic_compare_exchange_strong(&owner, &nobody, getpid()) && nobody != getpid())
		return 0;
	if (inside)
		return vv_err_set(VV_EBUSY, "varve_checkpoint_here: a handler of a signal calls it in the midst of another call");
	inside = true;
	/* a thread that ended in here would keep the lock. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&lock);
	rc = call(&q);
	pthread_mutex_unlock(&lock);
	inside = false;
	if (q.is)
		vv_block_signals_end(&q.before); /* a pending signal may end the program */
	pthread_setcancelstate(cancel, NULL);
	return rc;
}

int varve_protect_here(const char *name, void *p, size_t len)
{
	return vv_state_protect(name, p, len);
}

int varve_except_here(void *p, size_t len)
{
	return vv_state_except(p, len);
}
