/* A reader of a store: the handle of varve/varve_read.h. It takes no lock of the store. */
#ifndef VV_ENGINE_HANDLE_READER_HANDLE_H
#define VV_ENGINE_HANDLE_READER_HANDLE_H

#include "engine/context.h"
#include "engine/lineage/run_table.h"
#include <varve/varve_read.h>

struct varve_reader {
	pthread_mutex_t lock;
	int cancel;  /* cancellation state of the calling thread before the call */
	pid_t pid;   /* of the process that opened it */
	struct vv_context ctx; /* options, store, lineage and threads */
	bool has_lineage;
	struct vv_run_table table;  /* of the epoch read last; epoch 0: none */
	struct vv_digest table_head; /* of its layer */
	/* the lists that the caller has, each with the memory for its texts */
	struct vv_names lineages;
	const char **lineage;
	struct varve_stored_epoch *epochs, **epoch;
	size_t n_epochs;
	struct varve_stored_region *regions, **region;
	struct varve_field *region_fields;
	char *region_names;
};

/* The beginning of a call. Checks the reader and locks it. */
int vv_reader_handle_enter(struct varve_reader *r, const char *call, bool lineage_needed);
int vv_reader_handle_leave(struct varve_reader *r, int rc);
/* Frees a list of n epochs with its texts. */
void vv_reader_handle_free_epochs(struct varve_stored_epoch *epochs, size_t n);

#endif
