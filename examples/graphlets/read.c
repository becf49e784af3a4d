/* Graphs from files, and into them. Matrix Market (math.nist.gov/MatrixMarket/formats.html): coordinate matrices, of
 * which only the places of the entries count. Edge lists: two numbers on a line, what follows them is passed over;
 * counted from 1 if there is no 0. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "complain.h"
#include "graph.h"

static const char banner[] = "%%MatrixMarket", blanks[] = " \t\r\n\v\f";

struct reader {
	const char *path;
	FILE *f;
	unsigned long line;
	bool more;  /* text holds a line */
	bool again; /* which has been looked at only */
	char text[4096];
};

#define complain_at(r, format, ...) complain("%s:%lu: " format, (r)->path, (r)->line, __VA_ARGS__)

/* Is there more behind a carriage return? Then that ends a line for who wrote it, and not for us. */
static bool goes_on(const char *text)
{
	const char *p = strchr(text, '\r');

	return p && p[strspn(p, blanks)];
}

static bool next(struct reader *r)
{
	size_t len;

	if (r->again) {
		r->again = false;
		return true;
	}
	errno = 0;
	r->line++;
	memset(r->text, '\n', sizeof(r->text)); /* so that a byte of 0 in the line is not taken for its end */
	r->more = fgets(r->text, sizeof(r->text), r->f) != NULL;
	if (!r->more)
		return !ferror(r->f) || complain_at(r, "cannot be read: %s", strerror(errno));
	len = strlen(r->text);
	if (memrchr(r->text, 0, sizeof(r->text)) != r->text + len)
		return complain_at(r, "a byte that is %d: no line of a graph", 0);
	if (goes_on(r->text))
		return complain_at(r, "more behind a carriage return: lines end with %s", "\\n or \\r\\n");
	if ((len == 0 || r->text[len - 1] != '\n') && !feof(r->f))
		return complain_at(r, "more than %zu bytes: no line of a graph", sizeof(r->text) - 2);
	/* complaints quote it, and go to terminals */
	for (char *p = r->text; *p; p++)
		if (!isprint((unsigned char)*p) && !isspace((unsigned char)*p))
			*p = '?';
	return true;
}

/* The next line that is neither empty nor a comment. */
static bool next_data(struct reader *r, const char *comments)
{
	const char *start;

	do {
		if (!next(r))
			return false;
		start = r->text + strspn(r->text, blanks);
	} while (r->more && (!*start || strchr(comments, *start)));
	return true;
}

/* A whole number at *at, which moves behind it. */
static bool number(const struct reader *r, char **at, const char *what, uint64_t most, uint64_t *out)
{
	char *start = *at + strspn(*at, blanks);
	size_t len = strcspn(start, blanks);
	int shown = len < 40 ? (int)len : 40;

	if (len == 0)
		return complain_at(r, "%s is missing", what);
	if (strspn(start, "0123456789") != len)
		return complain_at(r, "%s is '%.*s': not a number from 0 on", what, shown, start);
	errno = 0;
	*out = strtoull(start, at, 10);
	if (errno || *out > most)
		return complain_at(r, "%s is %.*s: more than %" PRIu64, what, shown, start, most);
	return true;
}

/* ---- edge lists -------------------------------------------------------------------------------------------------- */

static bool read_list(struct reader *r, struct edges *e, uint32_t *vertices)
{
	uint64_t least = UINT64_MAX, most = 0, end[2];

	while (next_data(r, "#%") && r->more) {
		char *at = r->text;

		if (!number(r, &at, "the first vertex", GRAPH_MAX_VERTICES - 1, &end[0]) ||
		    !number(r, &at, "the second vertex", GRAPH_MAX_VERTICES - 1, &end[1]) ||
		    !edges_add(e, (uint32_t)end[0], (uint32_t)end[1]))
			return false;
		for (int i = 0; i < 2; i++) {
			least = end[i] < least ? end[i] : least;
			most = end[i] > most ? end[i] : most;
		}
	}
	if (r->more)
		return false;
	if (e->count == 0)
		return complain("%s: no edges in it", r->path);
	for (size_t i = 0; least > 0 && i < e->count; i++) {
		e->pair[i][0]--;
		e->pair[i][1]--;
	}
	*vertices = (uint32_t)(most + (least == 0));
	return true;
}

/* ---- Matrix Market ----------------------------------------------------------------------------------------------- */

static bool among(const char *word, const char *const *words)
{
	while (*words && strcasecmp(word, *words) != 0)
		words++;
	return *words != NULL;
}

