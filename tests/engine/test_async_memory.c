// ctest: TIMEOUT 300 COST 10
/* The memory that checkpoints take: no more than the buffer, 2 % of the regions, and a little that does not grow; besides, unless history=0, the
 * index of all content. Measured as the highest resident set of a child process. */
#include "base/pool.h"
#include "core/index.h"
#include "support/must.h"
#include "support/place.h"
#include "support/status.h"
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { MIB = 1 << 20, LEN = 256 * MIB, BUFFER = 16 * MIB, FIXED = 12 * MIB, EPOCHS = 3, CHUNK = 4096 };

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

/* While its table grows, that which it grows out of, half as large, is there, too. */
static long index_kib(uint64_t chunks)
{
	size_t all = vv_index_bytes(chunks), table = all - chunks * sizeof(struct vv_entry);

	return chunks ? (long)((all + table / 2) / 1024) : 0;
}

/* `every`: of so many pages one is new in later epochs. In the child. */
static int measure(const char *store, const char *tracker, const char *more, size_t every)
{
	char options[200];
	uint8_t *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t next = 0;
	long base, worst = 0;
	/* the C library's, for each thread: a coder's working memory stays there */
	long heap = strstr(more, "zstd") ? MIB : MIB / 2;
	varve *v;
	int rc;

	must_begin("memory, tracker=%s %s, every %zu", tracker, more, every);
	snprintf(options, sizeof(options), "tracker=%s buffer=16MiB %s", tracker, more);
	MUST(p != MAP_FAILED);
	renew(p, &next, 1);
	base = status_kib("VmRSS");
	rc = varve_open(store, "run", options, &v);
	if (rc == VARVE_ENOTSUP)
		return 0;
	MUST(rc == 0 && varve_protect(v, "p", p, LEN) == 0);
	for (int e = 0; e < EPOCHS; e++) {
		uint64_t fresh;
		long grown, most;
		bool bare = strstr(more, "history=0");

		MUST(reset_peak());
		MUST(varve_checkpoint(v) == 0);
		fresh = bare ? 0 : next;
		renew(p, &next, every);
		MUST(varve_wait(v, varve_epoch(v)) == 0);
		grown = status_kib("VmHWM") - base;
		most = (BUFFER + LEN / 50 + FIXED + vv_pool_cores() * heap) / 1024 + index_kib(fresh);
		printf("%s %s, 1 of %zu, epoch %d: %ld KiB, at most %ld (index of %llu chunks: %ld KiB)\n", tracker, more, every,
		       e + 1, grown, most, (unsigned long long)fresh, index_kib(fresh));
		worst = grown - most > worst ? grown - most : worst;
	}
	MUST(varve_close(v) == 0);
	return worst > 0;
}

int main(void)
{
	static const char *const trackers[] = { "auto", "digest", "wpasync", "mprotect" };
	static const char *const more[] = { "codec=none", "codec=zstd", "codec=none history=0" };
	char store[PLACE_MAX];
	int bad = 0;

	if (SANITIZED)
		SKIP("a sanitizer takes memory of its own");
	place_path(store, "store");
	for (size_t k = 0; k < 16; k++) {
		size_t every = k % 2 ? 20 : 1;
		int status;
		pid_t pid;

		fflush(stdout);
		place_remove(store);
		pid = fork();
		if (pid == 0) {
			int rc = measure(store, trackers[k / 2 % 4], more[k < 8 ? k == 2 : 2], every);

			fflush(stdout);
			_exit(rc);
		}
		MUST(waitpid(pid, &status, 0) == pid);
		bad += status != 0;
	}
	return bad ? 1 : 0;
}
