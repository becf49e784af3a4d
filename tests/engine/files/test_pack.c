// ctest: TIMEOUT 240
/* Files that are packed: again, and nothing is new; that change meanwhile, that are none, that cannot be read, many of them. */
#include "engine/files/pack.h"
#include "codec/codec.h"
#include "engine/context.h"
#include "engine/session/session.h"
#include "support/gen.h"
#include "support/place.h"
#include "vv_test.h"
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int pack_one(const char *store, const char *path, const char *name, const char *options, struct vv_pack_report *report)
{
	struct vv_pack_file file = { path, name, false };
	struct vv_pack_options how = { .effort = VV_PACK_DEFAULT };
	varve *v = NULL;
	int rc = vv_session_open(NULL, store, "set", options, &v);
	struct vv_err_state error;

	CHECK_EQ(rc, 0);
	rc = vv_pack_run(v, &file, 1, &how, report);
	vv_err_save(rc, &error);
	CHECK_EQ(varve_close(v), 0);
	vv_err_restore(&error);
	return rc;
}

/* Again, and nothing of it is new; shifted, and little is. */
static void test_dedup(void)
{
	static uint8_t bytes[2 << 20];
	char store[PLACE_MAX], path[PLACE_MAX];
	struct vv_pack_report r;
	uint64_t state = 7;

	place_path(store, "again");
	place_path(path, "one");
	gen_bytes(&state, bytes, sizeof(bytes));
	place_write(path, bytes, sizeof(bytes) - 100);
	CHECK_EQ(pack_one(store, path, "one", "mode=sync", &r), 0);
	CHECK(r.fresh >= sizeof(bytes) - 100 && r.raw == sizeof(bytes) - 100);
	vv_pack_report_fini(&r);
	CHECK_EQ(pack_one(store, path, "two", "mode=sync", &r), 0);
	CHECK(r.fresh < 8192);
	vv_pack_report_fini(&r);
	memmove(bytes + 1013, bytes + 1000, sizeof(bytes) - 1013);
	place_write(path, bytes, sizeof(bytes) - 87);
	CHECK_EQ(pack_one(store, path, "two", "mode=sync", &r), 0);
	CHECK(r.fresh < 150000);
	vv_pack_report_fini(&r);
}

/* An array of doubles, as NumPy writes it. */
static void write_field(const char *path, const double *v, size_t n)
{
	static char file[128 + (1 << 20)];
	int head = snprintf(file, sizeof(file), "\x93NUMPY%c%c%c%c{'descr': '<f8', 'fortran_order': False, 'shape': (%zu,), }", 1, 0, 118, 0, n);

	memset(file + head, ' ', (size_t)(127 - head));
	file[127] = '\n';
	memcpy(file + 128, v, 8 * n);
	place_write(path, file, 128 + 8 * n);
}

static const struct vv_manifest_kind *field_of(const struct vv_pack_report *r)
{
	size_t i = 0;

	while (i < r->manifest.n_kinds && r->manifest.kind[i].type != VV_TYPE_F64)
		i++;
	CHECK(i < r->manifest.n_kinds);
	return &r->manifest.kind[i];
}

/* A field in which nothing has happened yet, and then something does: how it is coded is found out anew, at once. Later it holds, and where a single
 * number has changed little is new. */
static void test_field(void)
{
	enum { N = 32 << 10 };
	static double v[N];
	char store[PLACE_MAX], path[PLACE_MAX];
	struct vv_pack_report r;
	uint64_t state = 11;

	if (!vv_codec_numbered(VV_CODEC_TYPED))
		return;
	place_path(store, "field");
	place_path(path, "u.npy");
	for (unsigned epoch = 1; epoch <= 4; epoch++) {
		for (size_t i = 0; epoch < 4 && i < N; i++)
			v[i] = epoch == 1 ? (double)(i / 1000) : 10 + epoch + (double)i * 1e-3 + (double)gen_below(&state, 1000) * 1e-9;
		v[N / 2] += 1;
		write_field(path, v, N);
		CHECK_EQ(pack_one(store, path, "u.npy", "mode=sync", &r), 0);
		CHECK_EQ(field_of(&r)->age, epoch < 3 ? 0 : epoch - 2);
		CHECK(epoch > 1 || field_of(&r)->expected_ratio > 8000);
		CHECK(epoch == 1 || epoch == 4 || (field_of(&r)->recipe.predictor == VV_PREDICT_LORENZO && field_of(&r)->stored < 5 * N));
		CHECK(epoch < 4 || (r.fresh > 0 && r.fresh < 32 << 10));
		vv_pack_report_fini(&r);
	}
}

