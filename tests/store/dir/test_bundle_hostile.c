/* Bundles that nobody of ours wrote, or that the disk has spoilt: named in an error when a member is asked for, shown as
 * they are in a list, and no trouble for anything else in the folder. */
#include "base/err.h"
#include "base/log.h"
#include "core/format/digest.h"
#include "store/dir/dir.h"
#include "support/gen.h"
#include "support/lazyfs.h"
#include "support/members.h"
#include "support/place.h"
#include "vv_test.h"
#include <sys/stat.h>
#include <unistd.h>

enum { N = 3, EPOCH = 7, NEIGHBOUR = 8 };

static const struct members_object member[N] = { { 1, 5000 }, { 2, 100 }, { 3, 9000 } };
static const struct members_object neighbour[2] = { { 4, 6000 }, { 5, 700 } }; /* in a bundle, and plain */
static char root[PLACE_MAX], file[2 * PLACE_MAX], leaf[VV_NAME_MAX];
static struct vv_store *s;

static void make_store(void)
{
	char name[VV_NAME_MAX];

	place_remove(place_path(root, "store"));
	s = members_open(root);
	CHECK_EQ(members_bundle(s, EPOCH, 0, N, member, 12288), 0);
	CHECK_EQ(members_bundle(s, NEIGHBOUR, 0, 1, &neighbour[0], 8192), 0);
	CHECK_EQ(members_put(s, NEIGHBOUR, 1, neighbour[1]), 0);
	vv_name_bundle(name, MEMBERS_LINEAGE, EPOCH, 0, N - 1);
	snprintf(file, sizeof(file), "%s/%s", root, name);
	snprintf(leaf, sizeof(leaf), "%s", strrchr(name, '/') + 1);
}

static bool lists_bundle(size_t *n)
{
	struct vv_names v = { 0 };
	bool found = false;

	CHECK_EQ(vv_store_list(s, MEMBERS_FOLDER, &v), 0);
	for (size_t i = 0; i < v.n; i++)
		found |= strcmp(v.v[i].name, leaf) == 0;
	*n = v.n;
	vv_names_fini(&v);
	return found;
}

/* The bundle counts as damaged: it is listed itself, its members are not there, all else is. */
static void expect_refused(void)
{
	struct vv_get *g = NULL;
	char name[VV_NAME_MAX];
	size_t n;

	vv_store_close(s);
	s = members_open(root); /* without a memory */
	CHECK(lists_bundle(&n) && n == 3);
	for (uint32_t i = 0; i < N; i++) {
		vv_name_layer(name, MEMBERS_LINEAGE, EPOCH, i);
		CHECK_EQ(vv_store_get_open(s, name, &g), VV_EDAMAGED);
		CHECK(strstr(vv_err_last(), leaf));
	}
	CHECK_EQ(members_is(s, NEIGHBOUR, 0, neighbour[0]), 1);
	CHECK_EQ(members_is(s, NEIGHBOUR, 1, neighbour[1]), 1);
	CHECK_EQ(vv_store_sweep(s, MEMBERS_FOLDER), 0);
	CHECK_EQ(members_remove(s, EPOCH, 1), 0);
	CHECK(access(file, F_OK) == 0);
}

static void expect_fine(void)
{
	size_t n;

	vv_store_close(s);
	s = members_open(root);
	CHECK(!lists_bundle(&n) && n == N + 2);
	for (uint32_t i = 0; i < N; i++)
		CHECK_EQ(members_is(s, EPOCH, i, member[i]), 1);
}

/* ---- spoilt ------------------------------------------------------------------------------------------------------------ */

/* One copy of the directory may go; both are too much. */
static void flips(void)
{
	size_t n;
	uint8_t *p;

	make_store();
	p = place_read(file, &n);
	CHECK_EQ(n, 24576 + 12288 + 2 * VV_BUNDLE_PAGE);
	for (size_t i = 0; i < VV_BUNDLE_PAGE; i += i < 150 || i >= VV_BUNDLE_PAGE - 60 ? 1 : 97) {
		size_t one = n - 2 * VV_BUNDLE_PAGE + i, two = n - VV_BUNDLE_PAGE + i;
		uint8_t flip = (uint8_t)(1 << i % 8);

		p[one] ^= flip;
		place_write(file, p, n);
		expect_fine();
		p[two] ^= flip;
		place_write(file, p, n);
		expect_refused();
		p[one] ^= flip;
		place_write(file, p, n);
		expect_fine();
		p[two] ^= flip;
	}
	free(p);
	vv_store_close(s);
}

