#include "preload/argv.h"
#include "preload/heap.h"
#include <string.h>

/* The copy has the same size for all usual command lines, so that different arguments do not change
 * the heap. */
enum { ROOM = 4096 };

static char **list;          /* of this run, on the stack */
static int count;
static char *original;       /* contiguous */
static char *copy;
static size_t size;

/* Returns the length of the arguments; 0: other code has changed the list before. */
static size_t measure(int argc, char **argv)
{
	const char *end = argc > 0 ? argv[0] : NULL;

	for (int i = 0; i < argc; i++) {
		if (argv[i] != end)
			return 0;
		end += strlen(end) + 1;
	}
	return argc > 0 ? (size_t)(end - argv[0]) : 0;
}

void vv_argv_begin(int argc, char **argv)
{
	size = measure(argc, argv);
	copy = size ? vv_heap_alloc_zeroed((size + ROOM - 1) / ROOM * ROOM) : NULL;
	if (!copy)
		return;
	list = argv;
	count = argc;
	original = argv[0];
	memcpy(copy, original, size);
	for (int i = 0; i < argc; i++)
		argv[i] = copy + (argv[i] - original);
}

bool vv_argv_is_moved(void)
{
	return copy;
}

void vv_argv_restored(void)
{
	if (!copy || memcmp(copy, original, size) == 0)
		return;
	for (int i = 0; i < count; i++) {
		uintptr_t at = (uintptr_t)list[i] - (uintptr_t)copy;

		if (at < size)
			list[i] = original + at;
	}
}
