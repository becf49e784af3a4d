#include "track/registered_memory.h"
#include "base/block_signals.h"
#include "track/memory.h"
#include <errno.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct registered_range {
	struct registered_range *next;
	uintptr_t lo, hi;
	int uffd;
	pid_t owner; /* in a child of fork the descriptor refers to the parent's memory */
};

/* No memory is allocated or freed under the lock, since an allocator may call mremap under its own
 * lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct registered_range *first;
static atomic_bool any; /* true after the first registration; until then mremap need not search */

void vv_registered_memory_lock(void)
{
	pthread_mutex_lock(&lock);
}

void vv_registered_memory_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static void begin(sigset_t *mask)
{
	vv_block_signals_brief(mask); /* signal handlers may call mremap */
	pthread_mutex_lock(&lock);
}

static void end(const sigset_t *mask)
{
	pthread_mutex_unlock(&lock);
	vv_block_signals_end(mask);
}

static bool unregister(int uffd, uintptr_t lo, uintptr_t hi)
{
	/* The kernel skips holes. */
	return ioctl(uffd, UFFDIO_UNREGISTER, &(struct uffdio_range){lo, hi - lo}) == 0;
}

int vv_registered_memory_add(int uffd, uintptr_t lo, uintptr_t hi, uint64_t *ioctls)
{
	struct uffdio_register u = {.range = {lo, hi - lo}, .mode = UFFDIO_REGISTER_MODE_WP};
	struct registered_range *r = malloc(sizeof(*r));
	sigset_t mask;
	int err = 0;

	if (!r)
		return ENOMEM;
	atomic_store(&any, true);
	begin(&mask);
	if (ioctl(uffd, UFFDIO_REGISTER, &u) == 0) {
		*r = (struct registered_range){.next = first, .lo = lo, .hi = hi, .uffd = uffd, .owner = getpid()};
		first = r;
	} else {
		err = errno;
	}
	end(&mask);
	if (err)
		free(r);
	*ioctls = u.ioctls;
	return err;
}

/* Removes the first match from the list and returns it, or NULL. hi = 0: any range of the
 * descriptor. */
static struct registered_range *take_out(int uffd, uintptr_t lo, uintptr_t hi)
{
	struct registered_range **at = &first, *r;

	while (*at && ((*at)->uffd != uffd || (hi && ((*at)->lo != lo || (*at)->hi != hi))))
		at = &(*at)->next;
	r = *at;
	if (r)
		*at = r->next;
	return r;
}

bool vv_registered_memory_remove(int uffd, uintptr_t lo, uintptr_t hi)
{
	struct registered_range *r;
	sigset_t mask;
	bool done;

	begin(&mask);
	done = unregister(uffd, lo, hi);
	r = take_out(uffd, lo, hi);
	end(&mask);
	free(r);
	return done;
}

void vv_registered_memory_forget(int uffd)
{
	struct registered_range *r;
	sigset_t mask;

	do {
		begin(&mask);
		r = take_out(uffd, 0, 0);
		end(&mask);
		free(r);
	} while (r);
}

void vv_registered_memory_release(const void *p, size_t n)
{
	uintptr_t in_page = vv_memory_page() - 1, lo = (uintptr_t)p & ~in_page, hi;
	int saved = errno;
	sigset_t mask;

	if (!atomic_load(&any))
		return;
	hi = n > UINTPTR_MAX - in_page - (uintptr_t)p ? ~in_page : ((uintptr_t)p + n + in_page) & ~in_page;
	begin(&mask);
	for (const struct registered_range *r = first; r; r = r->next)
		if (r->lo < hi && r->hi > lo && r->owner == getpid())
			unregister(r->uffd, r->lo > lo ? r->lo : lo, r->hi < hi ? r->hi : hi);
	end(&mask);
	errno = saved;
}
