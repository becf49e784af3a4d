/* Memory around which the system refuses to put a fence: that costs time, not the checkpoint. Threads that it does not give: the error names the limits that there are. */
#include "support/gen.h"
#include "support/must.h"
#include "support/refuse.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, LEN = 256 * PAGE };

static uint8_t *memory, copy[LEN], got[LEN];
static bool refusing;

/* In place of the C library's: a part of the memory cannot be write-protected, as where it lies in large pages, or mappings have run out. */
long syscall(long number, ...)
{
	static long (*real)(long number, ...);
	uint8_t *bad = memory + LEN / 2;
	long word[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		word[i] = va_arg(ap, long);
	va_end(ap);
	if (refusing && number == SYS_mprotect && word[2] == PROT_READ && word[0] <= (intptr_t)bad && (intptr_t)bad < word[0] + word[1]) {
		errno = EINVAL;
		return -1;
	}
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	return real(number, word[0], word[1], word[2], word[3], word[4], word[5]);
}

static void check(varve *v)
{
	MUST(varve_wait(v, varve_epoch(v)) == 0);
	memset(got, 0xee, LEN);
	MUST(varve_restart_region(v, varve_epoch(v), "p", got, LEN) == 0);
	MUST(memcmp(got, copy, LEN) == 0);
}

/* Epochs of all pages and of a few, written anew as soon as the call has returned; from the second on fences are refused, and
 * in the end they are not. */
static void protection(const char *options)
{
	uint64_t seed = 5;
	varve *v = NULL;

	must_begin("fences are refused: %s", options);
	memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(memory != MAP_FAILED);
	MUST(varve_open("mem:refused", "run", options, &v) == 0);
	MUST(varve_protect(v, "p", memory, LEN) == 0);
	for (int epoch = 1; epoch <= 6; epoch++) {
		refusing = epoch > 1 && epoch < 6;
		if (epoch % 2)
			gen_bytes(&seed, memory, LEN);
		else
			gen_bytes(&seed, memory + LEN / 2, 20 * PAGE);
		memcpy(copy, memory, LEN);
		MUST(varve_checkpoint(v) == 0);
		for (size_t i = 0; i < LEN; i += PAGE)
			memory[i]++;
		check(v);
	}
	MUST(varve_close(v) == 0);
	munmap(memory, LEN);
}

static void threads(const char *mode, bool limited)
{
	struct rlimit space = { (rlim_t)1 << 50, (rlim_t)1 << 50 };
	pid_t child = fork();
	varve *v = NULL;
	char options[64];
	int status;

	must_begin("threads are refused: mode=%s%s", mode, limited ? ", ulimit -v" : "");
	MUST(child >= 0);
	if (child > 0) {
		MUST(waitpid(child, &status, 0) == child && status == 0);
		return;
	}
	snprintf(options, sizeof(options), "mode=%s threads=1 tracker=digest", mode);
	MUST(!limited || setrlimit(RLIMIT_AS, &space) == 0);
	if (getrlimit(RLIMIT_AS, &space) < 0 || (!limited && space.rlim_cur != RLIM_INFINITY) || !refuse_threads())
		_exit(0);
	MUST(varve_open("mem:threads", "run", options, &v) == 0);
	MUST(varve_protect(v, "p", copy, LEN) == 0);
	copy[0] = 1;
	MUST(varve_checkpoint(v) != 0);
	MUST(strstr(varve_last_error(), "ulimit -u") && !strstr(varve_last_error(), "ulimit -v") == !limited);
	_exit(0);
}

int main(void)
{
	static const char *const trackers[] = { "auto", "mprotect", "digest" };
	static const char *const buffers[] = { "0", "64KiB", "100%" };

	for (size_t t = 0; t < 3; t++)
		for (size_t b = 0; b < 3; b++) {
			char options[200];

			snprintf(options, sizeof(options), "tracker=%s buffer=%s log=error", trackers[t], buffers[b]);
			protection(options);
		}
	protection("tracker=mprotect mode=sync log=error");
	for (int k = 0; k < 4; k++)
		threads(k & 1 ? "sync" : "async", k & 2);
	return 0;
}
