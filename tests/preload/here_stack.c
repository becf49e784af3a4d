/* In each step the program holds objects that only its stack points to at the checkpoint: many small ones, an array, and a list of
 * them. Arguments and output as those of here_scratch.c. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <varve/varve_here.h>

enum { SMALL = 3000, KEPT = 500 };

struct state {
	long step;
	uint64_t random, sum;
	char *kept[KEPT];
};

struct node {
	struct node *next;
	char text[100];
};

static uint64_t draw(struct state *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	return s->random ^= s->random << 17;
}

static void *need(size_t n, int byte)
{
	void *p = malloc(n);

	if (!p)
		exit(3);
	return memset(p, byte, n);
}

static struct node *make_list(struct state *s)
{
	struct node *first = NULL;

	for (int i = 0; i < SMALL; i++) {
		struct node *n = need(sizeof(*n), (int)draw(s));

		n->next = first;
		first = n;
	}
	return first;
}

/* The array is freed by its address, which the optimiser cannot keep anywhere but on the stack. */
static void advance(struct state *s)
{
	struct node *list = make_list(s);
	size_t n = 500000 + draw(s) % 1000000;
	char *array = need(n, (int)s->step);

	for (int i = 0; i < KEPT / 10; i++) {
		char **k = &s->kept[draw(s) % KEPT];

		free(*k);
		*k = need(1 + draw(s) % 2000, (int)s->step);
	}
	s->sum = s->sum * 31 + (uint8_t)array[n / 2] + (uint8_t)list->text[3];
	s->step++;
	if (varve_checkpoint_here() < 0)
		exit(4);
	free(array);
	while (list) {
		struct node *next = list->next;

		free(list);
		list = next;
	}
}

int main(int argc, char **argv)
{
	long last = argc > 1 ? atol(argv[1]) : 10;
	struct state *s = calloc(1, sizeof(*s));
	char line[200];
	FILE *f;

	if (!s)
		return 3;
	s->random = 88172645463325252u;
	varve_root_here(s);
	/* The first call restores; it must not come with objects of a step. */
	if (varve_checkpoint_here() < 0)
		return 4;
	while (s->step < last)
		advance(s);
	printf("%ld %llx\n", s->step, (unsigned long long)s->sum);
	f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmHWM:", 6) == 0)
			fputs(line, stdout);
	return 0;
}
