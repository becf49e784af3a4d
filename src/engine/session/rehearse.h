/* The program's part in a rehearsal of its restart (`varve run --rehearse`): its session writes into the command's store, takes a checkpoint
 * whenever it asks, and ends the process after an epoch that VV_RUN_PROTOCOL_REHEARSE names. */
#ifndef VV_ENGINE_SESSION_REHEARSE_H
#define VV_ENGINE_SESSION_REHEARSE_H

#include "base/conf.h"
#include <stdbool.h>
#include <stdint.h>

struct varve;

struct vv_rehearse {
	uint64_t look; /* this epoch and the next one hold undeclared memory, too */
	uint64_t last; /* the process ends after this one; 0: this is no rehearsal */
};

/* Regions whose names begin so are memory that the program has not declared. */
#define VV_REHEARSE_UNDECLARED "undeclared/"

/* What VV_RUN_PROTOCOL_REHEARSE says. */
int vv_rehearse_parse(struct vv_rehearse *out);
/* The option rehearse: this process becomes `varve run --rehearse n` of its own program. Returns only to say why it cannot. */
int vv_rehearse_exec(uint64_t n, bool ranks);
/* The store to open in place of the one that the program names. */
const char *vv_rehearse_store(const char *store);
/* Each call is due, and no epoch is dropped, whatever the program has asked for. */
int vv_rehearse_adjust_options(struct vv_conf *c);
/* Before a restart fills them: regions hold a pattern that no program has put there. */
int vv_rehearse_poison(struct varve *v);
/* Around a checkpoint, which came to rc; the second does not return after the last. */
void vv_rehearse_before(struct varve *v);
int vv_rehearse_after(struct varve *v, int rc);

/* Declares undeclared memory as regions; NULL: nobody knows of any. Set by libvarve_preload.so. */
extern void (*vv_rehearse_declare)(struct varve *v);

#endif
