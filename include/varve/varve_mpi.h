/* varve for MPI programs: link with libvarve_mpi as well as libvarve. */
#ifndef VARVE_MPI_H
#define VARVE_MPI_H

#include <mpi.h>
#include <varve/varve.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The collective form of varve_open for all ranks of the communicator. Then varve_checkpoint,
 * varve_checkpoint_on_stream, varve_restart, varve_due, varve_wait, varve_list_share and
 * varve_close are collective, too: every rank makes them, in the same order. All other calls are
 * local.
 *
 * MPI must be initialised. With MPI_THREAD_MULTIPLE, varve_checkpoint only captures the memory, and
 * everything else happens in the background. With a lower level, only the calling thread uses MPI.
 * An epoch is then committed by the first of these calls after it has been stored: varve_test,
 * varve_due, varve_wait, varve_checkpoint or varve_close. The communicator is duplicated. Close the
 * session before MPI_Finalize. */
VARVE_API int varve_open_mpi(MPI_Comm comm, const char *store, const char *lineage, const char *options, varve_session **out);
/* The same for MPI_COMM_WORLD. At its beginning MPI_Finalize calls fn(arg), which closes the
 * session. This is for libraries that do not know when the program ends. */
VARVE_API int varve_open_world(const char *store, const char *lineage, const char *options, void (*fn)(void *arg), void *arg,
			       varve_session **out);

#ifdef __cplusplus
}
#endif

#endif
