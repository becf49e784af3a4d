// ctest: TIMEOUT 120 COST 5
/* Blocks say themselves how large they are, up to 64 MiB, and there may be a thread for each: what verify takes for them all at once
 * has a bound, and every one is looked at. */
#include "engine/upkeep/verify.h"
#include "support/must.h"
#include "support/place.h"
#include "support/status.h"
#include "vv_config.h"
#include <sys/mman.h>
#include <sys/wait.h>

enum { MIB = 1 << 20, BLOCK = 64 * MIB, BLOCKS = 8, CHUNK = MIB, MOST_KIB = 240 << 10 };

/* One sheet of memory that lies in many places; in each only a page is its own, so that no chunk is there twice. */
static uint8_t *paper(size_t n)
{
	int fd = memfd_create("sheet", MFD_CLOEXEC);
	uint8_t *p = mmap(NULL, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(fd >= 0 && p != MAP_FAILED && ftruncate(fd, CHUNK) == 0);
	for (size_t at = 0; at < n; at += CHUNK) {
		MUST(mmap(p + at, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) == p + at);
		memcpy(p + at, &at, sizeof(at));
	}
	return p;
}

static void lay_down(const char *store, const char *codec)
{
	size_t n = (size_t)BLOCKS * BLOCK;
	uint8_t *p = paper(n);
	char options[200];
	varve *v = NULL;

	snprintf(options, sizeof(options), "mode=sync tracker=digest dedup=no threads=1 chunk=1MiB block=64MiB codec=%s", codec);
	MUST(varve_open(store, "a", options, &v) == 0);
	MUST(varve_protect(v, "p", p, n) == 0);
	MUST(varve_checkpoint(v) == 0);
	MUST(varve_close(v) == 0);
}

static void hear(void *arg, const char *problem)
{
	(void)arg;
	fprintf(stderr, "%s\n", problem);
}

static long verify(const char *store)
{
	struct vv_verify_report report = { 0 };
	struct vv_pool *pool = NULL;
	struct vv_store *s = NULL;
	struct vv_lineage lin;
	FILE *f = fopen("/proc/self/clear_refs", "we");
	long base;

	if (!f || fputs("5", f) < 0 || fclose(f) != 0)
		SKIP("the kernel does not reset the highest resident set");
	MUST(vv_pool_new(BLOCKS - 1, &pool) == 0);
	MUST(vv_store_open(store, &(struct vv_store_options){ 0 }, &s) == 0);
	MUST(vv_catalog_open(s, "a", false, &lin) == 0);
	base = status_kib("VmRSS");
	MUST(vv_verify_run(&lin, pool, 0, false, hear, NULL, NULL, &report) == 0);
	MUST(report.problems == 0 && report.blocks == BLOCKS);
	vv_store_close(s);
	vv_pool_free(pool);
	return status_kib("VmHWM") - base;
}

int main(void)
{
	const char *codec = VV_HAVE_ZSTD ? "zstd" : VV_HAVE_LZ4 ? "lz4" : NULL;
	char store[PLACE_MAX];
	int status;
	long took;
	pid_t pid;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("a sanitizer takes memory of its own");
#endif
	if (!codec)
		SKIP("no codec is built in, and blocks as large as this would take as much of the disk");
	must_begin("%d blocks of %d MiB, coded by %s", BLOCKS, BLOCK / MIB, codec);
	place_path(store, "store");
	pid = fork();
	if (pid == 0) {
		lay_down(store, codec);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	took = verify(store);
	printf("%d blocks of %d MiB: %ld KiB\n", BLOCKS, BLOCK / MIB, took);
	MUST(took <= MOST_KIB);
	return 0;
}
