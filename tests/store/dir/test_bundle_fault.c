// ctest: TIMEOUT 120 COST 2
/* A bundle is written, a member of it replaced, another removed, the rest removed, while every call in turn fails, the
 * process dies at it, or the power goes: either no member is there or all are whole, and what was said to be done is. */
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/dir/dir.h"
#include "support/faultfs.h"
#include "support/lazyfs.h"
#include "support/members.h"
#include "support/place.h"
#include "support/powerfs.h"
#include "vv_test.h"
#include <limits.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 3, EPOCH = 4, SEEDS = 6 };
enum step { SEAL, PUT, REMOVE, CLEAR, STEPS };
enum { NOT_YET, TRYING, FAILED, DONE };

static const struct members_object old[N] = { { 1, 9000 }, { 2, 300 }, { 3, 20000 } }, new = { 4, 5000 };
static char root[PLACE_MAX], when[200];

/* What whoever does the work knows of it; in memory that outlives the process. */
static struct know {
	int step[STEPS];
	bool settled; /* swept: nothing changes any more */
	int is[N];
} *know;

#define MUST(e)                                                                                                                \
	do {                                                                                                                 \
		if (!(e)) {                                                                                                  \
			fprintf(stderr, "%s:%d: %s\n  in: %s\n  last error: %s\n", __FILE__, __LINE__, #e, when, vv_err_last()); \
			exit(1);                                                                                             \
		}                                                                                                            \
	} while (0)

static int do_step(struct vv_store *s, enum step step)
{
	int rc = 0;

	switch (step) {
	case SEAL:
		return members_bundle(s, EPOCH, 0, N, old, 20480);
	case PUT:
		return members_put(s, EPOCH, 1, new);
	case REMOVE:
		return members_remove(s, EPOCH, 2);
	default:
		for (uint32_t i = 0; rc == 0 && i < 2; i++)
			rc = members_remove(s, EPOCH, i);
		return rc;
	}
}

/* Up to the first failure; 0 or its code. */
static int work(const char *url)
{
	struct vv_store_options opt = { .create = true };
	struct vv_store *s = NULL;
	int rc = vv_store_open(url, &opt, &s);

	for (int i = 0; rc == 0 && i < STEPS; i++) {
		know->step[i] = TRYING;
		rc = do_step(s, (enum step)i);
		know->step[i] = rc ? FAILED : DONE;
	}
	vv_store_close(s);
	return rc;
}

/* What must hold of the objects, whoever did what before. */
static void check_objects(struct vv_store *s, const struct know *k)
{
	int is[N];
	bool sealed = k->step[SEAL] == DONE, cleared = k->step[CLEAR] == DONE;

	for (uint32_t i = 0; i < N; i++) {
		is[i] = members_is_either(s, EPOCH, i, old[i], i == 1 ? new : old[i]);
		MUST(is[i] >= 0);
	}
	MUST(!k->settled || memcmp(is, k->is, sizeof(is)) == 0);
	MUST(members_listed(s) == (size_t)(is[0] != 0) + (is[1] != 0) + (is[2] != 0));
	MUST(k->step[SEAL] != NOT_YET || !(is[0] || is[1] || is[2]));
	if (!sealed) {
		MUST(is[0] == is[1] && is[1] == is[2]);
		return;
	}
	MUST(cleared ? !is[0] && !is[1] : k->step[CLEAR] != NOT_YET || (is[0] && is[1]));
	MUST(k->step[PUT] != NOT_YET || is[1] == 1);
	MUST(k->step[PUT] != DONE || is[1] != 1);
	MUST(k->step[REMOVE] != NOT_YET || is[2]);
	MUST(k->step[REMOVE] != DONE || !is[2]);
}

/* As it is; after the next writer has swept; and when all is removed. */
static void check(const char *url, const struct know *k)
{
	struct vv_store *s = members_open(url);
	char folder[2 * PLACE_MAX];

	snprintf(folder, sizeof(folder), "%s/" MEMBERS_FOLDER, url);
	check_objects(s, k);
	MUST(vv_store_sweep(s, MEMBERS_FOLDER) == 0);
	MUST(members_files(folder, ".tmp-") == 0);
	check_objects(s, k);
	for (uint32_t i = 0; i < N; i++)
		MUST(members_remove(s, EPOCH, i) == 0);
	MUST(members_listed(s) == 0);
	MUST(members_files(folder, "") == 0);
	vv_store_close(s);
}

/* ---- calls that fail, processes that die ----------------------------------------------------------------------------- */

static bool run_in_child(long n)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		faultfs_arm(FAULT_KILL, n);
		_exit(work(root) != 0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) || status == 0);
	return WIFSIGNALED(status);
}

static long faults(enum fault kind)
{
	bool fired = true;
	long n;

	for (n = 1; fired; n++) {
		int rc = 0;

		snprintf(when, sizeof(when), "%s at call %ld", faultfs_name(kind), n);
		place_remove(place_path(root, "store"));
		memset(know, 0, sizeof(*know));
		vv_dir_set_fs(faultfs());
		if (kind == FAULT_KILL) {
			fired = run_in_child(n);
		} else {
			faultfs_arm(kind, n);
			rc = work(root);
			fired = faultfs_fired();
			MUST(fired || rc == 0);
			MUST(rc == 0 || strstr(vv_err_last(), root)); /* it is said where */
		}
		faultfs_arm(FAULT_NONE, 0);
		vv_dir_set_fs(lazyfs());
		place_make_dir(root);
		check(root, know);
	}
	return n;
}

