/* Graphs like those of the paper, of any size. All are drawn on a grid whose vertices are numbered in strips of 32
 * columns, row after row: near ones have near numbers, as after the reordering (Gorder) that is usual before such a
 * count. */
#include <math.h>
#include <string.h>
#include "complain.h"
#include "graph.h"

struct canvas {
	uint32_t width, height;
	uint64_t random;
	struct edges *e;
	bool failed;
};

enum { STRIP = 32 };

/* splitmix64 */
static uint64_t roll(struct canvas *c)
{
	uint64_t z = c->random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static bool chance(struct canvas *c, unsigned per_mille)
{
	return roll(c) % 1000 < per_mille;
}

static uint32_t at(const struct canvas *c, uint32_t x, uint32_t y)
{
	uint32_t strip = x - x % STRIP, width = c->width - strip < STRIP ? c->width - strip : STRIP;

	return strip * c->height + y * width + x % STRIP;
}

/* What would lead out of the grid is left out. */
static void draw(struct canvas *c, uint32_t x, uint32_t y, uint32_t to_x, uint32_t to_y)
{
	if (to_x < c->width && to_y < c->height && !edges_add(c->e, at(c, x, y), at(c, to_x, to_y)))
		c->failed = true;
}

/* Long streets, some dead ends, few crossings, and one road along the edge that joins them: 2.1 neighbours on
 * average. */
static void road(struct canvas *c, uint32_t x, uint32_t y)
{
	if (chance(c, 975))
		draw(c, x, y, x + 1, y);
	if (x == 0 || chance(c, 90))
		draw(c, x, y, x, y + 1);
}

/* Squares cut along the one diagonal or the other: 6 neighbours on average, as in every triangulation. */
static void triangulation(struct canvas *c, uint32_t x, uint32_t y)
{
	draw(c, x, y, x + 1, y);
	draw(c, x, y, x, y + 1);
	if (x + 1 == c->width)
		return;
	if (chance(c, 500))
		draw(c, x, y, x + 1, y + 1);
	else
		draw(c, x + 1, y, x, y + 1);
}

/* Bricks, which are hexagons; one edge in 200 is missing. */
static void hexagonal(struct canvas *c, uint32_t x, uint32_t y)
{
	if (chance(c, 995))
		draw(c, x, y, x + 1, y);
	if ((x + y) % 2 && chance(c, 995))
		draw(c, x, y, x, y + 1);
}

/* A row is a process, its events in the order of time: it sends to the next process and receives from the one
 * before, in turns. One message in 50 is overtaken: another receive of the same strip gets it. */
static void events(struct canvas *c, uint32_t x, uint32_t y)
{
	uint32_t receive = x + 1;

	draw(c, x, y, x + 1, y);
	if (x % 2)
		return;
	if (chance(c, 20))
		receive = x - x % STRIP + (uint32_t)(roll(c) % (STRIP / 2)) * 2 + 1;
	draw(c, x, y, receive, y + 1);
}

static const struct kind {
	const char *name;
	void (*draw)(struct canvas *c, uint32_t x, uint32_t y);
} kinds[] = { { "road", road }, { "triangulation", triangulation }, { "hexagonal", hexagonal }, { "events", events } };

static const struct kind *find(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

bool graph_is_kind(const char *name)
{
	return find(name) != NULL;
}

bool graph_make(struct graph *g, const char *name, uint32_t vertices, uint64_t seed)
{
	const struct kind *kind = find(name);
	struct edges e = { 0 };
	struct canvas c = { .width = (uint32_t)sqrt((double)vertices), .random = seed, .e = &e };
	bool fine;

	if (!kind || c.width == 0)
		return complain("no graph '%s' of %u vertices", name, vertices);
	c.height = vertices / c.width;
	if (!room_for(32 * (uint64_t)vertices, "the graph"))
		return false;
	for (uint32_t y = 0; y < c.height && !c.failed; y++)
		for (uint32_t x = 0; x < c.width; x++)
			kind->draw(&c, x, y);
	fine = !c.failed && graph_build(g, c.width * c.height, &e);
	edges_free(&e);
	return fine;
}
