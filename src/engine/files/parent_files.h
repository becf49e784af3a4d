/* Where the newest epoch has the bytes of the files that are packed: at the same offset of the same
 * file. Blocks may be stored as differences to them. */
#ifndef VV_ENGINE_FILES_PARENT_FILES_H
#define VV_ENGINE_FILES_PARENT_FILES_H

#include "engine/files/file_set.h"
#include "engine/lineage/run_table.h"
#include "engine/write/delta_source.h"

struct varve;
struct vv_parent_files;

enum vv_parent_files_aim {
	/* a restart reads and decodes little more than without differences, */
	VV_PARENT_FILES_RESTART,
	/* the same at the level `max`, which must not leave out a difference that a lower level
	 * takes */
	VV_PARENT_FILES_RESTART_AT_MAX,
	VV_PARENT_FILES_SIZE, /* or the epoch is as small as possible */
};

/* Takes ownership of the table of the newest epoch, even on error. `level` is zstd's, of
 * matches. */
int vv_parent_files_new(struct varve *v, struct vv_run_table *t, enum vv_parent_files_aim aim, int level, struct vv_parent_files **out);
void vv_parent_files_free(struct vv_parent_files *p); /* NULL is allowed */
/* Finds the former files of the set, and chooses by samples which kinds are stored as
 * differences. */
int vv_parent_files_choose(struct vv_parent_files *p, struct vv_file_set *c);
/* The payload's next bytes, at pos, are those of a file. */
int vv_parent_files_note(struct vv_parent_files *p, uint64_t pos, uint32_t file, uint64_t at, uint64_t len);
/* Is the base of these bytes, for a difference of this sort, in another block than that of the
 * bytes of the last call? */
bool vv_parent_files_begins_block(struct vv_parent_files *p, const struct vv_delta *how, uint32_t file, uint64_t at);
/* For the block writer. */
const struct vv_delta_source *vv_parent_files_source(struct vv_parent_files *p);

#endif
