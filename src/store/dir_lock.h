/* The writer's lock of a lineage in a directory store. */
#ifndef VV_STORE_DIR_LOCK_H
#define VV_STORE_DIR_LOCK_H

#include "store/store.h"

int vv_dir_lock_take(struct vv_store *s, const char *path, struct vv_lock **out);
void vv_dir_lock_drop(struct vv_lock *l);
/* The locks of this store that this process has: one whose descriptor the program has closed is taken again. VV_EBUSY if others had it meanwhile, or its name
 * leads to another file; VV_ENOENT if to none: it was removed, or the folders above it. */
int vv_dir_lock_renew(struct vv_store *s);
int vv_dir_lock_held(struct vv_lock *l);
/* Who holds it, without taking it: 1, or 0 if nobody does. */
int vv_dir_lock_look(const char *path, struct vv_lock_holder *out);

#endif
