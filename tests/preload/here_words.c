/* Words of the command line that the state points to: they are those of the run that it began with, whatever this one was given, and however long its
 * environment is; and what this run was given is in argv. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <varve/varve_here.h>

struct state {
	long step;
	const char *name, *word[3];
};

int main(int argc, char **argv)
{
	struct state *s = calloc(1, sizeof(*s));
	long steps = argc > 3 ? atol(argv[3]) : 0;

	s->name = argv[0];
	for (int i = 0; i < 3 && i + 1 < argc; i++)
		s->word[i] = argv[i + 1];
	varve_root_here(s);
	for (; s->step < steps; s->step++) {
		varve_checkpoint_here();
		usleep(1000);
	}
	printf("%s: %s %s; now %s %s\n", s->name, s->word[0], s->word[1], argv[1], argv[2]);
	return 0;
}
