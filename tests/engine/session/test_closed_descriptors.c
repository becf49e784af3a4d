// ctest: TIMEOUT 120 COST 3
/* A program that closes descriptors which it has not opened, as many do before they go into the background, and opens files of its own, which get the numbers of
 * ours: nothing of varve goes into its files, none of them is closed by varve, and an epoch that counts is whole. */
#include "base/clock.h"
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { LEN = 4 << 20, FILES = 64, EPOCHS = 6 };

static uint8_t memory[LEN], copy[LEN], got[LEN];
static char store[PLACE_MAX], files[PLACE_MAX];
static int own[FILES], taken[FILES], n_taken;

/* All but the first three; their numbers are noted. */
static void close_all(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;

	MUST(d);
	n_taken = 0;
	while ((e = readdir(d)) && n_taken < FILES) {
		int fd = atoi(e->d_name);

		if (fd > 2 && fd != dirfd(d))
			taken[n_taken++] = fd;
	}
	closedir(d);
	for (int i = 0; i < n_taken; i++)
		close(taken[i]);
}

/* Files of the program's: they get the lowest numbers, and those that were closed. */
static void open_own(void)
{
	for (int i = 0; i < FILES; i++) {
		char path[PLACE_MAX + 8];

		snprintf(path, sizeof(path), "%s/%d", files, i);
		own[i] = open(path, O_RDWR | O_CREAT, 0600);
		MUST(own[i] >= 0);
	}
	for (int i = 0; i < n_taken; i++)
		if (fcntl(taken[i], F_GETFD) < 0)
			MUST(dup2(own[i], taken[i]) == taken[i]);
		else
			taken[i] = -1; /* it is one of these, or ours again */
}

/* Nobody but the program has touched its files. */
static void check_own(void)
{
	for (int i = 0; i < FILES; i++) {
		struct stat st;

		MUST(fstat(own[i], &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0);
	}
	for (int i = 0; i < n_taken; i++) {
		struct stat st;

		MUST(taken[i] < 0 || (fstat(taken[i], &st) == 0 && S_ISREG(st.st_mode)));
		if (taken[i] >= 0)
			close(taken[i]);
	}
	for (int i = 0; i < FILES; i++)
		close(own[i]);
}

/* Every epoch that counts is what it was. */
static void check_epochs(const char *options, uint8_t *first, const bool *counts)
{
	varve *v = NULL;

	MUST(varve_open(store, "run", options, &v) == 0);
	for (uint64_t e = 1; e <= EPOCHS; e++) {
		memset(got, 0, LEN);
		if (counts[e]) {
			MUST(varve_restart_region(v, e, "p", got, LEN) == 0);
			MUST(got[0] == first[e] && got[LEN - 1] == first[e]);
		}
	}
	MUST(varve_close(v) == 0);
}

/* The one reason that there is. */
static bool is_known(const char *said)
{
	return strstr(said, "varve's");
}

static void stray(const char *options, unsigned wait_us)
{
	uint8_t first[EPOCHS + 1] = { 0 };
	bool counts[EPOCHS + 1] = { false };
	uint64_t seed = wait_us + 1;
	varve *v = NULL;

	must_begin("descriptors closed after %u us: %s", wait_us, options);
	place_make_dir(files);
	MUST(varve_open(store, "run", options, &v) == 0);
	MUST(varve_protect(v, "p", memory, LEN) == 0);
	for (uint64_t e = 1; e <= EPOCHS; e++) {
		int rc;

		gen_bytes(&seed, memory, LEN);
		memory[0] = memory[LEN - 1] = (uint8_t)e;
		memcpy(copy, memory, LEN);
		rc = varve_checkpoint(v);
		if (rc == 0) {
			vv_clock_sleep(wait_us * 1e-6);
			close_all();
			open_own();
			rc = varve_wait(v, varve_epoch(v));
			check_own();
			first[varve_epoch(v)] = (uint8_t)e;
			counts[varve_epoch(v)] = rc == 0;
		}
		if (rc)
			MUST(is_known(varve_last_error()));
	}
	close_all();
	open_own();
	varve_close(v);
	check_own();
	check_epochs(options, first, counts);
	place_remove(store);
	place_remove(files);
}

/* Without its descriptor the lock is gone: it is taken again, unless somebody else had it. */
static void lock(bool other)
{
	varve *v = NULL;
	int status;
	pid_t child;

	must_begin("the lock of a lineage, %s", other ? "taken by another" : "closed");
	MUST(varve_open(store, "run", "log=error", &v) == 0);
	MUST(varve_protect(v, "p", memory, 4096) == 0);
	MUST(varve_checkpoint(v) == 0 && varve_wait(v, 1) == 0);
	close_all();
	child = other ? fork() : 0;
	if (other && child == 0) {
		varve *w = NULL;

		MUST(varve_open(store, "run", "log=error", &w) == 0);
		MUST(varve_protect(w, "p", memory, 4096) == 0 && varve_checkpoint(w) == 0);
		_exit(varve_close(w) ? 1 : 0);
	}
	MUST(!other || (waitpid(child, &status, 0) == child && status == 0));
	memory[7]++;
	if (other) {
		MUST((varve_checkpoint(v) < 0 || varve_wait(v, varve_epoch(v)) < 0) && strstr(varve_last_error(), "open the session again"));
	} else {
		MUST(varve_checkpoint(v) == 0 && varve_wait(v, 2) == 0);
		child = fork();
		if (child == 0) {
			varve *w = NULL;

			_exit(varve_open(store, "run", "log=error", &w) == VARVE_EBUSY ? 0 : 1);
		}
		MUST(waitpid(child, &status, 0) == child && status == 0);
	}
	varve_close(v);
	place_remove(store);
}

int main(void)
{
	static const char *const options[] = { "codec=none buffer=100%", "codec=none buffer=1MiB tracker=mprotect", "codec=none buffer=1MiB tracker=sigbus",
					       "mode=sync" };
	static const unsigned waits[] = { 0, 2000, 8000 };

	place_path(store, "store");
	place_path(files, "files");
	lock(false);
	lock(true);
	for (size_t i = 0; i < 4; i++)
		for (size_t k = 0; k < 3; k++) {
			char all[200];

			snprintf(all, sizeof(all), "%s bandwidth=200MiB log=error", options[i]);
			stray(all, waits[k]);
		}
	return 0;
}
