#include "support/members.h"
#include "base/err.h"
#include "base/mem.h"
#include "support/gen.h"
#include "support/place.h"
#include "vv_test.h"
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

struct vv_store *members_open(const char *url)
{
	struct vv_store_options opt = { .create = true };
	struct vv_store *s = NULL;

	CHECK_EQ(vv_store_open(url, &opt, &s), 0);
	return s;
}

static char here[PLACE_MAX];

struct vv_store *members_fresh(const char *name)
{
	place_remove(place_path(here, name));
	return members_open(here);
}

const char *members_root(void)
{
	return here;
}

const char *members_path(const char *below)
{
	static char path[2 * PLACE_MAX];

	snprintf(path, sizeof(path), "%s/%s", here, below);
	return path;
}

uint64_t members_blocks(const char *below)
{
	struct stat st;

	CHECK(stat(members_path(below), &st) == 0);
	return (uint64_t)st.st_blocks * 512;
}

void members_fill(struct members_object *o, uint32_t n, uint64_t seed, uint64_t most)
{
	uint64_t state = seed;

	for (uint32_t i = 0; i < n; i++)
		o[i] = (struct members_object){ gen_next(&state), 1 + gen_below(&state, most) };
}

uint8_t *members_bytes(struct members_object o)
{
	uint8_t *p = malloc(o.len + 1);
	uint64_t state = o.seed;

	CHECK(p && o.len);
	gen_bytes(&state, p, o.len);
	p[0] |= 1;
	return p;
}

int members_write(struct vv_put *p, struct members_object o)
{
	uint8_t *bytes = members_bytes(o);
	uint64_t state = ~o.seed, most = 1 + gen_below(&state, 20000), at = 0;
	int rc = 0;

	while (rc == 0 && at < o.len) {
		uint64_t n = gen_below(&state, most + 1), half;
		struct iovec iov[2];

		n = n < o.len - at ? n : o.len - at;
		half = gen_below(&state, n + 1);
		iov[0] = (struct iovec){ bytes + at, half };
		iov[1] = (struct iovec){ bytes + at + half, n - half };
		rc = vv_store_put_write(p, iov, 2);
		at += n;
	}
	free(bytes);
	return rc;
}

static int end_put(struct vv_put *p, struct members_object o)
{
	int rc = members_write(p, o);

	if (rc == 0)
		return vv_store_put_commit(p);
	vv_store_put_abort(p);
	return rc;
}

int members_put(struct vv_store *s, uint64_t epoch, uint32_t rank, struct members_object o)
{
	char name[VV_NAME_MAX];
	struct vv_put *p = NULL;
	int rc;

	vv_name_layer(name, MEMBERS_LINEAGE, epoch, rank);
	rc = vv_store_put_open(s, name, o.len, &p);
	return rc ? rc : end_put(p, o);
}

int members_bundle(struct vv_store *s, uint64_t epoch, uint32_t first, uint32_t n, const struct members_object *o,
		   uint64_t room)
{
	char bundle[VV_NAME_MAX], token[VV_STORE_TOKEN], (*name)[VV_NAME_MAX] = calloc(n, sizeof(*name));
	struct vv_member *m = calloc(n, sizeof(*m));
	int rc;

	CHECK(name && m);
	room = (room + VV_BUNDLE_PAGE - 1) / VV_BUNDLE_PAGE * VV_BUNDLE_PAGE;
	vv_name_bundle(bundle, MEMBERS_LINEAGE, epoch, first, first + n - 1);
	rc = vv_store_bundle_make(s, bundle, token);
	for (uint32_t i = 0; rc == 0 && i < n; i++) {
		struct vv_put *p = NULL;

		vv_name_layer(name[i], MEMBERS_LINEAGE, epoch, first + i);
		m[i] = (struct vv_member){ strrchr(name[i], '/') + 1, i * room, o[i].len };
		rc = vv_store_bundle_join(s, bundle, token, i * room, room, &p);
		if (rc == 0)
			rc = end_put(p, o[i]);
		if (rc)
			vv_store_bundle_drop(s, bundle, token);
	}
	if (rc == 0)
		rc = vv_store_bundle_seal(s, bundle, token, m, n);
	free(name);
	free(m);
	return rc;
}

static bool holds(struct vv_get *g, struct members_object o)
{
	uint8_t *want = members_bytes(o), *got = malloc(o.len);
	bool same;

	CHECK(got);
	vv_store_get_map(g);
	same = g->size == o.len && vv_store_get_read(g, 0, got, o.len) == 0 && memcmp(want, got, o.len) == 0 &&
	       (!g->map || memcmp(want, g->map, o.len) == 0);
	free(want);
	free(got);
	return same;
}