static bool read_banner(const struct reader *r, bool *valued)
{
	static const char *const fields[] = { "pattern", "real", "integer", NULL };
	static const char *const symmetries[] = { "general", "symmetric", "skew-symmetric", NULL };
	char object[32] = "", format[32] = "", field[32] = "", symmetry[32] = "";

	sscanf(r->text + strlen(banner), "%31s %31s %31s %31s", object, format, field, symmetry);
	if (strcasecmp(object, "matrix") != 0 || strcasecmp(format, "coordinate") != 0)
		return complain_at(r, "'%s %s': only 'matrix coordinate' is a graph", object, format);
	if (!among(field, fields))
		return complain_at(r, "entries of kind '%s': pattern, real or integer are known", field);
	if (!among(symmetry, symmetries))
		return complain_at(r, "symmetry '%s': general, symmetric or skew-symmetric are known", symmetry);
	*valued = strcasecmp(field, "pattern") != 0;
	return true;
}

static bool read_size(struct reader *r, uint64_t *vertices, uint64_t *entries)
{
	char *at = r->text;
	uint64_t columns;

	if (!next_data(r, "%"))
		return false;
	if (!r->more)
		return complain_at(r, "%s", "the line with the size is missing");
	if (!number(r, &at, "the number of rows", GRAPH_MAX_VERTICES, vertices) ||
	    !number(r, &at, "the number of columns", GRAPH_MAX_VERTICES, &columns) ||
	    !number(r, &at, "the number of entries", UINT64_MAX - 1, entries))
		return false;
	if (*vertices != columns)
		return complain_at(r, "%" PRIu64 " rows and %" PRIu64 " columns: only a square matrix is a graph", *vertices, columns);
	return *vertices > 0 || complain_at(r, "%s", "a matrix without rows");
}

static bool read_entry(struct reader *r, uint64_t vertices, bool valued, struct edges *e)
{
	char *at = r->text, *end;
	uint64_t row, column;

	if (!number(r, &at, "the row", vertices, &row) || !number(r, &at, "the column", vertices, &column))
		return false;
	if (row == 0 || column == 0)
		return complain_at(r, "%s", "row or column is 0: they count from 1");
	if (valued) {
		strtod(at, &end);
		if (end == at)
			return complain_at(r, "%s", "the value is missing");
		at = end;
	}
	if (at[strspn(at, blanks)])
		return complain_at(r, "%s", "more on the line than an entry");
	return edges_add(e, (uint32_t)(row - 1), (uint32_t)(column - 1));
}

static bool read_market(struct reader *r, struct edges *e, uint32_t *vertices)
{
	uint64_t size, entries;
	bool valued = false;

	if (!next(r) || !read_banner(r, &valued) || !read_size(r, &size, &entries))
		return false;
	while (next_data(r, "%") && r->more) {
		if (e->count == entries)
			return complain_at(r, "more than the %" PRIu64 " entries that were announced", entries);
		if (!read_entry(r, size, valued, e))
			return false;
	}
	if (r->more)
		return false;
	if (e->count < entries)
		return complain_at(r, "the file ends after %zu of %" PRIu64 " entries", e->count, entries);
	*vertices = (uint32_t)size;
	return true;
}

static bool read_edges(struct reader *r, struct edges *e, uint32_t *vertices)
{
	size_t len = strlen(r->path);

	if (!next(r))
		return false;
	r->again = true;
	if (r->more && strncasecmp(r->text, banner, strlen(banner)) == 0)
		return read_market(r, e, vertices);
	if (len > 4 && strcasecmp(r->path + len - 4, ".mtx") == 0)
		return complain_at(r, "a Matrix Market file begins with '%s'", banner);
	return read_list(r, e, vertices);
}

bool graph_read(struct graph *g, const char *path)
{
	struct reader r = { .path = path, .f = fopen(path, "r") };
	struct edges e = { 0 };
	uint32_t vertices = 0;
	bool fine;

	if (!r.f)
		return complain("cannot open '%s': %s (kinds of graphs that need no file: %s)", path, strerror(errno), GRAPH_KINDS);
	fine = read_edges(&r, &e, &vertices) && graph_build(g, vertices, &e);
	edges_free(&e);
	fclose(r.f);
	return fine;
}

bool graph_write(const struct graph *g, const char *path)
{
	FILE *f = fopen(path, "w");
	bool fine = f != NULL;

	if (f)
		fprintf(f, "%s matrix coordinate pattern symmetric\n%" PRIu32 " %" PRIu32 " %" PRIu64 "\n", banner, g->vertices,
			g->vertices, g->edges);
	for (uint32_t v = 0; fine && v < g->vertices; v++)
		for (uint64_t i = g->first[v]; i < g->first[v + 1] && g->neighbour[i] < v; i++)
			fprintf(f, "%" PRIu32 " %" PRIu32 "\n", v + 1, g->neighbour[i] + 1);
	if (f)
		fine = !ferror(f);
	if (f && fclose(f) != 0)
		fine = false;
	return fine || complain("cannot write '%s': %s", path, strerror(errno));
}
