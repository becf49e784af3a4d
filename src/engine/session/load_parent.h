/* What the next checkpoint compares with. */
#ifndef VV_ENGINE_SESSION_LOAD_PARENT_H
#define VV_ENGINE_SESSION_LOAD_PARENT_H

struct varve;

/* The index, the parent's table and the regions' chunks are in memory. By all ranks together; `rc`: what went before, on this rank. */
int vv_load_parent_run(struct varve *v, int rc);

#endif
