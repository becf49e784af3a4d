// Cases that once went wrong: a fork while threads wait, equal pages without dedup, little address space.
#include "support/place.h"
#include "vv_test.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <varve/varve.h>

enum { MIB = 1 << 20, PAGE = 4096 };

static unsigned char *pages(size_t n)
{
	unsigned char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	for (size_t i = 0; i < n; i += sizeof(uint32_t))
		memcpy(p + i, &(uint32_t){ (uint32_t)i * 2654435761u }, sizeof(uint32_t));
	return p;
}

// What keeps it from what is being stored is a fence, which the sanitizer cannot see.
__attribute__((no_sanitize("thread"))) static void *write_all(void *arg)
{
	for (size_t i = 0; i < 4 * MIB; i += PAGE)
		((volatile unsigned char *)arg)[i]++;
	return NULL;
}

// A child may close its copy of the session while a thread of the parent waits at a fence.
static void fork_while_waiting(const char *store)
{
	unsigned char *p = pages(4 * MIB);
	pthread_t writer;
	varve *v = NULL;
	int status;
	pid_t child;

	CHECK_EQ(varve_open(store, "fork", "bandwidth=8M buffer=0 codec=none", &v), 0);
	CHECK_EQ(varve_protect(v, "p", p, 4 * MIB), 0);
	CHECK_EQ(varve_checkpoint(v), 0);
	CHECK_EQ(pthread_create(&writer, NULL, write_all, p), 0);
	usleep(50000);
	child = fork();
	if (child == 0) {
		alarm(10);
		p[0]++;
		varve_close(v);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	pthread_join(writer, NULL);
	CHECK_EQ(varve_wait(v, varve_epoch(v)), 0);
	CHECK_EQ(varve_close(v), 0);
	munmap(p, 4 * MIB);
}

// As in the paper, with content that is the same everywhere: a thousand entries of one digest.
static void equal_pages(const char *store)
{
	enum { LEN = 64 * MIB };
	unsigned char *p = pages(LEN);
	struct varve_stats st;
	varve *v = NULL;

	alarm(40);
	CHECK_EQ(varve_open(store, "equal", "dedup=no chunk=512", &v), 0);
	CHECK_EQ(varve_protect(v, "p", p, LEN), 0);
	for (int k = 0; k < 4; k++) {
		memset(p, k, LEN);
		CHECK_EQ(varve_checkpoint(v), 0);
		CHECK_EQ(varve_stats(v, &st), 0);
	}
	CHECK_EQ(varve_close(v), 0);
	alarm(0);
	munmap(p, LEN);
}

// There is room for the buffer, but not for as much again as the regions.
__attribute__((unused)) static void little_address_space(const char *store)
{
	enum { LEN = 256 * MIB };
	pid_t child = fork();
	int status;

	if (child == 0) {
		unsigned char *p = pages(LEN);
		struct rlimit limit = { 0, 0 };
		unsigned long in_use = 0;
		varve *v = NULL;
		FILE *f = fopen("/proc/self/statm", "r");

		CHECK(f && fscanf(f, "%lu", &in_use) == 1);
		fclose(f);
		limit.rlim_cur = limit.rlim_max = in_use * PAGE + 160 * (rlim_t)MIB;
		CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
		CHECK_EQ(varve_open(store, "small", "threads=1", &v), 0);
		CHECK_EQ(varve_protect(v, "p", p, LEN), 0);
		if (varve_checkpoint(v) < 0) {
			fprintf(stderr, "%s\n", varve_last_error());
			_exit(1);
		}
		CHECK_EQ(varve_close(v), 0);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
	char store[PLACE_MAX];

	place_path(store, "cases");
	fork_while_waiting(store);
	equal_pages(store);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	little_address_space(store);
#endif
	return 0;
}
