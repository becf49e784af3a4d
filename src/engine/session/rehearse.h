/* The program's part in a rehearsal of its restart (`varve run --rehearse`). Its session writes to
 * the command's store and takes a checkpoint at every request. The process ends after an epoch that
 * VV_RUN_PROTOCOL_REHEARSE names. */
#ifndef VV_ENGINE_SESSION_REHEARSE_H
#define VV_ENGINE_SESSION_REHEARSE_H

#include "base/conf.h"
#include <stdbool.h>
#include <stdint.h>

struct varve;

struct vv_rehearse {
	uint64_t look; /* this epoch and the next one also hold undeclared memory */
	uint64_t last; /* the process ends after this epoch; 0: no rehearsal */
};

/* The prefix of regions that the program has not declared. */
#define VV_REHEARSE_UNDECLARED "undeclared/"

/* Parses VV_RUN_PROTOCOL_REHEARSE. */
int vv_rehearse_parse(struct vv_rehearse *out);
/* The option rehearse: replaces this process by `varve run --rehearse n` of its own program.
 * Returns only with an error. */
int vv_rehearse_exec(uint64_t n, bool ranks);
/* The store to open instead of the program's store. */
const char *vv_rehearse_store(const char *store);
/* Makes every call due and keeps all epochs, whatever the program's options are. */
int vv_rehearse_adjust_options(struct vv_conf *c);
/* Fills the regions with a pattern before a restart fills them. */
int vv_rehearse_poison(struct varve *v);
/* Called before and after a checkpoint. rc: its result. After the last epoch, vv_rehearse_after
 * does not return. */
void vv_rehearse_before(struct varve *v);
int vv_rehearse_after(struct varve *v, int rc);

/* Declares undeclared memory as regions. Set by libvarve_preload.so; otherwise NULL. */
extern void (*vv_rehearse_declare)(struct varve *v);

#endif
