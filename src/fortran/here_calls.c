/* varve_checkpoint_here for Fortran: what libvarve_preload.so does where it is, and nothing where it is not. Neither it nor libvarve
 * need be linked: the same binary runs with and without. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

int varve_fortran_here(void);
void varve_fortran_here_say(void);
int varve_checkpoint_here_(void);

/* Asked for by name at run time: on some machines a weak symbol is settled when the program is linked, if it has a fixed address. */
int varve_fortran_here(void)
{
	int (*here)(void) = NULL;

	*(void **)&here = dlsym(RTLD_DEFAULT, "varve_checkpoint_here");
	return here ? here() : 0;
}

/* Why it failed. */
void varve_fortran_here_say(void)
{
	const char *(*last_error)(void) = NULL;

	*(void **)&last_error = dlsym(RTLD_DEFAULT, "varve_last_error");
	fprintf(stderr, "varve_checkpoint_here: %s\n", last_error ? last_error() : "it failed");
}

/* CALL VARVE_CHECKPOINT_HERE() in programs that use no module, which go on without the checkpoint. As an INTEGER FUNCTION it tells: 1 the program
 * has just come back, 0 it goes on, < 0 it failed. */
int varve_checkpoint_here_(void)
{
	int rc = varve_fortran_here();

	if (rc < 0)
		varve_fortran_here_say();
	return rc;
}
