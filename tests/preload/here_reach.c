/* A graph of objects of all sizes that changes in each step. Links lead to any byte of an object and lie at any byte of another one, of a
 * variable, of a named region or of an object of the start-up. Objects that nothing links to any more are not freed.
 * here_reach STEPS [hidden|shut]: walks the graph, takes so many steps and prints the number of objects of the graph, and of all.
 * hidden: the links are inverted, so that no search finds them. shut: a page of the start-up cannot be read during the first call. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <varve/varve_here.h>

enum { ROOTS = 8, LINKS = 4, ID = 0x5eed, MAX_WALK = 20000 };

struct link { /* never aligned */
	uint64_t offset; /* of the byte in the object */
	uintptr_t to;    /* at the very end of its place */
} __attribute__((packed));

struct object {
	uint64_t id, size, links_at, walk;
};

struct state {
	long step;
	uint64_t random, walk, made;
	char pad[3];
	struct link root[ROOTS];
};

static struct link of_variable[ROOTS]; /* part of the state by VARVE_RUN_GLOBALS */
static char of_region[ROOTS * sizeof(struct link) + 1];
static struct state *st;
static uintptr_t hide;

static void fail(const char *why)
{
	printf("FAILED: %s\n", why);
	exit(5);
}

static uint64_t draw(void)
{
	st->random ^= st->random << 13;
	st->random ^= st->random >> 7;
	return st->random ^= st->random << 17;
}

/* Any number, as often few as many, and now and then more than a MiB. */
static size_t draw_size(void)
{
	size_t most = (size_t)256 << (draw() % 64 ? draw() % 5 : 14);

	return sizeof(struct object) + LINKS * sizeof(struct link) + draw() % most;
}

static uint8_t pattern(const struct object *o, size_t i)
{
	return (uint8_t)(0x80 | (o->id * 131 + i * 7));
}

static struct object *make(void)
{
	size_t n = draw_size(), room = n - sizeof(struct object) - LINKS * sizeof(struct link);
	struct object *o = malloc(n);
	uint8_t *byte = (uint8_t *)(o + 1);

	if (!o)
		fail("no memory");
	*o = (struct object){ ID + st->made++, n, draw() % (room + 1), 0 };
	for (size_t i = 0; i < n - sizeof(*o); i++)
		byte[i] = pattern(o, i);
	memset(byte + o->links_at, 0, LINKS * sizeof(struct link));
	return o;
}

static struct link link_to(struct object *o)
{
	uint64_t offset = draw() % 3 ? draw() % o->size : draw() % 2 ? 0 : o->size - 1;

	return (struct link){ offset, ((uintptr_t)o + offset) ^ hide };
}

static struct object *follow(struct link l)
{
	return l.to ? (struct object *)((l.to ^ hide) - l.offset) : NULL;
}

static void *links_of(struct object *o)
{
	return (uint8_t *)(o + 1) + o->links_at;
}

static void check(const struct object *o)
{
	const uint8_t *byte = (const uint8_t *)(o + 1);

	if (o->id < ID || o->id >= ID + st->made || o->links_at > o->size)
		fail("an object is not what it was");
	for (size_t i = 0; i < o->size - sizeof(*o); i++)
		if (i - o->links_at >= LINKS * sizeof(struct link) && byte[i] != pattern(o, i))
			fail("an object has other bytes");
}

static struct object *found[MAX_WALK];

static size_t add(size_t n, struct link l)
{
	struct object *o = follow(l);

	if (!o || o->walk == st->walk || n == MAX_WALK)
		return n;
	check(o);
	o->walk = st->walk;
	found[n] = o;
	return n + 1;
}

/* Finds the objects of the graph. */
static size_t walk(void)
{
	size_t n = 0;

	st->walk++;
	for (int i = 0; i < ROOTS; i++) {
		struct link l;

		memcpy(&l, of_region + 1 + (size_t)i * sizeof(l), sizeof(l));
		n = add(add(add(n, st->root[i]), of_variable[i]), l);
	}
	for (size_t i = 0; i < n; i++)
		for (int k = 0; k < LINKS; k++) {
			struct link l;

			memcpy(&l, (uint8_t *)links_of(found[i]) + (size_t)k * sizeof(l), sizeof(l));
			n = add(n, l);
		}
	return n;
}

static void set_root(unsigned i, struct link l)
{
	if (i < ROOTS)
		st->root[i] = l;
	else if (i < 2 * ROOTS)
		of_variable[i - ROOTS] = l;
	else
		memcpy(of_region + 1 + (i - 2 * ROOTS) * sizeof(l), &l, sizeof(l));
}

static void advance(void)
{
	size_t n = walk();

	for (int i = 0; i < 60; i++) {
		struct link l = link_to(make());

		if (n == 0 || draw() % 8 == 0)
			set_root((unsigned)(draw() % (3 * ROOTS)), l);
		else
			memcpy((uint8_t *)links_of(found[draw() % n]) + (draw() % LINKS) * sizeof(l), &l, sizeof(l));
	}
	st->step++;
}

int main(int argc, char **argv)
{
	long steps = atol(argv[1]);
	void *page = aligned_alloc(4096, 4096);

	hide = argc > 2 && strcmp(argv[2], "hidden") == 0 ? UINTPTR_MAX : 0;
	st = calloc(1, sizeof(*st));
	if (!st || !page)
		fail("no memory");
	st->random = 88172645463325252u;
	varve_root_here(st);
	if (varve_protect_here("region", of_region, sizeof(of_region)) < 0 || varve_except_here(found, sizeof(found)) < 0)
		fail("what belongs to the state");
	if (argc > 2 && strcmp(argv[2], "shut") == 0)
		mprotect(page, 4096, PROT_NONE);
	if (varve_checkpoint_here() < 0)
		fail("the first call");
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
	for (; steps; steps--) {
		advance();
		if (varve_checkpoint_here() < 0)
			fail("a call");
	}
	printf("%ld %zu %llu\n", st->step, walk(), (unsigned long long)st->made);
	return 0;
}
