/* usage: here_libraries STEPS GAP [LIBRARY ODD]...: loads libraries, with so many bytes mapped before them, page by page, so that they fill
 * every hole that a library would fit; each is told to allocate ODD bytes, unless they are 0. Counts to STEPS, a checkpoint before each. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <varve/varve_here.h>

enum { PAGE = 4096 };

static void load(const char *name, size_t odd)
{
	void *library = dlopen(name, RTLD_NOW);
	void (*fn)(size_t) = library ? (void (*)(size_t))dlsym(library, "allocate") : NULL;

	if (!fn) {
		fprintf(stderr, "%s\n", dlerror());
		exit(3);
	}
	if (odd)
		fn(odd);
}

int main(int argc, char **argv)
{
	long *state = malloc(sizeof(*state)), steps = atol(argv[1]), gap = atol(argv[2]);
	int rc;

	for (long at = 0; at < gap; at += PAGE)
		mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 3; i + 1 < argc; i += 2)
		load(argv[i], (size_t)atol(argv[i + 1]));
	varve_root_here(state);
	*state = 0;
	while (*state < steps) {
		rc = varve_checkpoint_here();
		if (rc < 0)
			return 4;
		++*state;
	}
	printf("%ld\n", *state);
	return 0;
}
