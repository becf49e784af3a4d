/* Reading: files, pipes, queues, other processes, random bytes. */
#include "preload/wrap/wrap.h"

ssize_t read(int fd, void *buf, size_t n)
{
	WRITES(buf, n);
	return REAL(read)(fd, buf, n);
}

ssize_t __read_chk(int fd, void *buf, size_t n, size_t room)
{
	WRITES(buf, n);
	return REAL(__read_chk)(fd, buf, n, room);
}

ssize_t pread(int fd, void *buf, size_t n, off_t at)
{
	WRITES(buf, n);
	return REAL(pread)(fd, buf, n, at);
}

ssize_t pread64(int fd, void *buf, size_t n, off64_t at)
{
	WRITES(buf, n);
	return REAL(pread64)(fd, buf, n, at);
}

ssize_t __pread_chk(int fd, void *buf, size_t n, off_t at, size_t room)
{
	WRITES(buf, n);
	return REAL(__pread_chk)(fd, buf, n, at, room);
}

ssize_t __pread64_chk(int fd, void *buf, size_t n, off64_t at, size_t room)
{
	WRITES(buf, n);
	return REAL(__pread64_chk)(fd, buf, n, at, room);
}

ssize_t readv(int fd, const struct iovec *iov, int count)
{
	RANGES(r);
	vv_wrap_add_iov(&r, iov, (size_t)count);
	vv_wrap_enter_all(&r);
	return REAL(readv)(fd, iov, count);
}

ssize_t preadv(int fd, const struct iovec *iov, int count, off_t at)
{
	RANGES(r);
	vv_wrap_add_iov(&r, iov, (size_t)count);
	vv_wrap_enter_all(&r);
	return REAL(preadv)(fd, iov, count, at);
}

ssize_t preadv64(int fd, const struct iovec *iov, int count, off64_t at)
{
	RANGES(r);
	vv_wrap_add_iov(&r, iov, (size_t)count);
	vv_wrap_enter_all(&r);
	return REAL(preadv64)(fd, iov, count, at);
}

ssize_t preadv2(int fd, const struct iovec *iov, int count, off_t at, int flags)
{
	RANGES(r);
	vv_wrap_add_iov(&r, iov, (size_t)count);
	vv_wrap_enter_all(&r);
	return REAL(preadv2)(fd, iov, count, at, flags);
}

ssize_t preadv64v2(int fd, const struct iovec *iov, int count, off64_t at, int flags)
{
	RANGES(r);
	vv_wrap_add_iov(&r, iov, (size_t)count);
	vv_wrap_enter_all(&r);
	return REAL(preadv64v2)(fd, iov, count, at, flags);
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count, const struct iovec *remote,
			 unsigned long remote_count, unsigned long flags)
{
	RANGES(r);
	vv_wrap_add_iov(&r, local, local_count);
	vv_wrap_enter_all(&r);
	return REAL(process_vm_readv)(pid, local, local_count, remote, remote_count, flags);
}

/* Only for writes to this process itself: the writes of another process here are not seen. */
ssize_t process_vm_writev(pid_t pid, const struct iovec *local, unsigned long local_count, const struct iovec *remote,
			  unsigned long remote_count, unsigned long flags)
{
	RANGES(r);
	if (pid == getpid())
		vv_wrap_add_iov(&r, remote, remote_count);
	vv_wrap_enter_all(&r);
	return REAL(process_vm_writev)(pid, local, local_count, remote, remote_count, flags);
}

/* Large reads bypass the stream's buffer. The stream's own buffer belongs to the C library; a
 * buffer from setvbuf must not lie in a region. */
static size_t product(size_t size, size_t n)
{
	size_t bytes;
	return __builtin_mul_overflow(size, n, &bytes) ? SIZE_MAX : bytes;
}

size_t fread(void *buf, size_t size, size_t n, FILE *f)
{
	WRITES(buf, product(size, n));
	return REAL(fread)(buf, size, n, f);
}

