/* State in variables of the executable (`varve run --globals`), beside things there that are not: what is borrowed from libraries. And
 * children, which have no checkpoints of their own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <varve/varve_here.h>

static long step;
static unsigned long table[5000] = { 1 };
static char *text;
extern char **environ;
static const char *run; /* of this run, and no other */

static int child(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		text = realloc(text, 100000);
		_exit(varve_checkpoint_here() == 0 ? 0 : 9);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 8;
}

int main(int argc, char **argv)
{
	long steps = argc > 1 ? atol(argv[1]) : 50;
	useconds_t nap = argc > 2 ? (useconds_t)atol(argv[2]) : 0;

	run = argc > 3 ? argv[3] : "";
	if (varve_except_here(&run, sizeof(run)) < 0)
		return 4;
	while (step < steps) {
		for (int i = 1; i < 5000; i++)
			table[i] = table[i] * 31 + table[i - 1] + (unsigned long)step;
		text = realloc(text, (size_t)step + 2);
		text[step] = (char)('a' + table[17] % 26);
		text[++step] = 0;
		if (varve_checkpoint_here() < 0)
			return 4;
		if (step % 20 == 0 && child() != 0)
			return 5;
		usleep(nap);
	}
	if (!environ || !getenv("PATH") || strcmp(run, argc > 3 ? argv[3] : "") != 0)
		return 6;
	fprintf(stdout, "%ld %lx %zu\n", step, table[4999], strlen(text));
	return 0;
}
