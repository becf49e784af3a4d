/* Events that the C library reports in a new thread, in which all signals are blocked. Our function
 * runs there before the program's and unblocks SIGSEGV and SIGBUS. */
#include "preload/wrap/wrap.h"

/* The program's function and its argument. They are kept for ever, because a thread may be starting
 * even after the end of the timer. Equal ones are kept only once. */
struct vv_wrap_notice {
	struct vv_wrap_notice *next;
	void (*fn)(union sigval value);
	union sigval value;
};

static _Atomic(struct vv_wrap_notice *) notices;

static struct vv_wrap_notice *find(const struct sigevent *e)
{
	struct vv_wrap_notice *n = atomic_load(&notices);
	while (n && (n->fn != e->sigev_notify_function || n->value.sival_ptr != e->sigev_value.sival_ptr))
		n = n->next;
	return n;
}

static struct vv_wrap_notice *keep(const struct sigevent *e)
{
	struct vv_wrap_notice *n = find(e);
	if (n || !(n = malloc(sizeof(*n))))
		return n;
	*n = (struct vv_wrap_notice){ atomic_load(&notices), e->sigev_notify_function, e->sigev_value };
	while (!atomic_compare_exchange_weak(&notices, &n->next, n))
		;
	return n;
}

static void notify(union sigval value)
{
	const struct vv_wrap_notice *n = value.sival_ptr;
	vv_wrap_open_now();
	n->fn(n->value);
}

/* Returns e, or *copy, which calls our function; NULL: no memory. */
static struct sigevent *through_us(struct sigevent *e, struct sigevent *copy)
{
	if (!e || e->sigev_notify != SIGEV_THREAD || !e->sigev_notify_function)
		return e;
	*copy = *e;
	copy->sigev_notify_function = notify;
	copy->sigev_value.sival_ptr = keep(e);
	return copy->sigev_value.sival_ptr ? copy : NULL;
}

int timer_create(clockid_t clock, struct sigevent *e, timer_t *timer)
{
	struct sigevent copy, *mine = through_us(e, &copy);
	if (e && !mine) {
		errno = EAGAIN;
		return -1;
	}
	return REAL(timer_create)(clock, mine, timer);
}

int mq_notify(mqd_t queue, const struct sigevent *e)
{
	struct sigevent copy, *mine = through_us((struct sigevent *)(uintptr_t)e, &copy);
	if (e && !mine) {
		errno = ENOMEM;
		return -1;
	}
	return REAL(mq_notify)(queue, mine);
}
