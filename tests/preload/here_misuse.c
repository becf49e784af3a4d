/* What is said wrongly of the state: it is told at once, or else there is no checkpoint at all, rather than epochs that lack something. */
#include "expect.h"
#include <stdlib.h>
#include <string.h>
#include <varve/varve_here.h>

static long counter;

int main(int argc, char **argv)
{
	long *step = calloc(1, sizeof(*step));
	char name[1100] = "";

	memset(name, 'n', sizeof(name) - 1);
	expect("no name", varve_protect_here(NULL, &counter, sizeof(counter)) < 0 && varve_protect_here("", &counter, sizeof(counter)) < 0);
	expect("a name that is too long", varve_protect_here(name, &counter, sizeof(counter)) < 0);
	expect("a name of the heap's own", varve_protect_here("heap/00/00000", &counter, sizeof(counter)) < 0);
	expect("no memory", varve_protect_here("none", NULL, 8) < 0 && varve_except_here(NULL, 8) < 0);
	expect("a variable", varve_protect_here("counter", &counter, sizeof(counter)) == 0 && varve_protect_here("nothing", &counter, 0) == 0);
	if (argc > 1 && strcmp(argv[1], "more than there is") == 0)
		expect("what cannot be known yet", varve_protect_here("all", &counter, SIZE_MAX) == 0);
	varve_root_here(step);
	for (; *step < 3; ++*step)
		printf("%d ", varve_checkpoint_here() < 0);
	expect("too late", varve_protect_here("late", &counter, sizeof(counter)) < 0 && varve_except_here(step, sizeof(*step)) < 0);
	puts(bad ? "bad" : "good");
	return bad != 0;
}
