// ctest: COST 6
/* The calls of varve_read.h against a model: every epoch's content is kept, and parts of it are asked for, by bytes and by elements, with each codec, beside a
 * writer that drops epochs, in damaged stores, and with an eye on what is read. */
#include "engine/lineage/label.h"
#include "store/dir/dir.h"
#include "support/coded.h"
#include "support/dice.h"
#include "support/lazyfs.h"
#include "support/place.h"
#include "support/settle.h"
#include "support/answer.h"
#include "vv_test.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <varve/varve_read.h>

/* ---- a model ------------------------------------------------------------------------------------------------------------------ */

enum { REGIONS = 7, EPOCHS = 12, MOST = 3 << 20 };

static const size_t element_size[] = { 1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16 };

struct model_region {
	char name[40];
	enum varve_type type;
	int ndim;
	size_t shape[VARVE_MAX_DIMS], bytes;
	uint8_t *now, *then[EPOCHS + 1]; /* NULL: not in that epoch */
};

static struct model_region model[REGIONS];

static void make_region(struct model_region *r, int i)
{
	static const size_t shapes[REGIONS][4] = { { 0 }, { 70001 }, { 300, 257 }, { 17, 40, 99 }, { 5, 6, 7, 8 }, { 1, 1 }, { 0, 9 } };
	static const int dims[REGIONS] = { 0, 1, 2, 3, 4, 2, 2 };

	snprintf(r->name, sizeof(r->name), "region %d/x", i);
	r->ndim = dims[i];
	r->type = r->ndim ? (enum varve_type)(1 + upto(11)) : VARVE_BYTES;
	r->bytes = r->ndim ? element_size[r->type] : MOST - 123;
	for (int d = 0; d < r->ndim; d++)
		r->bytes *= r->shape[d] = shapes[i][d];
	r->now = calloc(r->bytes + 1, 1);
	noise(r->now, r->bytes / 2);
}

static void declare(varve *v, struct model_region *r)
{
	if (r->ndim)
		ok(varve_protect_array(v, r->name, r->now, r->type, r->ndim, r->shape));
	else
		ok(varve_protect(v, r->name, r->now, r->bytes));
}

/* Several sessions, each with its own codec; regions come, change and go. */
static void write_model(const char *url)
{
	static const char *const options[] = { "codec=none log=error", CODED " block=64KiB log=error", CODED_FAST " chunk=512 log=error" };
	varve *v = NULL;

	for (int i = 0; i < REGIONS; i++)
		make_region(&model[i], i);
	for (uint64_t e = 1; e <= EPOCHS; e++) {
		if (e % 4 == 1) {
			ok(varve_close(v));
			ok(varve_open(url, "model", options[e / 4 % 3], &v));
		}
		for (int i = 0; i < REGIONS; i++) {
			struct model_region *r = &model[i];
			bool there = e % 5 != (uint64_t)i;

			if (there)
				declare(v, r);
			else
				varve_unprotect(v, r->name);
			for (int k = 0; e > 1 && r->bytes && k < 3; k++)
				dice_edit(r->now, r->bytes);
			if (!there)
				continue;
			r->then[e] = malloc(r->bytes + 1);
			memcpy(r->then[e], r->now, r->bytes);
		}
		ok(varve_label(v, e == 2 || e == 7 ? "twice" : e == 5 ? "five" : NULL));
		ok(settle_checkpoint(v));
		CHECK_EQ(varve_epoch(v), e);
	}
	ok(varve_close(v));
}

static void check_bytes(varve_reader *r, uint64_t e, const struct model_region *m, uint8_t *to)
{
	size_t start = upto(m->bytes), n = upto(upto(1) ? m->bytes - start : m->bytes - start < 9000 ? m->bytes - start : 9000);

	memset(to, 0xa5, n + 1);
	ok(varve_reader_read(r, e, 0, m->name, start, n, to));
	CHECK(memcmp(to, m->then[e] + start, n) == 0);
	CHECK_EQ(to[n], 0xa5);
}

