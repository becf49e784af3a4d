/* Unpacks the symbolic links and folders of an epoch. Folders are made before the files; links and
 * the attributes of folders come last. */
#ifndef VV_ENGINE_FILES_TREE_ENTRIES_H
#define VV_ENGINE_FILES_TREE_ENTRIES_H

#include "engine/files/output_dir.h"
#include "engine/files/unpack.h"

struct vv_tree_entries {
	const struct vv_unpack_options *opt;
	struct vv_output_dir target;
	const struct vv_manifest_entry **v; /* the requested entries, by name */
	bool *made;			    /* the folder did not exist */
	size_t n;
};

/* Chooses the requested entries; writes nothing. e starts empty. */
int vv_tree_entries_choose(const struct vv_unpack *u, const struct vv_unpack_options *opt, struct vv_tree_entries *e);
/* Makes missing folders, temporarily with mode 0700. */
int vv_tree_entries_begin(struct vv_tree_entries *e);
/* After all files: makes the links, and sets mode, attributes and time of the folders that were
 * made. Adds to *out; failed entries are added to its missing names. */
int vv_tree_entries_end(struct vv_tree_entries *e, struct vv_unpack_report *out);
void vv_tree_entries_fini(struct vv_tree_entries *e);

#endif
