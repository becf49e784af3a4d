/* Contents in the data of earlier epochs, and their places: a map from digests to places. A place
 * is ordinal << 40 | number, as in vv_piece.from without its kind. There is a *young* generation
 * and an *aged* one, of at most `limit` entries each (docs/dedup.md, section 2). Contents met
 * lately are remembered; contents not met for long are forgotten. */
#ifndef VV_CORE_DEDUP_KNOWN_GRAINS_H
#define VV_CORE_DEDUP_KNOWN_GRAINS_H

#include "core/format/digest.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vv_known_grains_slot {
	struct vv_digest digest;
	uint64_t place; /* the place of a COPY, never 0; 0: empty */
};

struct vv_known_grains_table { /* all zero is the empty table */
	struct vv_known_grains_slot *slot;
	size_t cap, n;
};

struct vv_known_grains { /* all zero is the empty map, of limit 0 */
	struct vv_known_grains_table young, aged;
	size_t limit;
	size_t both;        /* entries of aged that are in young, too */
	uint64_t forgotten; /* digests so far that are unknown because there was no room */
};

void vv_known_grains_fini(struct vv_known_grains *k);
/* Limits each generation to so many entries from now on; a generation that has more is emptied. */
int vv_known_grains_limit(struct vv_known_grains *k, size_t limit);
/* The caller will enter and find at most `n` digests. It may enter the first *take of them. The
 * aged generation may be dropped for them. */
int vv_known_grains_begin(struct vv_known_grains *k, size_t n, size_t *take);
void vv_known_grains_prefetch(const struct vv_known_grains *k, const struct vv_digest *d);
/* Is it known, and where? It becomes a recently met one. */
bool vv_known_grains_find(struct vv_known_grains *k, const struct vv_digest *d, uint64_t *place);
/* The same; an unknown digest is entered with *place. */
bool vv_known_grains_enter(struct vv_known_grains *k, const struct vv_digest *d, uint64_t *place);
/* Withdraws the digest from this place, to which it was entered last. */
void vv_known_grains_drop(struct vv_known_grains *k, const struct vv_digest *d, uint64_t place);
/* Forgets all places of this ordinal. */
void vv_known_grains_kill(struct vv_known_grains *k, uint32_t ordinal);
void vv_known_grains_clear(struct vv_known_grains *k);
size_t vv_known_grains_bytes(const struct vv_known_grains *k); /* of memory in use */

#endif
