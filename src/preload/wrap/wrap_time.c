/* Clocks and timers. Clocks are read often, mostly without the kernel, and a second read is
 * harmless. So the first attempt ignores the write protection. If the kernel fails at a protected
 * page, the call is repeated. */
#include "preload/wrap/wrap.h"
#include <sys/syscall.h>
#include <unistd.h>

/* An allocator may read the clock in free, and dlsym frees memory: until the C library's function
 * is found, the kernel is called directly. */
static int ask_clock(clockid_t clock, struct timespec *now)
{
	if (atomic_load_explicit(&vv_wrap_found[VV_WRAP_clock_gettime], memory_order_relaxed))
		return REAL(clock_gettime)(clock, now);
	return (int)syscall(SYS_clock_gettime, clock, now);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int saved = errno, rc = ask_clock(clock, now);
	if (rc == 0 || errno != EFAULT)
		return rc;
	errno = saved;
	WRITES_OBJECT(now);
	return ask_clock(clock, now);
}

int clock_getres(clockid_t clock, struct timespec *res)
{
	WRITES_OBJECT(res);
	return REAL(clock_getres)(clock, res);
}

int gettimeofday(struct timeval *now, void *zone)
{
	int saved = errno, rc = REAL(gettimeofday)(now, zone);
	if (rc == 0 || errno != EFAULT)
		return rc;
	errno = saved;
	RANGES(r);
	vv_wrap_add(&r, now, sizeof(*now));
	vv_wrap_add(&r, zone, sizeof(struct timezone));
	vv_wrap_enter_all(&r);
	return REAL(gettimeofday)(now, zone);
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
	WRITES_OBJECT(left);
	return REAL(nanosleep)(time, left);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
	WRITES_OBJECT(left);
	return REAL(clock_nanosleep)(clock, flags, time, left);
}

#if __GLIBC_PREREQ(2, 28)
int thrd_sleep(const struct timespec *time, struct timespec *left)
{
	WRITES_OBJECT(left);
	return REAL(thrd_sleep)(time, left);
}
#endif

int getitimer(__itimer_which_t which, struct itimerval *value)
{
	WRITES_OBJECT(value);
	return REAL(getitimer)(which, value);
}

int setitimer(__itimer_which_t which, const struct itimerval *value, struct itimerval *old)
{
	WRITES_OBJECT(old);
	return REAL(setitimer)(which, value, old);
}

int timer_gettime(timer_t timer, struct itimerspec *value)
{
	WRITES_OBJECT(value);
	return REAL(timer_gettime)(timer, value);
}

int timer_settime(timer_t timer, int flags, const struct itimerspec *value, struct itimerspec *old)
{
	WRITES_OBJECT(old);
	return REAL(timer_settime)(timer, flags, value, old);
}

int timerfd_gettime(int fd, struct itimerspec *value)
{
	WRITES_OBJECT(value);
	return REAL(timerfd_gettime)(fd, value);
}

int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old)
{
	WRITES_OBJECT(old);
	return REAL(timerfd_settime)(fd, flags, value, old);
}

int timespec_get(struct timespec *now, int base)
{
	WRITES_OBJECT(now);
	return REAL(timespec_get)(now, base);
}

#if __GLIBC_PREREQ(2, 34)
int timespec_getres(struct timespec *res, int base)
{
	WRITES_OBJECT(res);
	return REAL(timespec_getres)(res, base);
}
#endif

int adjtimex(struct timex *t)
{
	WRITES_OBJECT(t);
	return REAL(adjtimex)(t);
}

int ntp_adjtime(struct timex *t)
{
	WRITES_OBJECT(t);
	return REAL(ntp_adjtime)(t);
}

int clock_adjtime(clockid_t clock, struct timex *t)
{
	WRITES_OBJECT(t);
	return REAL(clock_adjtime)(clock, t);
}