/* Copies the part element by element. */
static size_t copy_part(const struct model_region *m, uint64_t e, const uint64_t *start, const uint64_t *count, uint8_t *to)
{
	size_t size = element_size[m->type], n = 0, total = 1, dims = m->ndim ? (size_t)m->ndim : 1;

	for (size_t d = 0; d < dims; d++)
		total *= count[d];
	for (size_t i = 0; i < total; i++) {
		size_t left = i, at = 0, stride = 1;

		for (size_t d = dims; d-- > 0; left /= count[d], stride *= m->ndim ? m->shape[d] : m->bytes)
			at += (start[d] + left % count[d]) * stride;
		memcpy(to + n, m->then[e] + at * size, size);
		n += size;
	}
	return n;
}

static void check_part(varve_reader *r, uint64_t e, const struct model_region *m, uint8_t *to, uint8_t *expect)
{
	uint64_t start[VARVE_MAX_DIMS], count[VARVE_MAX_DIMS];
	size_t dims = m->ndim ? (size_t)m->ndim : 1, n;

	for (size_t d = 0; d < dims; d++) {
		size_t extent = m->ndim ? m->shape[d] : m->bytes;

		start[d] = upto(2) ? upto(extent) : 0;
		count[d] = upto(2) ? upto(extent - start[d]) : extent - start[d];
	}
	n = copy_part(m, e, start, count, expect);
	memset(to, 0xa5, n + 1);
	ok(varve_reader_read_part(r, e, 0, m->name, start, count, to));
	CHECK(memcmp(to, expect, n) == 0);
	CHECK_EQ(to[n], 0xa5);
}

static void check_regions(varve_reader *r, uint64_t e)
{
	const struct varve_stored_region *const *list;
	size_t n, expected = 0;

	ok(varve_reader_regions(r, e, 0, &list, &n));
	for (int i = 0; i < REGIONS; i++) {
		const struct model_region *m = &model[i];
		size_t k = 0;

		while (k < n && strcmp(list[k]->name, m->name) != 0)
			k++;
		CHECK_EQ(k < n, m->then[e] != NULL);
		expected += k < n;
		if (k == n)
			continue;
		CHECK_EQ(list[k]->bytes, m->bytes);
		CHECK_EQ(list[k]->type, m->type);
		CHECK_EQ(list[k]->element, element_size[m->type]);
		CHECK_EQ(list[k]->ndim, m->ndim);
		for (int d = 0; d < m->ndim; d++)
			CHECK_EQ(list[k]->shape[d], m->shape[d]);
	}
	CHECK_EQ(n, expected);
}

static void add_label(const char *url, uint64_t epoch, const char *label)
{
	struct vv_store_options opt = { 0 };
	struct vv_store *s = NULL;
	struct vv_lineage lin;

	ok(vv_store_open(url, &opt, &s));
	ok(vv_catalog_open(s, "model", false, &lin));
	ok(vv_label_put(&lin, epoch, label));
	vv_store_close(s);
}

static void check_labels(const char *url, varve_reader *r)
{
	static const char *const bad[] = { "", "7", "-1", "a b", "../x" };
	const struct varve_stored_epoch *const *epoch;
	uint64_t found = 0;
	size_t n;

	add_label(url, 5, "best");
	add_label(url, 99, "ghost");
	ok(varve_reader_epochs(r, &epoch, &n));
	CHECK_EQ(n, EPOCHS);
	CHECK(epoch[0]->n_labels == 0 && epoch[1]->n_labels == 1 && epoch[4]->n_labels == 2 && epoch[6]->n_labels == 1);
	CHECK_STR(epoch[1]->label[0], "twice");
	CHECK_STR(epoch[4]->label[0], "best");
	CHECK_STR(epoch[4]->label[1], "five");
	CHECK_STR(epoch[6]->label[0], "twice");
	ok(varve_reader_find(r, "five", &found));
	CHECK_EQ(found, 5);
	ok(varve_reader_find(r, "twice", &found));
	CHECK_EQ(found, 7);
	ok(varve_reader_find(r, "latest", &found));
	CHECK_EQ(found, EPOCHS);
	FAILS(varve_reader_find(r, "fife", &found), VARVE_ENOENT, "did you mean 'five'?");
	FAILS(varve_reader_find(r, "ghost", &found), VARVE_ENOENT, "no epoch with the label 'ghost'");
	FAILS(varve_reader_find(r, NULL, &found), VARVE_EINVAL, "varve_reader_find: label and epoch are needed");
	FAILS(varve_reader_find(r, "five", NULL), VARVE_EINVAL, "varve_reader_find: label and epoch are needed");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		FAILS(varve_reader_find(r, bad[i], &found), VARVE_EINVAL, "label '");
	CHECK_EQ(found, EPOCHS);
}

