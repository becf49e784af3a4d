#include "engine/bounce.h"
#include "base/err.h"
#include "base/mem.h"
#include <inttypes.h>

enum { WINDOW = 128 << 20 };

const struct vv_space *vv_bounce_space(const void *p, size_t len, int *device)
{
	const struct vv_space *cuda = vv_space_cuda();

	return cuda && p && len && cuda->owns(p, len, device) ? cuda : NULL;
}

/* ---- window by window ------------------------------------------------------------------------------------------------------------ */

struct window {
	struct vv_task task;
	const struct vv_space *space;
	uint8_t *buffer, *to;
	size_t len;
	bool busy;
	int rc;
	struct vv_err_state error;
};

static void copy(struct vv_task *task)
{
	struct window *w = (struct window *)task;

	w->rc = w->space->copy_in(w->to, w->buffer, w->len);
	if (w->rc)
		vv_err_save(w->rc, &w->error);
}

static int settle(struct varve *v, struct window *w)
{
	if (w->busy)
		vv_pool_wait(v->pool, &w->task);
	w->busy = false;
	return w->rc ? vv_err_restore(&w->error) : 0;
}

static int fill(struct varve *v, struct window *w, const struct vv_want *want, uint64_t at)
{
	struct vv_want part = { want->runs, want->at + at, want->len - at < WINDOW ? want->len - at : WINDOW, w->buffer, NULL };
	int rc = settle(v, w);

	if (rc == 0)
		rc = vv_restore_read(&v->lineage, v->pool, &part, 1);
	if (rc)
		return rc;
	w->to = want->to + at;
	w->len = (size_t)part.len;
	w->task = (struct vv_task){ .run = copy };
	w->busy = true;
	vv_pool_submit(v->pool, &w->task);
	return 0;
}

static int read_windows(struct varve *v, const struct vv_space *space, const struct vv_want *want)
{
	struct window w[2] = { { .space = space }, { .space = space } };
	size_t room = want->len < WINDOW ? (size_t)want->len : WINDOW, n = 0;
	int rc = 0, late;

	for (uint64_t at = 0; rc == 0 && at < want->len; at += WINDOW, n++) {
		struct window *x = &w[n % 2];

		if (!x->buffer)
			x->buffer = space->rent(room);
		if (!x->buffer)
			rc = vv_err_set(VV_ENOMEM, "no memory for a buffer of %zu bytes between the store and the device", room);
		else
			rc = fill(v, x, want, at);
	}
	for (size_t i = 0; i < 2; i++) {
		struct vv_err_state error;

		vv_err_save(rc, &error);
		late = settle(v, &w[i]);
		rc = rc ? vv_err_restore(&error) : late;
		if (w[i].buffer)
			space->give_back(w[i].buffer, room);
	}
	return rc;
}

int vv_bounce_read(struct varve *v, const struct vv_want *want, size_t n)
{
	struct vv_want *host = vv_mem_new(n, sizeof(*host));
	size_t n_host = 0;
	int rc = host ? 0 : VV_ENOMEM, device;

	for (size_t i = 0; rc == 0 && i < n; i++)
		if (!vv_bounce_space(want[i].to, (size_t)want[i].len, &device))
			host[n_host++] = want[i];
	if (rc == 0)
		rc = vv_restore_read(&v->lineage, v->pool, host, n_host);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		const struct vv_space *space = vv_bounce_space(want[i].to, (size_t)want[i].len, &device);

		if (space)
			rc = space->settle(device, NULL);
		if (space && rc == 0)
			rc = read_windows(v, space, &want[i]);
	}
	vv_mem_free(host);
	return rc;
}

/* ---- all at once ----------------------------------------------------------------------------------------------------------------- */

int vv_bounce_begin(struct vv_bounce *b, struct vv_want *want, size_t n)
{
	int rc = 0, device;

	*b = (struct vv_bounce){ want, n, vv_mem_new(n, sizeof(uint8_t *)) };
	if (!b->to)
		return VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		const struct vv_space *space = vv_bounce_space(want[i].to, (size_t)want[i].len, &device);
		uint8_t *p = space ? vv_mem_map((size_t)want[i].len) : NULL;

		if (!space)
			continue;
		if (!p)
			return vv_err_set(VV_ENOMEM, "region '%s': no memory for its %" PRIu64 " bytes on their way to the device",
					  want[i].name, want[i].len);
		rc = space->settle(device, NULL);
		b->to[i] = want[i].to;
		want[i].to = p;
	}
	return rc;
}

int vv_bounce_end(struct vv_bounce *b, int rc)
{
	int device;

	for (size_t i = 0; b->to && i < b->n; i++) {
		if (!b->to[i])
			continue;
		if (rc == 0)
			rc = vv_bounce_space(b->to[i], (size_t)b->want[i].len, &device)->copy_in(b->to[i], b->want[i].to,
												(size_t)b->want[i].len);
		vv_mem_unmap(b->want[i].to, (size_t)b->want[i].len);
		b->want[i].to = b->to[i];
	}
	vv_mem_free(b->to);
	return rc;
}
