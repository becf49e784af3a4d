/* Hashes tiles that do not fit the copy buffer at once: known content needs no write protection. */
#ifndef VV_ENGINE_GLANCE_H
#define VV_ENGINE_GLANCE_H

#include "engine/memory/tiles.h"

/* Under the lock, before anything is copied: tiles that do not fit the buffer and hold nothing new are done. */
int vv_glance_run(struct vv_pass *p);

#endif
