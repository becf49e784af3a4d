// ctest: TIMEOUT 300 COST 25
/* Ranks with stores of their own and redundancy: every set of stores that the scheme bears to lose is removed, and the next start brings
 * all layers and parity back, byte for byte. One more: the error names the ranks. */
#include "support/hosts.h"
#include "engine/context.h"
#include "engine/ranks/parity_file.h"
#include "engine/ranks/parity_sets.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include <stdarg.h>

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void shell(const char *format, ...)
{
	char text[4 * PLACE_MAX];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	MUST(system(text) == 0);
}

/* All objects are as they were. Of commit records, only those that a restart needed are. */
static void compare(const struct hosts *r)
{
	shell("diff -r -x lock -x 'index.*' -x '*.commit' -x lineage %s %s.saved", r->store, r->store);
}

static void lose(const struct hosts *r, unsigned places)
{
	for (uint32_t p = 0; p < r->ranks; p++)
		if (places >> p & 1)
			shell("rm -r %s/p%u", r->store, p);
}

static void check_all(uint32_t ranks, unsigned m, const char *options, bool any_thread)
{
	struct hosts *r = hosts_new(ranks, ranks * 100 + m, options);

	r->any_thread = any_thread;
	hosts_go(r, 0, 1, 3);
	shell("cp -a %s %s.saved", r->store, r->store);
	for (unsigned lost = 1; lost < 1u << ranks; lost++) {
		if ((unsigned)__builtin_popcount(lost) > m)
			continue;
		must_begin("%u ranks, %s, lost %x", ranks, options, lost);
		lose(r, lost);
		hosts_go(r, 3, 0, 0);
		compare(r);
	}
	/* The lineage goes on, and its new epochs are protected, too. */
	hosts_go(r, 3, 4, 6);
	lose(r, 1);
	lose(r, m > 1 ? 1u << (ranks - 1) : 0);
	hosts_go(r, 6, 0, 0);
	r->end = 6;
	threadcomm_run(ranks, hosts_read_all, r);
	shell("rm -r %s.saved", r->store);
	hosts_end(r);
}

struct refused {
	struct hosts *r;
	char message[1024];
};

static void expect_refusal(const struct varve_comm *comm, void *arg)
{
	struct refused *f = arg;
	varve *v = hosts_open(f->r, comm);
	uint8_t *p = varve_alloc(v, "p", (size_t)PAGES * PAGE);

	CHECK(p);
	CHECK_EQ(varve_restart(v, 3), VARVE_EDAMAGED);
	if (comm->rank == 0)
		snprintf(f->message, sizeof(f->message), "%s", varve_last_error());
	OK(varve_close(v));
}

static void check_refused(void)
{
	struct hosts *r = hosts_new(4, 77, "mode=async redundancy=xor:4 failure-domain=store log=error");
	struct refused f = { .r = r };

	r->any_thread = true;
	hosts_go(r, 0, 1, 3);
	/* Only the newest epoch is beyond repair. */
	for (uint32_t p = 1; p < 3; p++) {
		shell("rm %s/p%u/job/00000000/0000000003.*", r->store, p);
	}
	threadcomm_run(4, expect_refusal, &f);
	MUST(strstr(f.message, "epoch 3") && strstr(f.message, "rank 1 (store of rank 1), rank 2 (store of rank 2)") &&
	     strstr(f.message, "xor:4 bears the loss of 1 failure domain"));
	hosts_go(r, 2, 0, 0);
	hosts_end(r);
}

