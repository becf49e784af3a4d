/* A directory store in shared memory, ram:NAME. It survives the program and is lost when the
 * machine is switched off. Each user has a folder, /dev/shm/varve-UID, which others cannot read. */
#ifndef VV_STORE_DIR_SHM_H
#define VV_STORE_DIR_SHM_H

#include "store/backend/backend.h"
#include "store/backend/store_options.h"

int vv_shm_open(const char *url, const struct vv_store_options *opt, struct vv_store **out);

#endif
