/* Rooms of stored bytes on their way to the device: each that was sent comes back, in order, when its bytes are in their places and were checked; no room is
 * lent twice; whichever call fails, nothing is left. Without a device. */
#include "base/err.h"
#include "gpu/cuda_inlet.h"
#include "host_runtime.h"

enum { ROOMS = 5, SIZE = 16384, BYTES = 4096, ROUNDS = 40, STEPS = 120, UNIT = VV_DEVICE_INLET_UNIT };

/* ---- the device ------------------------------------------------------------------------------------------------------------------ */

static void land(void *arg)
{
	const struct vv_gpu_landing *l = arg;

	for (uint32_t i = 0; i < l->n_checks; i++) {
		struct vv_digest d;

		vv_digest_xxh3(l->bytes + l->check[i].at, l->check[i].len, &d);
		if (memcmp(&d, &l->check[i].want, sizeof(d)) != 0)
			*l->differs = 1;
	}
	for (uint32_t i = 0; i < l->n_moves; i++) {
		if (l->move[i].from == VV_DEVICE_INLET_ZERO)
			memset(l->to + l->move[i].to, 0, l->move[i].len);
		else
			memcpy(l->to + l->move[i].to, l->bytes + l->move[i].from, l->move[i].len);
	}
}

int vv_land_run(const struct vv_gpu_landing *l, cudaStream_t stream)
{
	return host_launch(stream, land, l, sizeof(*l));
}

static size_t rented, may_rent; /* rooms */

static void *rent(int device, size_t len)
{
	(void)device;
	void *p = rented < may_rent ? malloc(len) : NULL;

	if (!p) {
		vv_err_set(VV_ENOMEM, "no more rooms");
		return NULL;
	}
	memset(p, 0xee, len);
	rented++;
	return p;
}

static void give_back(int device, void *p, size_t len)
{
	(void)device;
	(void)len;
	rented -= p != NULL;
	free(p);
}

const struct vv_space *vv_space_cuda(void)
{
	static const struct vv_space space = {.name = "stand-in", .rent = rent, .give_back = give_back};

	return &space;
}

/* ---- rooms ----------------------------------------------------------------------------------------------------------------------- */

static uint8_t to[STEPS][BYTES], want[STEPS][BYTES]; /* of each load: where it goes, and what it is */

static struct {
	struct vv_device_inlet_buffer *held[ROOMS];
	size_t n_held;
	size_t sent[STEPS], n_sent; /* loads under way, oldest first */
	bool wrong[STEPS];
	size_t loads;
} state;

/* Some bytes to some places, and checks of which one may be wrong. */
static void load(struct vv_device_inlet_buffer *r)
{
	size_t tag = state.loads++;
	uint32_t n = 1 + (uint32_t)upto(BYTES / UNIT - 1), zeros = (uint32_t)upto(n);

	memset(to[tag], 0xcc, BYTES);
	memset(want[tag], 0xcc, BYTES);
	r->n_moves = n;
	r->n_checks = n;
	r->bytes = (uint32_t)((uint8_t *)(vv_device_inlet_checks(r) + n) - r->p + 15) / 16 * 16;
	r->end = r->bytes + n * UNIT;
	CHECK(r->end <= r->size);
	noise(r->p + r->bytes, (size_t)n * UNIT);
	state.wrong[tag] = upto(3) == 0;
	for (uint32_t i = 0; i < n; i++) {
		struct vv_device_inlet_check *c = &vv_device_inlet_checks(r)[i];

		vv_device_inlet_moves(r)[i] = (struct vv_device_inlet_move){i < zeros ? VV_DEVICE_INLET_ZERO : i * UNIT,
									    (n - 1 - i) * UNIT, UNIT};
		if (i < zeros)
			memset(want[tag] + (size_t)(n - 1 - i) * UNIT, 0, UNIT);
		else
			memcpy(want[tag] + (size_t)(n - 1 - i) * UNIT, r->p + r->bytes + (size_t)i * UNIT, UNIT);
		*c = (struct vv_device_inlet_check){.at = i * UNIT, .len = UNIT};
		vv_digest_xxh3(r->p + r->bytes + (size_t)i * UNIT, UNIT, &c->want);
	}
	if (state.wrong[tag])
		vv_device_inlet_checks(r)[upto(n - 1)].want.w[0] ^= 1;
	r->to = to[tag];
	r->tag = tag;
}

/* One comes back: it was sent first, and its bytes are there; or it is empty, which only `take` gives. */
static void receive(struct vv_device_inlet_buffer *r)
{
	for (size_t i = 0; i < state.n_held; i++)
		CHECK(state.held[i] != r);
	state.held[state.n_held++] = r;
	CHECK(r->p && r->size == SIZE);
	if (!r->end)
		return;
	CHECK(state.n_sent && r->tag == state.sent[0]);
	state.n_sent--;
	memmove(state.sent, state.sent + 1, state.n_sent * sizeof(*state.sent));
	CHECK(memcmp(to[r->tag], want[r->tag], BYTES) == 0);
	CHECK_EQ(r->differs, state.wrong[r->tag]);
	r->end = 0;
}

static int send_one(const struct vv_device_inlet_ops *ops, struct vv_cuda_inlet *in)
{
	size_t i = upto(state.n_held - 1);
	struct vv_device_inlet_buffer *r = state.held[i];

	state.held[i] = state.held[--state.n_held];
	if (upto(3)) {
		load(r);
		state.sent[state.n_sent++] = r->tag;
	}
	return ops->send(in, r);
}

static int step(const struct vv_device_inlet_ops *ops, struct vv_cuda_inlet *in)
{
	struct vv_device_inlet_buffer *r = NULL;
	unsigned what = (unsigned)upto(4);
	int rc = 0;

	if (what == 0) {
		ops->allocate(in);
	} else if (what == 1) {
		rc = ops->await(in, &r);
		if (rc == 0 && !r)
			CHECK_EQ(state.n_sent, 0);
		if (rc == 0 && r) {
			CHECK(r->end);
			receive(r);
		}
	} else if (what == 2 && state.n_held) {
		rc = send_one(ops, in);
	} else {
		rc = ops->take(in, &r);
		if (rc == 0) {
			receive(r);
		} else if (rc == VV_EINVAL ||
			   (rc == VV_ENOMEM && may_rent < ROOMS)) { /* the caller waits for another one */
			CHECK(rc == VV_ENOMEM || state.n_held == ROOMS);
			rc = 0;
		}
	}
	return rc;
}

static void try(const struct vv_device_inlet_ops *ops, bool failing)
{
	struct vv_cuda_inlet *in = NULL;
	int rc;

	memset(&state, 0, sizeof(state));
	may_rent = upto(2) ? ROOMS : upto(ROOMS);
	host_fail(failing ? 1 + (long)upto(150) : 0);
	rc = ops->open(0, SIZE, ROOMS, &in);
	for (int i = 0; rc == 0 && i < STEPS; i++)
		rc = step(ops, in);
	CHECK(failing || rc == 0);
	CHECK(rented <= ROOMS);
	host_fail(0);
	if (in)
		ops->close(in, NULL);
	if (rc == 0) /* what was under way has arrived */
		for (size_t i = 0; i < state.n_sent; i++)
			CHECK(memcmp(to[state.sent[i]], want[state.sent[i]], BYTES) == 0);
	CHECK_EQ(rented, 0);
	host_end();
}

int main(void)
{
	for (int i = 0; i < ROUNDS; i++)
		try(&vv_inlet_cuda, i % 2);
	vv_inlet_cuda.close(NULL, NULL);
	return 0;
}
