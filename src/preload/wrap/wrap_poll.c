/* Waiting for descriptors: results are written into the arguments. Signal handlers run with the
 * given mask during the wait. */
#include "preload/wrap/wrap.h"

int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	WRITES(fds, n * sizeof(*fds));
	return REAL(poll)(fds, n, timeout);
}

int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room)
{
	WRITES(fds, n * sizeof(*fds));
	return REAL(__poll_chk)(fds, n, timeout, room);
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	sigset_t copy;
	WRITES(fds, n * sizeof(*fds));
	return REAL(ppoll)(fds, n, timeout, vv_wrap_open(mask, &copy));
}

int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask, size_t room)
{
	sigset_t copy;
	WRITES(fds, n * sizeof(*fds));
	return REAL(__ppoll_chk)(fds, n, timeout, vv_wrap_open(mask, &copy), room);
}

/* Returns the bytes of an fd_set for n descriptors, in complete words. */
static size_t set_size(int n)
{
	size_t words = n > 0 ? ((size_t)n + NFDBITS - 1) / NFDBITS : 0;
	return words * sizeof(fd_mask);
}

int select(int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	RANGES(r);
	vv_wrap_add(&r, in, set_size(n));
	vv_wrap_add(&r, out, set_size(n));
	vv_wrap_add(&r, except, set_size(n));
	vv_wrap_add(&r, timeout, sizeof(*timeout));
	vv_wrap_enter_all(&r);
	return REAL(select)(n, in, out, except, timeout);
}

int pselect(int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout, const sigset_t *mask)
{
	sigset_t copy;
	RANGES(r);
	vv_wrap_add(&r, in, set_size(n));
	vv_wrap_add(&r, out, set_size(n));
	vv_wrap_add(&r, except, set_size(n));
	vv_wrap_enter_all(&r);
	return REAL(pselect)(n, in, out, except, timeout, vv_wrap_open(mask, &copy));
}

static size_t events_size(int max)
{
	return max > 0 ? (size_t)max * sizeof(struct epoll_event) : 0;
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
	WRITES(events, events_size(max));
	return REAL(epoll_wait)(fd, events, max, timeout);
}

int epoll_pwait(int fd, struct epoll_event *events, int max, int timeout, const sigset_t *mask)
{
	sigset_t copy;
	WRITES(events, events_size(max));
	return REAL(epoll_pwait)(fd, events, max, timeout, vv_wrap_open(mask, &copy));
}

#if __GLIBC_PREREQ(2, 35)
int epoll_pwait2(int fd, struct epoll_event *events, int max, const struct timespec *timeout, const sigset_t *mask)
{
	sigset_t copy;
	WRITES(events, events_size(max));
	return REAL(epoll_pwait2)(fd, events, max, timeout, vv_wrap_open(mask, &copy));
}
#endif