/* A few bits of layers and parity change in several stores. */
static void check_damage(void)
{
	struct hosts *r = hosts_new(5, 78, "mode=async redundancy=rs:3+2 failure-domain=store log=error");

	r->any_thread = true;
	hosts_go(r, 0, 1, 3);
	shell("cp -a %s %s.saved", r->store, r->store);
	for (unsigned i = 0; i < 12; i++) {
		must_begin("damage %u", i);
		shell("f=$(ls %s/p%u/job/00000000/*%u.r*.layer); printf XXXX | dd of=$f bs=1 seek=%u conv=notrunc 2>/dev/null", r->store, i % 5,
		      1 + i % 3, 100 + i * 3500);
		shell("f=$(ls %s/p%u/job/00000000/*%u.r*.parity); printf XXXX | dd of=$f bs=1 seek=%u conv=notrunc 2>/dev/null", r->store,
		      (i + 1) % 5, 1 + (i + 1) % 3, i % 2 ? 20 : 700 + i * 100);
		/* The damage must show in what the restart reads. */
		shell("f=$(ls %s/p%u/job/00000000/*3.r*.layer); printf XXXX | dd of=$f bs=1 seek=60 conv=notrunc 2>/dev/null", r->store, (i + 2) % 5);
		shell("f=$(ls %s/p%u/job/00000000/*3.r*.layer); n=$(stat -c %%s $f); printf XXXX | dd of=$f bs=1 seek=$((n - 30)) conv=notrunc 2>/dev/null",
		      r->store, (i + 2) % 5);
		hosts_go(r, 3, 0, 0);
		compare(r);
	}
	shell("rm -r %s.saved", r->store);
	hosts_end(r);
}

static unsigned count(const struct hosts *r, const char *pattern)
{
	char text[2 * PLACE_MAX];
	FILE *f;
	unsigned n = 0;

	snprintf(text, sizeof(text), "ls %s/p*/job/*/%s 2>/dev/null | wc -l", r->store, pattern);
	f = popen(text, "r");
	CHECK(f && fscanf(f, "%u", &n) == 1);
	pclose(f);
	return n;
}

/* Old epochs are dropped. Whatever remains comes back after each loss, and the space is bounded: epochs that refer to nothing older let the
 * old ones go. */
static void check_keep(uint32_t ranks, unsigned m, const char *options)
{
	struct hosts *r = hosts_new(ranks, 91 + m, options);
	unsigned most = 0;

	r->any_thread = true;
	hosts_go(r, 0, 1, 2);
	for (int e = 3; e + 3 <= EPOCHS_MAX; e += 4) {
		unsigned layers, parity;

		hosts_go(r, e - 1, e, e + 3);
		layers = count(r, "*.layer");
		parity = count(r, "*.parity");
		CHECK_EQ(layers, parity); /* sets stay and go as a whole */
		CHECK_EQ(layers % ranks, 0);
		most = layers / ranks > most ? layers / ranks : most;
		lose(r, (e % 2 ? 1u : 2u) | (m > 1 ? 1u << (ranks - 1) : 0));
		hosts_go(r, e + 3, 0, 0);
		CHECK_EQ(count(r, "*.layer"), layers);
	}
	MUST(most < 30);
	hosts_end(r);
}

/* Redundancy is switched on in a lineage that has epochs without it: the first epoch with parity needs none of them. */
static void check_late(void)
{
	struct hosts *r = hosts_new(4, 92, "mode=async log=error");

	r->any_thread = true;
	hosts_go(r, 0, 1, 3);
	r->options = "mode=async redundancy=xor:4 failure-domain=store log=error";
	hosts_go(r, 3, 4, 6);
	shell("rm %s/p*/job/00000000/000000000[123].*", r->store);
	lose(r, 4);
	hosts_go(r, 6, 0, 0);
	hosts_end(r);
}

/* The newest protected epoch: after varve_wait it is the newest one, and after a restart the one restarted from, if all its parity is there. */
static void ask_protected(const struct varve_comm *comm, void *arg)
{
	struct hosts *r = arg;
	varve *v = hosts_open(r, comm);
	uint8_t *p = varve_alloc(v, "p", (size_t)PAGES * PAGE);

	CHECK_EQ(varve_protected_epoch(v), 0);
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	CHECK_EQ(varve_protected_epoch(v), (uint64_t)r->want);
	hosts_set(r, 4, comm->rank, p);
	OK(varve_checkpoint(v));
	OK(varve_wait(v, varve_epoch(v)));
	CHECK_EQ(varve_protected_epoch(v), r->end ? varve_epoch(v) : 0);
	OK(varve_close(v));
}

