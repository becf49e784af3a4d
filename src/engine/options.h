/* The one table of options. */
#ifndef VV_ENGINE_OPTIONS_H
#define VV_ENGINE_OPTIONS_H

#include "base/conf.h"
#include "store/store.h"

/* default < varve.conf < environment < call. The file: $VARVE_CONF if set, else ./varve.conf if there. call may be NULL. */
int vv_options_load(struct vv_conf *c, const char *call);
/* What the stores need to know; points into c. */
struct vv_store_options vv_options_store(const struct vv_conf *c, bool create);

#endif
