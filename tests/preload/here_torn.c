/* A heap whose marks contradict each other, as another thread leaves them that allocates while the checkpoint is taken. Such an epoch comes back, and all of its
 * objects can be used, resized and freed. The first life makes it, the second one uses it. */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <varve/varve_here.h>

enum { LARGE = 1 << 20, OBJECTS = 1000 };

static struct state {
	long life;
	char *large, *small[OBJECTS];
} *st;

/* As heap.c lays them out: 4 TiB, 63 times 64 GiB, 4 TiB, 15 TiB, and a byte for each 16 of that. */
static uint8_t *mark(const char *p)
{
	uintptr_t lo = (uintptr_t)32 << 40, size = ((uintptr_t)23 << 40) + ((uintptr_t)63 << 36);

	return (uint8_t *)(lo + size + ((uintptr_t)p - lo) / 16);
}

static void make(void)
{
	st->large = memset(malloc(LARGE), 7, LARGE);
	for (int i = 0; i < OBJECTS; i++)
		st->small[i] = memset(malloc((size_t)i + 1), 7, (size_t)i + 1);
	if (*mark(st->large) == 0 || mark(st->large)[LARGE / 32])
		exit(3); /* the marks lie elsewhere */
	mark(st->large)[LARGE / 32] = 5;
	st->life = 1;
}

static int use(void)
{
	char *more = malloc(LARGE);

	memset(more, 8, LARGE);
	st->large = realloc(st->large, 2 * LARGE);
	for (int i = 0; i < OBJECTS; i++) {
		char *p = st->small[i];

		if (malloc_usable_size(p) < (size_t)i + 1 || p[i] != 7)
			return 5;
		if (i % 2)
			free(p);
		else
			st->small[i] = realloc(p, 5000);
		if (i % 2 == 0 && st->small[i][i] != 7)
			return 6;
	}
	for (int i = 0; i < LARGE; i++)
		if (st->large[i] != 7 || more[i] != 8)
			return 7;
	free(more);
	return 0;
}

int main(void)
{
	int rc = 0;

	st = calloc(1, sizeof(*st));
	if (varve_checkpoint_here() < 0)
		return 4;
	if (st->life == 0)
		make();
	else
		rc = use();
	if (varve_checkpoint_here() < 0)
		return 4;
	printf("%s\n", rc ? "wrong" : "fine");
	return rc;
}