static void check_model(const char *url)
{
	uint8_t *to = malloc(MOST + 1), *expect = malloc(MOST + 1);
	const struct varve_stored_epoch *const *epoch;
	varve_reader *r = NULL;
	uint64_t newest = 0;
	size_t n;

	ok(varve_reader_open(url, "model", "log=error", &r));
	ok(varve_reader_epochs(r, &epoch, &n));
	CHECK_EQ(n, EPOCHS);
	for (size_t i = 0; i < n; i++) {
		CHECK_EQ(epoch[i]->epoch, i + 1);
		CHECK(epoch[i]->complete && !epoch[i]->problem);
		CHECK(epoch[i]->ranks == 1 && epoch[i]->bytes_memory && epoch[i]->bytes_layer);
		CHECK(i == 0 || epoch[i]->time_ns > epoch[i - 1]->time_ns);
		check_regions(r, i + 1);
	}
	ok(varve_reader_latest(r, &newest));
	CHECK_EQ(newest, EPOCHS);
	check_labels(url, r);
	for (int k = 0; k < 1500; k++) {
		uint64_t e = 1 + upto(EPOCHS - 1);
		const struct model_region *m = &model[upto(REGIONS - 1)];

		if (!m->then[e])
			FAILS(varve_reader_read(r, e, 0, m->name, 0, 0, to), VARVE_ENOENT, "has no region");
		else if (k % 2)
			check_bytes(r, e, m, to);
		else
			check_part(r, e, m, to, expect);
	}
	ok(varve_reader_read_part(r, VARVE_LATEST, 0, model[1].name, NULL, NULL, to));
	CHECK(memcmp(to, model[1].then[EPOCHS], model[1].bytes) == 0);
	ok(varve_reader_close(r));
	free(to);
	free(expect);
}

/* ---- mistakes ----------------------------------------------------------------------------------------------------------------- */

static void check_mistakes(const char *url)
{
	const struct varve_stored_region *const *regions;
	const char *const *names;
	char absent[PLACE_MAX], path[PLACE_MAX + 32];
	uint64_t start[2] = { 0, 258 }, count[2] = { 1, 0 }, epoch = 77;
	varve_reader *r = (varve_reader *)1;
	uint8_t byte;
	size_t n;

	FAILS(varve_reader_open(place_path(absent, "absent"), "model", NULL, &r), VARVE_ENOENT, "absent");
	CHECK(!r && access(absent, F_OK) < 0);
	FAILS(varve_reader_open(url, "modle", NULL, &r), VARVE_ENOENT, "did you mean 'model'?");
	snprintf(path, sizeof(path), "%s/modle", url);
	CHECK(!r && access(path, F_OK) < 0);
	FAILS(varve_reader_open(url, "../x", NULL, &r), VARVE_EINVAL, "");
	FAILS(varve_reader_open(NULL, "model", NULL, &r), VARVE_EINVAL, "store");
	FAILS(varve_reader_open(url, "model", "codec=", &r), VARVE_EINVAL, "codec");
	FAILS(varve_reader_latest(NULL, &epoch), VARVE_EINVAL, "no reader");

	ok(varve_reader_open(url, NULL, "log=error", &r));
	ok(varve_reader_lineages(r, &names, &n));
	CHECK_EQ(n, 1);
	CHECK_STR(names[0], "model");
	FAILS(varve_reader_latest(r, &epoch), VARVE_EINVAL, "without a lineage");
	FAILS(varve_reader_find(r, "latest", &epoch), VARVE_EINVAL, "without a lineage");
	FAILS(varve_reader_regions(r, 1, 0, &regions, &n), VARVE_EINVAL, "without a lineage");
	ok(varve_reader_close(r));
	snprintf(path, sizeof(path), "%s/model", url);
	ok(varve_reader_open(path, NULL, "log=error", &r));
	FAILS(varve_reader_lineages(r, &names, &n), VARVE_EINVAL, "is a lineage itself");
	ok(varve_reader_close(r));

	ok(varve_reader_open(url, "model", "log=error", &r));
	FAILS(varve_reader_regions(r, 99, 0, &regions, &n), VARVE_ENOENT, "no epoch 99");
	FAILS(varve_reader_regions(r, 1, 1, &regions, &n), VARVE_ENOENT, "there is no rank 1");
	FAILS(varve_reader_read(r, 1, 0, "nothing", 0, 1, &byte), VARVE_ENOENT, "has no region 'nothing'");
	FAILS(varve_reader_read(r, 3, 0, model[0].name, model[0].bytes, 1, &byte), VARVE_EINVAL, "bytes from");
	FAILS(varve_reader_read(r, 3, 0, model[0].name, UINT64_MAX, 2, &byte), VARVE_EINVAL, "bytes from");
	FAILS(varve_reader_read(r, 3, 0, model[0].name, 1, UINT64_MAX, &byte), VARVE_EINVAL, "bytes from");
	FAILS(varve_reader_read_part(r, 3, 0, model[2].name, start, count, &byte), VARVE_EINVAL, "elements from 258");
	FAILS(varve_reader_read(r, 3, 0, model[0].name, 0, 1, NULL), VARVE_EINVAL, "no memory");
	FAILS(varve_reader_read(r, 3, 0, NULL, 0, 1, &byte), VARVE_EINVAL, "name");
	ok(varve_reader_read(r, 3, 0, model[0].name, 5, 0, NULL));
	ok(varve_reader_close(r));
	ok(varve_reader_close(NULL));
}

