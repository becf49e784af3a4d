// ctest: TIMEOUT 120 MODES
/* Labels: the next epoch gets it, and only that one; whatever fails in between, there is no epoch without its label, and none with
 * the label of another. */
#include "engine/lineage/label.h"
#include "engine/upkeep/gc.h"
#include "store/dir/dir.h"
#include "support/faultfs.h"
#include "support/lazyfs.h"
#include "support/place.h"
#include "support/settle.h"
#include "support/threadcomm.h"
#include "vv_test.h"
#include <varve/varve.h>
#include <varve/varve_comm.h>

static char store[PLACE_MAX];
static char memory[5000];

#define OK(e) CHECK_EQ(e, 0)

static varve *open_session(const char *options)
{
	varve *v = NULL;

	if (varve_open(store, "a", options, &v) < 0)
		return NULL;
	OK(varve_protect(v, "m", memory, sizeof(memory)));
	return v;
}

static void take(varve *v)
{
	memory[0]++;
	OK(settle_checkpoint(v));
}

/* The labels of an epoch, in order, separated by blanks. */
static const char *labels_of(uint64_t epoch)
{
	static char text[400];
	struct vv_store_options opt = { 0 };
	struct vv_listing l = { 0 };
	struct vv_lineage lin;
	struct vv_store *s = NULL;
	const struct vv_label_name *of;
	size_t n = 0;

	text[0] = '\0';
	OK(vv_store_open(store, &opt, &s));
	OK(vv_catalog_open(s, "a", false, &lin));
	OK(vv_catalog_list(&lin, 0, &l));
	of = vv_label_of(&l, epoch, &n);
	for (size_t i = 0; i < n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "", of[i].label);
	vv_catalog_listing_fini(&l);
	vv_store_close(s);
	return text;
}

static void test_next_alone(void)
{
	varve *v;

	place_remove(place_path(store, "plain"));
	v = open_session("");
	CHECK(v);
	take(v);
	OK(varve_label(v, "step-400"));
	take(v);
	take(v);
	OK(varve_label(v, "no"));
	OK(varve_label(v, "yes.1_a"));
	take(v);
	OK(varve_label(v, "no"));
	OK(varve_label(v, NULL));
	take(v);
	OK(varve_label(v, "step-400"));
	take(v);
	OK(varve_label(v, "not-used"));
	OK(varve_close(v));
	CHECK_STR(labels_of(1), "");
	CHECK_STR(labels_of(2), "step-400");
	CHECK_STR(labels_of(3), "");
	CHECK_STR(labels_of(4), "yes.1_a");
	CHECK_STR(labels_of(5), "");
	CHECK_STR(labels_of(6), "step-400");
}

static void test_refused(void)
{
	static const char *const bad[] = { ".a", "-1", "-a", "7", "0", "latest", "a..b", "a b", "a/b", "a@b", "a:b", "a\n", "a\x1b[2J", "\xc3\xa4", "a\x7f" };
	char longest[66];
	varve *v;

	place_remove(place_path(store, "refused"));
	v = open_session("");
	CHECK(v);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_EQ(varve_label(v, bad[i]), VARVE_EINVAL);
		CHECK(strstr(varve_last_error(), "label '"));
	}
	memset(longest, 'x', 65);
	longest[65] = '\0';
	CHECK_EQ(varve_label(v, longest), VARVE_EINVAL);
	longest[64] = '\0';
	OK(varve_label(v, longest));
	CHECK_EQ(varve_label(v, "7"), VARVE_EINVAL); /* which changes nothing */
	take(v);
	OK(varve_close(v));
	CHECK_STR(labels_of(1), longest);
	CHECK_EQ(varve_label(NULL, "a"), VARVE_EINVAL);
}

/* While an epoch is being stored, the label of the next one is taken without a wait, and changes nothing of it. */
static void test_during_a_flush(void)
{
	varve *v;

	place_remove(place_path(store, "flush"));
	v = open_session("");
	CHECK(v);
	for (int i = 1; i <= 20; i++) {
		char label[20];

		snprintf(label, sizeof(label), "step-%d", i);
		OK(varve_label(v, label));
		memory[0]++;
		OK(varve_checkpoint(v));
	}
	OK(varve_close(v));
	CHECK_STR(labels_of(1), "step-1");
	CHECK_STR(labels_of(19), "step-19");
	CHECK_STR(labels_of(20), "step-20");
}

