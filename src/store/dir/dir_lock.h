/* The writer's lock of a lineage in a directory store. */
#ifndef VV_STORE_DIR_DIR_LOCK_H
#define VV_STORE_DIR_DIR_LOCK_H

#include "store/backend/backend.h"

int vv_dir_lock_take(struct vv_store *s, const char *path, struct vv_lock **out);
void vv_dir_lock_drop(struct vv_lock *l);
/* Checks the locks of this store that this process holds. A lock whose descriptor the program has
 * closed is taken again. VV_EBUSY if another process had it meanwhile, or its name leads to another
 * file. VV_ENOENT if the lock or the folders above it were removed. */
int vv_dir_lock_renew(struct vv_store *s);
int vv_dir_lock_held(struct vv_lock *l);
/* The holder, without taking the lock: 1, or 0 if there is none. */
int vv_dir_lock_look(const char *path, struct vv_lock_holder *out);

#endif
