/* Communicators of Fortran are integers; only MPI can convert them to C. */
#include <varve/varve_mpi.h>

int varve_fortran_open_mpi(MPI_Fint comm, const char *store, const char *lineage, const char *options, varve **out);

int varve_fortran_open_mpi(MPI_Fint comm, const char *store, const char *lineage, const char *options, varve **out)
{
	int up = 0, over = 0;

	/* If MPI is not running, it may not be asked about handles; varve_open_mpi reports that. */
	MPI_Initialized(&up);
	MPI_Finalized(&over);
	return varve_open_mpi(up && !over ? MPI_Comm_f2c(comm) : MPI_COMM_NULL, store, lineage, options, out);
}