static void cuts(void)
{
	static const size_t lengths[] = { 0, 1, 47, 48, 49, 4095, 4096, 8191, 8192, 12288, 24576, 36864, 40960, 45055, 45057, 49152 };
	size_t n;
	uint8_t *p, *more;

	make_store();
	p = place_read(file, &n);
	more = calloc(1, 100000);
	CHECK(more && n == 45056);
	memcpy(more, p, n);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		place_write(file, more, lengths[i]);
		expect_refused();
	}
	place_write(file, p, n);
	expect_fine();
	CHECK_EQ(vv_store_remove(s, "a/00000000/nothing.bundle"), 0);
	place_write(file, more, 5000);
	CHECK_EQ(vv_store_remove(s, file + strlen(root) + 1), 0); /* a damaged one goes by its own name */
	CHECK(access(file, F_OK) < 0);
	CHECK_EQ(members_is(s, EPOCH, 0, member[0]), 0);
	free(more);
	free(p);
	vv_store_close(s);
}

/* ---- forged, with right checks ------------------------------------------------------------------------------------------ */

struct forged {
	struct {
		uint64_t off, len;
		const char *name;
	} entry[4];
	uint32_t n_entries, n; /* n: what the trailer says */
	uint64_t dir_off, dir_len;
	uint16_t version, flags;
	uint8_t fill;
	size_t size; /* of the file */
};

