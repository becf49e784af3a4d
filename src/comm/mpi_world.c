/* A session that ends in MPI_Finalize. libvarve_preload does not use mpi.h; it loads this library
 * when the program uses MPI. */
#include "comm/mpi.h"
#include <stdlib.h>
#include <varve/varve_mpi.h>

struct end {
	void (*fn)(void *arg);
	void *arg;
};

/* MPI_Finalize first deletes the attributes of MPI_COMM_SELF: the last moment at which ranks can
 * communicate. */
static int at_finalize(MPI_Comm comm, int key, void *attached, void *extra)
{
	struct end *e = attached;

	(void)comm, (void)extra;
	MPI_Comm_free_keyval(&key);
	e->fn(e->arg);
	free(e);
	return MPI_SUCCESS;
}

int varve_open_world(const char *store, const char *lineage, const char *options, void (*fn)(void *arg), void *arg, varve **out)
{
	struct end *e = malloc(sizeof(*e));
	int key, rc;

	if (!e)
		return varve_fail(VARVE_ENOMEM, "varve_open_world: out of memory");
	*e = (struct end){ fn, arg };
	rc = varve_open_mpi(MPI_COMM_WORLD, store, lineage, options, out);
	if (rc) {
		free(e);
		return rc;
	}
	if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &key, NULL) == MPI_SUCCESS &&
	    MPI_Comm_set_attr(MPI_COMM_SELF, key, e) == MPI_SUCCESS)
		return 0;
	free(e);
	varve_close(*out);
	*out = NULL;
	return varve_fail(VARVE_EPEER, "varve_open_world: MPI_COMM_SELF takes no attributes");
}
