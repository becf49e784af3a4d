/* Unpacks the files of an epoch, byte for byte, or some of them; or reads one in the store. */
#ifndef VV_ENGINE_FILES_UNPACK_H
#define VV_ENGINE_FILES_UNPACK_H

#include "base/err.h"
#include "base/pool.h"
#include "base/progress.h"
#include "core/format/manifest.h"
#include "engine/read/restore.h"
#include "engine/lineage/run_table.h"
#include "engine/files/xattr.h"
#include <stdatomic.h>

/* The files of all ranks of an epoch. */
struct vv_unpack_rank {
	struct vv_run_table table;
	struct vv_manifest manifest;
	size_t first; /* number of its first file */
	bool lost;    /* its manifest cannot be read */
};

struct vv_unpack {
	const struct vv_lineage *lineage;
	uint64_t epoch;
	struct vv_unpack_rank *rank;
	size_t n_ranks;
	size_t n_lost;            /* ranks that are lost */
	struct vv_err_state lost; /* the error of the first lost rank */
	size_t n_files;  /* of all ranks */
	size_t *by_name; /* file numbers, sorted by name */
};

/* Reads the manifest in a rank's table; *has: there is one. */
int vv_unpack_manifest(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_run_table *t, struct vv_manifest *out, bool *has);

/* VV_EINVAL: the epoch was not packed from files. */
int vv_unpack_open(const struct vv_lineage *lin, uint64_t epoch, struct vv_pool *pool, struct vv_unpack *out);
/* The same, but a rank whose layer is damaged, missing or unreachable is lost, as long as others
 * are not. */
bool vv_unpack_is_of_one_rank(int rc); /* such an error: other ranks may be intact */
int vv_unpack_open_rest(const struct vv_lineage *lin, uint64_t epoch, struct vv_pool *pool, struct vv_unpack *out);
/* Opens the files of one rank only. */
int vv_unpack_open_rank(const struct vv_lineage *lin, uint64_t epoch, uint32_t rank, struct vv_pool *pool, struct vv_unpack *out);
void vv_unpack_close(struct vv_unpack *u);

struct vv_unpack_reader { /* reads bytes that may lie elsewhere: engine/ranks/remote_read.h */
	void *arg;
	/* rc: the result of this rank so far; called even after an error */
	int (*read)(void *arg, int rc, const struct vv_want *want, size_t n);
};

/* Opens the files of a rank whose table was found elsewhere; calls the reader once. Takes ownership
 * of the table, even on error. */
int vv_unpack_take(const struct vv_lineage *lin, struct vv_run_table *t, const struct vv_unpack_reader *from, struct vv_unpack *out);

struct vv_unpack_file {
	const struct vv_manifest_file *file;
	const struct vv_run_table_region *region;
	uint32_t rank;
};

/* File i of all, 0 <= i < n_files; or by name. The message of VV_ENOENT lists similar names; if a
 * rank is lost, its error is returned instead. */
struct vv_unpack_file vv_unpack_at(const struct vv_unpack *u, size_t i);
bool vv_unpack_has(const struct vv_unpack *u, const char *name, struct vv_unpack_file *out);
int vv_unpack_find(const struct vv_unpack *u, const char *name, struct vv_unpack_file *out);

struct vv_unpack_options {
	const char *folder;      /* made if missing, with the folders below it */
	/* existing files are replaced; else they are an error, before anything is written */
	bool force;
	bool test; /* everything is read and checked, nothing is written; folder is NULL */
	const char *const *only; /* names of files or folders; none: all */
	size_t n_only;
	/* this is reader number `share` of `shares`; 0 of 1, or 0 of 0: the only one */
	uint32_t share, shares;
	const atomic_bool *stop; /* may be NULL; once set, incomplete files are given up */
	struct vv_progress progress;
};

/* Checks whether all files of all shares can be written as requested; writes nothing. With M
 * readers, none should begin before all have checked. vv_unpack_run makes its own check. */
int vv_unpack_check(const struct vv_unpack *u, const struct vv_unpack_options *opt);

struct vv_unpack_report {
	uint64_t files, bytes; /* unpacked; the bytes of hard links count once */
	uint64_t entries;      /* symbolic links and folders: engine/files/tree_entries.h */
	uint64_t copies; /* hard links that became separate files, because links are impossible */
	struct vv_xattr_left left; /* attributes that could not be restored */
	/* blocks read: each once, unless there are more files than can be open together */
	uint64_t blocks;
	/* names of files that could not be written or read; the others are intact */
	char **missing;
	size_t n_missing;
	size_t n_lost;  /* lost ranks that may have had requested files; reported by share 0 */
};

/* Each file appears complete, under its name, with mode, mtime and attributes, or not at all. Hard
 * links are made after all files; engine/files/tree_entries.h makes symbolic links and folders.
 *
 * The error is that of the first missing file; the other files stay, and *out is set too. A damaged
 * file does not affect others. Lack of space ends the unpacking: complete files stay, and the last
 * files in progress are given up. */
int vv_unpack_run(const struct vv_unpack *u, struct vv_pool *pool, const struct vv_unpack_options *opt, struct vv_unpack_report *out);
/* Adds a missing name. */
void vv_unpack_miss(struct vv_unpack_report *r, const char *name);
void vv_unpack_report_fini(struct vv_unpack_report *r);

#endif