static unsigned read_metric(const struct hosts *r, const char *name)
{
	char text[2 * PLACE_MAX];
	unsigned n = 0;
	FILE *f;

	snprintf(text, sizeof(text), "sed -n 's/^%s{.*} //p' %s/varve-job.r1.prom", name, r->store);
	f = popen(text, "r");
	CHECK(f && fscanf(f, "%u", &n) == 1);
	pclose(f);
	return n;
}

static void check_protected(void)
{
	struct hosts *r = hosts_new(3, 93, NULL);
	char options[2 * PLACE_MAX];

	snprintf(options, sizeof(options), "mode=async redundancy=rs:2+1 failure-domain=store metrics=%s", r->store);
	r->options = options;
	r->any_thread = true;
	hosts_go(r, 0, 1, 3);
	MUST(read_metric(r, "varve_protected_epoch") == 3 && read_metric(r, "varve_parity_bytes_total") > PAGE);
	r->want = r->end = 3;
	threadcomm_run(3, ask_protected, r);
	MUST(read_metric(r, "varve_protected_epoch") == 4);
	r->options = "mode=async log=error";
	r->want = r->end = 0;
	threadcomm_run(3, ask_protected, r);
	hosts_end(r);
}

/* A spare node takes part as the last rank, and all ranks behind the lost one move up. The objects that were lost go to the spare's store,
 * not to one that has a part of the same set, so each epoch bears the loss of any store again. */
static void check_moved_up(uint32_t ranks, const char *options)
{
	struct hosts *r = hosts_new(ranks, 94, options);

	r->any_thread = true;
	hosts_go(r, 0, 1, 3);
	shell("cp -a %s %s.saved", r->store, r->store);
	for (uint32_t then = 1; then < ranks; then++) {
		must_begin("moved up, lost 0, %u", then);
		lose(r, 1);
		r->turn = 1;
		hosts_go(r, 3, 0, 0);
		lose(r, 1u << then);
		hosts_go(r, 3, 0, 0);
		r->turn = 0;
		shell("rm -r %s && cp -a %s.saved %s", r->store, r->store, r->store);
	}
	shell("rm -r %s.saved", r->store);
	hosts_end(r);
}

/* Two ranks share a store after the loss of another. Old epochs bear less then, so new ones refer to none of them. */
static void check_shared(void)
{
	struct hosts *r = hosts_new(3, 95, "mode=async redundancy=partner failure-domain=store log=error");

	r->any_thread = true;
	hosts_go(r, 0, 1, 3);
	shell("cp -a %s %s.saved", r->store, r->store);
	for (uint32_t then = 0; then < 2; then++) {
		must_begin("two ranks share a store, lost %u", then);
		lose(r, 4);
		r->per_place = 2;
		hosts_go(r, 3, 4, 5);
		lose(r, 1u << then);
		hosts_go(r, 5, 0, 0);
		r->per_place = 1;
		shell("rm -r %s && cp -a %s.saved %s", r->store, r->store, r->store);
	}
	shell("rm -r %s.saved", r->store);
	hosts_end(r);
}

/* All ranks go on with the only store that is left. */
static void check_one_left(void)
{
	struct hosts *r = hosts_new(2, 97, "mode=async redundancy=partner failure-domain=store log=error");

	r->any_thread = true;
	hosts_go(r, 0, 1, 3);
	lose(r, 2);
	r->per_place = 2;
	hosts_go(r, 3, 4, 4);
	r->end = 4;
	threadcomm_run(2, hosts_read_all, r);
	hosts_end(r);
}

/* A folder is in the way of one object. All others come back. */
static void check_obstacle(void)
{
	struct hosts *r = hosts_new(4, 96, "mode=async redundancy=rs:2+2 failure-domain=store log=error");

	r->any_thread = true;
	hosts_go(r, 0, 1, 3);
	shell("cd %s/p0/job/00000000 && rm 0000000001.r0-of-4.parity && mkdir 0000000001.r0-of-4.parity", r->store);
	lose(r, 2);
	hosts_go(r, 3, 0, 0);
	r->end = 3;
	threadcomm_run(4, hosts_read_all, r);
	hosts_end(r);
}

