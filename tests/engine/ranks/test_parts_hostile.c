// ctest: TIMEOUT 60 COST 2
/* Parts that no call can declare, but a store may have: records of other lengths or fields in one array, and items of a list that are not its rows.
 * Each is refused, or has a shape of as many bytes as there are. */
#include "core/format/distribution.h"
#include "engine/context.h"
#include "engine/memory_region.h"
#include "support/parts.h"
#include <varve/varve_read.h>

static char store[PLACE_MAX];

static struct vv_distribution *part_of(varve *v, const char *name)
{
	for (size_t i = 0; i < v->n_regions; i++)
		if (strcmp(v->region[i]->name, name) == 0)
			return v->region[i]->part = vv_distribution_copy(&(struct vv_distribution){ 0 });
	abort();
}

static void records(varve *v, const char *name, void *p, size_t n, size_t bytes, const char *field)
{
	struct varve_field f = { field, VARVE_F64, 0, 8 };

	OK(varve_protect_records(v, name, p, n, bytes, &f, 1));
}

/* Two parts of an array of 8 elements. */
static void slab(varve *v, const char *name, uint64_t start)
{
	*part_of(v, name) = (struct vv_distribution){ .kind = VV_DISTRIBUTION_SLAB, .global = { 8 }, .start = { start } };
}

static varve *begin(void)
{
	varve *v = NULL;

	place_remove(store);
	OK(varve_open(store, "job", "mode=sync", &v));
	return v;
}

static void end(varve *v)
{
	OK(varve_checkpoint(v));
	OK(varve_close(v));
}

static int read_whole(const char *name, size_t bytes, uint8_t *to)
{
	varve_reader *r = NULL;
	int rc;

	OK(varve_reader_open(store, "job", NULL, &r));
	memset(to, 0xee, bytes);
	rc = varve_reader_read_part(r, VARVE_LATEST, VARVE_GLOBAL, name, NULL, NULL, to);
	varve_reader_close(r);
	return rc;
}

static void other_records(size_t bytes, const char *field, bool same)
{
	double a[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, b[32] = { 0 };
	uint8_t to[8 * 64];
	varve *v = begin();

	must_begin("records of %zu bytes, field %s", bytes, field);
	records(v, "T#0", a, 4, 16, "x");
	records(v, "T#1", b, 4, bytes, field);
	slab(v, "T#0", 0);
	slab(v, "T#1", 4);
	end(v);
	if (same) {
		OK(read_whole("T", sizeof(to), to));
		MUST(memcmp(to, a, 64) == 0 && memcmp(to + 64, b, 64) == 0 && to[128] == 0xee);
	} else {
		MUST(read_whole("T", sizeof(to), to) == VARVE_EMISMATCH);
		MUST(strstr(varve_last_error(), "'T'"));
	}
}

static void bytes_beside_records(void)
{
	uint8_t a[64] = { 1 }, b[4] = { 2 }, to[8 * 64];
	size_t n = 4;
	varve *v = begin();

	must_begin("bytes beside records");
	records(v, "T#0", a, 4, 16, "x");
	OK(varve_protect_array(v, "T#1", b, VARVE_U8, 1, &n));
	slab(v, "T#0", 0);
	slab(v, "T#1", 4);
	end(v);
	MUST(read_whole("T", sizeof(to), to) == VARVE_EMISMATCH);
}

/* 4 rows of 3 numbers, as 12 items of a number each. */
static void items_and_rows(void)
{
	double a[12], to[37];
	size_t shape[2] = { 4, 3 };
	varve *v = begin();
	varve_reader *r = NULL;
	const struct varve_stored_region *const *region;
	size_t n, elements = 1;

	must_begin("items and rows");
	for (int i = 0; i < 12; i++)
		a[i] = i;
	OK(varve_protect_array(v, "L", a, VARVE_F64, 2, shape));
	*part_of(v, "L") = (struct vv_distribution){ .kind = VV_DISTRIBUTION_LIST, .item = 8 };
	end(v);
	OK(varve_reader_open(store, "job", NULL, &r));
	OK(varve_reader_regions(r, VARVE_LATEST, VARVE_GLOBAL, &region, &n));
	MUST(n == 1);
	for (int i = 0; i < region[0]->ndim; i++)
		elements *= region[0]->shape[i];
	MUST(elements * region[0]->element == region[0]->bytes && region[0]->bytes == sizeof(a));
	varve_reader_close(r);
	OK(read_whole("L", sizeof(to), (uint8_t *)to));
	MUST(memcmp(to, a, sizeof(a)) == 0);
}

int main(void)
{
	place_path(store, "hostile");
	other_records(16, "x", true);
	other_records(8, "x", false);
	other_records(64, "x", false);
	other_records(16, "y", false);
	bytes_beside_records();
	items_and_rows();
	place_remove(store);
	return 0;
}
