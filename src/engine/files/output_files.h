/* Files that are unpacked in parallel, as engine/read/read_many.c reads them. Each file appears
 * complete or not at all. */
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
	pthread_rwlock_t lock; /* read-locked by writers of the file; write-locked to end it */
	bool in_progress;
	bool is_done; /* written, durable and named */
};

struct vv_output_files {
	const struct vv_lineage *lineage;
	struct vv_pool *pool;
	struct vv_output_dir *target;
	const struct vv_unpack_options *opt;
	uint64_t bytes; /* expected bytes, for the progress */
	struct vv_output *v;
	size_t n, most; /* files in progress */
	size_t n_runs;  /* of the files in progress */
	atomic_uint_least64_t done, blocks;
	pthread_mutex_t space; /* of the thread that frees space */
	atomic_uint given_up;  /* files given up for lack of space: no more are begun */
	pthread_mutex_t lock;  /* protects the members below */
	struct vv_err_state error; /* the first error */
	struct vv_unpack_report report;
	struct vv_output *waiting[VV_OUTPUT_FILES_BATCH]; /* written, but not durable yet */
	size_t n_waiting;
};

/* For n_files files, of which as many as possible are in progress together. The caller sets
 * lineage, pool, target, opt and bytes before. */
int vv_output_files_init(struct vv_output_files *k, size_t n_files);
void vv_output_files_fini(struct vv_output_files *k);

/* Begins one more file. False: it was not begun, and the files in progress must be run first. */
bool vv_output_files_begin(struct vv_output_files *k, struct vv_unpack_file file);
/* Reads and writes the files that were begun. An error ends the whole unpacking; its files are
 * missing, like files that could not be read or written. */
int vv_output_files_run(struct vv_output_files *k);
/* Records a missing file: its name and, for the first one, the reason. The thread's message is the
 * reason. */
void vv_output_files_miss(struct vv_output_files *k, const char *name, int rc);

#endif
