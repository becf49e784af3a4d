/* A checkpoint: what is dirty is copied or fenced; then it is stored, on this thread or behind it. */
#include "base/clock.h"
#include "base/err.h"
#include "engine/pass.h"
#include "engine/tiles.h"

static void note_blocked(struct varve *v, uint64_t start)
{
	pthread_mutex_lock(&v->tiles.lock);
	v->tiles.blocked_ns = vv_clock_ns() - start;
	pthread_mutex_unlock(&v->tiles.lock);
}

int vv_checkpoint_run(struct varve *v)
{
	uint64_t start = vv_clock_ns();
	struct vv_pass *p = NULL;
	int rc = vv_flusher_reserve(&v->flusher);

	if (rc == 0)
		rc = vv_session_prepare(v);
	if (rc)
		return rc;
	vv_pass_sweep(v);
	rc = vv_pass_new(v, &p);
	if (rc == 0)
		rc = vv_capture_take(v, v->async, &p->st, &p->chunks);
	if (rc) {
		vv_pass_free(p);
		return rc;
	}
	note_blocked(v, start);
	if (!v->async)
		return vv_flusher_run(p);
	rc = vv_flusher_start(p);
	if (rc) {
		vv_tiles_end(v, false);
		vv_pass_free(p);
		return rc;
	}
	vv_capture_settle(v);
	note_blocked(v, start);
	return 0;
}
