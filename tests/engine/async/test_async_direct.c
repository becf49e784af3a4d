// ctest: TIMEOUT 300 COST 8
/* A read past the page cache is under way when a checkpoint looks at what is written: the kernel holds the pages, and the device writes them when nobody looks any more. The next epoch must
 * have what came: under every tracker, with single pages and with grains, and again with the read across several checkpoints. */
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LEN = 16 << 20, PART = 4 << 20, ROUNDS = 24, LATEST_US = 4000 };

static uint8_t *memory, *source, *copy;
static int file;
static atomic_int reads; /* 1: about to, 2: done */

static void *read_part(void *arg)
{
	atomic_store(&reads, 1);
	MUST(pread(file, memory, PART, 0) == PART);
	atomic_store(&reads, 2);
	return arg;
}

static int compare(varve *v)
{
	MUST(varve_checkpoint(v) == 0 && varve_wait(v, varve_epoch(v)) == 0);
	MUST(varve_restart_region(v, VARVE_LATEST, "p", copy, LEN) == 0);
	return memcmp(copy, memory, LEN) != 0;
}

static void meets(const char *options, int fine, int calls)
{
	char store[PLACE_MAX];
	uint64_t seed = 3;
	int met = 0;
	varve *v;
	int rc;

	must_begin("%s%s, %d checkpoints meanwhile", options, fine ? ", grains" : "", calls);
	place_path(store, "store");
	rc = varve_open(store, "run", options, &v);
	if (rc == VARVE_ENOTSUP)
		return;
	MUST(rc == 0 && varve_protect(v, "p", memory, LEN) == 0);
	MUST(!fine || varve_refine(v, "p", NULL, 256) == 0);
	MUST(compare(v) == 0 && compare(v) == 0);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread;

		gen_bytes(&seed, source, PART);
		MUST(pwrite(file, source, PART, 0) == PART);
		atomic_store(&reads, 0);
		MUST(pthread_create(&thread, NULL, read_part, NULL) == 0);
		while (!atomic_load(&reads))
			;
		usleep((unsigned)gen_below(&seed, LATEST_US));
		for (int k = 0; k < calls; k++) {
			met += atomic_load(&reads) == 1;
			MUST(varve_checkpoint(v) == 0);
		}
		MUST(pthread_join(thread, NULL) == 0 && varve_wait(v, varve_epoch(v)) == 0);
		MUST(memcmp(memory, source, PART) == 0);
		MUST(compare(v) == 0);
	}
	printf("%s: %d of %d checkpoints met a read\n", options, met, ROUNDS * calls);
	MUST(varve_close(v) == 0);
	place_remove(store);
}

int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("a sanitizer stands in front of the calls that the library must see");
#endif
	static const char *const trackers[] = { "wpasync", "auto", "mprotect", "sigbus", "digest" };
	char path[PLACE_MAX], options[200];

	place_path(path, "direct");
	file = open(path, O_RDWR | O_CREAT | O_DIRECT, 0600);
	if (file < 0)
		SKIP("no O_DIRECT on this file system");
	memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	source = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	copy = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(memory != MAP_FAILED && source != MAP_FAILED && copy != MAP_FAILED);
	memset(memory, 1, LEN);
	for (size_t i = 0; i < sizeof(trackers) / sizeof(trackers[0]); i++)
		for (int sync = 0; sync < 2; sync++) {
			snprintf(options, sizeof(options), "tracker=%s mode=%s codec=none keep=2 log=error", trackers[i], sync ? "sync" : "async");
			meets(options, 0, 1 + 2 * (int)(i == 0));
			if (i == 0)
				meets(options, 1, 1);
		}
	unlink(path);
	return 0;
}
