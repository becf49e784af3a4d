// ctest: COST 2
/* Bundles over time: the space of what goes comes back, what the dead leave is cleared up, finding costs no more than it must, and a
 * random history is compared with a model that knows nothing of them. */
#include "base/err.h"
#include "store/dir/dir.h"
#include "support/gen.h"
#include "support/lazyfs.h"
#include "support/members.h"
#include "support/place.h"
#include "vv_test.h"
#include <fcntl.h>
#include <unistd.h>

enum { RANKS = 8, EPOCHS = 4, STEPS = 1500 };

/* ---- space, and what the dead leave ------------------------------------------------------------------------------------ */

static bool can_punch(void)
{
	char path[PLACE_MAX];
	uint8_t page[VV_BUNDLE_PAGE] = { 1 };
	int fd = open(place_path(path, "punch"), O_RDWR | O_CREAT | O_TRUNC, 0666);
	bool can;

	CHECK(fd >= 0 && write(fd, page, sizeof(page)) == sizeof(page));
	can = vv_fs_real()->punch(vv_fs_real(), fd, 0, sizeof(page)) == 0;
	close(fd);
	return can;
}

static void space(void)
{
	struct vv_store *s = members_fresh("space");
	struct members_object o[RANKS];
	char bundle[VV_NAME_MAX];
	uint64_t before;

	members_fill(o, RANKS, 5, 1 << 20);
	for (int i = 0; i < RANKS; i++)
		o[i].len |= 1 << 18;
	vv_name_bundle(bundle, MEMBERS_LINEAGE, 1, 0, RANKS - 1);
	CHECK_EQ(members_bundle(s, 1, 0, RANKS, o, 2 << 20), 0);
	before = members_blocks(bundle);
	for (uint32_t i = 0; i + 1 < RANKS; i++) {
		CHECK_EQ(i % 2 ? members_remove(s, 1, i) : members_put(s, 1, i, (struct members_object){ i, 10 }), 0);
		if (can_punch())
			CHECK(members_blocks(bundle) + o[i].len / 2 < before);
		before = members_blocks(bundle);
	}
	CHECK_EQ(members_is(s, 1, RANKS - 1, o[RANKS - 1]), 1);
	CHECK_EQ(members_remove(s, 1, RANKS - 1), 0);
	CHECK(access(members_path(bundle), F_OK) < 0);
	vv_store_close(s);
}

static void leftovers(void)
{
	struct vv_store *s = members_fresh("left");
	static const struct members_object o[] = { { 1, 300000 }, { 2, 300000 }, { 3, 300000 } };
	char bundle[VV_NAME_MAX], token[VV_STORE_TOKEN], name[VV_NAME_MAX];
	uint8_t *plain = members_bytes((struct members_object){ 9, 50 });
	uint64_t before;
	int fd;

	CHECK_EQ(members_bundle(s, 1, 0, 3, o, 300000), 0);
	vv_name_bundle(bundle, MEMBERS_LINEAGE, 2, 0, 3);
	CHECK_EQ(vv_store_bundle_make(s, bundle, token), 0);
	/* died after the rename, before the member went: the plain one counts, in every way */
	vv_name_layer(name, MEMBERS_LINEAGE, 1, 1);
	place_write(members_path(name), plain, 50);
	CHECK_EQ(members_is(s, 1, 1, (struct members_object){ 9, 50 }), 1);
	CHECK_EQ(members_listed(s), 3);
	vv_name_bundle(bundle, MEMBERS_LINEAGE, 1, 0, 2);
	before = members_blocks(bundle);
	CHECK_EQ(vv_store_sweep(s, MEMBERS_FOLDER), 0);
	CHECK_EQ(members_files(members_path(MEMBERS_FOLDER), ".tmp-"), 0);
	CHECK(!can_punch() || members_blocks(bundle) + 200000 < before);
	place_remove(members_path(name));
	CHECK_EQ(members_is(s, 1, 1, o[1]), 0);
	/* the same, and it is removed at once: nothing comes back */
	vv_name_layer(name, MEMBERS_LINEAGE, 1, 0);
	place_write(members_path(name), plain, 50);
	CHECK_EQ(members_remove(s, 1, 0), 0);
	CHECK_EQ(members_is(s, 1, 0, o[0]), 0);
	CHECK_EQ(members_listed(s), 1);
	/* died after the last mark went, before pages and file did */
	fd = open(members_path(bundle), O_RDWR);
	CHECK(fd >= 0 && pwrite(fd, "", 1, 2 * 303104) == 1);
	close(fd);
	CHECK_EQ(members_listed(s), 0);
	CHECK_EQ(vv_store_sweep(s, MEMBERS_FOLDER), 0);
	CHECK(access(members_path(bundle), F_OK) < 0);
	free(plain);
	vv_store_close(s);
}

