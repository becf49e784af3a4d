// The smallest user of an installed libvarve_mpi: is told that it forgot MPI_Init.
#include <varve/varve_mpi.h>

#include <stdio.h>

int main(void)
{
	varve *v = NULL;
	int rc = varve_open_mpi(MPI_COMM_WORLD, "mem:consumer", "a", NULL, &v);

	printf("%s\n", varve_last_error());
	return rc != VARVE_EINVAL || v;
}
