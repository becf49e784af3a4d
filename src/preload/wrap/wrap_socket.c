/* Sockets. An address is written up to its given length, and the length is written, too. */
#include "preload/wrap/wrap.h"

enum { MESSAGES_MAX = 1024 }; /* the kernel's limit for one recvmmsg */

static size_t room(const void *p, const socklen_t *len)
{
	return p && len ? *len : 0;
}

ssize_t recv(int fd, void *buf, size_t n, int flags)
{
	WRITES(buf, n);
	return REAL(recv)(fd, buf, n, flags);
}

ssize_t __recv_chk(int fd, void *buf, size_t n, size_t size, int flags)
{
	WRITES(buf, n);
	return REAL(__recv_chk)(fd, buf, n, size, flags);
}

ssize_t recvfrom(int fd, void *buf, size_t n, int flags, __SOCKADDR_ARG addr, socklen_t *len)
{
	RANGES(r);
	vv_wrap_add(&r, buf, n);
	vv_wrap_add(&r, addr.__sockaddr__, room(addr.__sockaddr__, len));
	vv_wrap_add(&r, len, sizeof(*len));
	vv_wrap_enter_all(&r);
	return REAL(recvfrom)(fd, buf, n, flags, addr, len);
}

ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t size, int flags, __SOCKADDR_ARG addr, socklen_t *len)
{
	RANGES(r);
	vv_wrap_add(&r, buf, n);
	vv_wrap_add(&r, addr.__sockaddr__, room(addr.__sockaddr__, len));
	vv_wrap_add(&r, len, sizeof(*len));
	vv_wrap_enter_all(&r);
	return REAL(__recvfrom_chk)(fd, buf, n, size, flags, addr, len);
}

/* The caller adds msg itself: its lengths and flags are written too. */
static void add_message(struct vv_wrap_ranges *r, const struct msghdr *msg)
{
	vv_wrap_add(r, msg->msg_name, msg->msg_namelen);
	vv_wrap_add(r, msg->msg_control, msg->msg_controllen);
	vv_wrap_add_iov(r, msg->msg_iov, msg->msg_iovlen);
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	RANGES(r);
	vv_wrap_add(&r, msg, sizeof(*msg));
	if (msg)
		add_message(&r, msg);
	vv_wrap_enter_all(&r);
	return REAL(recvmsg)(fd, msg, flags);
}

int recvmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags, struct timespec *timeout)
{
	RANGES(r);
	vv_wrap_add(&r, msgs, n * sizeof(*msgs));
	for (unsigned i = 0; msgs && i < n && i < MESSAGES_MAX; i++)
		add_message(&r, &msgs[i].msg_hdr);
	vv_wrap_add(&r, timeout, sizeof(*timeout));
	vv_wrap_enter_all(&r);
	return REAL(recvmmsg)(fd, msgs, n, flags, timeout);
}

/* The kernel writes the length that was sent of each message. */
int sendmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags)
{
	WRITES(msgs, n * sizeof(*msgs));
	return REAL(sendmmsg)(fd, msgs, n, flags);
}

int accept(int fd, __SOCKADDR_ARG addr, socklen_t *len)
{
	RANGES(r);
	vv_wrap_add(&r, addr.__sockaddr__, room(addr.__sockaddr__, len));
	vv_wrap_add(&r, len, sizeof(*len));
	vv_wrap_enter_all(&r);
	return REAL(accept)(fd, addr, len);
}

int accept4(int fd, __SOCKADDR_ARG addr, socklen_t *len, int flags)
{
	RANGES(r);
	vv_wrap_add(&r, addr.__sockaddr__, room(addr.__sockaddr__, len));
	vv_wrap_add(&r, len, sizeof(*len));
	vv_wrap_enter_all(&r);
	return REAL(accept4)(fd, addr, len, flags);
}

int getsockname(int fd, __SOCKADDR_ARG addr, socklen_t *len)
{
	RANGES(r);
	vv_wrap_add(&r, addr.__sockaddr__, room(addr.__sockaddr__, len));
	vv_wrap_add(&r, len, sizeof(*len));
	vv_wrap_enter_all(&r);
	return REAL(getsockname)(fd, addr, len);
}

int getpeername(int fd, __SOCKADDR_ARG addr, socklen_t *len)
{
	RANGES(r);
	vv_wrap_add(&r, addr.__sockaddr__, room(addr.__sockaddr__, len));
	vv_wrap_add(&r, len, sizeof(*len));
	vv_wrap_enter_all(&r);
	return REAL(getpeername)(fd, addr, len);
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	RANGES(r);
	vv_wrap_add(&r, value, room(value, len));
	vv_wrap_add(&r, len, sizeof(*len));
	vv_wrap_enter_all(&r);
	return REAL(getsockopt)(fd, level, name, value, len);
}

int socketpair(int domain, int type, int protocol, int ends[2])
{
	WRITES(ends, 2 * sizeof(*ends));
	return REAL(socketpair)(domain, type, protocol, ends);
}
