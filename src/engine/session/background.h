/* The background thread that stores epochs, and the result of each epoch. A synchronous checkpoint takes the same way on the caller's thread. */
#ifndef VV_ENGINE_SESSION_BACKGROUND_H
#define VV_ENGINE_SESSION_BACKGROUND_H

#include "base/event.h"
#include "engine/context.h"

/* The result of an epoch that failed. */
struct vv_epoch_failure {
	uint64_t epoch;
	bool reported;
	struct vv_err_state error;
};

struct vv_background {
	pthread_mutex_t lock; /* never held while a handler of the program's may run: engine/session/background.c */
	struct vv_event change;
	pthread_t thread;
	bool started, stop;
	struct vv_layer_writer *epoch;  /* under way; NULL = none */
	struct varve *rehashing;  /* the session, if it learns what its regions held at a restart: engine/grains/rehash.c; else NULL */
	uint64_t first, last;  /* epochs of this session whose fate is known */
	struct vv_epoch_failure *failed;
	size_t n_failed, failed_cap;
	varve_done_fn done;
	void *done_arg;
};

int vv_background_init(struct vv_background *f);
void vv_background_fini(struct vv_background *f); /* no epoch is under way */
/* Room to remember one more failure: before an epoch is begun. */
int vv_background_reserve(struct vv_background *f);
/* Stores the epoch now, on this thread. Frees the pass. */
int vv_background_run(struct vv_layer_writer *p);
/* The thread is there. */
int vv_background_ready(struct vv_background *f);
/* Hands the epoch to the thread, which is there. */
void vv_background_start(struct vv_layer_writer *p);
/* The thread, which is there, goes on with what a restart has left to be learned. */
void vv_background_start_rehash(struct varve *v);
/* The fate of an epoch is known: tells all who want to know. */
void vv_background_finish_epoch(struct varve *v, uint64_t epoch, uint64_t time_ns, const struct varve_stats *st, int rc);
void vv_background_wait(struct varve *v); /* until idle */
bool vv_background_busy(struct varve *v);
/* Is this thread in the session's callback? */
bool vv_background_in_callback(const struct varve *v);
/* The caller of a checkpoint that failed under his eyes has been told. */
void vv_background_mark_reported(struct varve *v);
/* The failure of an epoch that nobody has been told of, oldest first; 0 if there is none. */
int vv_background_report(struct varve *v);
/* 1 durable, 0 being stored, < 0 failed; VV_BACKGROUND_UNKNOWN: not an epoch of this session. */
enum { VV_BACKGROUND_UNKNOWN = 2 };
int vv_background_result(struct varve *v, uint64_t epoch, bool wait);

#endif
