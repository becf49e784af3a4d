/* The processes of a command that was started by mpirun: some verbs share their work. */
#ifndef VV_CLI_BASE_COMMAND_RANKS_H
#define VV_CLI_BASE_COMMAND_RANKS_H

#include "base/buf.h"
#include <stdbool.h>
#include <varve/varve_comm.h>

struct vv_command_ranks { /* all ranks make the same calls in the same order */
	uint32_t rank, size;
	int (*plug)(double patience, struct varve_comm *out); /* for a session over all of them */
	int (*lowest)(int number);          /* of all ranks' numbers */
	void (*sum)(uint64_t *v, size_t n); /* over all ranks, in place */
	/* the bytes of that rank go to all ranks */
	void (*share)(void *p, size_t n, uint32_t from);
	/* waits for all ranks, and yields the processor in the meantime */
	void (*rest)(void);
};

/* In the functions below, NULL is a world of one rank. */

/* A failure on one rank becomes a failure on all, with the reason of the lowest failed rank. */
int vv_command_ranks_agree(const struct vv_command_ranks *w, int code);
/* Copies rank 0's buffer to all ranks. */
int vv_command_ranks_share(const struct vv_command_ranks *w, struct vv_buf *b);
void vv_command_ranks_sum(const struct vv_command_ranks *w, uint64_t *v, size_t n);

/* Was this process started as one of several, by any launcher? If so, *rank is its own rank. */
bool vv_command_ranks_is_many(uint32_t *rank);
/* For the plain command. If mpirun has started it as one of several, it executes the varve-mpi
 * beside it, or reports that there is none. Returns 0 if the process is alone. */
int vv_command_ranks_join(char **argv);

#endif
