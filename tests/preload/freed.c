/* As VELOC's heatdis_mem ends, for test_freed.py: freed STORE. Three checkpoints; the memory is freed, then the session is closed, and nobody looks at
 * what that returns. */
#include <stdlib.h>
#include <varve/varve.h>

enum { CELLS = 1 << 18, STEPS = 3 };

static void compute(double *g, double *h, int step)
{
	for (size_t i = 0; i < CELLS; i++) {
		h[i] = (double)(i * 7919 % 10007) + step;
		g[i] = h[i] * (double)i + step;
	}
}

int main(int argc, char **argv)
{
	double *h = malloc(sizeof(double) * CELLS), *g = malloc(sizeof(double) * CELLS);
	varve *v = NULL;
	int step = 0;

	if (argc < 2 || !h || !g || varve_open(argv[1], "heatdis", "", &v) < 0)
		return 1;
	varve_protect(v, "step", &step, sizeof(step));
	varve_protect(v, "h", h, sizeof(double) * CELLS);
	varve_protect(v, "g", g, sizeof(double) * CELLS);
	for (step = 1; step <= STEPS; step++) {
		compute(g, h, step);
		varve_checkpoint(v);
	}
	free(h);
	free(g);
	varve_close(v);
	return 0;
}
