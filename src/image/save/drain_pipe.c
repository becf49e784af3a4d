#include "image/save/drain_pipe.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum {
	SIDES = 16,      /* criu passes 8 MiB at a time */
	BYTES = 1 << 20, /* in each of them: the limit for an unprivileged user's pipe */
	HELPERS = 4,     /* more threads do not copy faster */
};

struct drain_pipe_side {
	struct vv_task task;
	int pipe[2];
	bool busy;
	uint8_t *to;
	size_t n;
	int err;
};

struct vv_drain_pipe {
	struct vv_pool *pool;
	int nowhere;
	struct drain_pipe_side side[SIDES];
	size_t n_sides, next;
};

static int open_sides(struct vv_drain_pipe *d)
{
	for (; d->n_sides < SIDES; d->n_sides++) {
		struct drain_pipe_side *s = &d->side[d->n_sides];

		if (pipe2(s->pipe, O_CLOEXEC) < 0)
			return d->n_sides ? 0 : vv_err_sys(errno, "cannot make a pipe");
		/* Otherwise it holds less at a time. */
		(void)!fcntl(s->pipe[0], F_SETPIPE_SZ, BYTES);
	}
	return 0;
}

int vv_drain_pipe_open(struct vv_drain_pipe **out)
{
	struct vv_drain_pipe *d = vv_mem_new(1, sizeof(*d));
	unsigned others = vv_pool_cores() - 1; /* one core is for criu */
	int rc = d ? vv_pool_new(others < HELPERS ? others : HELPERS, &d->pool) : VV_ENOMEM;

	if (d)
		d->nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (rc == 0 && d->nowhere < 0)
		rc = vv_err_sys(errno, "cannot open '/dev/null'");
	if (rc == 0)
		rc = open_sides(d);
	if (rc)
		vv_drain_pipe_close(d);
	else
		*out = d;
	return rc;
}

void vv_drain_pipe_close(struct vv_drain_pipe *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n_sides; i++) {
		if (d->side[i].busy)
			vv_pool_wait(d->pool, &d->side[i].task);
		close(d->side[i].pipe[0]);
		close(d->side[i].pipe[1]);
	}
	if (d->nowhere >= 0)
		close(d->nowhere);
	vv_pool_free(d->pool);
	vv_mem_free(d);
}

/* Its bytes are in the pipe already, so it never blocks. */
static void copy(struct vv_task *t)
{
	struct drain_pipe_side *s = (struct drain_pipe_side *)t;

	while (s->n && !s->err) {
		ssize_t got = read(s->pipe[0], s->to, s->n);

		if (got > 0) {
			s->to += got;
			s->n -= (size_t)got;
		} else if (got == 0 || errno != EINTR) {
			s->err = got ? errno : EIO;
		}
	}
}

static int wait_side(struct vv_drain_pipe *d, struct drain_pipe_side *s)
{
	if (!s->busy)
		return 0;
	vv_pool_wait(d->pool, &s->task);
	s->busy = false;
	return s->err ? vv_err_sys(s->err, "cannot read pages from criu") : 0;
}

int vv_drain_pipe_take(struct vv_drain_pipe *d, int fd, uint8_t *to, size_t n, size_t *took)
{
	struct drain_pipe_side *s = &d->side[d->next];
	int rc = wait_side(d, s);
	ssize_t got;

	if (rc)
		return rc;
	got = splice(fd, NULL, s->pipe[1], NULL, n < BYTES ? n : BYTES, SPLICE_F_NONBLOCK);
	if (got < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : vv_err_sys(errno, "cannot move pages from criu's pipe");
	*took = (size_t)got;
	if (got) {
		s->task = (struct vv_task){ .run = copy };
		s->to = to;
		s->n = (size_t)got;
		s->busy = true;
		vv_pool_submit(d->pool, &s->task);
		d->next = (d->next + 1) % d->n_sides;
	}
	return 1;
}

int vv_drain_pipe_skip(struct vv_drain_pipe *d, int fd, size_t *took)
{
	ssize_t got = splice(fd, NULL, d->nowhere, NULL, BYTES, SPLICE_F_NONBLOCK);

	if (got < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : vv_err_sys(errno, "cannot throw away what is in criu's pipe");
	*took = (size_t)got;
	return 1;
}

struct vv_pool *vv_drain_pipe_pool(struct vv_drain_pipe *d)
{
	return d->pool;
}

int vv_drain_pipe_wait(struct vv_drain_pipe *d)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < d->n_sides; i++)
		rc = wait_side(d, &d->side[i]);
	return rc;
}