static void put(uint8_t *p, uint64_t v, int n)
{
	for (int i = 0; i < n; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static void put_copy(uint8_t *p, const struct forged *f, size_t len)
{
	uint8_t *at = p, *t = p + len - VV_BUNDLE_TRAILER;

	memset(p, f->fill, len);
	for (uint32_t i = 0; i < f->n_entries; i++) {
		size_t n = strlen(f->entry[i].name);

		put(at, f->entry[i].off, 8);
		put(at + 8, f->entry[i].len, 8);
		at[16] = (uint8_t)n;
		memcpy(at + 17, f->entry[i].name, n);
		at += 17 + n;
	}
	put(t, f->dir_off, 8);
	put(t + 8, f->dir_len, 8);
	put(t + 16, vv_digest_check(p, len - VV_BUNDLE_TRAILER), 8);
	put(t + 24, f->n, 4);
	put(t + 28, f->version, 2);
	put(t + 30, f->flags, 2);
	memcpy(t + 32, "VARVEBDL", 8);
	put(t + 40, vv_digest_check(t, VV_BUNDLE_TRAILER - 8), 8);
}

static void forge(const struct forged *f)
{
	uint8_t *p = calloc(1, f->size);

	CHECK(p);
	memset(p, 'x', f->size - 2 * VV_BUNDLE_PAGE);
	put_copy(p + f->size - 2 * VV_BUNDLE_PAGE, f, VV_BUNDLE_PAGE);
	put_copy(p + f->size - VV_BUNDLE_PAGE, f, VV_BUNDLE_PAGE);
	place_write(file, p, f->size);
	free(p);
}

#define L(r) "0000000007.r" #r ".layer"

static const struct forged good = { { { 0, 5000, L(0) }, { 8192, 100, L(1) }, { 12288, 4096, L(2) } },
				    3, 3, 16384, 4096, 1, 0, 0, 24576 };

static void forgeries(void)
{
	enum { CASES = 26 };
	struct forged f[CASES];
	struct vv_get *g = NULL;
	size_t n;

	for (int i = 0; i < CASES; i++)
		f[i] = good;
	f[0].entry[1].off = 4096;               /* overlaps */
	f[1].entry[1].off = 8193;               /* no page */
	f[2].entry[1].off = 1ull << 40;         /* far away */
	f[3].entry[1].off = UINT64_MAX - 4095;
	f[4].entry[1].len = UINT64_MAX;
	f[5].entry[1].len = 0;
	f[6].entry[2].len = 4097;               /* over the directory */
	f[7].entry[2].off = 16384;
	f[8].entry[1].name = "../../../etc/x";
	f[9].entry[1].name = "0000000007.commit";
	f[10].entry[1].name = "0000000008.r1.layer";
	f[11].entry[1].name = L(0);
	f[12].entry[1].name = L(3);
	f[13].entry[1].name = "0000000007.r1/layer";
	f[14].entry[1].name = "";
	f[15].entry[1].name = "0000000007.r01.layer";
	f[16].n = 0;
	f[17].n = 2; /* one is left over */
	f[18].n = 4; /* one is missing: zeros are none */
	f[19].n = UINT32_MAX;
	f[20].n = VV_BUNDLE_MEMBERS;
	f[21].version = 2;
	f[22].flags = 1;
	f[23].fill = 1;
	f[24].dir_len = 1ull << 62;
	f[25].dir_off = 12288;
	make_store();
	for (int i = 0; i < CASES; i++) {
		forge(&f[i]);
		expect_refused();
	}
	forge(&good); /* so that it is not the forging that is refused */
	vv_store_close(s);
	s = members_open(root);
	CHECK(!lists_bundle(&n) && n == 5);
	CHECK_EQ(vv_store_get_open(s, MEMBERS_FOLDER "/" L(2), &g), 0);
	CHECK_EQ(g->size, 4096);
	vv_store_get_close(g);
	vv_store_close(s);
}

/* Any bytes at all. */
static void rubbish(void)
{
	enum { SIZE = 4 * VV_BUNDLE_PAGE };
	static uint8_t p[SIZE];
	uint64_t state = 3;

	make_store();
	for (int i = 0; i < 200; i++) {
		gen_bytes(&state, p, SIZE);
		if (i % 2)
			memcpy(p + SIZE - 16, "VARVEBDL", 8);
		place_write(file, p, SIZE);
		expect_refused();
	}
	vv_store_close(s);
}

/* ---- no files ---------------------------------------------------------------------------------------------------------- */

static void things(void)
{
	char victim[PLACE_MAX];
	struct vv_get *g = NULL;
	struct stat st;
	uint8_t *p;
	size_t n;

	make_store();
	p = place_read(file, &n);
	place_write(place_path(victim, "victim"), p, n);
	for (int kind = 0; kind < 4; kind++) {
		place_remove(file);
		CHECK((kind == 0   ? mkfifo(file, 0666) :
		       kind == 1   ? mkdir(file, 0777) :
		       kind == 2   ? symlink(victim, file) :
				     symlink("/nowhere/at/all", file)) == 0);
		CHECK_EQ(lists_bundle(&n), kind != 3);
		CHECK_EQ(vv_store_get_open(s, MEMBERS_FOLDER "/" L(0), &g), VV_EDAMAGED);
		CHECK(strstr(vv_err_last(), leaf));
		CHECK_EQ(members_is(s, NEIGHBOUR, 0, neighbour[0]), 1);
		CHECK_EQ(vv_store_sweep(s, MEMBERS_FOLDER), 0);
		CHECK_EQ(members_remove(s, EPOCH, 0), 0);
		CHECK_EQ(members_put(s, EPOCH, 0, neighbour[1]), 0);
		CHECK_EQ(members_remove(s, EPOCH, 0), 0);
	}
	CHECK(stat(victim, &st) == 0);
	free(p);
	p = place_read(victim, &n); /* nobody wrote behind the link */
	CHECK_EQ(n, 45056);
	place_remove(file);
	place_write(file, p, n);
	free(p);
	expect_fine();
	vv_store_close(s);
}

static void unreadable(void)
{
	struct vv_names v = { 0 };
	struct vv_get *g = NULL;

	if (geteuid() == 0)
		return;
	make_store();
	CHECK(chmod(file, 0) == 0);
	CHECK_EQ(vv_store_get_open(s, MEMBERS_FOLDER "/" L(0), &g), VV_EDENIED);
	CHECK_EQ(vv_store_list(s, MEMBERS_FOLDER, &v), VV_EDENIED); /* not as if it were empty */
	vv_store_close(s);
}

int main(void)
{
	alarm(100);
	vv_dir_set_fs(lazyfs());
	vv_log_set_level(VV_LOG_ERROR);
	flips();
	cuts();
	forgeries();
	rubbish();
	things();
	unreadable();
	return 0;
}
