/* The lineage's record is lost or damaged: its epochs are not. They restore, verify names the loss, and the next writer
 * puts the record back, with the same id. */
#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"
#include "core/format/name.h"
#include "engine/lineage/catalog.h"
#include "engine/upkeep/verify.h"
#include "store/dir/dir.h"
#include "support/lazyfs.h"
#include "support/place.h"
#include "support/settle.h"
#include "vv_test.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <varve/varve.h>

static uint8_t region[20000];

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

static size_t problems(struct vv_store *s, uint8_t id[16])
{
	struct vv_verify_report report;
	struct vv_lineage lin;
	struct vv_pool *pool = NULL;

	ok(vv_pool_new(0, &pool));
	ok(vv_catalog_open(s, "a", false, &lin));
	ok(vv_verify_run(&lin, pool, 0, false, NULL, NULL, NULL, &report));
	memcpy(id, lin.id, 16);
	vv_pool_free(pool);
	return report.problems;
}

static void lay_down(const char *url, int value)
{
	varve *v = NULL;

	ok(varve_open(url, "a", NULL, &v));
	ok(varve_protect(v, "r", region, sizeof(region)));
	ok(varve_restart(v, VARVE_LATEST));
	CHECK(value == 1 || region[7] == value - 1);
	memset(region, value, sizeof(region));
	ok(settle_checkpoint(v));
	ok(varve_close(v));
	memset(region, 0, sizeof(region));
}

static void lose(struct vv_store *s, int how)
{
	uint8_t *p = NULL;
	size_t n = 0;

	if (how < 0) {
		ok(vv_store_remove(s, "a/lineage"));
		return;
	}
	ok(vv_store_get(s, "a/lineage", 4096, &p, &n));
	p[how] ^= 0x40;
	ok(vv_store_put(s, "a/lineage", p, n));
	vv_mem_free(p);
}

/* ---- and the newest commit record cannot be read ------------------------------------------------------------------------------- */

static struct vv_fs odd;
static int odd_errno;

static int odd_open(const struct vv_fs *fs, const char *path, int flags, mode_t mode)
{
	(void)fs;
	if (odd_errno && strstr(path, "0000000003.commit")) {
		errno = odd_errno;
		return -1;
	}
	return lazyfs()->open(lazyfs(), path, flags, mode);
}

/* Older ones have the same id. */
static void pass_over(int errnum)
{
	struct vv_store_options opt = { 0 };
	struct vv_store *s = NULL;
	struct vv_lineage before, after;
	struct vv_listing l = { 0 };
	char url[PLACE_MAX];

	place_remove(place_path(url, "odd"));
	place_make_dir(url);
	odd_errno = 0;
	for (int value = 1; value <= 3; value++)
		lay_down(url, value);
	ok(vv_store_open(url, &opt, &s));
	ok(vv_catalog_open(s, "a", false, &before));
	lose(s, -1);
	odd_errno = errnum;
	ok(vv_catalog_open(s, "a", false, &after));
	CHECK(after.recovered && memcmp(before.id, after.id, sizeof(before.id)) == 0);
	ok(vv_catalog_list(&after, 0, &l));
	CHECK_EQ(l.n_epochs, 3);
	vv_catalog_listing_fini(&l);
	vv_store_close(s);
}

/* The lineage is there, and is not begun anew. */
static void none_readable(void)
{
	struct vv_store_options opt = { 0 };
	struct vv_store *s = NULL;
	struct vv_lineage lin;
	char name[VV_NAME_MAX];
	uint8_t *p = NULL;
	size_t n = 0;

	ok(vv_store_open("mem:none", &opt, &s));
	lay_down("mem:none", 1);
	lose(s, -1);
	vv_name_commit(name, "a", 1);
	ok(vv_store_get(s, name, 4096, &p, &n));
	p[n / 2] ^= 1;
	ok(vv_store_put(s, name, p, n));
	vv_mem_free(p);
	CHECK_EQ(vv_catalog_open(s, "a", true, &lin), VV_EDAMAGED);
	CHECK(strstr(vv_err_last(), "no commit record can be read, such as that of epoch 1"));
	CHECK_EQ(vv_store_get(s, "a/lineage", 4096, &p, &n), VV_ENOENT);
	vv_store_close(s);
}

int main(void)
{
	struct vv_store_options opt = { 0 };
	struct vv_store *s = NULL;
	struct vv_names names = { 0 };
	uint8_t id[16], again[16];
	int value = 1;

	ok(vv_store_open("mem:record", &opt, &s));
	lay_down("mem:record", value++);
	CHECK_EQ(problems(s, id), 0);
	for (int how = -1; how < 56; how++) {
		lose(s, how);
		ok(vv_catalog_lineages(s, &names));
		CHECK_EQ(names.n, 1);
		vv_names_fini(&names);
		CHECK_EQ(problems(s, again), 1);
		CHECK(memcmp(id, again, 16) == 0);
		lay_down("mem:record", value++);
		CHECK_EQ(problems(s, again), 0);
		CHECK(memcmp(id, again, 16) == 0);
	}
	vv_store_close(s);
	none_readable();
	odd = *lazyfs();
	odd.open = odd_open;
	vv_dir_set_fs(&odd);
	pass_over(ENXIO); /* not a regular file */
	pass_over(ENOENT); /* removed after it was listed */
	return 0;
}
