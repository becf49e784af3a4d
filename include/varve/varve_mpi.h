/* varve for MPI programs: link with libvarve_mpi as well as libvarve. */
#ifndef VARVE_MPI_H
#define VARVE_MPI_H

#include <mpi.h>
#include <varve/varve.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As varve_open, by all ranks of the communicator together. Afterwards the same calls as for one process: varve_checkpoint,
 * varve_restart, varve_due, varve_wait and varve_close are made by every rank, in the same order; the others by any.
 *
 * MPI must be initialised. With MPI_THREAD_MULTIPLE everything but the capture happens behind varve_checkpoint; otherwise only the
 * calling thread speaks MPI, and an epoch is committed by the first call after it has been stored: varve_test, varve_due,
 * varve_wait, varve_checkpoint or varve_close. The communicator is duplicated; close the session before MPI_Finalize. */
VARVE_API int varve_open_mpi(MPI_Comm comm, const char *store, const char *lineage, const char *options, varve **out);
/* The same for MPI_COMM_WORLD, and MPI_Finalize begins by calling fn(arg), which closes the session: for those who do not know when the
 * program ends, such as libraries. */
VARVE_API int varve_open_world(const char *store, const char *lineage, const char *options, void (*fn)(void *arg), void *arg,
			       varve **out);

#ifdef __cplusplus
}
#endif

#endif