size_t fread_unlocked(void *buf, size_t size, size_t n, FILE *f)
{
	WRITES(buf, product(size, n));
	return REAL(fread_unlocked)(buf, size, n, f);
}

size_t __fread_chk(void *buf, size_t room, size_t size, size_t n, FILE *f)
{
	WRITES(buf, product(size, n));
	return REAL(__fread_chk)(buf, room, size, n, f);
}

size_t __fread_unlocked_chk(void *buf, size_t room, size_t size, size_t n, FILE *f)
{
	WRITES(buf, product(size, n));
	return REAL(__fread_unlocked_chk)(buf, room, size, n, f);
}

ssize_t getrandom(void *buf, size_t n, unsigned flags)
{
	WRITES(buf, n);
	return REAL(getrandom)(buf, n, flags);
}

int getentropy(void *buf, size_t n)
{
	WRITES(buf, n);
	return REAL(getentropy)(buf, n);
}

ssize_t msgrcv(int id, void *msg, size_t n, long type, int flags)
{
	WRITES(msg, n < SIZE_MAX - sizeof(long) ? sizeof(long) + n : n);
	return REAL(msgrcv)(id, msg, n, type, flags);
}

ssize_t mq_receive(mqd_t queue, char *buf, size_t n, unsigned *priority)
{
	RANGES(r);
	vv_wrap_add(&r, buf, n);
	vv_wrap_add(&r, priority, sizeof(*priority));
	vv_wrap_enter_all(&r);
	return REAL(mq_receive)(queue, buf, n, priority);
}

ssize_t mq_timedreceive(mqd_t queue, char *buf, size_t n, unsigned *priority, const struct timespec *until)
{
	RANGES(r);
	vv_wrap_add(&r, buf, n);
	vv_wrap_add(&r, priority, sizeof(*priority));
	vv_wrap_enter_all(&r);
	return REAL(mq_timedreceive)(queue, buf, n, priority, until);
}

int pipe(int ends[2])
{
	WRITES(ends, 2 * sizeof(*ends));
	return REAL(pipe)(ends);
}

int pipe2(int ends[2], int flags)
{
	WRITES(ends, 2 * sizeof(*ends));
	return REAL(pipe2)(ends, flags);
}

int eventfd_read(int fd, eventfd_t *value)
{
	WRITES_OBJECT(value);
	return REAL(eventfd_read)(fd, value);
}

/* From descriptor to descriptor: the kernel writes the new position. */
ssize_t sendfile(int out, int in, off_t *at, size_t n)
{
	WRITES_OBJECT(at);
	return REAL(sendfile)(out, in, at, n);
}

ssize_t sendfile64(int out, int in, off64_t *at, size_t n)
{
	WRITES_OBJECT(at);
	return REAL(sendfile64)(out, in, at, n);
}

ssize_t splice(int in, off64_t *in_at, int out, off64_t *out_at, size_t n, unsigned flags)
{
	RANGES(r);
	vv_wrap_add(&r, in_at, sizeof(*in_at));
	vv_wrap_add(&r, out_at, sizeof(*out_at));
	vv_wrap_enter_all(&r);
	return REAL(splice)(in, in_at, out, out_at, n, flags);
}

ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t n, unsigned flags)
{
	RANGES(r);
	vv_wrap_add(&r, in_at, sizeof(*in_at));
	vv_wrap_add(&r, out_at, sizeof(*out_at));
	vv_wrap_enter_all(&r);
	return REAL(copy_file_range)(in, in_at, out, out_at, n, flags);
}

/* From a pipe into memory, if this is its reading end. */
ssize_t vmsplice(int fd, const struct iovec *iov, size_t count, unsigned flags)
{
	RANGES(r);
	vv_wrap_add_iov(&r, iov, count);
	vv_wrap_enter_all(&r);
	return REAL(vmsplice)(fd, iov, count, flags);
}

#if __GLIBC_PREREQ(2, 36)
void arc4random_buf(void *buf, size_t n)
{
	WRITES(buf, n);
	REAL(arc4random_buf)(buf, n);
}
#endif
