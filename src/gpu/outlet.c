#include "gpu/outlet.h"

static const char purpose[] = "bringing data to the host";

static int make_event(cudaEvent_t *e)
{
	return vv_cuda_check(cudaEventCreateWithFlags(e, cudaEventDisableTiming), purpose);
}

static void drop_event(cudaEvent_t e)
{
	if (e)
		cudaEventDestroy(e);
}

int vv_outlet_init(struct vv_outlet *o)
{
	int least = 0, greatest = 0;
	int rc = vv_cuda_check(cudaDeviceGetStreamPriorityRange(&least, &greatest), purpose);

	if (rc == 0)
		rc = vv_cuda_check(cudaStreamCreateWithPriority(&o->gather, cudaStreamNonBlocking, greatest), purpose);
	if (rc == 0)
		rc = vv_cuda_check(cudaStreamCreateWithPriority(&o->copy, cudaStreamNonBlocking, greatest), purpose);
	for (int i = 0; rc == 0 && i < VV_OUTLET_STAGES; i++) {
		rc = make_event(&o->gathered[i]);
		if (rc == 0)
			rc = make_event(&o->empty[i]);
	}
	for (int i = 0; rc == 0 && i < VV_OUTLET_ROOMS; i++)
		rc = make_event(&o->room[i].done);
	return rc;
}

void vv_outlet_fini(struct vv_outlet *o)
{
	for (int i = 0; i < VV_OUTLET_STAGES; i++) {
		drop_event(o->gathered[i]);
		drop_event(o->empty[i]);
	}
	for (int i = 0; i < VV_OUTLET_ROOMS; i++)
		drop_event(o->room[i].done);
	if (o->gather)
		cudaStreamDestroy(o->gather);
	if (o->copy)
		cudaStreamDestroy(o->copy);
	*o = (struct vv_outlet){ 0 };
}

void vv_outlet_expect(struct vv_outlet *o, uint64_t n)
{
	o->expected = n;
}

int vv_outlet_deliver(struct vv_outlet *o, unsigned most)
{
	while (o->n && o->room[o->first].used == o->room[o->first].len) {
		struct vv_outlet_room *r = &o->room[o->first];
		cudaError_t e = o->n > most ? cudaEventSynchronize(r->done) : cudaEventQuery(r->done);
		int rc;

		if (e == cudaErrorNotReady)
			return 0;
		rc = vv_cuda_check(e, purpose);
		o->first = (o->first + 1) % VV_OUTLET_ROOMS;
		o->n--;
		if (rc == 0)
			rc = o->sink->data(o->sink->arg, r->p, r->len);
		if (rc)
			return rc;
	}
	return 0;
}

/* The room for the next data. */
static int take_room(struct vv_outlet *o, struct vv_outlet_room **out)
{
	struct vv_outlet_room *last = &o->room[(o->first + o->n + VV_OUTLET_ROOMS - 1) % VV_OUTLET_ROOMS];
	size_t got = 0, grain = o->of->chunk;
	int rc;

	if (o->n && last->used < last->len) {
		*out = last;
		return 0;
	}
	rc = vv_outlet_deliver(o, VV_OUTLET_ROOMS - 1);
	if (rc)
		return rc;
	last = &o->room[(o->first + o->n) % VV_OUTLET_ROOMS];
	last->p = o->sink->room(o->sink->arg, o->expected, &got);
	if (!last->p)
		return VV_EIO;
	if (got < grain)
		return vv_err_set(VV_EINVAL, "room for %zu bytes of new data is less than a grain of %zu", got, grain);
	last->len = (got < o->expected ? got : o->expected) / grain * grain;
	last->used = 0;
	o->n++;
	*out = last;
	return 0;
}

static int fill(struct vv_outlet *o, struct vv_outlet_room *r, const uint8_t *from, size_t len)
{
	int rc = vv_cuda_check(cudaMemcpyAsync(r->p + r->used, from, len, cudaMemcpyDeviceToHost, o->copy), purpose);

	r->used += len;
	o->expected -= len;
	if (rc == 0 && r->used == r->len)
		rc = vv_cuda_check(cudaEventRecord(r->done, o->copy), purpose);
	return rc;
}

int vv_outlet_copy(struct vv_outlet *o, const uint8_t *p, size_t len)
{
	int rc = 0;

	while (rc == 0 && len) {
		struct vv_outlet_room *r;
		size_t some;

		rc = take_room(o, &r);
		if (rc)
			return rc;
		some = len < r->len - r->used ? len : r->len - r->used;
		rc = fill(o, r, p, some);
		p += some;
		len -= some;
	}
	return rc;
}

/* Uses the next stage, as soon as its previous data have left it. */
static int fill_gathered(struct vv_outlet *o, struct vv_outlet_room *r, const uint32_t *number, size_t n)
{
	unsigned i = o->next;
	int rc = vv_cuda_check(cudaStreamWaitEvent(o->gather, o->empty[i], 0), purpose);

	o->next = (i + 1) % VV_OUTLET_STAGES;
	if (rc == 0)
		rc = vv_found_pieces_gather(o->of, number, (uint32_t)n, o->stage[i], o->gather);
	if (rc == 0)
		rc = vv_cuda_check(cudaEventRecord(o->gathered[i], o->gather), purpose);
	if (rc == 0)
		rc = vv_cuda_check(cudaStreamWaitEvent(o->copy, o->gathered[i], 0), purpose);
	if (rc == 0)
		rc = fill(o, r, o->stage[i], n * o->of->chunk);
	return rc ? rc : vv_cuda_check(cudaEventRecord(o->empty[i], o->copy), purpose);
}

int vv_outlet_gather(struct vv_outlet *o, const uint32_t *number, size_t n)
{
	int rc = 0;

	while (rc == 0 && n) {
		struct vv_outlet_room *r;
		size_t some, left;

		rc = take_room(o, &r);
		if (rc)
			return rc;
		left = r->len - r->used;
		some = (left < o->stage_len ? left : o->stage_len) / o->of->chunk;
		some = some < n ? some : n;
		rc = fill_gathered(o, r, number, some);
		number += some;
		n -= some;
	}
	return rc;
}

void vv_outlet_stop(struct vv_outlet *o)
{
	struct vv_err_state why;

	vv_err_save(0, &why);
	vv_cuda_check(cudaStreamSynchronize(o->gather), purpose);
	vv_cuda_check(cudaStreamSynchronize(o->copy), purpose);
	vv_err_restore(&why);
	o->n = 0;
	o->expected = 0;
}
