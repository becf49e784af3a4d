/* usage: here_lazy STEPS: counts in a variable of the executable, and calls a function of a library, whose address the loader finds at the first call. */
#include <stdio.h>
#include <stdlib.h>
#include <varve/varve_here.h>

extern int outside(void);
static long step;

int main(int argc, char **argv)
{
	long steps = argc > 1 ? atol(argv[1]) : 3;

	while (step < steps) {
		if (varve_checkpoint_here() < 0)
			return 4;
		if (outside() != 7)
			return 5;
		step++;
	}
	printf("%ld\n", step);
	return 0;
}
