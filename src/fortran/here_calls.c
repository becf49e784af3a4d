/* varve_checkpoint_here for Fortran: it calls libvarve_preload.so if that is loaded, and does
 * nothing otherwise. Neither that library nor libvarve need be linked: the same binary runs with
 * and without them. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

int varve_fortran_here(void);
void varve_fortran_here_say(void);
int varve_checkpoint_here_(void);

/* The symbol is looked up by name at run time. On some machines a weak symbol in a program with a
 * fixed address is resolved when the program is linked. */
int varve_fortran_here(void)
{
	int (*here)(void) = NULL;

	*(void **)&here = dlsym(RTLD_DEFAULT, "varve_checkpoint_here");
	return here ? here() : 0;
}

/* Prints the reason of the failure. */
void varve_fortran_here_say(void)
{
	const char *(*last_error)(void) = NULL;

	*(void **)&last_error = dlsym(RTLD_DEFAULT, "varve_last_error");
	fprintf(stderr, "varve_checkpoint_here: %s\n", last_error ? last_error() : "it failed");
}

/* CALL VARVE_CHECKPOINT_HERE() in programs that use no module, which continue without the
 * checkpoint. As an INTEGER FUNCTION it returns 1 if the program has just been restored, 0 if it
 * continues, < 0 if it failed. */
int varve_checkpoint_here_(void)
{
	int rc = varve_fortran_here();

	if (rc < 0)
		varve_fortran_here_say();
	return rc;
}
