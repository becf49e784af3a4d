/* Files that are being laid down side by side, as engine/read/read_many.c reads them: each appears when it is whole, or not at all. */
#ifndef VV_ENGINE_FILES_OUTPUT_FILES_H
#define VV_ENGINE_FILES_OUTPUT_FILES_H

#include "base/err.h"
#include "engine/files/output_dir.h"
#include "engine/files/unpack.h"
#include <pthread.h>

enum { VV_OUTPUT_FILES_BATCH = 64 }; /* small files that become durable together */

struct vv_output {
	struct vv_unpack_file from;
	struct vv_output_dir_file to;
	pthread_rwlock_t lock; /* held to read while it is written to; to write, while it is ended */
	bool in_progress;  /* under way */
	bool is_done; /* laid down */
};

struct vv_output_files {
	const struct vv_lineage *lineage;
	struct vv_pool *pool;
	struct vv_output_dir *target;
	const struct vv_unpack_options *opt;
	uint64_t bytes; /* to come, for the progress */
	struct vv_output *v;
	size_t n, most; /* under way */
	size_t n_runs;  /* of these */
	atomic_uint_least64_t done, blocks;
	pthread_mutex_t space; /* of who makes space */
	atomic_uint given_up;  /* files, for want of it: no more are begun */
	pthread_mutex_t lock;  /* of what follows */
	struct vv_err_state error; /* the first one */
	struct vv_unpack_report report;
	struct vv_output *waiting[VV_OUTPUT_FILES_BATCH]; /* all is written, but not durable yet */
	size_t n_waiting;
};

/* For so many files, of which as many as can be are under way together. What is set before: lineage, pool, target, opt, bytes. */
int vv_output_files_init(struct vv_output_files *k, size_t n_files);
void vv_output_files_fini(struct vv_output_files *k);

/* One more; false, and it was not begun: those under way must be run first. */
bool vv_output_files_begin(struct vv_output_files *k, struct vv_unpack_file file);
/* Those that were begun. An error is one that ends it all; they are missing then, as others are that could not be read or written. */
int vv_output_files_run(struct vv_output_files *k);
/* The file will not come: its name is kept, and why, if it is the first one. The thread's message says so. */
void vv_output_files_miss(struct vv_output_files *k, const char *name, int rc);

#endif