static void test_misuse(void)
{
	char store[PLACE_MAX], path[PLACE_MAX];
	struct vv_pack_report r = { 0 };

	place_path(store, "misuse");
	place_path(path, "fifo");
	CHECK_EQ(mkfifo(path, 0600), 0);
	CHECK_EQ(pack_one(store, path, "x", "mode=sync", &r), VV_EINVAL);
	CHECK(strstr(vv_err_last(), "not a regular file"));
	CHECK_EQ(pack_one(store, place_root(), "x", "mode=sync", &r), VV_EINVAL);
	CHECK_EQ(pack_one(store, "/no/such/file", "x", "mode=sync", &r), VV_ENOENT);
	CHECK(strstr(vv_err_last(), "/no/such/file"));
	place_path(path, "plain");
	place_write(path, "abc", 3);
	for (size_t i = 0; i < 6; i++) {
		static const char *const bad[] = { "/abs", "../x", "a/../b", "", "a//b", "./a" };

		CHECK_EQ(pack_one(store, path, bad[i], "mode=sync", &r), VV_EINVAL);
	}
	CHECK_EQ(pack_one(store, path, "fine", "mode=sync", &r), 0);
	CHECK_EQ(r.epoch, 1);
	vv_pack_report_fini(&r);
}

/* Who writes into a file while it is read is told so, and the epoch does not count. */
struct scribble {
	char path[PLACE_MAX];
	bool done;
};

static void touch(void *arg, uint64_t done, uint64_t total)
{
	struct scribble *s = arg;
	int fd;

	(void)done;
	(void)total;
	if (s->done)
		return;
	s->done = true;
	fd = open(s->path, O_WRONLY);
	CHECK(fd >= 0 && pwrite(fd, "changed", 7, 100) == 7 && close(fd) == 0);
}

static void test_changes(void)
{
	static uint8_t bytes[8 << 20];
	struct scribble s = { .done = false };
	struct vv_pack_options how = { .progress = { .step = touch, .arg = &s } };
	struct vv_pack_report r = { 0 };
	struct vv_pack_file file;
	char store[PLACE_MAX];
	varve *v = NULL;
	uint64_t state = 3;

	place_path(store, "changes");
	place_path(s.path, "moving");
	gen_bytes(&state, bytes, sizeof(bytes));
	place_write(s.path, bytes, sizeof(bytes));
	file = (struct vv_pack_file){ s.path, "moving", false };
	CHECK_EQ(vv_session_open(NULL, store, "set", "mode=sync", &v), 0);
	CHECK_EQ(vv_pack_run(v, &file, 1, &how, &r), VV_EBUSY);
	CHECK(strstr(vv_err_last(), "changed while"));
	CHECK_EQ(varve_epoch(v), 0);
	CHECK_EQ(vv_pack_run(v, &file, 1, &how, &r), 0); /* now it is quiet */
	CHECK_EQ(r.epoch, 2);
	vv_pack_report_fini(&r);
	CHECK_EQ(varve_close(v), 0);
}

/* A lineage of a program's own checkpoints is not for files. */
static void test_other_lineage(void)
{
	char store[PLACE_MAX], path[PLACE_MAX], state[5000] = "memory";
	struct vv_pack_report r = { 0 };
	varve *v = NULL;

	place_path(store, "other");
	place_write(place_path(path, "plain"), "abc", 3);
	CHECK_EQ(varve_open(store, "set", "mode=sync", &v), 0);
	CHECK_EQ(varve_protect(v, "state", state, sizeof(state)), 0);
	CHECK_EQ(varve_checkpoint(v), 0);
	CHECK_EQ(varve_close(v), 0);
	CHECK_EQ(pack_one(store, path, "plain", "mode=sync", &r), VV_EINVAL);
	CHECK(strstr(vv_err_last(), "another lineage"));
}

