#include "engine/read/device_restore.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/read/device_load.h"
#include "engine/options.h"
#include <inttypes.h>
#include <string.h>

enum { WINDOW = 64 << 20, WINDOWS = 3 };

const struct vv_space *vv_device_restore_space(const void *p, size_t len, int *device)
{
	const struct vv_space *cuda = vv_space_cuda();

	return cuda && p && len && cuda->owns(p, len, device) ? cuda : NULL;
}

/* ---- window by window ------------------------------------------------------------------------ */

struct window {
	struct vv_task task;
	const struct vv_space *space;
	uint8_t *buffer, *to;
	size_t len;
	bool busy;
	int rc;
	struct vv_err_state error;
};

struct bouncing {
	struct vv_pool *pool;
	int device;
	uint8_t *to; /* of the want */
	struct window window[WINDOWS];
	size_t room, n, turn;
};

static void copy(struct vv_task *task)
{
	struct window *w = (struct window *)task;

	w->rc = w->space->copy_in(w->to, w->buffer, w->len);
	if (w->rc)
		vv_err_save(w->rc, &w->error);
}

static int wait_window(struct bouncing *b, struct window *w)
{
	if (w->busy)
		vv_pool_wait(b->pool, &w->task);
	w->busy = false;
	return w->rc ? vv_err_restore(&w->error) : 0;
}

static int give_room(void *arg, uint8_t **out)
{
	struct bouncing *b = arg;
	struct window *w = &b->window[b->turn];

	*out = w->buffer;
	return wait_window(b, w);
}

static int send(void *arg, uint64_t at, size_t len)
{
	struct bouncing *b = arg;
	struct window *w = &b->window[b->turn];

	b->turn = (b->turn + 1) % b->n;
	w->to = b->to + at;
	w->len = len;
	w->task = (struct vv_task){ .run = copy };
	w->busy = true;
	vv_pool_submit(b->pool, &w->task);
	return 0;
}

/* Memory that a device copies from at full speed is slow to get: all at once. */
static void rent_one(void *arg, size_t i)
{
	struct bouncing *b = arg;

	b->window[i].buffer = b->window[i].space->rent(b->device, b->room);
}

static int rent(struct bouncing *b, const struct vv_space *space, uint64_t len)
{
	b->room = len < WINDOW ? (size_t)len : WINDOW;
	b->n = len < (uint64_t)WINDOW * WINDOWS ? (size_t)((len + WINDOW - 1) / WINDOW) : WINDOWS;
	for (size_t i = 0; i < b->n; i++)
		b->window[i].space = space;
	vv_pool_each(b->pool, b->n, rent_one, b);
	for (size_t i = 0; i < b->n; i++)
		if (!b->window[i].buffer)
			return vv_err_set(VV_ENOMEM, "no memory for a buffer of %zu bytes between the store and the device", b->room);
	return 0;
}

static int read_through(struct vv_context *ctx, const struct vv_space *space, int device, const struct vv_want *want)
{
	struct bouncing b = { .pool = ctx->pool, .device = device, .to = want->to };
	struct vv_windows windows = { &b, WINDOW, give_room, send };
	int rc = rent(&b, space, want->len);

	if (rc == 0)
		rc = vv_restore_windows(&ctx->lineage, ctx->pool, want, &windows);
	for (size_t i = 0; i < b.n; i++) {
		struct vv_err_state error;
		int late;

		vv_err_save(rc, &error);
		late = wait_window(&b, &b.window[i]);
		rc = rc ? vv_err_restore(&error) : late;
		if (b.window[i].buffer)
			space->give_back(b.device, b.window[i].buffer, b.room);
	}
	return rc;
}

/* During a restore of device memory: half of the limit of its history. */
static uint64_t memory_for(const struct vv_context *ctx, uint64_t len)
{
	enum { LEAST = 32 << 20 };
	uint64_t half = vv_options_history(&ctx->conf, 0, len) / 2;

	return half < LEAST ? LEAST : half;
}

static bool places(const struct vv_context *ctx)
{
	return strcmp(vv_conf_text(&ctx->conf, "placing"), "device") == 0;
}

void vv_device_restore_expect(struct vv_context *ctx, struct vv_device_buffers *buffers, struct vv_region *const *region, size_t n)
{
	const struct vv_space *space = NULL;
	uint64_t len = 0;
	int device = 0;

	for (size_t i = 0; places(ctx) && i < n; i++) {
		const struct vv_region *r = region[i];
		int here = 0;
		const struct vv_space *of = vv_device_restore_space(r->p, (size_t)r->shape.len, &here);

		if (of && !space) {
			space = of;
			device = here;
		}
		len += of && of == space && here == device ? r->shape.len : 0;
	}
	if (space)
		vv_device_buffers_begin(buffers, ctx->pool, space, device, memory_for(ctx, len), len);
}

struct due { /* of a want */
	const struct vv_space *space; /* NULL: the host's memory */
	int device;
	bool in_device_load; /* it was given to the device to load */
	struct vv_extents left; /* for the host to read */
};

static int find_memory(const struct vv_want *want, size_t n, struct due *due)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		due[i].space = vv_device_restore_space(want[i].to, (size_t)want[i].len, &due[i].device);
		rc = due[i].space ? due[i].space->sync(due[i].device, NULL) : vv_payload_extent_add(&due[i].left, want[i].at, want[i].len, 1);
	}
	return rc;
}

