/* The processes that a command was started as, by mpirun: some verbs share their work. */
#ifndef VV_CLI_BASE_COMMAND_RANKS_H
#define VV_CLI_BASE_COMMAND_RANKS_H

#include "base/buf.h"
#include <stdbool.h>
#include <varve/varve_comm.h>

struct vv_command_ranks { /* all ranks make the same calls in the same order */
	uint32_t rank, size;
	int (*plug)(double patience, struct varve_comm *out); /* for a session over all of them */
	int (*lowest)(int number);          /* of all ranks' */
	void (*sum)(uint64_t *v, size_t n); /* over all ranks, in place */
	void (*share)(void *p, size_t n, uint32_t from); /* that rank's bytes become everybody's */
	void (*rest)(void);                 /* until all have come, and leaves the processor to others meanwhile */
};

/* For what follows, NULL is a world of one. */

/* What failed on one rank has failed on all, for the reason of the lowest that did. */
int vv_command_ranks_agree(const struct vv_command_ranks *w, int code);
/* Rank 0's buffer becomes everybody's. */
int vv_command_ranks_share(const struct vv_command_ranks *w, struct vv_buf *b);
void vv_command_ranks_sum(const struct vv_command_ranks *w, uint64_t *v, size_t n);

/* Was this process started as one of several, by whatever launcher? Then *rank is its own. */
bool vv_command_ranks_is_many(uint32_t *rank);
/* The plain command, started by mpirun as one of several: becomes the varve-mpi beside it, or says that there is none. 0: it is alone. */
int vv_command_ranks_join(char **argv);

#endif