/* More files than may be open. */
static void test_many(void)
{
	enum { MANY = 400 };
	static struct vv_pack_file file[MANY];
	static char path[MANY][PLACE_MAX], name[MANY][32];
	struct rlimit was, few = { 200, 200 };
	struct vv_pack_options how = { .effort = VV_PACK_DEFAULT };
	struct vv_pack_report r = { 0 };
	char store[PLACE_MAX];
	varve *v = NULL;
	pid_t pid;
	int status;

	place_path(store, "many");
	for (size_t i = 0; i < MANY; i++) {
		snprintf(name[i], sizeof(name[i]), "many-%zu", i);
		place_write(place_path(path[i], name[i]), name[i], strlen(name[i]));
		file[i] = (struct vv_pack_file){ path[i], name[i], false };
	}
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &was), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) { /* a limit that was lowered does not rise again */
		CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
		CHECK(vv_session_open(NULL, store, "set", "mode=sync", &v) == 0);
		CHECK(vv_pack_run(v, file, MANY, &how, &r) == 0);
		CHECK(r.files == MANY);
		vv_pack_report_fini(&r);
		CHECK(unlink(path[MANY - 1]) == 0);
		CHECK(vv_pack_run(v, file, MANY, &how, &r) == VV_ENOENT);
		CHECK(varve_close(v) == 0);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* Through a mapping whose page is dirty already a file is changed without its time telling. */
struct mapped {
	uint8_t *p;
	bool done;
};

static void write_mapped(void *arg, uint64_t done, uint64_t total)
{
	struct mapped *m = arg;

	(void)done;
	(void)total;
	if (!m->done)
		m->p[10]++;
	m->done = true;
}

static void test_mapped(void)
{
	static uint8_t bytes[100000];
	struct mapped m = { .done = false };
	struct vv_pack_options how = { .progress = { .step = write_mapped, .arg = &m } };
	struct vv_pack_report r = { 0 };
	struct vv_pack_file file;
	char store[PLACE_MAX], path[PLACE_MAX];
	varve *v = NULL;
	int fd;

	place_path(store, "mapped-store");
	place_write(place_path(path, "mapped"), bytes, sizeof(bytes));
	fd = open(path, O_RDWR);
	m.p = mmap(NULL, sizeof(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(fd >= 0 && m.p != MAP_FAILED);
	m.p[10] = 1; /* the page is dirty now */
	file = (struct vv_pack_file){ path, "mapped", false };
	CHECK_EQ(vv_session_open(NULL, store, "set", "mode=sync", &v), 0);
	CHECK_EQ(vv_pack_run(v, &file, 1, &how, &r), VV_EBUSY);
	CHECK(strstr(vv_err_last(), "changed while"));
	CHECK_EQ(vv_pack_run(v, &file, 1, &how, &r), 0); /* open for writing, but nobody does */
	vv_pack_report_fini(&r);
	CHECK_EQ(varve_close(v), 0);
	munmap(m.p, sizeof(bytes));
	close(fd);
}

static uint64_t stored_on(unsigned threads, const char *path, uint64_t len)
{
	char store[PLACE_MAX], name[64], options[64];
	struct vv_pack_report r = { 0 };
	uint64_t stored;

	snprintf(name, sizeof(name), "cores%u-%llu", threads, (unsigned long long)len);
	snprintf(options, sizeof(options), "mode=sync threads=%u", threads);
	place_path(store, name);
	CHECK_EQ(pack_one(store, path, "thing", options, &r), 0);
	CHECK(r.raw == len && r.fresh > len / 2);
	stored = r.stored;
	vv_pack_report_fini(&r);
	place_remove(store);
	return stored;
}

/* A little on one core is coded and written by whoever reads it, more of it by others, too: the blocks are the same. */
static void test_cores(void)
{
	static const uint64_t len[] = { 1, 70000, (4 << 20) + 1, (32 << 20) + 4096 };
	static uint8_t bytes[(32 << 20) + 4096];
	char path[PLACE_MAX];
	uint64_t state = 3;

	gen_text(&state, bytes, 1 << 20);
	for (size_t i = 1 << 20; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(bytes[i - (1 << 20)] + (i % 4096 < 64)); /* few chunks are like another */
	place_path(path, "cores");
	for (size_t i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
		uint64_t stored;

		place_write(path, bytes, (size_t)len[i]);
		stored = stored_on(1, path, len[i]);
		CHECK(stored && stored_on(3, path, len[i]) == stored);
	}
}

int main(void)
{
	test_dedup();
	test_cores();
	test_field();
	test_misuse();
	test_changes();
	test_other_lineage();
	test_mapped();
	test_many();
	return 0;
}