/* Two jobs have written epoch 3, from the same epoch 2. Of the first, a parity object is left; that of the commit record counts. */
static void check_two_sets(void)
{
	struct hosts *r = hosts_new(4, 98, "mode=async redundancy=rs:2+2 failure-domain=store log=error");

	r->any_thread = true;
	hosts_go(r, 0, 1, 3);
	shell("mv %s/p0/job/00000000/0000000003.r0-of-4.parity %s.old", r->store, r->store);
	shell("rm %s/p*/job/00000000/0000000003.*", r->store);
	for (uint32_t k = 0; k < r->ranks; k++)
		for (int i = 0; i < PAGES; i++)
			r->id[3][k][i] += 5000;
	hosts_go(r, 2, 3, 3);
	shell("mv %s.old %s/p0/job/00000000/0000000003.r0-of-4.parity", r->store, r->store);
	for (unsigned lost = 2; lost < 1u << 4; lost *= 2) {
		lose(r, lost);
		hosts_go(r, 3, 0, 0);
	}
	hosts_end(r);
}

/* A job that died in checkpoint 3 has left a layer of rank 0 in store 0. The next job had it in store 1. With the loss of one store the good
 * one is found, and the other one never counts. */
static void check_stale(void)
{
	struct hosts *r = hosts_new(4, 99, "mode=async redundancy=xor:4 failure-domain=store log=error");
	const char *e3 = "job/00000000/0000000003";

	r->any_thread = true;
	hosts_go(r, 0, 1, 3);
	shell("mv %s/p0/%s.r0.layer %s.old", r->store, e3, r->store);
	shell("rm %s/p*/%s.*", r->store, e3);
	for (uint32_t k = 0; k < r->ranks; k++)
		for (int i = 0; i < PAGES; i++)
			r->id[3][k][i] += 5000;
	r->turn = 1;
	hosts_go(r, 2, 3, 3);
	shell("mv %s.old %s/p0/%s.r0.layer", r->store, r->store, e3);
	shell("cp -a %s %s.saved", r->store, r->store);
	for (unsigned lost = 1; lost < 1u << 4; lost *= 2) {
		must_begin("a stale layer, lost %x", lost);
		lose(r, lost);
		hosts_go(r, 3, 0, 0);
		lose(r, lost == 8 ? 1 : lost * 2);
		hosts_go(r, 3, 0, 0);
		shell("rm -r %s && cp -a %s.saved %s", r->store, r->store, r->store);
	}
	shell("rm -r %s.saved", r->store);
	hosts_end(r);
}

static void note_refused(void *arg, int level, const char *sentence)
{
	(void)level;
	*(unsigned *)arg += strstr(sentence, "the parity of epoch 1 is not used: layers of 6291456 blocks") != NULL;
}

/* Parity over more blocks than this version takes, as another one may have made it: it is not used, and that is told once. */
static void check_beyond_limits(void)
{
	struct hosts *r = hosts_new(3, 100, "mode=async redundancy=xor:3 failure-domain=store log=error");
	struct vv_store_options opt = { 0 };
	struct vv_parity_sets s = { 0 };
	struct vv_parity_head h = { 0 };
	struct vv_parity_job *j = NULL;
	struct vv_listing l = { 0 };
	struct vv_lineage lin;
	struct vv_buf b = { 0 };
	struct iovec bytes;
	struct vv_put *put;
	char path[PLACE_MAX + 16];
	unsigned told = 0;
	size_t n = 0;

	hosts_go(r, 0, 1, 1);
	hosts_place(r, 0, path);
	OK(vv_store_open(path, &opt, &lin.store));
	OK(vv_catalog_open(lin.store, "job", false, &lin));
	OK(vv_parity_file_head(&lin, 1, 0, 3, &h));
	for (size_t i = 0; i < 3; i++)
		h.layer[i].len = 1ull << 41;
	vv_parity_head_put(&h, &b);
	bytes = (struct iovec){ b.p, b.n };
	OK(vv_store_put_open(lin.store, "job/00000000/0000000001.r0-of-3.parity", b.n, &put));
	OK(vv_store_put_write(put, &bytes, 1));
	OK(vv_store_put_commit(put));
	OK(vv_catalog_drop_epoch(&lin, 1, NULL));
	OK(vv_catalog_list(&lin, 0, &l));
	OK(vv_parity_sets_add(&s, &l, 0));
	vv_parity_sets_sort(&s);
	s.io.lineage = &lin;
	vv_log_set_level(VV_LOG_WARN);
	vv_log_set_function(note_refused, &told);
	OK(vv_parity_sets_load(&s, 1, &j, &n));
	vv_log_set_function(NULL, NULL);
	MUST(n == 0 && told == 1);
	vv_mem_free(j);
	vv_parity_sets_fini(&s);
	vv_catalog_listing_fini(&l);
	vv_parity_head_fini(&h);
	vv_buf_fini(&b);
	vv_store_close(lin.store);
	hosts_end(r);
}

