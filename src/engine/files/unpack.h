/* An epoch of files becomes files again, byte for byte; or some of them; or one is read where it lies. */
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
	bool lost;    /* what files it has cannot be read */
};

struct vv_unpack {
	const struct vv_lineage *lineage;
	uint64_t epoch;
	struct vv_unpack_rank *rank;
	size_t n_ranks;
	size_t n_lost;            /* of the ranks */
	struct vv_err_state lost; /* why the first of them is */
	size_t n_files;  /* of all ranks */
	size_t *by_name; /* their numbers, sorted */
};

/* The list of files in a rank's table, if there is one: *has. */
int vv_unpack_manifest(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_run_table *t, struct vv_manifest *out, bool *has);

/* VV_EINVAL: the epoch was not packed from files. */
int vv_unpack_open(const struct vv_lineage *lin, uint64_t epoch, struct vv_pool *pool, struct vv_unpack *out);
/* The same, but ranks whose layer is damaged, gone or out of reach are lost, as long as there are others. */
bool vv_unpack_is_of_one_rank(int rc); /* damaged, gone or out of reach: the others may be well */
int vv_unpack_open_rest(const struct vv_lineage *lin, uint64_t epoch, struct vv_pool *pool, struct vv_unpack *out);
/* The files of one of its ranks alone. */
int vv_unpack_open_rank(const struct vv_lineage *lin, uint64_t epoch, uint32_t rank, struct vv_pool *pool, struct vv_unpack *out);
void vv_unpack_close(struct vv_unpack *u);

struct vv_unpack_reader { /* of bytes that lie elsewhere, too: engine/ranks/remote_read.h */
	void *arg;
	int (*read)(void *arg, int rc, const struct vv_want *want, size_t n); /* rc: what became of this rank so far; it is called nevertheless */
};

/* The files of a rank whose table was found elsewhere; the reader is called once. The table goes, whatever comes of it. */
int vv_unpack_take(const struct vv_lineage *lin, struct vv_run_table *t, const struct vv_unpack_reader *from, struct vv_unpack *out);

struct vv_unpack_file {
	const struct vv_manifest_file *file;
	const struct vv_run_table_region *region;
	uint32_t rank;
};

/* File i of all, 0 <= i < n_files; and by name: VV_ENOENT lists what resembles it, but where a rank is lost the error is that. */
struct vv_unpack_file vv_unpack_at(const struct vv_unpack *u, size_t i);
bool vv_unpack_has(const struct vv_unpack *u, const char *name, struct vv_unpack_file *out);
int vv_unpack_find(const struct vv_unpack *u, const char *name, struct vv_unpack_file *out);

struct vv_unpack_options {
	const char *folder;      /* it and what is missing below it is made */
	bool force;              /* what is there already is replaced; else it is an error, before anything is written */
	bool test;               /* everything is read and checked, nothing is written: there is no folder then */
	const char *const *only; /* names, or folders of them; none: all */
	size_t n_only;
	uint32_t share, shares;  /* of M readers this is number `share`; 0 of 1, or 0 of 0: the only one */
	const atomic_bool *stop; /* may be NULL; once it is set, what is not whole yet is given up */
	struct vv_progress progress;
};

/* Whether all of it, of all shares, can be laid down as it is asked for: nothing is written yet. For M readers, of whom none should begin
 * before all have looked; vv_unpack_run looks for itself. */
int vv_unpack_check(const struct vv_unpack *u, const struct vv_unpack_options *opt);

struct vv_unpack_report {
	uint64_t files, bytes; /* that were unpacked; of hard links the bytes of one */
	uint64_t entries;      /* symbolic links and folders: engine/files/tree_entries.h */
	uint64_t copies;       /* hard links that became files of their own, where there can be none */
	struct vv_xattr_left left; /* attributes that could not be kept */
	uint64_t blocks;       /* that were read for it: each once, unless there are more files than can be open together */
	char **missing; /* names of those that could not be written or read; the others are whole */
	size_t n_missing;
	size_t n_lost;  /* ranks that are lost and may have had files that were asked for; told by share 0 */
};

/* Each file appears whole, under its name, with mode, mtime and attributes, or not at all; hard links are made when all files are there, symbolic links and
 * folders by others (engine/files/tree_entries.h). An error, which is that of the first file that is missing, leaves
 * the others in place; *out is set then, too. A file that is damaged costs no other; want of space ends it: those that
 * are whole stay, and of those under way the last ones are given up. */
int vv_unpack_run(const struct vv_unpack *u, struct vv_pool *pool, const struct vv_unpack_options *opt, struct vv_unpack_report *out);
/* One more is missing. */
void vv_unpack_miss(struct vv_unpack_report *r, const char *name);
void vv_unpack_report_fini(struct vv_unpack_report *r);

#endif
