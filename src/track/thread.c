#include "track/thread.h"
#include "base/err.h"
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { AT_A_TIME = 64 };
/* Glibc: so many keys need no allocation when a thread first sets them. */
enum { PLAIN_KEYS = 32 };

static _Atomic(struct vv_thread *) threads;
static pthread_key_t key;
static atomic_bool have_key;

static void clear(struct vv_thread *t)
{
	t->depth = 0;
	for (int i = 0; i < VV_THREAD_SLOTS; i++)
		atomic_store(&t->slot[i].hi, 0); /* a cancelled call never left its slot */
	t->page = 0;
	t->n_enabled = t->removals = 0;
	t->escape = NULL;
	t->held = 0;
	t->flushes = false;
}

static void give_back(void *arg)
{
	struct vv_thread *t = arg;

	clear(t);
	atomic_store(&t->owner, 0);
}

/* Runs early, so that the key has a low number. */
__attribute__((constructor(101))) static void make_key(void)
{
	if (pthread_key_create(&key, give_back) != 0)
		return;
	if (key < PLAIN_KEYS)
		atomic_store(&have_key, true);
	else
		pthread_key_delete(key);
}

/* The record of this owner. If a thread ended without releasing its record, the next thread with
 * the same pthread_self() takes it over. */
static struct vv_thread *find(uintptr_t owner)
{
	struct vv_thread *t = atomic_load(&threads);

	while (t && atomic_load_explicit(&t->owner, memory_order_relaxed) != owner)
		t = t->next;
	return t;
}

static struct vv_thread *take_free(uintptr_t me)
{
	for (struct vv_thread *t = atomic_load(&threads); t; t = t->next) {
		uintptr_t nobody = 0;

		if (!atomic_load_explicit(&t->owner, memory_order_relaxed) && atomic_compare_exchange_strong(&t->owner, &nobody, me))
			return t;
	}
	return NULL;
}

/* Maps more records and takes the first one. It uses mmap, since the interrupted code may be
 * malloc. */
static struct vv_thread *take_new(uintptr_t me)
{
	struct vv_thread *t = mmap(NULL, AT_A_TIME * sizeof(*t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct vv_thread *head = atomic_load(&threads);

	if (t == MAP_FAILED)
		return NULL;
	atomic_store(&t[0].owner, me);
	for (int i = 0; i + 1 < AT_A_TIME; i++)
		t[i].next = &t[i + 1];
	do
		t[AT_A_TIME - 1].next = head;
	while (!atomic_compare_exchange_weak(&threads, &head, t));
	return t;
}

static struct vv_thread *take(void)
{
	uintptr_t me = (uintptr_t)pthread_self();
	struct vv_thread *t = find(me);

	if (!t)
		t = take_free(me);
	if (!t)
		t = take_new(me);
	if (t && atomic_load(&have_key))
		pthread_setspecific(key, t);
	return t;
}

struct vv_thread *vv_thread_self(void)
{
	struct vv_thread *t = atomic_load_explicit(&have_key, memory_order_relaxed) ? pthread_getspecific(key) : NULL;

	return __builtin_expect(t != NULL, 1) ? t : take();
}

struct vv_thread *vv_thread_first(void)
{
	return atomic_load(&threads);
}

void vv_thread_forked(void)
{
	uintptr_t me = (uintptr_t)pthread_self();

	for (struct vv_thread *t = atomic_load(&threads); t; t = t->next)
		if (atomic_load(&t->owner) && atomic_load(&t->owner) != me)
			give_back(t);
}

int vv_thread_start(pthread_t *out, void *(*run)(void *), void *arg)
{
	sigset_t set, old;
	int rc;

	sigfillset(&set);
	sigdelset(&set, SIGSEGV);
	sigdelset(&set, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &set, &old);
	rc = pthread_create(out, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

/* The kernel and the C library report EAGAIN for every limit. So the message lists the limits. */
int vv_thread_not_started(int errnum, const char *does)
{
	struct rlimit space;

	if (getrlimit(RLIMIT_AS, &space) < 0 || space.rlim_cur == RLIM_INFINITY)
		return vv_err_sys(errnum, "cannot start the thread that %s (see ulimit -u, and the limits of the control group)", does);
	return vv_err_sys(errnum, "cannot start the thread that %s (see ulimit -v, which is %llu KiB and must hold its stack, too; ulimit -u; and the limits of the control group)",
			  does, (unsigned long long)space.rlim_cur / 1024);
}

void vv_thread_mark_own(void)
{
	struct vv_thread *self = vv_thread_self();

	if (self)
		self->flushes = true;
}

bool vv_thread_is_own(void)
{
	const struct vv_thread *self = vv_thread_self();

	return self && self->flushes;
}
