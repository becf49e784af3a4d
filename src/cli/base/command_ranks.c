#include "cli/base/command_ranks.h"
#include "base/err.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int vv_command_ranks_agree(const struct vv_command_ranks *w, int code)
{
	/* below 0: that of the lowest rank that failed */
	int first = w ? w->lowest(code < 0 ? (int)w->rank - (int)w->size : 0) : 0;
	struct vv_err_state error;
	uint32_t who;

	if (first >= 0)
		return code;
	who = (uint32_t)(first + (int)w->size);
	vv_err_save(code, &error);
	w->share(&error, sizeof(error), who);
	error.message[sizeof(error.message) - 1] = '\0';
	return who == w->rank ? code : vv_err_set(error.code < 0 ? error.code : VV_EPEER, "rank %u: %s", who, error.message);
}

int vv_command_ranks_share(const struct vv_command_ranks *w, struct vv_buf *b)
{
	uint64_t n = b->n;
	int rc = vv_command_ranks_agree(w, vv_buf_check(b));

	if (!w || rc)
		return rc;
	w->share(&n, sizeof(n), 0);
	if (w->rank) {
		b->n = 0;
		rc = vv_buf_room(b, (size_t)n) ? 0 : VV_ENOMEM;
		b->n = rc ? 0 : (size_t)n;
	}
	rc = vv_command_ranks_agree(w, rc);
	if (rc == 0)
		w->share(b->p, (size_t)n, 0);
	return rc;
}

void vv_command_ranks_sum(const struct vv_command_ranks *w, uint64_t *v, size_t n)
{
	if (w)
		w->sum(v, n);
}

/* Reads the variables that Open MPI, MPICH and its derivatives, and Slurm set for their
 * processes. */
bool vv_command_ranks_is_many(uint32_t *rank)
{
	static const struct {
		const char *size, *rank;
	} names[] = {
		{ "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK" },
		{ "PMI_SIZE", "PMI_RANK" },
		{ "MPI_LOCALNRANKS", "PMI_RANK" },
		/* a batch script has a SLURM_PROCID, too, but no step */
		{ "SLURM_STEP_NUM_TASKS", "SLURM_PROCID" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *size = getenv(names[i].size), *mine = getenv(names[i].rank);

		if (size && atol(size) > 1) {
			*rank = mine ? (uint32_t)atol(mine) : 0;
			return true;
		}
	}
	return false;
}

int vv_command_ranks_join(char **argv)
{
	char path[PATH_MAX];
	uint32_t rank;
	ssize_t n;

	if (!vv_command_ranks_is_many(&rank))
		return 0;
	n = readlink("/proc/self/exe", path, sizeof(path) - sizeof("-mpi"));
	if (n > 0) {
		memcpy(path + n, "-mpi", sizeof("-mpi"));
		execv(path, argv);
	}
	return vv_err_set(VV_ENOTSUP, "this was started by mpirun as one of several, and '%s' is not there to share the work (%s): build varve with MPI",
			  n > 0 ? path : "varve-mpi", strerror(errno));
}