/* Want of memory, at every allocation of the work, and then of someone who looks at a whole bundle. */
static long no_memory(void)
{
	long n, asked = LONG_MAX; /* of the case before: less than its number if nothing failed */

	for (n = 1; asked >= n - 1; n++) {
		snprintf(when, sizeof(when), "no memory at allocation %ld", n);
		place_remove(place_path(root, "store"));
		memset(know, 0, sizeof(*know));
		vv_mem_fail_at(n);
		work(root);
		asked = vv_mem_asked();
		vv_mem_fail_at(0);
		place_make_dir(root);
		check(root, know);
	}
	return n;
}

static void look(struct vv_store *s)
{
	char name[VV_NAME_MAX];
	struct vv_names v = { 0 };
	struct vv_get *g = NULL;
	int rc = vv_store_list(s, MEMBERS_FOLDER, &v);

	MUST(rc == 0 ? v.n == N : rc == VV_ENOMEM);
	vv_names_fini(&v);
	vv_name_layer(name, MEMBERS_LINEAGE, EPOCH, 2);
	rc = vv_store_get_open(s, name, &g);
	MUST(rc == 0 ? g->size == old[2].len : rc == VV_ENOMEM);
	vv_store_get_close(g);
	rc = vv_store_sweep(s, MEMBERS_FOLDER);
	MUST(rc == 0 || rc == VV_ENOMEM);
}

static long no_memory_to_read(void)
{
	long n, asked = LONG_MAX; /* of the case before: less than its number if nothing failed */

	place_remove(place_path(root, "store"));
	for (n = 1; asked >= n - 1; n++) {
		struct vv_store *s = members_open(root);

		if (n == 1)
			CHECK_EQ(do_step(s, SEAL), 0);
		snprintf(when, sizeof(when), "no memory to read, at allocation %ld", n);
		vv_mem_fail_at(n);
		look(s);
		asked = vv_mem_asked();
		vv_mem_fail_at(0);
		for (uint32_t i = 0; i < N; i++)
			MUST(members_is(s, EPOCH, i, old[i]) == 1);
		vv_store_close(s);
	}
	return n;
}

/* ---- power --------------------------------------------------------------------------------------------------------------- */

static long cases;

static void lose_power(void *arg)
{
	char after[PLACE_MAX], store[PLACE_MAX];
	struct know knew = *know;

	(void)arg;
	place_path(after, "after");
	place_path(store, "after/store");
	for (int i = 0; i < 3 + SEEDS; i++) {
		enum power_loss loss = i < 3 ? (enum power_loss)i : POWER_RANDOM;

		snprintf(when, sizeof(when), "power lost, survivors %d, seed %d, steps %d %d %d %d", loss, i, knew.step[0],
			 knew.step[1], knew.step[2], knew.step[3]);
		place_remove(after);
		powerfs_survivors(loss, (uint64_t)(i * 1000003 + cases), after);
		place_make_dir(store);
		vv_dir_set_fs(lazyfs());
		check(store, &knew);
		vv_dir_set_fs(powerfs());
		cases++;
	}
}

static void start_power(void)
{
	char disk[PLACE_MAX];

	place_remove(place_path(disk, "disk"));
	place_make_dir(disk);
	place_path(root, "disk/store");
	memset(know, 0, sizeof(*know));
	powerfs_start(disk);
	vv_dir_set_fs(powerfs());
}

static void power(void)
{
	start_power();
	powerfs_watch(lose_power, NULL);
	CHECK_EQ(work(root), 0);
	powerfs_watch(NULL, NULL);
	lose_power(NULL);
	vv_dir_set_fs(lazyfs());
}

/* The process dies at any call; the next one sweeps, and while it does and after, the power goes: what the first had not
 * made durable, the second must before it does anything that relies on it. */
static void power_after_death(void)
{
	bool died = true;

	for (long n = 1; died; n++) {
		struct vv_store *s;

		start_power();
		powerfs_die(n);
		work(root);
		died = powerfs_died();
		powerfs_die(0);
		if (know->step[SEAL] == NOT_YET)
			continue;
		s = members_open(root);
		powerfs_watch(lose_power, NULL);
		CHECK_EQ(vv_store_sweep(s, MEMBERS_FOLDER), 0);
		powerfs_watch(NULL, NULL);
		for (uint32_t i = 0; i < N; i++)
			know->is[i] = members_is_either(s, EPOCH, i, old[i], i == 1 ? new : old[i]);
		know->settled = true;
		lose_power(NULL);
		vv_store_close(s);
	}
	vv_dir_set_fs(lazyfs());
}

int main(void)
{
	long calls = 0;

	know = mmap(NULL, sizeof(*know), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(know != MAP_FAILED);
	vv_log_set_level(VV_LOG_ERROR);
	for (int kind = FAULT_EIO; kind < FAULT_KINDS; kind++)
		calls += faults((enum fault)kind);
	calls += no_memory() + no_memory_to_read();
	power();
	power_after_death();
	printf("%ld calls failed, power lost %ld times\n", calls, cases);
	return 0;
}
