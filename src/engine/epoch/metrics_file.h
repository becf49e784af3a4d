/* The state of the session for Prometheus (the option `metrics`): a file in the text format that
 * the textfile collector of node_exporter reads. Each rank has a file of its own. */
#ifndef VV_ENGINE_EPOCH_METRICS_FILE_H
#define VV_ENGINE_EPOCH_METRICS_FILE_H

#include "engine/context.h"

/* Sums over the session, and the state of its newest epoch. */
struct vv_metrics {
	uint64_t open; /* 1, until the session is closed */
	uint64_t opened_ns;
	uint64_t epoch;      /* the newest durable epoch, also of earlier sessions; 0 = none */
	uint64_t durable_ns; /* when the newest epoch of this session became durable; 0 = none yet */
	uint64_t bytes_memory;
	uint64_t epochs, failures, restarts;
	uint64_t bytes_new, bytes_stored, bytes_layers;
	uint64_t blocked_ns, flush_ns;
	uint64_t protected_epoch, bytes_parity, parity_ns; /* redundancy */
	bool failed; /* the file could not be written the last time */
};

/* Adds an epoch with a known result. */
void vv_metrics_file_count(struct vv_metrics *m, const struct varve_stats *st, int rc);
/* Adds the parity of an epoch. */
void vv_metrics_file_count_parity(struct vv_metrics *m, uint64_t protected_epoch, uint64_t bytes, double seconds);
/* Writes the state of the session, if the option `metrics` is set. A reader of the file sees the
 * old content or the new one. A failure is a warning. The last error of the thread stays. */
void vv_metrics_file_update(struct varve *v);

#endif
