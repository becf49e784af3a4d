#include "cli/base/out.h"
#include "base/err.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum { PIECE = 64 << 10, LINE = 4096 };

/* A closed descriptor is opened in the wrong direction, so that using it remains an error. */
void vv_out_guard(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", fd ? O_RDONLY : O_WRONLY) < 0)
			_exit(2);
	signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error like a full disk */
}

void vv_out_printf(struct vv_out *o, const char *fmt, ...)
{
	char text[LINE];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n > 0)
		vv_buf_add(&o->buf, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
	if (o->buf.n >= PIECE)
		vv_out_flush(o);
}

void vv_out_flush(struct vv_out *o)
{
	size_t done = 0;

	o->begun |= o->buf.n > 0;
	while (!o->error && done < o->buf.n) {
		ssize_t n = write(STDOUT_FILENO, o->buf.p + done, o->buf.n - done);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			o->error = errno;
	}
	o->buf.n = 0;
}

int vv_out_finish(struct vv_out *o)
{
	int rc = vv_buf_check(&o->buf);

	vv_out_flush(o);
	vv_buf_fini(&o->buf);
	if (close(STDOUT_FILENO) < 0 && !o->error)
		o->error = errno;
	if (o->error)
		rc = vv_err_sys(o->error, "cannot write to the standard output");
	return rc;
}

void vv_out_look(struct vv_out *o)
{
	struct pollfd p = { .fd = STDOUT_FILENO };

	if (!o->error && poll(&p, 1, 0) == 1 && (p.revents & POLLERR))
		o->error = EPIPE;
}
