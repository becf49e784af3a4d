// ctest: TIMEOUT 300 COST 10
/* The memory that checkpoints take: no more than the buffer and 2 % of the regions, however many epochs there are, in whatever order pages are written and whatever becomes of
 * old epochs; where the buffer is as large as the regions, or there are many cores, a little more. Measured as the highest resident set of a child process, less what that has of files, which is the program's code. */
#include "base/pool.h"
#include "support/must.h"
#include "support/place.h"
#include "support/status.h"
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { MIB = 1 << 20, BUFFER = 16 * MIB, CHUNK = 4096 };

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

struct kase {
	const char *options;
	size_t mib;
	size_t every; /* of so many pages one is new, */
	int epochs;
	int all_at;   /* but in this epoch all are */
	bool jumping; /* they are written in no order that is seen in their addresses */
};

/* Pages get new content, in a way that costs little: a number each. */
static void renew(const struct kase *k, uint8_t *p, uint64_t *next, size_t every)
{
	size_t pages = k->mib * MIB / CHUNK;

	for (size_t i = 0; i < pages; i += every) {
		size_t page = k->jumping ? i * 0x9e3779b1u % pages : i;
		uint64_t number = ++*next * 0x9e3779b97f4a7c15u;

		memcpy(p + page * CHUNK + number % 500 * 8, &number, sizeof(number));
	}
}

static long allowed(const struct kase *k)
{
	size_t len = k->mib * MIB, cores = vv_pool_cores(), most = BUFFER + len / 50;

	if (strstr(k->options, "mode=sync"))
		most += cores * 2 * MIB; /* blocks that are being coded, of which only async has a bound */
	if (strstr(k->options, "keep="))
		most += MIB; /* tables of old layers, which gc reads while the next epoch is stored */
	if (cores > 4)
		most += (cores - 4) * (strstr(k->options, "codec=none") ? MIB / 4 : MIB);
	return (long)((len >= BUFFER && len < BUFFER + 4 * MIB ? most + 3 * MIB + MIB / 2 : most) / 1024);
}

/* In the child. */
static int measure(const char *store, const struct kase *k)
{
	size_t len = k->mib * MIB;
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long base, files, worst = 0, most = allowed(k);
	uint64_t next = 0;
	varve *v;
	int rc;

	must_begin("memory, %s, %zu MiB, every %zu", k->options, k->mib, k->every);
	MUST(p != MAP_FAILED);
	renew(k, p, &next, 1);
	base = status_kib("VmRSS");
	files = status_kib("RssFile");
	rc = varve_open(store, "run", k->options, &v);
	if (rc == VARVE_ENOTSUP)
		return 0;
	MUST(rc == 0 && varve_protect(v, "p", p, len) == 0);
	for (int e = 1; e <= k->epochs; e++) {
		long grown;

		MUST(reset_peak());
		MUST(varve_checkpoint(v) == 0);
		renew(k, p, &next, e + 1 == k->all_at ? 1 : k->every);
		MUST(varve_wait(v, varve_epoch(v)) == 0);
		grown = status_kib("VmHWM") - base - (status_kib("RssFile") - files);
		worst = grown > worst ? grown : worst;
	}
	MUST(varve_close(v) == 0);
	printf("%s: %zu MiB, 1 of %zu%s, %d epochs: %ld KiB, at most %ld\n", k->options, k->mib, k->every, k->jumping ? " here and there" : "", k->epochs, worst,
	       most);
	return worst > most;
}

int main(void)
{
	/* With `keep` the space of old epochs is taken back; at the 64th a copy of the index goes to the store. */
	static const struct kase kases[] = {
		{ "buffer=16MiB codec=none tracker=auto", 256, 1, 3, 0, false },
		{ "buffer=16MiB codec=none tracker=auto", 256, 20, 3, 0, false },
		{ "buffer=16MiB codec=none tracker=auto", 256, 2, 4, 0, false },
		{ "buffer=16MiB codec=none tracker=auto", 64, 1, 3, 0, false },
		{ "buffer=16MiB codec=none tracker=auto", 16, 1, 3, 0, false },
		{ "buffer=16MiB codec=none tracker=auto", 12, 1, 3, 0, false },
		{ "buffer=16MiB codec=none tracker=auto", 1024, 1, 3, 0, false },
		{ "buffer=16MiB codec=none tracker=auto bandwidth=500MB", 256, 1, 5, 0, true },
		{ "buffer=16MiB codec=none tracker=auto", 256, 12, 6, 6, true },
		{ "buffer=16MiB codec=zstd tracker=digest", 256, 1, 3, 0, false },
		{ "buffer=16MiB codec=none tracker=digest", 256, 1, 3, 0, false },
		{ "buffer=16MiB codec=none tracker=digest", 256, 20, 3, 0, false },
		{ "buffer=16MiB codec=none tracker=wpasync", 256, 1, 3, 0, false },
		{ "buffer=16MiB codec=none tracker=wpasync", 256, 20, 3, 0, false },
		{ "buffer=16MiB codec=none tracker=mprotect", 256, 1, 3, 0, false },
		{ "buffer=16MiB codec=none tracker=mprotect", 256, 20, 3, 0, false },
		{ "buffer=16MiB keep=2", 256, 1, 12, 0, false },
		{ "buffer=16MiB keep=3", 256, 10, 67, 0, false },
		{ "buffer=16MiB keep=3", 256, 10, 12, 0, true },
		{ "buffer=16MiB mode=sync keep=2 history=0", 256, 3, 12, 0, false },
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
