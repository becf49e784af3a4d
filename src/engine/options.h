/* The table of options. */
#ifndef VV_ENGINE_OPTIONS_H
#define VV_ENGINE_OPTIONS_H

#include "base/conf.h"
#include "store/store.h"

/* Precedence: default < files < environment < call. The files, later ones first: $VARVE_CONF if
 * set, else ./varve.conf; ~/.config/varve.conf; /etc/varve.conf. Only $VARVE_CONF must exist. call
 * may be NULL. */
int vv_options_load(struct vv_conf *c, const char *call);
/* The option `history` in bytes. in_chunks: bytes of memory deduplicated in chunks; other: in other
 * ways. */
uint64_t vv_options_history(const struct vv_conf *c, uint64_t in_chunks, uint64_t other);
/* Puts the option `log` into effect, for the whole process. */
void vv_options_apply_log(const struct vv_conf *c);
/* The options of the stores; points into c. */
struct vv_store_options vv_options_store(const struct vv_conf *c, bool create);

/* The audience of an option: every user; users who tune; users who compare published algorithms. */
enum vv_options_tier { VV_OPTIONS_EVERYDAY, VV_OPTIONS_TUNING, VV_OPTIONS_COMPARISON };
enum vv_options_tier vv_options_tier(const char *name);

#endif
