// ctest: TIMEOUT 120 COST 3
/* Stores in shared memory: the common suite; names; a program that is killed; with a tier, when the machine was switched off. */
#include "base/err.h"
#include "store/store.h"
#include "support/must.h"
#include "support/place.h"
#include "support/storesuite.h"
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { BYTES = 3 << 20 };

static char name[64], url[80], path[160], tier[PLACE_MAX];

static void choose(const char *what)
{
	snprintf(name, sizeof(name), "test-%s-%ld", what, (long)getpid());
	snprintf(url, sizeof(url), "ram:%s", name);
	snprintf(path, sizeof(path), "/dev/shm/varve-%lu/%s", (unsigned long)geteuid(), name);
}

static void clean(void)
{
	char folder[80];

	place_remove(path);
	snprintf(folder, sizeof(folder), "/dev/shm/varve-%lu", (unsigned long)geteuid());
	rmdir(folder); /* another test may use it */
}

static void test_names(void)
{
	static const char *const bad[] = { "ram:", "ram:a/b", "ram:../x", "ram:.x", "ram:a b", "ram:/x" };
	struct vv_store_options opt = { .create = true };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct vv_store *s = NULL;

		must_begin("%s", bad[i]);
		MUST(vv_store_open(bad[i], &opt, &s) == VV_EINVAL);
		MUST(strstr(vv_err_last(), bad[i]));
	}
	choose("absent");
	opt.create = false;
	MUST(vv_store_open(url, &opt, &(struct vv_store *){ NULL }) == VV_ENOENT);
}

static void test_private(void)
{
	struct vv_store_options opt = { .create = true };
	struct vv_store *s = NULL;
	struct stat st;
	char folder[80];

	choose("private");
	must_begin("private");
	MUST(vv_store_open(url, &opt, &s) == 0);
	CHECK_STR(s->url, url);
	vv_store_close(s);
	snprintf(folder, sizeof(folder), "/dev/shm/varve-%lu", (unsigned long)geteuid());
	MUST(lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 0777) == 0700 && st.st_uid == geteuid());
	clean();
}

static void fill(uint8_t *p, uint64_t epoch)
{
	for (size_t i = 0; i < BYTES; i++)
		p[i] = (uint8_t)(epoch * 31 + i / 4096 * epoch + i);
}

static void live(uint64_t want, int epochs, bool dies)
{
	static uint8_t right[BYTES];
	char options[PLACE_MAX + 64];
	varve *v = NULL;
	uint8_t *p;

	snprintf(options, sizeof(options), "log=error,tiers='%s every=2'", tier);
	MUST(varve_open(url, "job", options, &v) == 0);
	p = varve_alloc(v, "p", BYTES);
	MUST(varve_restart(v, VARVE_LATEST) == (want ? 1 : 0) && varve_epoch(v) == want);
	fill(right, want);
	MUST(!want || memcmp(p, right, BYTES) == 0);
	for (int i = 0; i < epochs; i++) {
		fill(p, varve_epoch(v) + 1);
		MUST(varve_checkpoint(v) == 0);
		MUST(varve_wait(v, varve_epoch(v)) >= 0);
	}
	if (dies)
		raise(SIGKILL);
	MUST(varve_close(v) == 0);
}

static void run(uint64_t want, int epochs, bool dies)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		live(want, epochs, dies);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	MUST(dies ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_kill(void)
{
	choose("kill");
	place_path(tier, "tier");
	must_begin("kill");
	run(0, 3, true);
	run(3, 2, true);
	run(5, 1, false);
	/* the machine was switched off */
	place_remove(path);
	run(6, 1, true);
	run(7, 0, false);
	clean();
}

int main(void)
{
	if (access("/dev/shm", W_OK) < 0)
		SKIP("no /dev/shm");
	choose("suite");
	must_begin("suite");
	storesuite_run(url);
	clean();
	test_names();
	test_private();
	test_kill();
	return 0;
}
