/* Files that come by themselves, from pipes: several at once, each from its start on, their lengths known when they end. What is packed is held in
 * memory only as far as it takes to see how it had better be coded; what is no page and no array, small as it is, until all have come. */
#ifndef VV_ENGINE_INFLOW_H
#define VV_ENGINE_INFLOW_H

#include "engine/feed.h"

struct vv_inflow_part { /* the next stretch of a file */
	const char *name;   /* it stays until the epoch is laid down, and is the same pointer for the same file */
	uint32_t kind;      /* 0: skeleton; else one of those below, counted from 1 on */
	const uint8_t *bytes;
	size_t n;           /* 0: there is such a file, if nothing more is heard of it */
};

struct vv_inflow {
	void *arg;
	const char *format;      /* of all files */
	const char *const *kind; /* what stretches may be: cut in chunks of one size, from where the first of a run of them begins */
	size_t n_kinds;
	uint64_t expected;       /* bytes in all, about */
	/* 1: a part, whose bytes stay until the next call; 0: that was all; < 0: an error, and no epoch comes of it. It waits. */
	int (*next)(void *arg, struct vv_inflow_part *out);
};

/* The first of it is in memory, with spans over it. */
int vv_inflow_prime(const struct vv_inflow *in, struct vv_cargo *c);
/* Kinds of which nothing was seen yet are coded like those of which something was. */
void vv_inflow_settle(struct vv_cargo *c, bool coding);
/* All of it, to the end. */
int vv_inflow_feed(const struct vv_inflow *in, struct vv_cargo *c, struct vv_feed *f);

#endif
