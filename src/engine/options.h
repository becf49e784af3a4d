/* The one table of options. */
#ifndef VV_ENGINE_OPTIONS_H
#define VV_ENGINE_OPTIONS_H

#include "base/conf.h"
#include "store/store.h"

/* default < varve.conf < environment < call. The file: $VARVE_CONF if set, else ./varve.conf if there. call may be NULL. */
int vv_options_load(struct vv_conf *c, const char *call);
/* The option `history`, in bytes, where so much memory is deduped in chunks, and so much in other ways. */
uint64_t vv_options_history(const struct vv_conf *c, uint64_t in_chunks, uint64_t other);
/* What the stores need to know; points into c. */
struct vv_store_options vv_options_store(const struct vv_conf *c, bool create);

/* Who needs an option: every user; somebody who tunes; somebody who compares with the published algorithms. */
enum vv_options_tier { VV_OPTIONS_EVERYDAY, VV_OPTIONS_TUNING, VV_OPTIONS_COMPARISON };
enum vv_options_tier vv_options_tier(const char *name);

#endif