/* ---- any history ------------------------------------------------------------------------------------------------------- */

struct model {
	struct vv_store *s[2]; /* two processes, as it were */
	struct members_object o[EPOCHS][RANKS]; /* len 0: absent */
	uint64_t state;
};

static void model_bundle(struct model *m, struct vv_store *s, uint64_t epoch)
{
	uint32_t first = (uint32_t)gen_below(&m->state, RANKS), n = 1 + (uint32_t)gen_below(&m->state, RANKS - first);
	struct members_object o[RANKS];
	bool free_names = true;
	int rc;

	for (uint32_t i = first; i < first + n; i++)
		free_names &= m->o[epoch - 1][i].len == 0;
	members_fill(o, n, gen_next(&m->state), 30000);
	rc = members_bundle(s, epoch, first, n, o, 32000);
	if (!free_names && rc == VV_EINVAL)
		return;
	CHECK_EQ(rc, 0); /* or it was there, by this very name, and is replaced */
	memcpy(&m->o[epoch - 1][first], o, n * sizeof(o[0]));
}

static void model_step(struct model *m)
{
	struct vv_store *s = m->s[gen_below(&m->state, 2)];
	uint64_t epoch = 1 + gen_below(&m->state, EPOCHS);
	uint32_t rank = (uint32_t)gen_below(&m->state, RANKS);
	struct members_object *o = &m->o[epoch - 1][rank];

	switch (gen_below(&m->state, 8)) {
	case 0:
	case 1:
		model_bundle(m, s, epoch);
		break;
	case 2:
		members_fill(o, 1, gen_next(&m->state), 30000);
		CHECK_EQ(members_put(s, epoch, rank, *o), 0);
		break;
	case 3:
	case 4:
	case 5:
		CHECK_EQ(members_remove(s, epoch, rank), 0);
		o->len = 0;
		break;
	case 6:
		CHECK_EQ(vv_store_sweep(s, MEMBERS_FOLDER), 0);
		break;
	default:
		vv_store_close(m->s[1]);
		m->s[1] = members_open(members_root());
	}
}

static void model_compare(struct model *m)
{
	struct vv_store *s = m->s[gen_below(&m->state, 2)];
	size_t n = 0;

	for (uint32_t e = 0; e < EPOCHS; e++)
		for (uint32_t r = 0; r < RANKS; r++) {
			struct members_object o = m->o[e][r];
			bool there = o.len != 0;

			n += there;
			o.len = there ? o.len : 1;
			CHECK_EQ(members_is(s, e + 1, r, o), there);
		}
	CHECK_EQ(members_listed(s), n);
}

static void histories(void)
{
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct model m = { .state = seed };

		m.s[0] = members_fresh("model");
		m.s[1] = members_open(members_root());
		for (int i = 0; i < STEPS; i++) {
			model_step(&m);
			if (i % 5 == 0)
				model_compare(&m);
		}
		for (uint32_t e = 0; e < EPOCHS; e++)
			for (uint32_t r = 0; r < RANKS; r++)
				CHECK_EQ(members_remove(m.s[0], e + 1, r), 0);
		CHECK_EQ(members_files(members_path(MEMBERS_FOLDER), ""), 0);
		vv_store_remove_dir(m.s[0], MEMBERS_FOLDER);
		CHECK(access(members_path(MEMBERS_FOLDER), F_OK) < 0);
		vv_store_close(m.s[0]);
		vv_store_close(m.s[1]);
	}
}

/* ---- finding does not cost more than it must --------------------------------------------------------------------------- */