/* gc removes the labels of dropped epochs. */
static void test_gc(void)
{
	struct vv_store_options opt = { 0 };
	struct vv_gc_report report;
	struct vv_lineage lin;
	struct vv_store *s = NULL;
	uint64_t found = 0;

	place_path(store, "plain");
	OK(vv_store_open(store, &opt, &s));
	OK(vv_catalog_open(s, "a", false, &lin));
	OK(vv_label_find(&lin, "step-400", &found));
	CHECK_EQ(found, 6);
	OK(vv_catalog_drop_epoch(&lin, 6, NULL));
	OK(vv_label_find(&lin, "step-400", &found));
	CHECK_EQ(found, 2);
	OK(vv_catalog_drop_epoch(&lin, 2, NULL));
	CHECK_EQ(vv_label_find(&lin, "step-400", &found), VARVE_ENOENT);
	CHECK_EQ(vv_label_find(&lin, "step-40", &found), VARVE_ENOENT);
	CHECK_STR(labels_of(2), "step-400"); /* its object is still there, */
	OK(vv_gc_run(&lin, 0, VV_GC_DRY_RUN, NULL, &report));
	CHECK_STR(labels_of(2), "step-400");
	OK(vv_gc_run(&lin, 0, VV_GC_THOROUGH, NULL, &report));
	CHECK_STR(labels_of(2), "");         /* and now it is not */
	CHECK_STR(labels_of(6), "");
	CHECK_STR(labels_of(4), "yes.1_a");
	vv_store_close(s);
}

static bool is_committed(uint64_t epoch)
{
	struct vv_store_options opt = { 0 };
	struct vv_commit c = { 0 };
	struct vv_lineage lin;
	struct vv_store *s = NULL;
	int rc;

	OK(vv_store_open(store, &opt, &s));
	OK(vv_catalog_open(s, "a", false, &lin));
	rc = vv_catalog_commit(&lin, epoch, &c);
	vv_commit_fini(&c);
	vv_store_close(s);
	return rc == 0;
}

/* An epoch with a label, and a fault at the n-th call. Then another session takes one without. */
static bool run_with_fault(enum fault kind, long n)
{
	uint64_t next;
	bool fired;
	varve *v;

	place_remove(place_path(store, "fault"));
	vv_dir_set_fs(lazyfs());
	v = open_session("");
	CHECK(v);
	take(v);
	OK(varve_close(v));
	vv_dir_set_fs(faultfs());
	v = open_session("");
	CHECK(v);
	OK(varve_label(v, "two"));
	memory[0]++;
	faultfs_arm(kind, n);
	(void)settle_checkpoint(v);
	fired = faultfs_fired();
	varve_close(v); /* still without a store, if that is the fault */
	faultfs_arm(FAULT_NONE, 0);
	vv_dir_set_fs(lazyfs());
	if (is_committed(2))
		CHECK_STR(labels_of(2), "two");
	v = open_session("");
	CHECK(v);
	take(v);
	next = varve_epoch(v);
	OK(varve_close(v));
	CHECK_STR(labels_of(next), "");
	return fired;
}

static void test_faults(void)
{
	static const enum fault kinds[] = { FAULT_EIO, FAULT_DEAD };
	long n = 1;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (n = 1; run_with_fault(kinds[i], n); n++)
			;
	CHECK(n > 8);
	vv_dir_set_fs(NULL);
}

static void rank_with_label(const struct varve_comm *comm, void *arg)
{
	char own[PLACE_MAX + 20];
	varve *v = NULL;
	char bytes[3000];

	if (arg)
		snprintf(own, sizeof(own), "%s-%u", (char *)arg, comm->rank);
	else
		snprintf(own, sizeof(own), "%s", store);
	memset(bytes, (int)comm->rank + 1, sizeof(bytes));
	OK(varve_open_comm(comm, own, "a", NULL, &v));
	OK(varve_protect(v, "m", bytes, sizeof(bytes)));
	OK(varve_label(v, "together"));
	OK(varve_checkpoint(v));
	bytes[0]++;
	OK(varve_checkpoint(v));
	OK(varve_close(v));
}

/* Ranks of one store, and ranks with stores of their own: each store has the label. */
static void test_ranks(void)
{
	char base[PLACE_MAX];

	place_remove(place_path(store, "ranks"));
	threadcomm_run(2, rank_with_label, NULL);
	CHECK_STR(labels_of(1), "together");
	CHECK_STR(labels_of(2), "");
	memcpy(base, store, sizeof(base));
	threadcomm_run(2, rank_with_label, base);
	for (int r = 0; r < 2; r++) {
		CHECK(snprintf(store, sizeof(store), "%s-%d", base, r) < PLACE_MAX);
		CHECK_STR(labels_of(1), "together");
		CHECK_STR(labels_of(2), "");
	}
}

int main(void)
{
	test_next_alone();
	test_gc();
	test_refused();
	test_during_a_flush();
	test_faults();
	test_ranks();
	return 0;
}
