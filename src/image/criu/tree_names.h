/* Several process trees as one epoch: S1's processes of a parallel program. Each rank of a session saves one or more, as the coordinator (engine/ranks/group.h) has
 * it: all or none. The files of tree number n are called n/NAME; an epoch of one tree has no such folders. */
#ifndef VV_IMAGE_GROUP_H
#define VV_IMAGE_GROUP_H

#include "engine/files/stream_input.h"
#include "engine/session.h"

struct vv_group_place { /* of a rank's trees among all */
	uint64_t first, all;
};

/* Before anything is frozen, by all ranks, each with what became of its preparations: no process is to be saved twice, none of them holds a rank up, and
 * every rank knows the numbers of its trees. */
int vv_group_meet(struct varve *v, int rc, const pid_t *root, size_t n, struct vv_group_place *out);

struct vv_group_name;

struct vv_group_flow { /* what a rank saves: one tree after another, each in its folder */
	struct vv_inflow inflow;
	const struct vv_inflow *const *from;
	size_t n, at;
	uint64_t first;
	struct vv_group_name *name;
	size_t n_names, names_cap;
};

/* The inflow to be packed; `from` stays until flow_fini. */
const struct vv_inflow *vv_group_flow(struct vv_group_flow *f, const struct vv_inflow *const *from, size_t n, const struct vv_group_place *place);
void vv_group_flow_fini(struct vv_group_flow *f);

#endif
