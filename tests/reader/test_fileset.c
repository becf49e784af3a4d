// The checkpoint set that other tests pack: each file is what it says, the same every time, and most of them change with the step.
#include "support/fileset.h"
#include "support/outlines.h"
#include "support/place.h"
#include "vv_test.h"

enum { RANKS = 4, MAX = 64 };

static const struct {
	const char *format;
	size_t pieces;
	bool changes;
} want[FILESET_KINDS] = {
	[FILESET_FIELD] = { "npy", 1, true },   [FILESET_STATE] = { "netcdf", 2 + 2 * 3, true }, [FILESET_RESTART] = { "fortran", 1, true },
	[FILESET_LOG] = { "opaque", 0, true },  [FILESET_EMPTY] = { "opaque", 0, false },        [FILESET_SPARSE] = { "opaque", 0, true },
	[FILESET_NOISE] = { "opaque", 0, true },
};

static uint8_t *load(const char *folder, const char *name, size_t *n)
{
	char path[PLACE_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return place_read(path, n);
}

static void check(enum fileset_kind kind, const char *name, const char *const folder[3])
{
	uint8_t *p[3];
	size_t n[3];
	struct vv_outline o;

	for (int i = 0; i < 3; i++)
		p[i] = load(folder[i], name, &n[i]);
	CHECK(n[0] == n[1] && memcmp(p[0], p[1], n[0]) == 0);
	CHECK_EQ(n[0] != n[2] || memcmp(p[0], p[2], n[0]) != 0, want[kind].changes);
	o = outlines_get(p[0], n[0], name, want[kind].format);
	CHECK_EQ(o.n_pieces, want[kind].pieces);
	vv_reader_outline_fini(&o);
	for (int i = 0; i < 3; i++)
		free(p[i]);
}

int main(void)
{
	char path[3][PLACE_MAX], list[MAX][FILESET_NAME], name[FILESET_NAME];
	const char *folder[3];
	size_t n = fileset_list(RANKS, list, MAX), found = 0;

	for (int i = 0; i < 3; i++) {
		char folder_name[8] = { 'a', (char)('0' + i), 0 };

		folder[i] = place_path(path[i], folder_name);
		fileset_write(folder[i], RANKS, i == 2 ? 1 : 0);
	}
	CHECK_EQ(n, 4 * RANKS + 3);
	for (unsigned rank = 0; rank < RANKS; rank++)
		for (unsigned kind = 0; kind < FILESET_KINDS; kind++)
			if (fileset_name(kind, rank, name)) {
				CHECK_STR(list[found++], name);
				check(kind, name, folder);
			}
	CHECK_EQ(found, n);
	return 0;
}
