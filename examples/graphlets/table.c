/* The table in the host's memory. */
#include "table.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "complain.h"
#include "graph.h"

enum { PAGE = 4096 }; /* pages of its own: what is written beside it does not make it dirty */

static bool host_open(struct table *t)
{
	size_t bytes = (table_cells(t) * sizeof(*t->counts) + PAGE - 1) / PAGE * PAGE;

	if (!room_for(bytes, "the table"))
		return false;
	t->counts = aligned_alloc(PAGE, bytes);
	if (!t->counts)
		return complain("no memory for a table of %zu bytes", bytes);
	memset(t->counts, 0, bytes);
	return true;
}

static bool host_add(struct table *t, const struct tally *what, size_t n)
{
	size_t by_vertex = t->columns ? 1 : t->orbits, by_orbit = t->columns ? t->vertices : 1;

	for (const struct tally *w = what; w < what + n; w++) {
		uint32_t *cell = t->counts + w->vertex * by_vertex + w->orbit * by_orbit;

		if (__atomic_fetch_add(cell, w->count, __ATOMIC_RELAXED) > UINT32_MAX - w->count)
			return complain("vertex %" PRIu32 " touches orbit %" PRIu32 " more than %" PRIu32 " times: a counter overflowed",
					w->vertex, w->orbit, UINT32_MAX);
	}
	return true;
}

static bool host_read(struct table *t, uint32_t *out)
{
	memcpy(out, t->counts, table_cells(t) * sizeof(*out));
	return true;
}

static void host_close(struct table *t)
{
	free(t->counts);
}

const struct table_kind table_host = { host_open, host_add, host_read, host_close };

struct table *table_new(const struct table_kind *kind, uint32_t vertices, uint32_t orbits, bool columns)
{
	struct table *t = calloc(1, sizeof(*t));

	if (!t) {
		complain("no memory");
		return NULL;
	}
	*t = (struct table){ .kind = kind, .vertices = vertices, .orbits = orbits, .columns = columns };
	if (kind->open(t))
		return t;
	free(t);
	return NULL;
}

bool table_add(struct table *t, const struct tally *what, size_t n)
{
	return n == 0 || t->kind->add(t, what, n);
}

uint32_t *table_read(struct table *t)
{
	uint32_t *out = malloc((table_cells(t) + 1) * sizeof(*out));

	if (!out)
		complain("no memory to read the table");
	else if (!t->kind->read(t, out)) {
		free(out);
		out = NULL;
	}
	return out;
}

void table_free(struct table *t)
{
	if (!t)
		return;
	t->kind->close(t);
	free(t);
}
