/* The files of one epoch as a mounted store shows them: regions, or the tree of packed files. */
#ifndef VV_CLI_MOUNT_MOUNT_VIEW_H
#define VV_CLI_MOUNT_MOUNT_VIEW_H

#include "engine/files/unpack.h"
#include "engine/read/block_cache.h"
#include <pthread.h>

#define VV_MOUNT_VIEW_FILES UINT32_MAX /* instead of a rank: the packed files of all ranks */

struct vv_mount_item {
	char *name;    /* the path below the folder of the view */
	uint32_t mode; /* with the type, as in struct stat */
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint64_t size;
	const char *target; /* of a symbolic link */
	size_t region;
	const struct vv_shape *npy; /* a header for this shape precedes the bytes; NULL: raw bytes */
};

struct vv_mount_view {
	const struct vv_lineage *lineage;
	uint64_t epoch;
	uint32_t rank;
	uint64_t time_ns; /* of the checkpoint */
	struct vv_run_table table;
	struct vv_unpack unpack;
	struct vv_mount_item *item; /* sorted, each folder in front of its content */
	size_t n;
	const struct vv_runs **runs; /* by region */
	size_t n_regions;
	pthread_mutex_t lock;	      /* of the members below */
	struct vv_block_cache *cache; /* opened by the first reader */
	bool *opened;		      /* by region: a file was opened before */
	/* for mount_tree.c */
	size_t refs;
	uint64_t stamp;
	bool stale;
	struct vv_mount_view *next;
};

/* A rank's regions, or VV_MOUNT_VIEW_FILES: packed files. VV_EINVAL: the epoch was not packed from
 * files. */
int vv_mount_view_open(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_commit *c, uint32_t rank,
		       struct vv_mount_view **out);
void vv_mount_view_close(struct vv_mount_view *v);
/* Was the epoch of this rank packed from files? */
bool vv_mount_view_is_of_files(const struct vv_mount_view *v);

/* The item of this path; or n, and *folder says whether it is a folder of other items. */
size_t vv_mount_view_find(const struct vv_mount_view *v, const char *path, bool *folder);
/* Calls fn once for each entry directly in the folder. item is NULL for a folder that is not
 * listed. fn returns true to stop. */
void vv_mount_view_list(const struct vv_mount_view *v, const char *folder,
			bool (*fn)(void *arg, const char *name, const struct vv_mount_item *item), void *arg);

#endif