/* The reader belongs to the process that opened it. */
static void check_fork(const char *url)
{
	varve_reader *r = NULL;
	uint64_t epoch;
	pid_t child;
	int status;

	ok(varve_reader_open(url, "model", "log=error", &r));
	ok(varve_reader_read(r, 3, 0, model[0].name, 0, 1, &(uint8_t){ 0 }));
	child = fork();
	if (child == 0) {
		FAILS(varve_reader_latest(r, &epoch), VARVE_EINVAL, "child of fork");
		ok(varve_reader_close(r));
		ok(varve_reader_open(url, "model", "log=error", &r));
		ok(varve_reader_latest(r, &epoch));
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	ok(varve_reader_close(r));
}

/* ---- beside a writer ---------------------------------------------------------------------------------------------------------- */

enum { CELLS = 1 << 16, STEPS = 150 };

static uint64_t cells[CELLS];
static atomic_bool done;

/* Epoch e has the same number in all cells. */
static void *write_epochs(void *arg)
{
	varve *v = NULL;

	ok(varve_open(arg, "live", CODED_FAST " keep=1 log=error", &v));
	ok(varve_protect_array(v, "cells", cells, VARVE_U64, 1, &(size_t){ CELLS }));
	for (uint64_t e = 1; e <= STEPS; e++) {
		for (size_t i = 0; i < CELLS; i++)
			cells[i] = e << 20 | (i & 0xfffff);
		ok(varve_checkpoint(v));
		CHECK_EQ(varve_epoch(v), e);
	}
	ok(varve_close(v));
	atomic_store(&done, true);
	return NULL;
}

static void check_one_epoch(const uint64_t *got, size_t start, size_t n, uint64_t epoch)
{
	for (size_t i = 0; i < n; i++)
		CHECK(got[i] == ((epoch ? epoch << 20 : got[0] >> 20 << 20) | (start + i)));
}

/* An epoch that is dropped meanwhile is ENOENT and nothing else. */
static void check_beside_writer(const char *url)
{
	const struct varve_stored_epoch *const *epoch;
	static uint64_t got[CELLS];
	varve_reader *r = NULL;
	long reads = 0, gone = 0;
	pthread_t writer;
	size_t n;

	CHECK(pthread_create(&writer, NULL, write_epochs, (void *)(uintptr_t)url) == 0);
	while (varve_reader_open(url, "live", "log=error threads=2", &r) == VARVE_ENOENT)
		usleep(1000);
	while (!atomic_load(&done) || !reads) {
		uint64_t e = 0, start = upto(CELLS - 1), count = 1 + upto(CELLS - 1 - (size_t)start);
		int rc = varve_reader_latest(r, &e);

		if (rc == VARVE_ENOENT)
			continue;
		ok(rc);
		rc = varve_reader_read_part(r, e, 0, "cells", &start, &count, got);
		if (rc == VARVE_ENOENT)
			gone++;
		else
			check_one_epoch((ok(rc), got), start, count, e);
		ok(varve_reader_read_part(r, VARVE_LATEST, 0, "cells", &start, &count, got));
		check_one_epoch(got, start, count, 0);
		ok(varve_reader_epochs(r, &epoch, &n));
		CHECK(n >= 1);
		for (size_t i = 0; i < n; i++)
			CHECK(epoch[i]->complete);
		reads++;
	}
	pthread_join(writer, NULL);
	printf("%ld reads beside the writer, %ld of a dropped epoch\n", reads, gone);
	ok(varve_reader_close(r));
}

/* ---- damage ------------------------------------------------------------------------------------------------------------------- */

enum { BLOCK = 64 << 10, BLOCKS = 16, PLAIN = BLOCK * BLOCKS };

static void write_plain(const char *url, const char *lineage, uint8_t *p, size_t len, const char *options)
{
	varve *v = NULL;

	ok(varve_open(url, lineage, options, &v));
	ok(varve_protect(v, "p", p, len));
	ok(varve_label(v, "start"));
	ok(varve_checkpoint(v));
	ok(varve_close(v));
}

static void check_problem(varve_reader *r, size_t i, const char *words)
{
	const struct varve_stored_epoch *const *epoch;
	size_t n;

	ok(varve_reader_epochs(r, &epoch, &n));
	CHECK(n > i && !epoch[i]->complete && epoch[i]->problem);
	CHECK(strstr(epoch[i]->problem, words));
	CHECK(epoch[i]->n_labels == 1 && strcmp(epoch[i]->label[0], "start") == 0);
}

static void check_damage(const char *url)
{
	char path[PLACE_MAX + 64], commit[PLACE_MAX + 64];
	uint8_t *p = malloc(PLAIN), *got = malloc(PLAIN), *bytes;
	varve_reader *r = NULL;
	size_t n;

	noise(p, PLAIN);
	write_plain(url, "plain", p, PLAIN, "codec=none mode=sync order=address block=64KiB log=error");
	snprintf(path, sizeof(path), "%s/plain/00000000/0000000001.r0.layer", url);
	snprintf(commit, sizeof(commit), "%s/plain/00000000/0000000001.commit", url);
	ok(varve_reader_open(url, "plain", "log=error", &r));
	bytes = place_read(path, &n);
	for (size_t i = 0; i < BLOCKS; i += 3) {
		bytes[16 + i * BLOCK + 77] ^= 4; /* behind the header: the blocks, in the order of the addresses */
		place_write(path, bytes, n);
		FAILS(varve_reader_read(r, 1, 0, "p", i * BLOCK, BLOCK, got), VARVE_EDAMAGED, "0000000001.r0.layer");
		ok(varve_reader_read(r, 1, 0, "p", (i + 1) % BLOCKS * BLOCK, 5000, got));
		CHECK(memcmp(got, p + (i + 1) % BLOCKS * BLOCK, 5000) == 0);
		bytes[16 + i * BLOCK + 77] ^= 4;
	}
	place_write(path, bytes, n);
	ok(varve_reader_read(r, 1, 0, "p", 0, PLAIN, got));
	CHECK(memcmp(got, p, PLAIN) == 0);
	place_remove(path);
	check_problem(r, 0, "missing: 0");
	FAILS(varve_reader_read(r, 1, 0, "p", 0, 1, got), VARVE_EDAMAGED, "0000000001.r0.layer");
	place_write(path, bytes, n / 2);
	FAILS(varve_reader_read(r, 1, 0, "p", 0, 1, got), VARVE_EDAMAGED, "0000000001.r0.layer");
	place_write(path, bytes, n);
	free(bytes);
	bytes = place_read(commit, &n);
	bytes[20] ^= 1;
	place_write(commit, bytes, n);
	check_problem(r, 0, "0000000001.commit");
	FAILS(varve_reader_regions(r, 1, 0, &(const struct varve_stored_region *const *){ NULL }, &(size_t){ 0 }), VARVE_EDAMAGED, "0000000001.commit");
	ok(varve_reader_close(r));
	free(bytes);
	free(got);
	free(p);
}

/* ---- what is read ------------------------------------------------------------------------------------------------------------- */

static struct vv_fs counting;
static atomic_uint_least64_t bytes_read;
static atomic_bool outage;

static ssize_t counting_pread(const struct vv_fs *fs, int fd, void *p, size_t n, off_t off)
{
	(void)fs;
	if (atomic_load(&outage)) {
		errno = ETIMEDOUT;
		return -1;
	}
	atomic_fetch_add(&bytes_read, n);
	return lazyfs()->pread(lazyfs(), fd, p, n, off);
}

/* Leaves no room in the address space to map a file of that size: it is read, and each byte is counted. */
static void forbid_mapping(struct rlimit *before, size_t room)
{
	struct rlimit limit;
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f && fscanf(f, "%lu", &pages) == 1);
	fclose(f);
	CHECK(getrlimit(RLIMIT_AS, before) == 0);
	limit = *before;
	limit.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + room;
	CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

static void check_amount(const char *url, const char *lineage, const char *options)
{
	const size_t all = (size_t)256 << 20, part = 1 << 20, start = 77 * part + 12345;
	uint64_t *p = malloc(all), *got = malloc(part);
	struct rlimit before;
	varve_reader *r = NULL;

	for (size_t i = 0; i < all / sizeof(*p); i++)
		p[i] = i * 0x9e3779b97f4a7c15ull >> (i & 16 ? 0 : 40);
	write_plain(url, lineage, (uint8_t *)p, all, options);
	vv_dir_set_fs(&counting);
	forbid_mapping(&before, all / 4);
	ok(varve_reader_open(url, lineage, "log=error threads=1", &r));
	atomic_store(&bytes_read, 0);
	ok(varve_reader_read(r, 1, 0, "p", start, part, got));
	CHECK(memcmp(got, (uint8_t *)p + start, part) == 0);
	printf("%s: %.1f MB are read for 1 MB of 256 MB", lineage, (double)atomic_load(&bytes_read) / 1e6);
	CHECK(atomic_load(&bytes_read) > part / 20 && atomic_load(&bytes_read) < 8 * part);
	atomic_store(&bytes_read, 0);
	ok(varve_reader_read(r, 1, 0, "p", start + 5 * part, 8, got));
	printf(", %.1f MB for 8 bytes more\n", (double)atomic_load(&bytes_read) / 1e6);
	CHECK(memcmp(got, (uint8_t *)p + start + 5 * part, 8) == 0);
	CHECK(atomic_load(&bytes_read) < 2 * part);
	atomic_store(&outage, true);
	FAILS(varve_reader_read(r, 1, 0, "p", start, part, got), VARVE_EIO, "cannot read");
	atomic_store(&outage, false);
	ok(varve_reader_read(r, 1, 0, "p", start, part, got));
	ok(varve_reader_close(r));
	CHECK(setrlimit(RLIMIT_AS, &before) == 0);
	vv_dir_set_fs(lazyfs());
	free(got);
	free(p);
}

int main(void)
{
	char url[PLACE_MAX];

	counting = *lazyfs();
	counting.pread = counting_pread;
	vv_dir_set_fs(lazyfs());
	place_path(url, "store");
	write_model(url);
	check_model(url);
	check_mistakes(url);
	check_fork(url);
	vv_dir_set_fs(NULL); /* files are mapped */
	check_model(url);
	check_beside_writer(url);
	check_damage(url);
	vv_dir_set_fs(lazyfs());
	check_amount(url, "whole", "codec=none mode=sync log=error");
	check_amount(url, "coded", CODED_FAST " mode=sync log=error");
	for (int i = 0; i < REGIONS; i++) {
		free(model[i].now);
		for (int e = 0; e <= EPOCHS; e++)
			free(model[i].then[e]);
	}
	return 0;
}
