// ctest: TIMEOUT 300 COST 10
/* The memory that checkpoints take: no more than the buffer, 2 % of the regions, and a little that does not grow, however many epochs there are and whatever becomes of
 * old ones. Measured as the highest resident set of a child process. */
#include "base/pool.h"
#include "support/must.h"
#include "support/place.h"
#include "support/status.h"
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { MIB = 1 << 20, LEN = 256 * MIB, BUFFER = 16 * MIB, FIXED = 10 * MIB, CHUNK = 4096 };

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED 1
#elif defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static bool reset_peak(void)
{
	FILE *f = fopen("/proc/self/clear_refs", "we");
	bool ok = f && fputs("5", f) >= 0;

	return f && fclose(f) == 0 && ok;
}

/* All pages new, in a way that costs little: a number per page. */
static void renew(uint8_t *p, uint64_t *next, size_t every)
{
	for (size_t at = 0; at < LEN; at += every * CHUNK) {
		uint64_t number = ++*next * 0x9e3779b97f4a7c15u;

		memcpy(p + at + number % 500 * 8, &number, sizeof(number));
	}
}

struct kase {
	const char *options;
	size_t every; /* of so many pages one is new in later epochs */
	int epochs;
};

/* In the child. */
static int measure(const char *store, const struct kase *k)
{
	uint8_t *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t next = 0;
	/* the C library's, for each thread: a coder's working memory stays there */
	long heap = strstr(k->options, "codec=none") ? MIB / 2 : 2 * MIB, most = (BUFFER + LEN / 50 + FIXED + vv_pool_cores() * heap) / 1024;
	long base, worst = 0;
	varve *v;
	int rc;

	must_begin("memory, %s, every %zu", k->options, k->every);
	MUST(p != MAP_FAILED);
	renew(p, &next, 1);
	base = status_kib("VmRSS");
	rc = varve_open(store, "run", k->options, &v);
	if (rc == VARVE_ENOTSUP)
		return 0;
	MUST(rc == 0 && varve_protect(v, "p", p, LEN) == 0);
	for (int e = 0; e < k->epochs; e++) {
		long grown;

		MUST(reset_peak());
		MUST(varve_checkpoint(v) == 0);
		renew(p, &next, k->every);
		MUST(varve_wait(v, varve_epoch(v)) == 0);
		grown = status_kib("VmHWM") - base;
		worst = grown > worst ? grown : worst;
	}
	MUST(varve_close(v) == 0);
	printf("%s, 1 of %zu, %d epochs: %ld KiB, at most %ld\n", k->options, k->every, k->epochs, worst, most);
	return worst > most;
}

int main(void)
{
	/* With `keep` the space of old epochs is taken back; at the 64th a copy of the index goes to the store. */
	static const struct kase kases[] = {
		{ "buffer=16MiB codec=none tracker=auto", 1, 3 },
		{ "buffer=16MiB codec=none tracker=auto", 20, 3 },
		{ "buffer=16MiB codec=zstd tracker=digest", 1, 3 },
		{ "buffer=16MiB codec=none tracker=digest", 20, 3 },
		{ "buffer=16MiB codec=none tracker=wpasync", 1, 3 },
		{ "buffer=16MiB codec=none tracker=wpasync", 20, 3 },
		{ "buffer=16MiB codec=none tracker=mprotect", 1, 3 },
		{ "buffer=16MiB codec=none tracker=mprotect", 20, 3 },
		{ "buffer=16MiB keep=2", 1, 12 },
		{ "buffer=16MiB keep=3", 10, 67 },
		{ "buffer=16MiB mode=sync keep=2 history=0", 3, 12 },
	};
	char store[PLACE_MAX];
	int bad = 0;

	if (SANITIZED)
		SKIP("a sanitizer takes memory of its own");
	place_path(store, "store");
	for (size_t k = 0; k < sizeof(kases) / sizeof(kases[0]); k++) {
		int status;
		pid_t pid;

		fflush(stdout);
		place_remove(store);
		pid = fork();
		if (pid == 0) {
			int rc = measure(store, &kases[k]);

			fflush(stdout);
			_exit(rc);
		}
		MUST(waitpid(pid, &status, 0) == pid);
		bad += status != 0;
	}
	return bad ? 1 : 0;
}
