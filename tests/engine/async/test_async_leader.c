// ctest: TIMEOUT 120
/* The program's first thread ends (pthread_exit) while an epoch is being stored, and others go on. From then on /proc/self tells nothing of the process: it is that of
 * the thread that has ended. Epochs are stored as before, by any tracker. */
#include "support/must.h"
#include "support/place.h"
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 4 << 20, EPOCHS = 4 };

static pthread_t first;
static varve *v;
static uint8_t *p, was[SIZE], got[SIZE];

static void fill(uint64_t seed)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15ull + 1;

	for (size_t i = 0; i < SIZE; i += sizeof(x)) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(p + i, &x, sizeof(x));
	}
}

/* The kernel is through with it, too. */
static void await_first(void)
{
	size_t n = 1;

	MUST(pthread_join(first, NULL) == 0);
	while (n) {
		FILE *f = fopen("/proc/self/maps", "re");
		char line[16];

		n = f ? fread(line, 1, sizeof(line), f) : 0;
		if (f)
			fclose(f);
		must_nap(1);
	}
}

static void *go_on(void *arg)
{
	(void)arg;
	await_first();
	for (uint64_t e = 2; e < 2 + EPOCHS; e++) {
		fill(2 * e);
		memcpy(was, p, SIZE);
		MUST(varve_checkpoint(v) == 0);
		fill(2 * e + 1);
		MUST(varve_wait(v, varve_epoch(v)) == 0);
		MUST(varve_restart_region(v, varve_epoch(v), "r", got, SIZE) == 0 && memcmp(got, was, SIZE) == 0);
	}
	MUST(varve_restart(v, VARVE_LATEST) == 1 && memcmp(p, was, SIZE) == 0);
	MUST(varve_close(v) == 0);
	exit(0);
}

/* In the child. */
static void program(const char *store, const char *options)
{
	pthread_t t;

	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(p != MAP_FAILED);
	if (varve_open(store, "run", options, &v) == VARVE_ENOTSUP)
		_exit(0);
	MUST(v && varve_protect(v, "r", p, SIZE) == 0);
	fill(1);
	first = pthread_self();
	MUST(pthread_create(&t, NULL, go_on, NULL) == 0);
	MUST(varve_checkpoint(v) == 0);
	pthread_exit(NULL);
}

int main(void)
{
	static const char *const trackers[] = { "digest", "auto", "wpasync", "mprotect" };
	char store[PLACE_MAX], options[100];
	int bad = 0;

	place_path(store, "store");
	for (int k = 0; k < 8; k++) {
		int status = 0;
		pid_t pid;

		snprintf(options, sizeof(options), "tracker=%s buffer=64KiB mode=%s", trackers[k / 2], k % 2 ? "sync" : "async");
		must_begin("%s", options);
		place_remove(store);
		pid = fork();
		if (pid == 0)
			program(store, options);
		MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
		if (status)
			fprintf(stderr, "%s: status %x\n", options, status);
		bad += status != 0;
	}
	return bad ? 1 : 0;
}
