/* Symbolic links and folders of an epoch, laid down around its files: folders are made first, links and what folders are like come last. */
#ifndef VV_ENGINE_FILES_TREE_ENTRIES_H
#define VV_ENGINE_FILES_TREE_ENTRIES_H

#include "engine/files/output_dir.h"
#include "engine/files/unpack.h"

struct vv_tree_entries {
	const struct vv_unpack_options *opt;
	struct vv_output_dir target;
	const struct vv_manifest_entry **v; /* those asked for, by name */
	bool *made;			    /* a folder that was not there */
	size_t n;
};

/* Which of them are asked for; nothing is written. e starts empty. */
int vv_tree_entries_choose(const struct vv_unpack *u, const struct vv_unpack_options *opt, struct vv_tree_entries *e);
/* Makes folders that are missing, for now with mode 0700. */
int vv_tree_entries_begin(struct vv_tree_entries *e);
/* When all files are there: makes the links; folders that were made get mode, attributes and time. Adds to *out; what could not be made is missing there. */
int vv_tree_entries_end(struct vv_tree_entries *e, struct vv_unpack_report *out);
void vv_tree_entries_fini(struct vv_tree_entries *e);

#endif
