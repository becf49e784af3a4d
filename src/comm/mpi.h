/* The ranks of an MPI program as a varve_comm. */
#ifndef VV_COMM_MPI_H
#define VV_COMM_MPI_H

#include <mpi.h>
#include <varve/varve_comm.h>

/* The longest message, since MPI counts in int; below INT_MAX. Tests make it small, on all ranks
 * alike. */
extern size_t vv_mpi_piece;

/* Duplicates the communicator, so all its ranks call this. It waits for them no longer than
 * `patience` seconds. Errors are set by varve_fail. */
int vv_mpi_plug(MPI_Comm comm, double patience, struct varve_comm *out);

#endif
