/* A program that checks itself, for test_here.py: objects of all sizes come, change their size and go, each filled by a rule; what it ends
 * with depends on every step. All of its state is on the heap; none of it is declared.
 *
 *	here_objects STEPS [NAP_US [SHIFT [EVERY]]]    SHIFT: allocates that much more at its start; EVERY: steps between checkpoints */
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <varve/varve_here.h>

enum { SLOTS = 3000, PER_STEP = 400 };

struct object {
	uint8_t *p;
	size_t n;
	uint64_t seed;
	char *name;
};

static struct state {
	long step;
	uint64_t random, sum;
	struct object slot[SLOTS];
} *st; /* the variable is not saved; where it points to is the same each time */
static void *volatile more;

static uint64_t draw(void)
{
	st->random ^= st->random << 13;
	st->random ^= st->random >> 7;
	return st->random ^= st->random << 17;
}

static void die(const char *what, const struct object *o)
{
	fprintf(stderr, "step %ld: %s: object of %zu bytes at %p\n", st->step, what, o->n, (void *)o->p);
	exit(3);
}

static uint8_t rule(const struct object *o, size_t i)
{
	return (uint8_t)((o->seed >> (i % 57)) + i);
}

static void fill(struct object *o, size_t from)
{
	for (size_t i = from; i < o->n; i++)
		o->p[i] = rule(o, i);
}

static void check(const struct object *o)
{
	for (size_t i = 0; i < o->n; i += i < 512 ? 1 : 61)
		if (o->p[i] != rule(o, i))
			die("another content", o);
	if (malloc_usable_size(o->p) < o->n)
		die("too little room", o);
	st->sum = st->sum * 31 + o->seed + o->n + strlen(o->name);
}

static size_t size(void)
{
	uint64_t kind = draw() % 100;

	return kind < 60 ? draw() % 200 : kind < 90 ? draw() % 8000 : kind < 99 ? draw() % 100000 : draw() % 400000;
}

static void make(struct object *o)
{
	size_t align = (size_t)16 << draw() % 9;
	char text[32];

	*o = (struct object){ .n = size(), .seed = draw() };
	switch (draw() % 4) {
	case 0:
		o->p = malloc(o->n);
		break;
	case 1:
		o->p = calloc(o->n ? o->n : 1, 1);
		for (size_t i = 0; i < o->n; i++)
			if (o->p[i])
				die("not zero", o);
		break;
	case 2:
		o->p = memalign(align, o->n);
		if ((uintptr_t)o->p % align)
			die("not aligned", o);
		break;
	default:
		if (posix_memalign((void **)&o->p, align, o->n) != 0)
			o->p = NULL;
	}
	snprintf(text, sizeof(text), "%llx", (unsigned long long)o->seed);
	o->name = strdup(text);
	if (!o->p || !o->name)
		die("no memory", o);
	fill(o, 0);
}

static void change(struct object *o)
{
	size_t before;
	uint8_t *p;

	if (!o->p) {
		make(o);
		return;
	}
	check(o);
	if (draw() % 3 == 0) {
		free(o->p);
		free(o->name);
		*o = (struct object){ 0 };
		return;
	}
	before = o->n;
	o->n = size();
	p = realloc(o->p, o->n ? o->n : 1);
	if (!p)
		die("no memory", o);
	o->p = p;
	fill(o, before < o->n ? before : o->n);
	check(o);
}

int main(int argc, char **argv)
{
	long steps = argc > 1 ? atol(argv[1]) : 50;
	useconds_t nap = argc > 2 ? (useconds_t)atol(argv[2]) : 0;
	long every = argc > 4 ? atol(argv[4]) : 1;

	if (argc > 3 && atol(argv[3]))
		more = malloc((size_t)atol(argv[3]));
	st = calloc(1, sizeof(*st));
	st->random = 88172645463325252u;
	for (int i = 0; i < SLOTS / 4; i++)
		make(&st->slot[draw() % SLOTS]);
	while (st->step < steps) {
		for (int i = 0; i < PER_STEP; i++)
			change(&st->slot[draw() % SLOTS]);
		st->step++;
		if (st->step % every == 0 && varve_checkpoint_here() < 0)
			return 4;
		usleep(nap);
	}
	for (int i = 0; i < SLOTS; i++)
		if (st->slot[i].p)
			check(&st->slot[i]);
	printf("%ld %llx\n", st->step, (unsigned long long)st->sum);
	return 0;
}