static struct {
	long opens, syncs;
	long read;
	off_t begin, end; /* of what went to the disk early */
} counted;

static int count_open(const struct vv_fs *fs, const char *path, int flags, mode_t mode)
{
	(void)fs;
	counted.opens++;
	return lazyfs()->open(lazyfs(), path, flags, mode);
}

static ssize_t count_pread(const struct vv_fs *fs, int fd, void *p, size_t n, off_t off)
{
	(void)fs;
	counted.read += (long)n;
	return lazyfs()->pread(lazyfs(), fd, p, n, off);
}

static int count_fsync(const struct vv_fs *fs, int fd)
{
	(void)fs;
	counted.syncs++;
	return lazyfs()->fsync(lazyfs(), fd);
}

static int count_writeback(const struct vv_fs *fs, int fd, off_t off, off_t len)
{
	(void)fs;
	counted.begin = counted.end && counted.begin < off ? counted.begin : off;
	counted.end = counted.end > off + len ? counted.end : off + len;
	return lazyfs()->start_writeback(lazyfs(), fd, off, len);
}

/* A member's bytes are on their way early, its own and no others, and are durable when it says so. */
static void written_early(void)
{
	enum { OFF = 64 << 20, LEN = 20 << 20 };
	struct vv_fs fs = *lazyfs();
	struct vv_put *p = NULL;
	char bundle[VV_NAME_MAX], token[VV_STORE_TOKEN];
	struct vv_store *s;

	fs.fsync = count_fsync;
	fs.start_writeback = count_writeback;
	vv_dir_set_fs(&fs);
	s = members_fresh("early");
	memset(&counted, 0, sizeof(counted));
	vv_name_bundle(bundle, MEMBERS_LINEAGE, 1, 0, 3);
	CHECK_EQ(vv_store_bundle_make(s, bundle, token), 0);
	CHECK_EQ(vv_store_bundle_join(s, bundle, token, OFF, LEN, &p), 0);
	CHECK_EQ(members_write(p, (struct members_object){ 1, LEN }), 0);
	CHECK(counted.begin == OFF && counted.end > OFF + LEN / 2 && counted.end <= OFF + LEN);
	CHECK_EQ(counted.syncs, 0);
	CHECK_EQ(vv_store_put_commit(p), 0);
	CHECK_EQ(counted.syncs, 1);
	vv_store_bundle_drop(s, bundle, token);
	vv_store_close(s);
	vv_dir_set_fs(lazyfs());
}

static void open_one(struct vv_store *s, uint64_t epoch, uint32_t rank)
{
	char name[VV_NAME_MAX];
	struct vv_get *g = NULL;

	vv_name_layer(name, MEMBERS_LINEAGE, epoch, rank);
	CHECK_EQ(vv_store_get_open(s, name, &g), 0);
	vv_store_get_close(g);
}

static void cheap(void)
{
	enum { MANY = 1000 };
	static struct members_object o[MANY];
	struct vv_fs fs = *lazyfs();
	struct vv_store *s;

	fs.open = count_open;
	fs.pread = count_pread;
	vv_dir_set_fs(&fs);
	s = members_fresh("cheap");
	members_fill(o, MANY, 1, 100);
	CHECK_EQ(members_bundle(s, 1, 0, MANY, o, 1), 0);
	for (uint64_t e = 2; e < 100; e++)
		CHECK_EQ(members_bundle(s, e, 0, 4, o, 1), 0);
	vv_store_close(s);
	s = members_open(members_root());
	memset(&counted, 0, sizeof(counted));
	open_one(s, 50, 3);
	CHECK_EQ(counted.opens, 2); /* the plain object, and the one bundle */
	for (uint32_t i = 0; i < MANY; i++)
		open_one(s, 1, i);
	CHECK_EQ(counted.opens, 2 + 2 * MANY);
	CHECK(counted.read < 200 * MANY); /* the directory once, then a trailer and a mark each */
	vv_store_close(s);
	vv_dir_set_fs(lazyfs());
}

int main(void)
{
	vv_dir_set_fs(lazyfs());
	space();
	leftovers();
	histories();
	cheap();
	written_early();
	return 0;
}
