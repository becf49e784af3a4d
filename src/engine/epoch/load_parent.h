/* Loads the state that the next checkpoint compares with. */
#ifndef VV_ENGINE_EPOCH_LOAD_PARENT_H
#define VV_ENGINE_EPOCH_LOAD_PARENT_H

struct varve;

/* Loads the index, the parent's table and the regions' chunk states. All ranks call it together.
 * rc: this rank's result so far. */
int vv_load_parent_run(struct varve *v, int rc);

#endif
