/* Contents that are in the data of some epoch, and where: a map from digests to places (ordinal << 40 | number, as in vv_piece.from
 * without its kind). docs/dedup.md, section 2: a *young* generation and an *aged* one, of at most `limit` entries each, so that what was not
 * met for long is forgotten, and all that was met lately is not. */
#ifndef VV_CORE_DEDUP_KNOWN_GRAINS_H
#define VV_CORE_DEDUP_KNOWN_GRAINS_H

#include "core/format/digest.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vv_known_grains_slot {
	struct vv_digest digest;
	uint64_t place; /* that of COPY, never 0; 0: empty */
};

struct vv_known_grains_table { /* all zero is the empty table */
	struct vv_known_grains_slot *slot;
	size_t cap, n;
};

struct vv_known_grains { /* all zero is the empty map, of limit 0 */
	struct vv_known_grains_table young, aged;
	size_t limit;
	size_t both;        /* entries of aged that are in young, too */
	uint64_t forgotten; /* digests so far that are not known because there was no room */
};

void vv_known_grains_fini(struct vv_known_grains *k);
/* At most so many entries in each generation from now on; a generation that has more is emptied. */
int vv_known_grains_limit(struct vv_known_grains *k, size_t limit);
/* Digests will be entered and looked for, `n` at most, of which *take, the first, may be: aged may be dropped for it. */
int vv_known_grains_begin(struct vv_known_grains *k, size_t n, size_t *take);
void vv_known_grains_prefetch(const struct vv_known_grains *k, const struct vv_digest *d);
/* Is it known, and where? It counts as met. */
bool vv_known_grains_find(struct vv_known_grains *k, const struct vv_digest *d, uint64_t *place);
/* The same; if it is not, it is known as being at *place from now on. */
bool vv_known_grains_enter(struct vv_known_grains *k, const struct vv_digest *d, uint64_t *place);
/* It is not at this place, to which it was entered last, after all. */
void vv_known_grains_drop(struct vv_known_grains *k, const struct vv_digest *d, uint64_t place);
/* Nothing is at places of this ordinal. */
void vv_known_grains_kill(struct vv_known_grains *k, uint32_t ordinal);
void vv_known_grains_clear(struct vv_known_grains *k);
size_t vv_known_grains_bytes(const struct vv_known_grains *k); /* of memory in use */

#endif
