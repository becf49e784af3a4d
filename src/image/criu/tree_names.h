/* Several process trees as one epoch: the processes of a parallel program (Chen 2016). Each rank of
 * a session saves one or more trees. The coordinator (engine/ranks/group.h) commits all or none.
 * The files of tree number n are called n/NAME; an epoch of one tree has no such folders. */
#ifndef VV_IMAGE_CRIU_TREE_NAMES_H
#define VV_IMAGE_CRIU_TREE_NAMES_H

#include "engine/files/stream_input.h"
#include "engine/context.h"

struct vv_tree_names_place { /* position of a rank's trees among all */
	uint64_t first, all;
};

/* Called by all ranks before any process is frozen; rc is the result of a rank's preparations.
 * Checks that no process is saved twice and that no tree contains the command of a rank. Gives
 * every rank the numbers of its trees. */
int vv_tree_names_agree(struct varve *v, int rc, const pid_t *root, size_t n, struct vv_tree_names_place *out);

struct vv_tree_names_name;

struct vv_tree_names_input { /* a rank's trees, one after another, each in its folder */
	struct vv_stream_input stream_input;
	const struct vv_stream_input *const *from;
	size_t n, at;
	uint64_t first;
	struct vv_tree_names_name *name;
	size_t n_names, names_cap;
};

/* Returns the stream input to be packed; `from` must stay valid until vv_tree_names_input_fini. */
const struct vv_stream_input *vv_tree_names_input(struct vv_tree_names_input *f, const struct vv_stream_input *const *from, size_t n, const struct vv_tree_names_place *place);
void vv_tree_names_input_fini(struct vv_tree_names_input *f);

#endif