static int load_batch(struct vv_context *ctx, struct vv_device_buffers *buffers, struct vv_run_table *t, struct vv_device_load_want *load, size_t n)
{
	int rc;

	for (size_t k = 0; k < n; k++)
		load[k].unmerged = t->region[vv_run_table_find(t, load[k].want->name)].unmerged;
	rc = vv_device_load_read(&ctx->lineage, ctx->pool, buffers, load, n);
	if (rc != VV_DEVICE_LOAD_MERGE_FIRST)
		return rc;
	rc = vv_run_table_merge(t, ctx->pool);
	for (size_t k = 0; k < n; k++)
		load[k].unmerged = NULL;
	return rc ? rc : vv_device_load_read(&ctx->lineage, ctx->pool, buffers, load, n);
}

/* All wants in the memory of the first one's device together: each layer is opened once. */
static int load_on_device(struct vv_context *ctx, struct vv_device_buffers *buffers, struct vv_run_table *t, const struct vv_want *want, size_t n, struct due *due)
{
	struct vv_device_load_want *load = vv_mem_new(n, sizeof(*load));
	const struct due *d = &due[0];
	uint64_t len = 0;
	size_t n_load = 0;
	int rc;

	if (!load)
		return VV_ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (due[i].space != d->space || due[i].device != d->device)
			continue;
		due[i].in_device_load = true;
		len += want[i].len;
		load[n_load++] = (struct vv_device_load_want){ &want[i], NULL, &due[i].left };
	}
	if (!vv_device_buffers_fit(buffers, d->space, d->device, len)) {
		vv_device_buffers_finish_close(buffers);
		vv_device_buffers_begin(buffers, ctx->pool, d->space, d->device, memory_for(ctx, len), len);
	}
	rc = load_batch(ctx, buffers, t, load, n_load);
	vv_mem_free(load);
	return rc;
}

/* The host reads the rest: at once into its own memory, and window by window into that of
 * devices. */
static int read_left(struct vv_context *ctx, const struct vv_want *want, size_t n, const struct due *due)
{
	struct vv_want *host = vv_mem_new(n, sizeof(*host));
	size_t n_host = 0;
	int rc = host ? 0 : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && i < n; i++)
		if (!due[i].space)
			host[n_host++] = want[i];
	if (rc == 0)
		rc = vv_restore_read(&ctx->lineage, ctx->pool, host, n_host);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; rc == 0 && due[i].space && k < due[i].left.n; k++) {
			const struct vv_extent *x = &due[i].left.v[k];
			struct vv_want part = { want[i].runs, x->pos, x->len, want[i].to + (x->pos - want[i].at), want[i].name };

			rc = read_through(ctx, due[i].space, due[i].device, &part);
		}
	vv_mem_free(host);
	return rc;
}

/* Devices first: they need only the tables of the next stretches. With placing=device, they take
 * stored bytes directly, where they can. */
static int read_devices(struct vv_context *ctx, struct vv_device_buffers *buffers, struct vv_run_table *t, const struct vv_want *want, size_t n, struct due *due)
{
	int rc = find_memory(want, n, due);

	for (size_t i = 0; rc == 0 && i < n; i++)
		if (due[i].space && !places(ctx))
			rc = vv_payload_extent_add(&due[i].left, want[i].at, want[i].len, 1);
		else if (due[i].space && !due[i].in_device_load)
			rc = load_on_device(ctx, buffers, t, want + i, n - i, due + i);
	return rc;
}

int vv_device_restore_read(struct vv_context *ctx, struct vv_device_buffers *buffers, struct vv_run_table *t, const struct vv_want *want, size_t n)
{
	struct due *due = vv_mem_new(n, sizeof(*due));
	int rc = due ? read_devices(ctx, buffers, t, want, n, due) : VV_ENOMEM;
	bool left = false;

	for (size_t i = 0; rc == 0 && i < n; i++)
		left |= due[i].left.n != 0;
	if (rc == 0)
		rc = left ? vv_run_table_merge(t, ctx->pool) : vv_run_table_load_rest(t, ctx->pool);
	if (rc == 0 && left)
		rc = read_left(ctx, want, n, due);
	for (size_t i = 0; due && i < n; i++)
		vv_payload_extents_fini(&due[i].left);
	vv_mem_free(due);
	return rc;
}

/* ---- all at once ----------------------------------------------------------------------------- */

int vv_device_restore_begin(struct vv_device_restore *b, struct vv_want *want, size_t n)
{
	int rc = 0, device;

	*b = (struct vv_device_restore){ want, n, vv_mem_new(n, sizeof(uint8_t *)) };
	if (!b->to)
		return VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		const struct vv_space *space = vv_device_restore_space(want[i].to, (size_t)want[i].len, &device);
		uint8_t *p = space ? vv_mem_map((size_t)want[i].len) : NULL;

		if (!space)
			continue;
		if (!p)
			return vv_err_set(VV_ENOMEM, "region '%s': no memory for its %" PRIu64 " bytes on their way to the device",
					  want[i].name, want[i].len);
		rc = space->sync(device, NULL);
		b->to[i] = want[i].to;
		want[i].to = p;
	}
	return rc;
}

int vv_device_restore_end(struct vv_device_restore *b, int rc)
{
	int device;

	for (size_t i = 0; b->to && i < b->n; i++) {
		if (!b->to[i])
			continue;
		if (rc == 0)
			rc = vv_device_restore_space(b->to[i], (size_t)b->want[i].len, &device)->copy_in(b->to[i], b->want[i].to,
												(size_t)b->want[i].len);
		vv_mem_unmap(b->want[i].to, (size_t)b->want[i].len);
		b->want[i].to = b->to[i];
	}
	vv_mem_free(b->to);
	return rc;
}
