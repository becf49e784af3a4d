/* The smallest program that survives its own death: each run goes on where the last one stopped.
 *
 *	build/examples/first; build/examples/first; build/varve ls ckpt
 */
#include <stdio.h>
#include <varve/varve.h>

int main(int argc, char **argv)
{
	static double field[100000];
	int step = 0, rc;
	uint64_t epoch;
	varve *v = NULL;

	if (varve_open(argc > 1 ? argv[1] : "ckpt", "first", NULL, &v) < 0 ||
	    varve_protect(v, "step", &step, sizeof(step)) < 0 ||
	    varve_protect(v, "field", field, sizeof(field)) < 0 ||
	    varve_restart(v, VARVE_LATEST) < 0)
		goto fail;
	printf("step %d, field[0] = %g\n", step, field[0]);
	for (int todo = 10; todo > 0; todo--) {
		field[step++ % 100000] += 1;
		if (varve_checkpoint(v) < 0) /* this one could not be taken, or the one before not be stored */
			goto fail;
	}
	epoch = varve_epoch(v);
	rc = varve_close(v); /* waits until the last one is durable, or says why it is not */
	v = NULL;
	if (rc < 0)
		goto fail;
	printf("step %d is safe in epoch %llu: run me again\n", step, (unsigned long long)epoch);
	return 0;
fail:
	fprintf(stderr, "first: %s\n", varve_last_error());
	varve_close(v);
	return 1;
}