int members_is_either(struct vv_store *s, uint64_t epoch, uint32_t rank, struct members_object a, struct members_object b)
{
	char name[VV_NAME_MAX];
	struct vv_get *g = NULL;
	int rc;

	vv_name_layer(name, MEMBERS_LINEAGE, epoch, rank);
	rc = vv_store_get_open(s, name, &g);
	if (rc)
		return rc == VV_ENOENT ? 0 : rc;
	rc = holds(g, a) ? 1 : holds(g, b) ? 2 : -100;
	if (rc < 0)
		fprintf(stderr, "'%s' has %llu bytes, and is not what it should be: %s\n", name, (unsigned long long)g->size,
			vv_err_last());
	CHECK(rc > 0);
	vv_store_get_close(g);
	return rc;
}

int members_is(struct vv_store *s, uint64_t epoch, uint32_t rank, struct members_object o)
{
	return members_is_either(s, epoch, rank, o, o);
}

int members_remove(struct vv_store *s, uint64_t epoch, uint32_t rank)
{
	char name[VV_NAME_MAX];

	vv_name_layer(name, MEMBERS_LINEAGE, epoch, rank);
	return vv_store_remove(s, name);
}

size_t members_listed(struct vv_store *s)
{
	struct vv_names v = { 0 };
	size_t n;

	CHECK_EQ(vv_store_list(s, MEMBERS_FOLDER, &v), 0);
	for (size_t i = 0; i < v.n; i++) {
		char name[2 * VV_NAME_MAX];
		struct vv_get *g = NULL;

		snprintf(name, sizeof(name), "%s/%.100s", MEMBERS_FOLDER, v.v[i].name);
		CHECK_EQ(vv_store_get_open(s, name, &g), 0);
		CHECK_EQ(g->size, v.v[i].size);
		CHECK(i == 0 || strcmp(v.v[i - 1].name, v.v[i].name) < 0);
		vv_store_get_close(g);
	}
	n = v.n;
	vv_names_fini(&v);
	return n;
}

/* The object is removed before the bundle with it is sealed: nobody else may be at work. */
static void move(struct vv_store *s, const char *lineage, const char *leaf, const char *object)
{
	char bundle[VV_NAME_MAX], token[VV_STORE_TOKEN];
	struct vv_member m = { leaf, 0, 0 };
	struct vv_put *p = NULL;
	struct iovec iov;
	uint64_t epoch;
	uint32_t rank;
	uint8_t *bytes = NULL;
	size_t n = 0;

	CHECK_EQ(vv_name_parse(leaf, &epoch, &rank), VV_NAME_IS_LAYER);
	CHECK_EQ(vv_store_get(s, object, SIZE_MAX / 2, &bytes, &n), 0);
	vv_name_bundle(bundle, lineage, epoch, rank, rank + 3);
	m.off = epoch % 3 * VV_BUNDLE_PAGE;
	m.len = n;
	iov = (struct iovec){ bytes, n };
	CHECK_EQ(vv_store_bundle_make(s, bundle, token), 0);
	CHECK_EQ(vv_store_bundle_join(s, bundle, token, m.off, n, &p), 0);
	CHECK_EQ(vv_store_put_write(p, &iov, 1), 0);
	CHECK_EQ(vv_store_put_commit(p), 0);
	CHECK_EQ(vv_store_remove(s, object), 0);
	CHECK_EQ(vv_store_bundle_seal(s, bundle, token, &m, 1), 0);
	vv_mem_free(bytes);
}

static size_t move_folder(struct vv_store *s, const char *root, const char *lineage, const char *folder)
{
	struct vv_names v = { 0 };
	char dir[2 * VV_NAME_MAX], object[4 * VV_NAME_MAX], path[1024];
	uint64_t epoch;
	uint32_t rank;
	size_t n = 0;

	snprintf(dir, sizeof(dir), "%s/%s", lineage, folder);
	CHECK_EQ(vv_store_list(s, dir, &v), 0);
	for (size_t i = 0; i < v.n; i++) {
		snprintf(object, sizeof(object), "%s/%s", dir, v.v[i].name);
		snprintf(path, sizeof(path), "%.500s/%.400s", root, object);
		if (vv_name_parse(v.v[i].name, &epoch, &rank) != VV_NAME_IS_LAYER || access(path, F_OK) != 0)
			continue;
		move(s, lineage, v.v[i].name, object);
		n++;
	}
	vv_names_fini(&v);
	return n;
}

size_t members_move(const char *url, const char *lineage)
{
	struct vv_store *s = members_open(url);
	struct vv_names v = { 0 };
	size_t n = 0;

	CHECK_EQ(vv_store_list(s, lineage, &v), 0);
	for (size_t i = 0; i < v.n; i++)
		if (v.v[i].is_dir)
			n += move_folder(s, url, lineage, v.v[i].name);
	vv_names_fini(&v);
	vv_store_close(s);
	return n;
}

size_t members_files(const char *folder, const char *begin)
{
	DIR *h = opendir(folder);
	struct dirent *e;
	size_t n = 0;

	while (h && (e = readdir(h)))
		n += strncmp(e->d_name, begin, strlen(begin)) == 0 && strcmp(e->d_name, ".") != 0 &&
		     strcmp(e->d_name, "..") != 0;
	if (h)
		closedir(h);
	return n;
}
