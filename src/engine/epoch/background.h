/* The background thread that stores epochs, and the result of each epoch. A synchronous checkpoint
 * runs the same code on the caller's thread. */
#ifndef VV_ENGINE_EPOCH_BACKGROUND_H
#define VV_ENGINE_EPOCH_BACKGROUND_H

#include "base/event.h"
#include "engine/context.h"
#include "engine/epoch/metrics_file.h"
#include <stdatomic.h>

/* The result of an epoch that failed. */
struct vv_epoch_failure {
	uint64_t epoch;
	bool reported;
	struct vv_err_state error;
};

struct vv_background {
	/* Never held while a handler of the program may run, see engine/epoch/background.c. */
	pthread_mutex_t lock;
	struct vv_event change;
	pthread_t thread;
	bool started, stop;
	atomic_uint awaited; /* calls that wait until the thread is idle */
	struct vv_layer_writer *epoch;  /* in progress; NULL = none */
	/* The session whose restored regions are being hashed (engine/grains/rehash.c), or NULL. */
	struct varve *rehashing;
	/* The session whose memory for new data is adjusted between epochs, or NULL. */
	struct varve *adjusted;
	bool adjusting; /* a step is in progress */
	uint64_t first, last;  /* epochs of this session with a known result */
	struct vv_epoch_failure *failed;
	size_t n_failed, failed_cap;
	varve_done_fn done;
	void *done_arg;
	struct vv_metrics metrics;
};

int vv_background_init(struct vv_background *f);
void vv_background_fini(struct vv_background *f); /* no epoch may be in progress */
/* Makes room for one more failure. Call it before an epoch begins. */
int vv_background_reserve(struct vv_background *f);
/* Stores the epoch now, on this thread. Frees p. */
int vv_background_run(struct vv_layer_writer *p);
/* Starts the thread, if it does not run yet. */
int vv_background_ready(struct vv_background *f);
/* Passes the epoch to the thread, which must be running. */
void vv_background_start(struct vv_layer_writer *p);
/* Lets the thread, which must be running, hash the content that a restart has read. */
void vv_background_start_rehash(struct varve *v);
/* The result of an epoch is known. Reports it to the statistics file, the metrics, the callback
 * and waiting threads. */
void vv_background_finish_epoch(struct varve *v, uint64_t epoch, uint64_t time_ns, const struct varve_stats *st, int rc);
/* Between epochs the thread, which must be running, adjusts the memory for new data
 * (vv_new_data_adjust), until vv_background_end_adjusting. */
void vv_background_adjust(struct varve *v);
void vv_background_end_adjusting(struct vv_background *f);
void vv_background_wait(struct varve *v); /* until idle */
bool vv_background_is_awaited(const struct varve *v); /* a call waits until it is idle */
bool vv_background_busy(struct varve *v);
/* Is this thread in the session's callback? */
bool vv_background_in_callback(const struct varve *v);
/* The caller of a failed checkpoint has received the error. */
void vv_background_mark_reported(struct varve *v);
/* The oldest epoch whose failure was not reported yet; 0: there is none. */
uint64_t vv_background_unreported(struct varve *v);
/* Returns the error of the epoch `failed` and marks it as reported. VV_EPEER: only another rank
 * knows it. 0: `failed` is 0. */
int vv_background_report(struct varve *v, uint64_t failed);
/* 1: durable, 0: being stored, < 0: failed. VV_BACKGROUND_UNKNOWN: not an epoch of this session. */
enum { VV_BACKGROUND_UNKNOWN = 2 };
int vv_background_result(struct varve *v, uint64_t epoch, bool wait);
/* Waits until the result of the epoch is known or the thread is idle, but not beyond this time of
 * vv_clock_s. Returns false if neither has happened. */
bool vv_background_wait_until(struct varve *v, uint64_t epoch, double time);

#endif