/* Two names that differ behind the 63rd byte would be one domain. */
static void check_domain_name(void)
{
	struct varve_comm self = { .rank = 0, .size = 1 };
	char options[200], name[65] = "", store[PLACE_MAX];
	varve *v = NULL;

	memset(name, 'x', 64);
	snprintf(options, sizeof(options), "log=error failure-domain=%s", name);
	must_begin("names of failure domains");
	place_path(store, "domain");
	CHECK_EQ(varve_open_comm(&self, store, "job", options, &v), VARVE_EINVAL);
	MUST(v == NULL && strstr(varve_last_error(), "failure-domain") && strstr(varve_last_error(), "63 are allowed"));
	snprintf(options, sizeof(options), "log=error failure-domain=%s", name + 1);
	OK(varve_open_comm(&self, store, "job", options, &v));
	OK(varve_close(v));
	place_remove(store);
}

static void check_option(void)
{
	static const char *const wrong[] = { "", "rs:", "rs:6", "rs:6+", "rs:0+1", "rs:1+0", "rs:300+300", "rs:60+16", "rs:6+17", "rs:6+2 ",
					     "xor:", "xor:0", "xor:1", "xor:65", "partner:2", "RS:6+2", "raid" };
	struct varve_comm self = { .rank = 0, .size = 1 };
	char options[100];
	varve *v = NULL;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		must_begin("redundancy='%s'", wrong[i]);
		snprintf(options, sizeof(options), "log=error redundancy='%s'", wrong[i]);
		CHECK_EQ(varve_open_comm(&self, "store", "job", options, &v), VARVE_EINVAL);
		MUST(v == NULL && strstr(varve_last_error(), "none, partner, xor:N or rs:K+M, with N from 2"));
	}
}

int main(void)
{
	check_option();
	check_domain_name();
	check_two_sets();
	check_beyond_limits();
	check_stale();
	check_moved_up(4, "mode=async redundancy=xor:4 failure-domain=store log=error");
	check_moved_up(5, "mode=sync redundancy=partner failure-domain=store log=error");
	check_shared();
	check_one_left();
	check_obstacle();
	check_protected();
	check_all(2, 1, "mode=async redundancy=partner failure-domain=store log=error", true);
	check_all(3, 1, "mode=sync redundancy=partner failure-domain=store log=error", true);
	check_all(4, 1, "mode=async redundancy=xor:4 failure-domain=store log=error", false);
	check_all(5, 2, "mode=async redundancy=rs:3+2 failure-domain=store log=error", true);
	check_all(6, 1, "mode=async redundancy=xor:3 failure-domain=store log=error", true);
	check_all(8, 2, "mode=async redundancy=rs:6+2 failure-domain=store log=error copies=2", true);
	check_all(8, 4, "mode=sync redundancy=rs:4+4 failure-domain=store log=error", false);
	check_refused();
	check_damage();
	check_late();
	check_keep(4, 1, "mode=async redundancy=xor:4 failure-domain=store log=error keep=2");
	check_keep(6, 2, "mode=sync redundancy=rs:4+2 failure-domain=store log=error keep=3 keep-every=8");
	return 0;
}
